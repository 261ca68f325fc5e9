"""What importing the package costs, and what it gives (SPEC.md section 10)."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import memorybank
from memorybank import errors

Child = Callable[..., subprocess.Popen[str]]

OURS = ["bank*.py", "cli*.py", "index*.py", "storage/**/*.py", "inputs.py", "live_index.py", "ranking.py", "vectors.py"]
HEAVY = ["numpy", "faiss", "sqlalchemy", "alembic", "torch", "sentence_transformers", "fastapi", "pydantic", "rich"]


def loaded(child: Child, program: str) -> tuple[set[str], float]:
    """Return which heavy modules a program loads, and the seconds that its import took."""
    process = child(f"""
import sys, time
started = time.process_time()
{program}
took = time.process_time() - started
import json
print(json.dumps([[name for name in {HEAVY!r} if name in sys.modules], took]))
""")
    out, err = process.communicate(timeout=60)
    modules, took = json.loads(out.splitlines()[-1]) if out else (None, err)
    return set(modules), took


def test_importing_loads_nothing_heavy_and_is_quick(child: Child) -> None:
    modules, took = loaded(child, "from memorybank import MemoryBank; import memorybank.cli")
    assert modules == set()
    assert took < 0.2


def test_opening_an_old_bank_needs_no_alembic_and_no_torch(child: Child, database: Path, open_bank) -> None:
    open_bank().add("x")
    modules, _ = loaded(
        child,
        f"""
from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder
bank = MemoryBank.open({str(database)!r}, embedder=HashingEmbedder())
assert bank.search("x")
""",
    )
    assert modules == {"numpy", "faiss", "sqlalchemy"}


def test_the_default_model_is_not_loaded_by_opening(child: Child) -> None:
    modules, _ = loaded(child, "from memorybank import MemoryBank\nMemoryBank.open().list()")
    assert "torch" not in modules
    assert "sentence_transformers" not in modules


def test_the_public_names_are_these() -> None:
    assert set(memorybank.__all__) == {"MemoryBank", "Memory", "NewMemory", "Recalled", *errors.__all__}
    assert list(memorybank.__all__) == sorted(memorybank.__all__)
    for name in memorybank.__all__:
        assert inspect.isclass(getattr(memorybank, name))
        assert getattr(memorybank, name).__doc__


def test_all_of_every_module_is_complete() -> None:
    """Every public class and function is in its module's `__all__`, and everything in it exists."""
    folder = Path(memorybank.__file__).parent
    for file in [file for pattern in OURS for file in folder.glob(pattern)]:
        if "migrations" in file.parts or file.stem == "__main__":
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        defined = {
            node.name
            for node in tree.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
        }
        [listed] = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        assert defined <= set(listed), file

"""What opening a bank loads, and what each module shows (SPEC.md section 10)."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import memorybank
from memorybank import MemoryBank

pytestmark = pytest.mark.both_engines

Child = Callable[..., subprocess.Popen[str]]

HEAVY = ["numpy", "faiss", "sqlalchemy", "alembic", "psycopg", "torch", "sentence_transformers", "fastapi", "pydantic"]
HEAVY += ["rich", "onnx", "onnxruntime", "tokenizers"]


def loaded(child: Child, program: str) -> set[str]:
    """Return which heavy modules a program loads."""
    process = child(f"""
{program}
import sys
print(*[name for name in {HEAVY!r} if name in sys.modules])
""")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return set(out.split())


def test_the_command_line_loads_nothing_heavy(child: Child) -> None:
    assert loaded(child, "import memorybank.cli") == set()


def test_opening_an_old_bank_needs_no_alembic_and_no_torch(
    child: Child, database: Path | str, engine: str, open_bank: Callable[..., MemoryBank]
) -> None:
    open_bank().add("x")
    modules = loaded(
        child,
        f"""
from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder
bank = MemoryBank.open({str(database)!r}, embedder=HashingEmbedder())
assert bank.search("x")
""",
    )
    assert modules == {"numpy", "faiss", "sqlalchemy"} | ({"psycopg"} if engine == "postgresql" else set())


def test_the_default_model_is_not_loaded_by_opening(child: Child) -> None:
    modules = loaded(child, "from memorybank import MemoryBank\nMemoryBank.open().list()")
    assert "torch" not in modules
    assert "sentence_transformers" not in modules


def test_all_of_every_module_is_complete() -> None:
    """Every public class and function is in its module's `__all__`, and everything in it exists."""
    folder = Path(memorybank.__file__).parent
    for file in folder.rglob("*.py"):
        if "migrations" in file.parts or file.stem in ("__main__", "tokenizer"):  # whose classes are had by name
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if len(tree.body) == 1:  # a docstring
            continue
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

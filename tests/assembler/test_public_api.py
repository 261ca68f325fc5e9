"""What the two packages show to the world, and what importing them costs (SPEC.md section 10)."""

import importlib
import importlib.resources
import inspect
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import assembler
import memorybank

ROOT = Path(__file__).parents[2]

NAMES = {
    "assembler": [
        "Action",
        "ActionLog",
        "Adventure",
        "AdventureError",
        "AssembledContext",
        "AssemblerError",
        "ContextTooSmallError",
        "Line",
        "Message",
        "Part",
        "Report",
        "Settings",
        "SettingsError",
        "StoryCard",
        "UnknownFieldWarning",
        "assemble",
        "bank_of",
        "dumps",
        "from_dict",
        "load",
        "loads",
        "to_dict",
        "with_story_summary",
    ],
    "memorybank": [
        "ActionNotFoundError",
        "BankNotFoundError",
        "InvalidInputError",
        "Memory",
        "MemoryBank",
        "MemoryBankError",
        "MemoryNotFoundError",
        "ModelError",
        "ModelMismatchError",
        "NewMemory",
        "PreconditionError",
        "Recalled",
        "StorageError",
        "SummaryNotFoundError",
        "TokenizerError",
    ],
}
EVERY_NAME = [(package, name) for package, names in NAMES.items() for name in names]


@pytest.mark.parametrize("package", [assembler, memorybank], ids=NAMES)
def test_all_is_exact(package):
    assert list(package.__all__) == NAMES[package.__name__]
    assert list(package.__all__) == sorted(package.__all__)
    assert set(package.__all__) <= set(dir(package))
    shown = {name for name, value in vars(package).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert shown - {"annotations", "TYPE_CHECKING", "Any"} <= set(package.__all__)


@pytest.mark.parametrize(("package", "name"), EVERY_NAME)
def test_every_name_can_be_imported_and_says_what_it_is(package, name):
    value = getattr(importlib.import_module(package), name)
    assert value.__name__ == name
    assert inspect.getdoc(value)
    assert value.__module__.split(".")[0] in NAMES
    if inspect.isclass(value):
        for attribute, member in vars(value).items():
            if not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                assert inspect.getdoc(member), f"{name}.{attribute}"


@pytest.mark.parametrize("package", [assembler, memorybank], ids=NAMES)
def test_a_name_that_is_not_there_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("package", NAMES)
def test_star_imports_what_all_says(package):
    names: dict[str, object] = {}
    exec(f"from {package} import *", names)  # noqa: S102
    assert set(names) - {"__builtins__"} == set(NAMES[package])


@pytest.mark.parametrize("package", NAMES)
def test_the_packages_are_typed(package):
    assert importlib.resources.files(package).joinpath("py.typed").is_file()
    assert importlib.import_module(package).__doc__


@pytest.mark.parametrize(
    ("package", "root", "builtin"),
    [
        ("assembler", "AssemblerError", {"AdventureError": ValueError, "SettingsError": ValueError}),
        (
            "memorybank",
            "MemoryBankError",
            {"InvalidInputError": ValueError, "MemoryNotFoundError": LookupError, "TokenizerError": ValueError},
        ),
    ],
)
def test_one_tree_of_exceptions_in_each_package(package, root, builtin):
    module = importlib.import_module(package)
    base = getattr(module, root)
    errors = [name for name in NAMES[package] if name.endswith("Error")]
    assert all(issubclass(getattr(module, name), base) for name in errors)
    for name, kind in builtin.items():
        assert issubclass(getattr(module, name), kind)
    drawing = inspect.getdoc(importlib.import_module(f"{package}.errors"))
    assert all(name in drawing for name in errors)


HEAVY = [
    *("torch", "faiss", "fastapi", "pydantic", "numpy", "sqlalchemy", "alembic", "tiktoken", "tokenizers"),
    *("sentence_transformers", "transformers", "rich", "onnx", "onnxruntime"),
]
CHEAP_IMPORTS = {
    "import assembler": "import assembler",
    "import memorybank": "import memorybank",
    "from assembler import assemble": "from assembler import assemble, Settings, load",
    "from memorybank import MemoryBank": "from memorybank import MemoryBank",
}


def python(code: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", CHEAP_IMPORTS.values(), ids=CHEAP_IMPORTS)
def test_importing_loads_nothing_heavy(code):
    assert python(f"{code}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])").split() == []


@pytest.mark.parametrize("package", NAMES)
def test_importing_takes_less_than_a_fifth_of_a_second(package):
    def seconds(code: str) -> float:  # of the processor, so that a busy machine is no fault
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        python(code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    python(f"import {package}")  # the byte code is there
    importing = min(seconds(f"import {package}") for _ in range(5))
    bare = min(seconds("pass") for _ in range(5))
    assert importing - bare < 0.2


def test_the_memory_bank_knows_nothing_of_the_assembler():
    for path in (ROOT / "memorybank").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import assembler" not in text, path
        assert "from assembler" not in text, path

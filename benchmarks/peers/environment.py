"""Where the peers are installed: an environment for each file in `requirements/`, in the user's cache folder.

`python -m benchmarks peers` makes them, once, from the package registry. A benchmark makes none: it needs no network,
and says in its notes which peer was not there.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import Progress, silent
from memorybank.embedding.cache import cache_file

__all__ = ["PeerMissingError", "make", "names", "python_of"]

REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
STAMP = "installed.sha256"


class PeerMissingError(Exception):
    """A peer's environment is not there, or not as its requirements say."""


def names() -> list[str]:
    """Return the names of all environments: those of the files in `requirements/`."""
    return sorted(file.stem for file in REQUIREMENTS.glob("*.txt"))


def python_of(name: str) -> Path:
    """Return the Python of an environment.

    Raises:
        PeerMissingError: it was not made, or its requirements have changed since; the message says what to do.
    """
    folder, wanted = _folder(name), _fingerprint(name)
    stamp = folder / STAMP
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        raise PeerMissingError(
            f"{name} is not installed as requirements/{name}.txt says; run `python -m benchmarks peers`"
        )
    return _python(folder)


def make(name: str, progress: Progress = silent) -> bool:
    """Make an environment unless it is there; return whether it is there now. What pip says goes to stderr."""
    try:
        python_of(name)
    except PeerMissingError:
        progress(f"making the environment of {name} in {_folder(name)}")
        return _install(name, _folder(name))
    return True


def _install(name: str, folder: Path) -> bool:
    (folder / STAMP).unlink(missing_ok=True)
    pip = [str(_python(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, stdout=sys.stderr)
        subprocess.run([*pip, "-r", str(REQUIREMENTS / f"{name}.txt")], check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    (folder / STAMP).write_text(_fingerprint(name), encoding="utf-8")
    return True


def _folder(name: str) -> Path:
    vectors = cache_file()  # None where the user wants no cache of vectors; an environment needs a place all the same
    return (vectors.parent if vectors else Path("~/.cache/story-context").expanduser()) / "peers" / name


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _fingerprint(name: str) -> str:
    """Return a hash of what decides what is installed."""
    file = REQUIREMENTS / f"{name}.txt"
    if not file.is_file():
        raise PeerMissingError(f"there is no peer {name!r}; there are {', '.join(names())}")
    return hashlib.sha256(file.read_bytes() + sys.version.encode()).hexdigest()

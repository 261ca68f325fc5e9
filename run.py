"""Set up and run, in one command: `python3 run.py example` or `python3 run.py tests`.

Makes an environment in `.venv` with the versions pinned in `constraints.txt` and installs this project into it. That
needs the package registry once; afterwards nothing does. Everything after the command goes to the program that it
starts: `python3 run.py tests -k triggers`.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - that is the point
    sys.exit(f"run.py: Python 3.11 or newer is needed, this is {sys.version.split()[0]}")

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "installed.json"

EXAMPLE = ["-m", "assembler", "build", "examples/the_cormorant_light.json", "--context", "2048"]
TESTS = ["-m", "pytest", "-n", "2"]
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "example": ("model", EXAMPLE),
    "tests": ("dev", TESTS),
    "setup": ("dev", []),
}


def main() -> int:
    """Run the command that was named."""
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        print(f"usage: python3 run.py {'|'.join(COMMANDS)} [more arguments]", file=sys.stderr)
        return 2
    extra, program = COMMANDS[sys.argv[1]]
    set_up(extra)
    return subprocess.call([str(PYTHON), *program, *sys.argv[2:]], cwd=ROOT) if program else 0


def set_up(extra: str) -> None:
    """Make the environment and install the project with an extra, unless that was done before."""
    wanted = {"fingerprint": fingerprint(), "extra": extra}
    found = json.loads(STAMP.read_text()) if STAMP.is_file() and PYTHON.exists() else {}
    if found == wanted or found == wanted | {"extra": "dev"}:  # `dev` holds all the others
        return
    print("Setting up .venv, once; this takes some minutes.", file=sys.stderr, flush=True)
    STAMP.unlink(missing_ok=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", "constraints.txt", "-e", f".[{extra}]"], cwd=ROOT, check=True)
    except subprocess.CalledProcessError as error:
        hint = "; on Debian and Ubuntu, install the package python3-venv first" if "venv" in error.cmd else ""
        sys.exit(f"run.py: setting up failed (see above){hint}; run the command again to go on")
    STAMP.write_text(json.dumps(wanted))


def fingerprint() -> str:
    """Return a hash of everything that decides what is installed, the place included: links hold full paths."""
    files = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256(b"\0".join([*files, str(ROOT).encode(), sys.version.encode()])).hexdigest()


if __name__ == "__main__":
    sys.exit(main())

"""The command line: run one benchmark, or all, make the peers' environments, or show the stored results."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import plots, suite, table
from benchmarks.peers import environment


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; return the exit code."""
    call = _parser().parse_args(arguments)
    if call.name is None:
        print("python -m benchmarks NAME, where NAME is one of\n")
        for name, summary in _names().items():
            print(f"  {name:<10} {summary}")
        return 0
    if call.name == "table":
        return _table(call)
    if call.name == "plots":
        return _plots(call)
    if call.name == "all":
        return _all(call)
    if call.name == "peers":
        return max(int(not environment.make(name, _progress)) for name in environment.names())
    _set_threads()
    result = suite.run(call.name, quick=call.quick, progress=_progress)
    print(table.for_terminal(result))
    results = call.results or (None if call.quick else suite.RESULTS)
    print(f"\nwritten to {suite.write(result, results)}" if results else "\nquick: nothing written; give --results DIR")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the speed of this project.")
    parser.add_argument("name", nargs="?", choices=_names(), help="without it, the names are listed")
    parser.add_argument("--quick", action="store_true", help="a smoke run in seconds; its numbers say little")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where NAME.json goes (benchmarks/results)")
    parser.add_argument("--update", type=Path, metavar="FILE", help="table: put it between the marks in FILE")
    return parser


def _set_threads() -> None:
    """One thread each, as the project recommends, unless someone chose already or the libraries are loaded."""
    if "numpy" not in sys.modules:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(name, "1")


def _names() -> dict[str, str]:
    return suite.SUMMARIES | {
        "all": "all of these, each in a process of its own",
        "peers": "install what is compared with, once, in environments of their own; needs the package registry",
        "plots": "a picture of each stored result",
        "table": "the results as Markdown",
    }


def _table(call: argparse.Namespace) -> int:
    results = suite.stored(call.results or suite.RESULTS)
    if call.update is None:
        print(table.markdown(results))
    else:
        table.update(call.update, table.markdown(results, _pictures_beside(call)))
    return 0


def _pictures_beside(call: argparse.Namespace) -> dict[str, str]:
    """Return the pictures that there are by the name of the benchmark, as seen from the file that is updated."""
    return {file.stem: os.path.relpath(file, call.update.parent) for file in sorted(_pictures(call).glob("*.png"))}


def _pictures(call: argparse.Namespace) -> Path:
    return plots.PLOTS if call.results is None else Path(call.results) / "plots"


def _plots(call: argparse.Namespace) -> int:
    for file in plots.draw_all(suite.stored(call.results or suite.RESULTS), _pictures(call)):
        print(file)
    return 0


def _all(call: argparse.Namespace) -> int:
    options = [*(["--quick"] if call.quick else []), *(["--results", str(call.results)] if call.results else [])]
    codes = [subprocess.call([sys.executable, "-m", "benchmarks", name, *options]) for name in suite.SUMMARIES]
    return max(codes)


def _progress(line: str) -> None:
    print(f"… {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

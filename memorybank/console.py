"""What the two command lines share: streams, errors in one line, exit codes, progress (SPEC.md sections 7 and 11)."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

__all__ = ["CommandParser", "end_process", "note", "progress_bar", "run_command", "shown"]


class CommandParser(argparse.ArgumentParser):
    """Says what is wrong with a call in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message and end with exit code 2."""
        note(f"{self.prog}: {message}; see `{self.prog} --help`")
        raise SystemExit(2)


def run_command(parser: CommandParser, arguments: Sequence[str] | None, errors: tuple[type[Exception], ...]) -> int:
    """Parse the arguments, call the command's `run` with them, and return the exit code.

    0: done. 2: the input or the call is at fault, or what it names: a file, a model, a database. 1: the program is.

    Args:
        parser: its commands have set the default `run`.
        arguments: those of the process if None.
        errors: what a bad call or input raises; printed in one line, exit code 2.
    """
    _prepare_streams()
    try:
        call = parser.parse_args(arguments)
        code: int = call.run(call)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except errors as error:
        note(f"{parser.prog}: {error}")
        return 2
    except KeyboardInterrupt:
        note(f"{parser.prog}: interrupted")
        return 130
    return code


def end_process(code: int) -> NoReturn:
    """End the process at once. Python would first free a vocabulary's 400,000 objects one by one: 0.2 seconds."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _prepare_streams() -> None:
    """Let nothing that a text may hold, and no stream that the caller has closed, end the program."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - it lives as long as the program
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal knows its encoding; programs at the other end of a pipe expect UTF-8, whatever the locale.
            stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="backslashreplace")


def note(text: str) -> None:
    """Print a line for people to stderr."""
    print(shown(text), file=sys.stderr, flush=True)


def shown(text: str) -> str:
    """Return a text on one line, without what could move a terminal's cursor or change its colours."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give a function that shows progress on stderr, if there is somebody to see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

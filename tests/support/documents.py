"""The examples of a document, run one after the other as a reader would, and what they print compared."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Example", "examples", "run_all"]


@dataclass(frozen=True)
class Example:
    """A command of a `console` block, and the output that stands below it; `…` in it is any text."""

    command: str
    output: str
    line: int

    def is_like(self, output: str) -> bool:
        """Return whether a command has printed what stands there, whatever the spaces of its JSON."""
        pattern = ".*".join(re.escape(_close(part)) for part in self.output.split("…"))
        return re.fullmatch(pattern, _close(output), re.DOTALL) is not None


def _close(json: str) -> str:
    return re.sub(r'(?<=":) |(?<=,) (?=")', "", json)


def examples(document: Path) -> list[Example]:
    """Return the commands of a document: lines behind `$ `, with those below that belong to an open quotation."""
    found: list[Example] = []
    for block in re.finditer(r"^```console\n(.*?)^```", document.read_text(encoding="utf-8"), re.M | re.S):
        line = document.read_text(encoding="utf-8").count("\n", 0, block.start(1)) + 1
        for part in re.split(r"^\$ ", block[1], flags=re.M)[1:]:
            command, output = _split(part)
            found.append(Example(command, output.rstrip("\n"), line))
    return found


def _split(part: str) -> tuple[str, str]:
    lines = part.splitlines(keepends=True)
    for end in range(1, len(lines) + 1):
        command = "".join(lines[:end])
        if command.count("'") % 2 == 0 and not command.rstrip("\n").endswith("\\"):
            return command, "".join(lines[end:])
    raise AssertionError(f"a quotation has no end: {part}")


def run_all(commands: list[Example], folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run commands in one shell; return what each has printed."""
    script = "".join(f"{one.command}\nprintf '\\n@@@\\n'\n" for one in commands)
    ended = subprocess.run(
        ["bash", "-c", f"exec 2>&1\n{script}"],
        cwd=folder, env=dict(environment), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    outputs = ended.stdout.replace("\r\n", "\n").split("\n@@@\n")[:-1]
    assert len(outputs) == len(commands), ended.stdout
    return [output.rstrip("\n") for output in outputs]

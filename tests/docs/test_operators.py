"""`docs/operators.md`: its commands are run, and its tables are those of the program."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from memorybank.embedding.testing import HashingEmbedder
from memorybank.host import BankHost
from memorybank.search.index import BYTES_PER_KEY, HALF_ABOVE
from memorybank.service.flags import FLAGS
from memorybank.service.problems import KINDS
from memorybank.service.settings import ServiceSettings
from tests.support.documents import examples, run_all

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "operators.md"


@pytest.fixture(scope="module")
def text() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


def test_the_examples(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "memorybank").write_text(f'#!/bin/sh\nexec {sys.executable} -m memorybank "$@"\n', encoding="utf-8")
    (programs / "memorybank").chmod(0o755)
    place = tmp_path / "place"
    place.mkdir()
    with BankHost.open(place / "memories.sqlite", embedder=HashingEmbedder()) as host:
        host.bank("default").add_many(["one", "two", "three"])
        host.bank("my-game/story1").add_many(["four", "five"])
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MEMORYBANK_DB": "memories.sqlite",
    }
    found = examples(DOCUMENT)
    assert len(found) > 12
    for example, output in zip(found, run_all(found, place, environment), strict=True):
        assert example.is_like(output), (example.line, example.command, output)


def test_the_limits_are_those_of_the_program(text: str) -> None:
    settings = ServiceSettings()
    section = text.partition("## Limits")[2].partition("\n## ")[0]
    named = re.findall(r"`--([a-z-]+)`, `([A-Z_]+)`", section)
    assert len(named) > 10
    defaults = [
        default for row in re.findall(r"^\| `--.*?\| (.*?) \|", section, re.M) for default in row.split(" and ")
    ]
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    for (flag, variable), default in zip(named, defaults, strict=True):
        assert flag.replace("-", "_") in FLAGS
        assert variable == flag.replace("-", "_").upper()
        number, _, unit = default.partition(" ")
        assert getattr(settings, variable.lower()) == float(number) * units.get(unit, 1), flag


def test_flags_metrics_and_problems_are_those_of_the_program(text: str) -> None:
    metrics = (ROOT / "memorybank" / "service" / "metrics.py").read_text(encoding="utf-8")
    for name in set(re.findall(r"memorybank_[a-z_]+", text)):
        assert f'"{name.removesuffix("_total")}"' in metrics, name
    for slug in re.findall(r"`([a-z]+-[a-z-]+)`", text.partition("## Troubles")[2].partition("\n\n| otherwise")[0]):
        assert slug in KINDS, slug
    of_commands = {"db", "force", "json", "bank", "namespace", "label", "access", "model"}
    of_others = {"dbname", "encoding", "template"}
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
        of_others |= set(re.findall(r"--([a-z-]+)", block))
    for flag in set(re.findall(r"--([a-z]+(?:-[a-z]+)*)", text)) - of_commands - of_others:
        assert flag.replace("-", "_") in FLAGS, flag


def test_sizes_are_those_of_the_index(text: str) -> None:
    full, half = 4 * 384 + BYTES_PER_KEY, 2 * 384 + BYTES_PER_KEY
    assert f"| {full:,} bytes; {half} in banks above {HALF_ABOVE:,}" in text


def test_links_lead_somewhere(text: str) -> None:
    for document in (DOCUMENT, ROOT / "docs" / "http.md"):
        written = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)]+)\)", written):
            place, _, anchor = target.partition("#")
            if place.startswith("https://"):
                continue
            file = (document.parent / place).resolve() if place else document
            assert file.exists(), target
            if anchor:
                headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.M)
                assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, target

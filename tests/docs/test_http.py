"""`docs/http.md`: every example is run against a real service, and prints what stands there."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from memorybank.client import RemoteBank
from memorybank.service.problems import KINDS
from tests.support.documents import examples, run_all
from tests.support.live_service import LiveService, live_service

DOCUMENT = Path(__file__).parents[2] / "docs" / "http.md"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[LiveService, str]]:
    with live_service(tmp_path / "memories.sqlite", with_contexts=True) as running:
        _, key = running.host.keys.create(namespace="game", access="write")
        yield running, key


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_examples(service: tuple[LiveService, str], tmp_path: Path) -> None:
    running, key = service
    first, *others = examples(DOCUMENT)
    assert first.command.startswith("export URL=")
    environment = {**os.environ, "URL": running.url, "KEY": key}
    assert len(others) > 25
    for example, output in zip(others, run_all(others, tmp_path, environment), strict=True):
        assert example.is_like(output), (example.line, example.command, output)


def test_the_python_example(service: tuple[LiveService, str], capsys: pytest.CaptureFixture[str]) -> None:
    running, key = service
    [code] = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.M | re.S)
    exec(textwrap.dedent(code), {"url": running.url, "key": key})  # noqa: S102
    assert capsys.readouterr().out == "Mara hid the silver key under the chapel floor. True\n"
    with RemoteBank(running.url, "story1", key=key) as bank:
        assert bank.get("m1").use_count == 1


def test_every_kind_of_problem_is_explained() -> None:
    rows = re.findall(r"^\| (`.*?) \| ([\d, ]+) \|", DOCUMENT.read_text(encoding="utf-8"), re.M)
    told = {slug: status.split(", ") for slugs, status in rows for slug in re.findall(r"`([a-z-]+)`", slugs)}
    assert set(told) == set(KINDS)
    assert all(str(KINDS[slug].status) in statuses for slug, statuses in told.items())

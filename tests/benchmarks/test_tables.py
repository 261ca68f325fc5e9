"""Results as Markdown: the picture and the commands above each table, and what was not finished in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import __main__ as program
from benchmarks import suite, table
from tests.support.results import missing, one, result

RESULT = result(
    "stores",
    ["memories", "banks"],
    [
        one("search", 1.0, store="ours", memories=100),
        missing("search", "not finished in 9 s", store="ours", memories=1_000),
        one("cold", 3.0, store="ours", banks=10),
        one("disk", 1536.0, unit="bytes", n=1, store="ours", memories=100),
    ],
)


def test_the_command_stands_above_each_table_and_the_picture_where_there_is_one() -> None:
    shown = table.markdown([RESULT], {"stores": "plots/stores.png"}).splitlines()
    assert "`python -m benchmarks stores` measures this; `python -m benchmarks plots` draws the picture." in shown
    assert "![stores: what is measured](plots/stores.png)" in shown
    assert "![" not in table.markdown([RESULT])


def test_what_was_not_finished_stands_in_its_cell() -> None:
    assert "| ours | 1 (2) | not finished in 9 s |" in table.markdown([RESULT])


def test_each_table_has_the_columns_of_its_own_measurements() -> None:
    shown = table.markdown([RESULT])
    assert "| store | memories 100 | 1,000 |" in shown
    assert "| store | banks 10 |" in shown


def test_a_single_value_has_no_percentile() -> None:
    assert "disk, bytes: value, n = 1" in table.markdown([RESULT])
    assert "| ours | 1,536 |" in table.markdown([RESULT])


def test_table_update_puts_the_pictures_that_there_are_into_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, page = tmp_path / "results", tmp_path / "page.md"
    suite.write(RESULT, results)
    page.write_text(f"before\n{table.BEGIN}\nwhat stood here\n{table.END}\nafter\n", encoding="utf-8")
    assert program.main(["plots", "--results", str(results)]) == 0
    assert capsys.readouterr().out.strip() == str(results / "plots" / "stores.png")
    assert program.main(["table", "--results", str(results), "--update", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "![stores: what is measured](results/plots/stores.png)" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "what stood here" not in text

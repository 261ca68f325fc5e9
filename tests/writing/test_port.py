"""A writer is trusted in nothing (PITFALLS "Memories": it returns "", returns its input, raises, or hangs)."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import memorybank.writing as writing
from memorybank.errors import InvalidInputError, MemoryBankError, ModelError
from memorybank.inputs import MAX_TEXT
from memorybank.writing import (
    MemoryWriter,
    RejectedTextError,
    SpanAction,
    SpanText,
    WriterError,
    WriterUnavailableError,
    memory_from,
    summary_from,
)
from memorybank.writing.limits import TimeIsUpError, within

ROOT = Path(__file__).parents[2]
SPAN = SpanText((SpanAction("do", "take the key"), SpanAction("output", "It is cold.\r\n"), SpanAction("continue")))


class Scripted:
    """Does what it is told when it is asked."""

    name = "scripted"

    def __init__(self, answer: Callable[[], object]) -> None:
        self.answer = answer
        self.asked = 0

    def write_memory(self, span: SpanText) -> object:
        self.asked += 1
        return self.answer()

    def write_summary(self, previous: str, passages: object, limit_tokens: int) -> object:
        return self.write_memory(SPAN)


def raises(error: BaseException) -> Callable[[], object]:
    def answer() -> object:
        raise error

    return answer


def test_the_port_is_what_the_writers_are():
    assert isinstance(Scripted(str), MemoryWriter)


def test_a_span_is_shown_as_a_context_shows_it():
    actions = [
        ("say", "Hello"),
        ("do", "> wait"),
        ("story", "Rain."),
        ("output", "x"),
        ("start", " y "),
        ("continue", ""),
    ]
    span = SpanText(tuple(SpanAction(kind, text) for kind, text in actions))
    assert span.text == "> Hello\n> wait\nRain.\nx\ny"
    assert span.has_text
    assert not SpanText((SpanAction("continue"), SpanAction("do", " \r\n"))).has_text


@pytest.mark.parametrize(("kind", "text"), [("shout", "x"), ("do", None), ("do", 3)])
def test_a_span_is_made_of_actions(kind, text):
    with pytest.raises(InvalidInputError):
        SpanAction(kind, text)


def test_what_is_given_is_what_is_stored():
    assert memory_from(Scripted(lambda: " You took the key.\r\n"), SPAN) == "You took the key."
    assert memory_from(Scripted(lambda: None), SPAN) is None
    assert summary_from(Scripted(lambda: "Cold. "), "", ["It is cold."], 100) == "Cold."


def test_there_is_nothing_to_ask():
    writer = Scripted(lambda: "something")
    assert memory_from(writer, SpanText(())) is None
    assert memory_from(writer, SpanText((SpanAction("continue"), SpanAction("output", " \n")))) is None
    assert summary_from(writer, " as it was ", ["", " "], 100) == " as it was "
    assert writer.asked == 0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (" \r\n\u3000", "empty"),
        ("> take the key\nIt is cold.", "echo"),
        ("take THE key  it is cold.".replace("  ", "\n"), "echo"),
        ("x" * (MAX_TEXT + 1), "too long"),
        (7, "format"),
        (b"bytes", "format"),
    ],
    ids=repr,
)
def test_what_is_no_memory_is_rejected(answer, reason):
    with pytest.raises(RejectedTextError) as caught:
        memory_from(Scripted(lambda: answer), SPAN)
    assert caught.value.reason == reason
    assert "scripted" in str(caught.value)
    assert "cold" not in str(caught.value)


def test_a_writer_that_quotes_may_give_all_of_a_short_span():
    writer = Scripted(lambda: SPAN.text)
    writer.quotes_source = True
    assert memory_from(writer, SPAN) == SPAN.text


@pytest.mark.parametrize("error", [RuntimeError("the story's text"), KeyError("x"), RecursionError()], ids=repr)
def test_whatever_it_raises_is_one_error(error):
    with pytest.raises(WriterUnavailableError, match=f"^writer scripted: it failed with {type(error).__name__}$"):
        memory_from(Scripted(raises(error)), SPAN)


def test_errors_of_the_bank_come_as_they_are():
    for error in (ModelError("no model"), RejectedTextError("refusal", "no"), WriterUnavailableError("later", 7.0)):
        with pytest.raises(type(error)) as caught:
            memory_from(Scripted(raises(error)), SPAN, seconds=30)
        assert caught.value is error


def test_one_that_hangs_costs_no_more_than_the_limit():
    release = threading.Event()
    begun = time.monotonic()
    try:
        with pytest.raises(WriterUnavailableError, match=r"no answer within 0\.2 seconds"):
            memory_from(Scripted(release.wait), SPAN, seconds=0.2)
        assert time.monotonic() - begun < 5
    finally:
        release.set()


def test_the_work_may_be_cut_off():
    release = threading.Event()
    with pytest.raises(TimeIsUpError):
        within(0.05, release.wait, release.set)
    assert release.is_set()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_what_ends_a_program_ends_it(error):
    with pytest.raises(type(error)):
        within(30, raises(error))


def test_the_errors_are_one_tree():
    assert issubclass(WriterError, MemoryBankError)
    assert {RejectedTextError, WriterUnavailableError} == set(WriterError.__subclasses__())
    assert WriterUnavailableError("x").retry_after is None


def test_importing_loads_nothing_heavy():
    heavy = ("numpy", "regex", "httpx", "sqlalchemy", "torch", "tiktoken")
    code = f"import sys, memorybank.writing\nprint([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_all_is_exact_and_everything_has_its_documentation():
    assert set(writing.__all__) <= set(dir(writing))
    for name in writing.__all__:
        assert name == "RHYTHMS" or getattr(writing, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        writing.nothing  # noqa: B018

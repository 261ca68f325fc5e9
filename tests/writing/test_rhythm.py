"""When memories and the Story Summary are due (SPEC.md section 9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybank.errors import InvalidInputError
from memorybank.writing import RHYTHMS, Rhythm, Span, SummaryUpdate, next_summary, spans

RHYTHM = st.builds(Rhythm, every=st.integers(1, 9), untouched=st.integers(0, 9), summary_every=st.integers(1, 20))


def updates(count, rhythm, told=0):
    """All updates that are due in a log of `count` actions, oldest first."""
    found = []
    while (update := next_summary(rhythm, told)).at <= count:
        found.append(update)
        told = update.stop
    return found


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, []),
        (11, []),
        (12, [Span(1, 0, 6)]),
        (17, [Span(1, 0, 6)]),
        (18, [Span(1, 0, 6), Span(2, 6, 12)]),
        (24, [Span(1, 0, 6), Span(2, 6, 12), Span(3, 12, 18)]),
    ],
)
def test_six_and_six(count, expected):
    assert spans(count, Rhythm()) == expected


def test_the_older_rhythm_is_a_preset():
    older = RHYTHMS["4/8"]
    assert RHYTHMS["6/15"] == Rhythm() == Rhythm(6, 6, 15)
    assert [len(spans(count, older)) for count in (7, 8, 11, 12)] == [0, 1, 1, 2]
    assert [update.at for update in updates(24, older)] == [8, 16, 24]


@pytest.mark.parametrize(
    ("count", "told", "expected"),
    [
        (14, 0, []),
        (15, 0, [SummaryUpdate(15, 6)]),
        (29, 6, []),
        (30, 6, [SummaryUpdate(30, 24)]),
        (47, 0, [SummaryUpdate(15, 6), SummaryUpdate(30, 24), SummaryUpdate(45, 36)]),
        (47, 30, [SummaryUpdate(45, 36)]),
        (47, 36, []),
        (30, 54, []),
    ],
)
def test_the_summary_every_fifteen(count, told, expected):
    assert updates(count, Rhythm(), told) == expected


def test_no_summary_while_there_is_nothing_to_tell():
    assert updates(40, Rhythm(every=50)) == []


@pytest.mark.parametrize("field", ["every", "untouched", "summary_every"])
@pytest.mark.parametrize("value", [-1, 10_001, 6.0, "6", True, None])
def test_a_rhythm_is_made_of_whole_numbers(field, value):
    with pytest.raises(InvalidInputError, match=f"^{field} must be a whole number from"):
        Rhythm(**{field: value})


def test_every_needs_at_least_one_action():
    with pytest.raises(InvalidInputError, match="from 1 to"):
        Rhythm(every=0)
    assert spans(3, Rhythm(every=1, untouched=0)) == [Span(1, 0, 1), Span(2, 1, 2), Span(3, 2, 3)]


@given(rhythm=RHYTHM, batches=st.lists(st.integers(0, 25), max_size=8))
def test_batches_make_no_difference(rhythm, batches):
    count, made, marks, told = 0, [], [], 0
    for batch in batches:
        count += batch
        made += [span for span in spans(count, rhythm) if span not in made]
        marks += (due := updates(count, rhythm, told))
        told = max([told, *(update.stop for update in due)])
    assert made == spans(count, rhythm)
    assert marks == updates(count, rhythm)


@given(rhythm=RHYTHM, count=st.integers(0, 200))
def test_no_gap_no_overlap_and_the_newest_untouched(rhythm, count):
    found = spans(count, rhythm)
    assert [span.number for span in found] == list(range(1, len(found) + 1))
    assert [span.start for span in found] == [rhythm.every * n for n in range(len(found))]
    assert all(span.stop - span.start == rhythm.every for span in found)
    used = found[-1].stop if found else 0
    assert used <= max(0, count - rhythm.untouched) < used + rhythm.every
    told = 0
    for update in updates(count, rhythm):
        assert update.at % rhythm.summary_every == 0
        assert told < update.stop == rhythm.every * len(spans(update.at, rhythm)), "all that is complete then"
        told = update.stop
    assert told <= used

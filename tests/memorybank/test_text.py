"""What a text is before anything is counted, stored or embedded (SPEC.md sections 2 and 7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybank.text import clean, join_surrogates, repair

LOW_HALF = "\udc4d"
ANYTHING = st.text(st.one_of(st.characters(codec=None), st.sampled_from("\r\n \ud83d\udc4d\ud83d\0")), max_size=30)


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("", ""),
        ("The gate opens.", "The gate opens."),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a\nb"),
        ("a\n\rb", "a\n\nb"),
        ("a\r\r\nb", "a\n\nb"),
        ("\r\n", "\n"),
        ("\ud83d\udc4d", "👍"),
        ("\ud83d", "\ufffd"),
        (LOW_HALF, "\ufffd"),
        ("\udc4d\ud83d", "\ufffd\ufffd"),
        ("x\ud83d\r\ny", "x\ufffd\ny"),
        ("\ud83d\ud83d\udc4d", "\ufffd👍"),
        ("a\0b", "a\0b"),
        ("e\u0301", "e\u0301"),
        ("é", "é"),
        ("a\u2028b\x85c\x0bd", "a\u2028b\x85c\x0bd"),
        ("\ufeffx", "\ufeffx"),
    ],
    ids=ascii,
)
def test_repair(text, repaired):
    assert repair(text) == repaired


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  The gate opens.\r\n", "The gate opens."),
        ("\n\n a\n\n b \n", "a\n\n b"),
        (" \t\r\n\u3000\u2028\xa0", ""),
        ("\r", ""),
        ("\u200b", "\u200b"),
        (" \ud83d ", "\ufffd"),
        ("> go ", "> go"),
    ],
    ids=ascii,
)
def test_clean(text, cleaned):
    assert clean(text) == cleaned


@given(text=ANYTHING)
def test_whatever_a_player_can_type(text):
    repaired, cleaned = repair(text), clean(text)
    repaired.encode()  # can always be stored and sent
    assert "\r" not in repaired
    assert repair(repaired) == repaired
    assert clean(cleaned) == cleaned == repaired.strip()


@given(text=st.text(max_size=30))
def test_sound_text_is_left_alone(text):
    assert join_surrogates(text) == text
    assert repair(text) == text.replace("\r\n", "\n").replace("\r", "\n")


@given(text=st.text(max_size=30))
def test_what_json_escapes_spell_is_put_together(text):
    halves = "".join(
        chr(int.from_bytes(unit, "little"))
        for unit in (text.encode("utf-16-le")[n : n + 2] for n in range(0, len(text.encode("utf-16-le")), 2))
    )
    assert join_surrogates(halves) == text


def test_a_megabyte():
    assert repair("a\r\n" * 400_000 + "\ud83d") == "a\n" * 400_000 + "\ufffd"
    assert clean(" " * 1_500_000) == ""

"""Where sentences end (SPEC.md sections 3 and 9)."""

import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from memorybank.sentences import LONGEST, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t ", []),
        ("No end here", ["No end here"]),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "Dr. Sallow met J. Smith at 3.50 p.m. Then he left…",
            ["Dr. Sallow met J. Smith at 3.50 p.m.", "Then he left…"],
        ),
        ("He waits. and waits", ["He waits. and waits"]),
        ("He waits.\nand waits", ["He waits. and waits"]),
        ("the gate\nopens slowly\n\nand falls", ["the gate opens slowly", "and falls"]),
        ("A list:\n- One\n- Two", ["A list:", "- One", "- Two"]),
        ("> You take the key.\nThe lock clicks.", ["> You take the key.", "The lock clicks."]),
        (
            'Mara nods. "Go now. I will wait," she says. He goes.',
            ["Mara nods.", '"Go now. I will wait," she says.', "He goes."],
        ),
        ('"Go!" Mara shouts. She runs.', ['"Go!" Mara shouts.', "She runs."]),
        ('Mara nods. "It was the abbot."', ['Mara nods. "It was the abbot."']),
        ("“Why? Who?” he asks. “Me.”", ["“Why? Who?” he asks. “Me.”"]),
        ('I am 6" tall. And you are 5" tall.', ['I am 6" tall.', 'And you are 5" tall.']),
        ('An open "quote. Never closed. It ends', ['An open "quote.', "Never closed.", "It ends"]),
        ("«Il tuo non è il primo. Vieni» mormora. Poi esce.", ["«Il tuo non è il primo. Vieni» mormora.", "Poi esce."]),
        ("— Vai via! — disse Mara. Poi uscì.", ["— Vai via! — disse Mara.", "Poi uscì."]),
        ("„Geh! Lauf!“ rief sie. Er ging.", ["„Geh! Lauf!“ rief sie.", "Er ging."]),
        ("Çağla Usta susuyor. İlkyar uyuyor.", ["Çağla Usta susuyor.", "İlkyar uyuyor."]),
        ("他走了。她也走！谁？", ["他走了。", "她也走！", "谁？"]),
        ("「はい。行く。」と彼は言った。彼女は笑った。", ["「はい。行く。」と彼は言った。", "彼女は笑った。"]),
        ("वह गया। फिर आया।", ["वह गया।", "फिर आया।"]),
        ("ฉันไปตลาด เขาอยู่บ้าน", ["ฉันไปตลาด เขาอยู่บ้าน"]),
        ("a\0b. C d.", ["a\0b.", "C d."]),
        ("The  gate\tis\u3000open.", ["The gate is open."]),
    ],
    ids=ascii,
)
def test_by_hand(text, expected):
    assert sentences(text) == expected


def test_a_long_sentence_falls_into_parts_at_clean_places():
    clause = "the wolf that nobody had seen before went on and on, "
    parts = sentences(clause * 30)
    assert len(parts) > 5
    assert all(part.endswith("on,") and len(part) <= LONGEST for part in parts)
    words = sentences("wolf " * 300)
    assert " ".join(words) == ("wolf " * 300).strip()
    assert sentences("哈" * 500) == ["哈" * LONGEST, "哈" * (500 - LONGEST)]
    assert sentences("คนดี " * 100)[0].endswith("คนดี")
    speech = sentences('"' + "I went to the sea and came back again, and so on. " * 10 + '"')
    assert all(part.endswith("so on.") for part in speech[:-1])


def test_parts_of_another_length():
    assert sentences("one two three four", 9) == ["one two", "three", "four"]


@pytest.mark.parametrize("cluster", ["👨‍👩‍👧‍👦", "e\u0301", "🇮🇹", "각"], ids=ascii)
def test_never_inside_a_grapheme_cluster(cluster):
    parts = sentences(cluster * 200, 10)
    assert "".join(parts) == cluster * 200
    whole = regex.findall(r"\X", cluster * 200)
    assert [one for part in parts for one in regex.findall(r"\X", part)] == whole


ANYTHING = st.text(st.one_of(st.characters(), st.sampled_from(' \n.!?。"“”«»「」—,аAa\u0301')), max_size=200)


@given(text=ANYTHING, longest=st.integers(1, 60))
def test_nothing_is_lost_and_nothing_invented(text, longest):
    found = sentences(text, longest)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(one == " ".join(one.split()) and one for one in found)
    flat = " ".join(text.split())
    assert all(one in flat for one in found)


HUGE = {
    "letters": "a" * 300_000,
    "spaces": "The end. " + " " * 300_000 + "Of it",
    "full stops": "." * 300_000,
    "quotes": '"a" ' * 75_000,
    "open quotes": "「" * 300_000,
    "line ends": "a\n" * 150_000,
    "marks": "e" + "\u0301" * 300_000,
    "families": "👨‍👩‍👧‍👦" * 30_000,
    "prose": "The wolf ran. " * 20_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_a_large_text_takes_bounded_time(text):
    begun = time.process_time()
    assert sentences(text)
    assert time.process_time() - begun < 10

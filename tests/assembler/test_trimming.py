"""Cut at a clean place: the longest prefix that fits, and never inside a character or a word (SPEC.md section 3)."""

import time
import unicodedata
from collections.abc import Callable

import pytest
import regex
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from assembler import trimming
from assembler.trimming import cut
from memorybank.text import clean
from memorybank.tokenizer import Tokenizer, open_tokenizer
from tests.support.strategies import byte_level_bpe


class Characters:
    """One token for each character: what fits can be counted by hand."""

    name = "characters"
    is_estimate = False

    def count(self, text: str) -> int:
        return len(text)

    def starts(self, text: str) -> list[int]:
        return list(range(len(text)))


CHARACTERS = Characters()


KINDS = ["characters", "o200k_base", "cl100k_base", "chars/4", "byte level"]


@pytest.fixture(params=KINDS, scope="module")
def tokenizer(request) -> Tokenizer:
    if request.param == "characters":
        return CHARACTERS
    return open_tokenizer(byte_level_bpe() if request.param == "byte level" else request.param)


def cost_with(tokenizer: Tokenizer, prefix: str = "", suffix: str = "\n") -> Callable[[str], int]:
    return lambda part: tokenizer.count(prefix + part + suffix)


def cut_to(text: str, room: int) -> str | None:
    """Cut where every character is a token and nothing is shown around the text."""
    return cut(text, room, len, CHARACTERS)


# By hand.


@pytest.mark.parametrize(
    ("text", "room", "expected"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two"),
        ("one two three", 8, "one two"),
        ("one two three", 7, "one two"),
        ("one two three", 6, "one"),
        ("one two three", 3, "one"),
        ("one two three", 2, None),
        ("one two three", 0, None),
        ("one two three", -5, None),
        ("supercalifragilistic", 19, None),
        ("don't stop", 9, "don't"),
        ("don't stop", 4, None),
        ("l'été passe", 5, "l'été"),
        ("3.14 is pi", 3, None),
        ("one  \n two", 6, "one"),
        ("哈哈哈哈", 3, "哈哈哈"),
        ("佐藤は公園で写真を撮った。", 5, "佐藤は公園"),
        ("タワーは高い", 3, "タワー"),
        ("คนดี", 2, "คน"),
        ("他问Mara在哪里", 5, "他问"),
        ("他问Mara在哪里", 6, "他问Mara"),
        ("앨리스가 왔다", 5, "앨리스가"),
        ("앨리스가 왔다", 3, None),
    ],
)
def test_the_longest_prefix_that_ends_at_a_clean_place(text, room, expected):
    assert cut_to(text, room) == expected


@pytest.mark.parametrize(
    ("text", "room", "expected"),
    [
        pytest.param("One here. Two there", 18, "One here.", id="an end in the second half"),
        pytest.param("One here. Two thereabouts and", 26, "One here. Two thereabouts", id="an end in the first half"),
        pytest.param("Abcd. Efg hij", 9, "Abcd.", id="an end right behind the half"),
        pytest.param("Abc. Efghi ij", 10, "Abc. Efghi", id="an end right before the half"),
        pytest.param("A b c. D e f. G h", 15, "A b c. D e f.", id="the last of two"),
        pytest.param("Stop! Why not go", 9, "Stop!", id="exclamation"),
        pytest.param("Who is? Mara went", 12, "Who is?", id="question"),
        pytest.param("He left… Then more", 13, "He left…", id="ellipsis"),
        pytest.param("“Go now.” She left", 13, "“Go now.”", id="the closing quote goes along"),
        pytest.param("(Go now.) She left", 13, "(Go now.)", id="the closing bracket goes along"),
        pytest.param("Abc.” Efg hij", 9, "Abc.”", id="a full stop before the half and its quote behind it"),
        pytest.param("他走了。她也走", 6, "他走了。", id="Chinese"),
        pytest.param("彼は言った。「はい。」と", 10, "彼は言った。", id="Japanese"),
        pytest.param("वह गया। और फिर", 11, "वह गया।", id="Hindi"),
        pytest.param("It costs 3.50 and 4.20 more", 24, "It costs 3.50 and 4.20", id="a point in a number is no end"),
        pytest.param("One here.\nTwo there", 18, "One here.", id="an end before a line end"),
    ],
)
def test_a_sentence_end_in_the_second_half_of_what_fits(text, room, expected):
    assert cut_to(text, room) == expected


CLUSTERS = {
    "family": "👨‍👩‍👧‍👦",
    "flag": "🇮🇹",
    "skin tone": "👍🏽",
    "NFD": "e\u0301",
    "many marks": "o" + "\u0308\u0301\u0323" * 5,
    "Jamo": unicodedata.normalize("NFD", "각"),
    "Devanagari": "क्षि",
    "keycap": "1\ufe0f\u20e3",
    "heart with selector": "❤\ufe0f",
    "Thai with a tone": "กี่",
    "line end of two": "a\r\nb",
    "dakuten": "か\u3099",
}


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
def test_never_inside_a_grapheme_cluster(cluster, tokenizer):
    text = clean(f"{cluster * 2} {cluster} and {cluster * 8} {cluster}")
    ends = {0, *(match.end() for match in regex.finditer(r"\X", text))}
    cost = cost_with(tokenizer)
    whole = cost(text)
    for room in range(0, whole + 1, 1 + whole // 50):
        part = cut(text, room, cost, tokenizer)
        assert part is None or (len(part) in ends and cost(part) <= room)
        assert part is None or text.startswith(part)


# By brute force: all clean places are looked at, in the whole text at once.

UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]|ー")


def clean_places(text: str) -> list[int]:
    graphemes = {match.end() for match in regex.finditer(r"\X", text)}
    words = {match.start() for match in regex.finditer(r"\b", text, regex.WORD)}
    for place in graphemes:
        base = next((c for c in reversed(text[:place]) if unicodedata.category(c)[0] != "M"), "")
        if UNSPACED.match(base) or UNSPACED.match(text[place : place + 1]):
            words.add(place)
    return sorted(place for place in graphemes & words if place and not text[place - 1].isspace())


def longest(text: str, room: int, cost: Callable[[str], int]) -> str | None:
    fits = [place for place in clean_places(text) if cost(text[:place]) <= room]
    return text[: fits[-1]] if fits else None


PIECES = st.sampled_from(
    [
        *("wolf", "the", "a", "don't", "Üben", "ğ", "3.14", "x_y", "Mara", "ejderhanın"),
        *("佐藤", "は", "タワー", "คน", "앨리스", *CLUSTERS.values(), "🇮🇹🇩🇪🇫🇷", "a\u0301" * 40, "👨‍👩‍👧‍👦" * 8),
        *(" ", "  ", "\n", "\n\n", ", ", "-", "—", " (", ") ", "…x", "/", "\0", "\ufffd", "<|endoftext|>"),
    ]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=30).map("".join).map(clean).filter(bool)
SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@given(text=TEXTS, end=st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_clean_places_from_any_place_on(text, end):
    expected = [place for place in reversed(clean_places(text)) if place <= end]
    assert list(trimming.clean_places(text, end)) == expected


@given(text=TEXTS, part=st.integers(0, 110), frame=st.sampled_from([("", "\n"), ("[Author's note: ", "]\n"), ("", "")]))
@settings(max_examples=100, **SHARED)
def test_longest_prefix_against_brute_force(tokenizer, text, part, frame):
    cost = cost_with(tokenizer, *frame)
    room = cost(text) * part // 100
    found = cut(text, room, cost, tokenizer)
    best = longest(text, room, cost)
    sentences = regex.search(r"[.!?…؟۔।॥።։。！？｡]", best or "")
    if sentences is None:
        assert found == best
    else:
        assert found is not None
        assert best.startswith(found)
        assert found == best or 2 * len(found) >= len(best)


SENTENCES = st.lists(
    st.lists(st.sampled_from(["wolf", "the", "gate", "opens", "哈", "e\u0301a", "x"]), min_size=1, max_size=5).map(
        " ".join
    ),
    min_size=1,
    max_size=6,
).map(lambda sentences: " ".join(f"So {sentence}." for sentence in sentences))


@given(text=SENTENCES, part=st.integers(0, 100))
@settings(max_examples=100, **SHARED)
def test_sentence_ends_against_brute_force(tokenizer, text, part):
    cost = cost_with(tokenizer)
    room = cost(text) * part // 100
    best = longest(text, room, cost)
    if best is not None:
        ends = [place + 1 for place, character in enumerate(text) if character == "."]
        assume(len(best) not in [2 * end for end in ends])  # whether the middle is in the second half is open
        ends = [end for end in ends if len(best) < 2 * end and end <= len(best) and cost(text[:end]) <= room]
        best = text[: max(ends)] if ends else best
    assert cut(text, room, cost, tokenizer) == best


HUGE = {
    "letters": ("a" * 300_000, 2000),
    "spaces": ("The end" + " " * 500_000 + "of it", 2000),
    "Han": ("哈" * 200_000, 2000),
    "a URL": ("https://example.org/" + "a%20b/" * 16_000, 2000),
    "marks": ("e" + "\u0301" * 20_000, 8000),
    "families": ("👨‍👩‍👧‍👦" * 20_000, 2000),
    "flags": ("🇮🇹" * 50_000, 2000),
    "full stops": ("." * 200_000, 2000),
    "prose": ("The wolf ran. " * 30_000, 2000),
}


@pytest.mark.parametrize(("text", "room"), HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("scarce", [False, True], ids=["room", "hardly any room"])
def test_huge_texts_take_bounded_time(text, room, scarce):
    tokenizer = open_tokenizer()
    cost = cost_with(tokenizer)
    room = 10 if scarce else room
    began = time.process_time()
    part = cut(text, room, cost, tokenizer)
    assert time.process_time() - began < 5
    assert part is None or (cost(part) <= room and text.startswith(part))

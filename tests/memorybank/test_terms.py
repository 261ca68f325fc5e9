"""The words that the lexical arm compares, and their bytes in the database."""

from __future__ import annotations

import struct

import pytest

from memorybank.search.function_words import FUNCTION_WORDS
from memorybank.search.query import MOST_WORDS, RECENT_TERMS, query_terms
from memorybank.terms import VERSION, packed, term, terms, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The wolf's 3 den_s!", ["the", "wolf", "s", "3", "den", "s"]),
        ("Café CAFÉ cafe\u0301", ["cafe"] * 3),
        ("Işık IŞIK ışık İstanbul istanbul", ["isik", "isik", "isik", "istanbul", "istanbul"]),
        ("Weißer WEISSER", ["weisser"] * 2),
        ("佐藤は公園", ["佐藤", "藤は", "は公", "公園"]),
        ("門 opens", ["門", "opens"]),
        ("앨리스가 왔다", ["앨리", "리스", "스가", "왔다"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ガギ か\u3099", ["ガギ", "が"]),
        ("🙂 ... \ud800", []),
        ("", []),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(text) == found


def test_a_word_counts_by_its_first_five_letters_and_a_number_whole() -> None:
    assert term("ejderha") == term("ejderhanin") == term("ejderi")
    assert term("ejder") != term("ejde")
    assert term("1234567") != term("1234568")


def test_what_is_stored_is_what_the_text_has() -> None:
    blob = packed("key door key\ud800")
    assert blob[0] == VERSION
    assert dict(struct.iter_unpack("<IH", blob[1:])) == terms("key door key") == {term("key"): 2, term("door"): 1}
    assert packed("...") == bytes([VERSION])
    [(_, times)] = struct.iter_unpack("<IH", packed("a " * 70_000)[1:])
    assert times == 65_535


def test_function_words_count_only_where_there_is_nothing_else() -> None:
    assert query_terms("Where is the key?", ()) == {term("key"): 1.0}
    assert query_terms("Who are you?", ()) == {term("who"): 1.0, term("are"): 1.0, term("you"): 1.0}
    assert query_terms("...", ()) == {}


def test_function_words_are_folded_as_words_are() -> None:
    assert {word for word in FUNCTION_WORDS if words(word) != [word]} == set()


def test_of_a_whole_book_the_beginning_is_read() -> None:
    book = " ".join(f"{number}" for number in range(10 * MOST_WORDS))
    assert set(query_terms(book, ())) == {term(str(number)) for number in range(MOST_WORDS)}


def test_a_recent_text_weighs_less_and_repetition_more() -> None:
    weights = query_terms("open the door", ["the door creaks", "a key"])
    assert weights == {
        term("open"): 1.0,
        term("door"): pytest.approx((1 + RECENT_TERMS**2) ** 0.5),
        term("creak"): pytest.approx(RECENT_TERMS),
        term("key"): pytest.approx(RECENT_TERMS),
    }

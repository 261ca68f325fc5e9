"""The default writer: no invented words, within its limit, the same every time (SPEC.md section 9)."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorybank.embedding.testing import HashingEmbedder, RecordingEmbedder
from memorybank.errors import InvalidInputError, ModelError
from memorybank.tokenizer import open_tokenizer
from memorybank.writing import ExtractiveWriter, SpanAction, SpanText, memory_from, summary_from
from memorybank.writing.centrality import centrality, chosen, nearness
from memorybank.writing.units import MAX_UNITS, joined, units_of
from memorybank.writing.wording import leans_back, names_in

TOKENIZER = open_tokenizer()


def span(*actions: tuple[str, str] | str, before: tuple[str, ...] = ()) -> SpanText:
    pairs = [("output", action) if isinstance(action, str) else action for action in actions]
    return SpanText(tuple(SpanAction(kind, text) for kind, text in pairs), memories_before=before)


def memory(*actions: tuple[str, str] | str, max_tokens: int = 80, before: tuple[str, ...] = ()) -> str | None:
    return ExtractiveWriter(HashingEmbedder(), max_tokens=max_tokens).write_memory(span(*actions, before=before))


def flat(text: str) -> str:
    return " ".join(text.split())


def assert_quotes(found: str, *sources: str) -> None:
    """Every sentence stands in a source, word for word."""
    whole = [flat(source) for source in sources]
    for unit in units_of((SpanAction("output", found),), TOKENIZER, 10_000):
        assert any(unit.text.removeprefix("> ") in source for source in whole), unit.text


STORY = [
    ("start", "You are Ansa Kell, the new keeper of the Cormorant Light. The cart has gone. It rains."),
    ("do", "You hand Hester Quill your letter."),
    ("output", 'Hester Quill reads the letter twice.\n\n"You will have the box room," she says. A dog barks.'),
    ("say", 'You say "What happened to Jory Pell?"'),
    ("continue", ""),
    ("output", "She looks at the sea. Jory Pell vanished three weeks ago, and Hester Quill found his coat. Silence."),
]


def test_the_telling_sentences_in_story_order():
    found = memory(*STORY, max_tokens=60)
    assert found is not None
    assert TOKENIZER.count(found) <= 60
    assert "Jory Pell vanished three weeks ago, and Hester Quill found his coat." in found
    assert "Silence." not in found
    assert "It rains." not in found
    whole = flat("\n".join(SpanAction(*action).shown for action in STORY))
    places = [whole.index(unit.text) for unit in units_of((SpanAction("output", found),), TOKENIZER, 60)]
    assert places == sorted(places)
    assert len(places) > 3
    assert_quotes(found, *(text for _, text in STORY))


def test_a_short_span_goes_in_whole_as_the_player_saw_it():
    found = memory(
        ("do", "take the silver key"), "The lock clicks, and Mara opens the door.", ("say", '> "Wait, Mara!"')
    )
    assert found == '> take the silver key\nThe lock clicks, and Mara opens the door.\n> "Wait, Mara!"'


def test_a_sentence_that_points_back_takes_along_what_it_points_to():
    lines = "Mara meets the abbot Gerrit in the chapel of Oln. He gives Mara the silver key of the chapel of Oln."
    found = memory(lines, "The rain falls on the roofs of the town and on the harbour all day.", max_tokens=30)
    assert found == lines
    assert memory("He gives Mara the silver key.") == "He gives Mara the silver key."


def test_speech_takes_along_who_speaks():
    text = (
        'Nessa Crane draws a ship. "Jory changed the signal alphabet of Gallow Head, so that nobody else can read it."'
    )
    found = memory(text + "\n\n" + "A gull cries over the water. " * 3, max_tokens=40)
    assert found is not None
    assert found.startswith('Nessa Crane draws a ship. "Jory changed the signal alphabet')


def test_a_speaker_of_a_script_is_named_with_every_sentence():
    found = memory(
        ("say", "Sam: Yes. The silver key of Oln lies under the altar of the old chapel, Laura."), max_tokens=24
    )
    assert found == "> Sam: The silver key of Oln lies under the altar of the old chapel, Laura."
    both = memory("Mara: The abbot Gerrit has the key of the chapel. He took it from Oln by night.")
    assert both == "Mara: The abbot Gerrit has the key of the chapel. He took it from Oln by night."


def test_what_the_latest_memories_say_is_not_said_again():
    old, new = "Mara hid the silver key under the chapel floor.", "The abbot Gerrit rowed to the island by night."
    assert memory(old, new, max_tokens=14, before=(old,)) == new
    assert memory(old, new, max_tokens=14, before=(new,)) == old


def test_the_same_again_is_said_once():
    assert memory(*["You wait in the cold hall."] * 6) == "You wait in the cold hall."


@pytest.mark.parametrize(
    "text",
    [
        "Ersilia accosta il lume alla pagina. «Il tuo non è il primo» mormora. Poi apre un armadio pieno di registri.",
        "Çağla Usta hırkasını omzuna alıyor. Alevin önünde uzun süre susuyor. Işık sönmek üzere.",
        "林冲走进山神庙。他把门关上，靠在火边。外面的雪下得正紧。陆谦在门外说话。",
        "佐藤は公園で写真を撮った。「寒いね。帰ろう。」と彼女は言った。雪が降り始めた。",
        "ฉันไปตลาดกับมะลิเมื่อวาน เธอซื้อกุญแจเงินจากพ่อค้า แล้วเราก็กลับบ้านก่อนฝนตก",
        "وصلت مارا إلى البوابة؟ نعم. وجدت المفتاح تحت الأرض.",
        "mara goes down to the harbour and looks for the boat but nobody has seen it since the storm took the pier",
        "🐺 The wolf 🐺 howls. 🏰✨ Mara runs! 👨‍👩‍👧‍👦",
        "A\0B is written on the wall. Mara reads it.",
    ],
    ids=ascii,
)
@pytest.mark.parametrize("max_tokens", [12, 80])
def test_any_language(text, max_tokens):
    found = memory(text, max_tokens=max_tokens)
    assert found
    assert TOKENIZER.count(found) <= max_tokens
    assert_quotes(found, text)


def test_no_space_is_put_between_chinese_sentences():
    assert memory("林冲走进山神庙。他把门关上。") == "林冲走进山神庙。他把门关上。"


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "The end. " + " " * 1_000_000 + "Of it",
        "哈" * 300_000,
        "e" + "\u0301" * 100_000,
        "Go. " * 200_000,
    ],
    ids=["letters", "spaces", "Han", "marks", "sentences"],
)
def test_a_megabyte_takes_bounded_time(text):
    begun = time.process_time()
    found = memory(text, "Mara opens the gate of Oln.")
    assert time.process_time() - begun < 10
    assert found is not None
    assert "Mara opens the gate of Oln." in found
    assert TOKENIZER.count(found) <= 80


def test_of_many_sentences_so_many_are_embedded():
    embedder = RecordingEmbedder()
    ExtractiveWriter(embedder).write_memory(span(*(f"Number {n} is the number of the door." for n in range(1_000))))
    assert len(embedder.texts) == MAX_UNITS
    numbers = {int(text.split()[1]) for text in embedder.texts}
    assert {0, 999} <= numbers, "from the first to the last"


@pytest.mark.parametrize("actions", [[], [""], [("continue", ""), ("do", " \r\n")]], ids=repr)
def test_nothing_makes_no_memory_and_asks_no_model(actions):
    embedder = RecordingEmbedder()
    assert ExtractiveWriter(embedder).write_memory(span(*actions)) is None
    assert embedder.calls == []


def test_what_does_not_fit_makes_no_memory():
    assert memory("e" + "\u0301" * 5_000, max_tokens=8) is None


@pytest.mark.parametrize("value", [7, 0, -1, 8.0, "80", None, True])
def test_the_limit_is_a_number_of_tokens(value):
    with pytest.raises(InvalidInputError, match="max_tokens"):
        ExtractiveWriter(HashingEmbedder(), max_tokens=value)


def test_another_tokenizer():
    writer = ExtractiveWriter(HashingEmbedder(), max_tokens=10, tokenizer="chars/4")
    found = writer.write_memory(span(*STORY))
    assert found
    assert len(found) <= 40
    assert (
        repr(writer)
        == "ExtractiveWriter(HashingEmbedder(dimensions=64, name='hashing-64'), max_tokens=10, tokenizer='chars/4')"
    )


def test_a_broken_model_is_a_model_error():
    embedder = RecordingEmbedder()
    embedder.dimensions = 3
    with pytest.raises(ModelError, match="nothing was stored"):
        memory_from(ExtractiveWriter(embedder), span(*STORY))


WORDS = st.sampled_from(
    ["Mara", "the wolf", "He", "«Sì»", '"No."', "goes", "\n", ". ", "! ", "> ", "哈。", "🐺", "x" * 90, "Sam: "]
)
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["start", "do", "say", "story", "output"]), st.lists(WORDS, max_size=25).map(" ".join)),
    max_size=6,
)


@given(actions=ACTIONS, max_tokens=st.integers(8, 90))
@settings(max_examples=150)
def test_promises(actions, max_tokens):
    writer = ExtractiveWriter(HashingEmbedder(16), max_tokens=max_tokens)
    found = memory_from(writer, span(*actions))
    assert found == memory_from(writer, span(*actions))
    if found is None:
        return
    assert TOKENIZER.count(found) <= max_tokens
    units = units_of(span(*actions).actions, TOKENIZER, max_tokens)
    sources = [flat(text) for _, text in actions]
    assert all(any(unit.text in source for source in sources) for unit in units)
    words = {word for unit in units for word in f"{unit.speaker} {unit.text}".split()} | {">"}
    assert set(found.replace("。", "。 ").split()) <= words


# The Story Summary.


def summary(previous: str, *passages: str, limit: int = 60) -> str:
    return summary_from(ExtractiveWriter(HashingEmbedder()), previous, passages, limit)


def test_while_all_fits_all_stays():
    previous = "Ansa came to the Light.\n\nShe *never* trusted Fenn: the player's own words"
    assert summary(previous, "Jory Pell is alive.", "> Ansa breaks the chain") == (
        previous + "\nJory Pell is alive.\n> Ansa breaks the chain"
    )
    assert summary("", "Jory Pell is alive.") == "Jory Pell is alive."


def test_a_passage_that_is_there_is_not_told_twice():
    once = summary("Ansa came.", "Jory Pell is alive.")
    assert summary(once, "Jory Pell is alive.", "Fenn fled.") == "Ansa came.\nJory Pell is alive.\nFenn fled."


def test_it_shortens_itself_and_the_newest_stay():
    passages = [f"On day {n} Ansa Kell walked to the harbour of Mornwick and met the keeper {n}." for n in range(30)]
    found = summary(" ".join(passages[:28]), *passages[28:], limit=100)
    assert 60 < TOKENIZER.count(found) <= 100
    assert passages[29] in found
    assert passages[28] in found
    assert passages[0] not in found
    assert_quotes(found, *passages)


def test_what_is_central_outlasts_what_is_not():
    core = [f"Ansa Kell guards the Cormorant Light with Hester Quill, night {n}." for n in range(6)]
    odd = "Pickled walnuts ferment slowly."
    found = summary(" ".join([*core[:3], odd, *core[3:]]), "Ansa Kell lights the Cormorant Light alone.", limit=80)
    assert odd not in found
    assert core[5] in found


def test_a_summary_grows_over_many_updates_and_never_over_its_limit():
    text = ""
    for number in range(40):
        text = summary(text, f"Chapter {number}: Mara crossed river number {number} with the abbot.", limit=70)
        assert TOKENIZER.count(text) <= 70
        assert f"Chapter {number}:" in text
    assert text == summary(text, "", limit=70)


def test_the_lines_of_a_summary_stay_lines():
    lines = [f"Ansa Kell crossed the river of chapter {n}. The night was cold." for n in range(12)]
    found = summary("\n".join(lines[:11]), lines[11], limit=60)
    assert 3 < len(found.splitlines()) < 12
    assert all(any(line.startswith(one) or one in line for line in lines) for one in found.splitlines())


def test_a_summary_of_very_many_sentences_loses_the_oldest():
    text = "".join(f"Day {n} went by. " for n in range(3_000))
    found = summary(text, "The very last day came at last.", limit=300)
    assert "The very last day came at last." in found
    assert "Day 0 went by." not in found


def test_one_sentence_longer_than_the_limit_is_cut():
    found = summary("", "the wolf that nobody had seen before went on and on, " * 10, limit=20)
    assert 0 < TOKENIZER.count(found) <= 20


@pytest.mark.parametrize("limit", [7, 0, "60"])
def test_the_summary_needs_a_limit(limit):
    with pytest.raises(InvalidInputError, match="limit_tokens"):
        summary("", "Jory Pell is alive.", limit=limit)


# What it is made of.


def test_names_are_capitals_in_the_middle_of_a_sentence():
    assert names_in(["Hester smiles.", "You see Hester's dog, Admiral.", "He goes to Gallow Head."]) == [1, 2, 2]
    assert names_in(["林冲走进山神庙。", ""]) == [0, 0]


@pytest.mark.parametrize(
    ("sentence", "leans"),
    [
        ("She leaves.", True),
        ("— It breathes.", True),
        ("Lei esce.", True),
        ("Onu görüyorsun.", True),
        ("她走了。", True),
        ("彼女は笑った。", True),
        ('"I know. It was me."', True),
        ('"Part of a long speech.', True),
        ('"I know," says Mara.', False),
        ("«Sì» mormora Livia.", False),
        ("Mara leaves.", False),
        ("Il cavaliere esce.", False),
        ("Heather blooms.", False),
        ("...", False),
        ("", False),
    ],
    ids=ascii,
)
def test_what_leans_on_the_sentence_before(sentence, leans):
    assert leans_back(sentence) == leans


def unit_vectors(*rows: list[float]) -> np.ndarray:
    matrix = np.array(rows, dtype=np.float32)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def test_centrality_is_the_cosine_with_the_weighted_mean():
    vectors = unit_vectors([1, 0], [0, 1], [1, 1])
    assert centrality(vectors, [1, 1, 1]).tolist() == pytest.approx([2**-0.5, 2**-0.5, 1.0], abs=1e-6)
    assert centrality(vectors[:2], [3, 1]).tolist() == pytest.approx([3 / 10**0.5, 1 / 10**0.5], abs=1e-6)
    assert centrality(unit_vectors([1, 0], [-1, 0]), [1, 1]).tolist() == [0, 0]


def test_nearness_is_the_greatest_cosine():
    vectors = unit_vectors([1, 0], [0, 1], [-1, 0])
    assert nearness(vectors, unit_vectors([1, 0], [1, 1])).tolist() == pytest.approx([1, 2**-0.5, 0], abs=1e-6)
    assert nearness(vectors, vectors[:0]).tolist() == [0, 0, 0]


def test_the_best_first_and_no_repetition():
    vectors = unit_vectors([1, 0], [1, 0.01], [0, 1])
    scores = [0.9, 0.89, 0.5]
    assert chosen(vectors, scores, 0.5, 0.1, lambda place: [[place]], lambda places: len(places) <= 2) == [0, 2]
    assert chosen(vectors, scores, 0.0, 0.1, lambda place: [[place]], lambda places: len(places) <= 2) == [0, 1]
    assert chosen(vectors, scores, 0.5, 0.45, lambda place: [[place]], lambda places: True) == [0, 2]
    assert chosen(vectors, scores, 0.5, 0.6, lambda place: [[place]], lambda places: True) == [0]
    assert chosen(vectors, [1, 1, 1], 0.0, 0.1, lambda place: [[place]], lambda places: len(places) <= 1) == [0]


def test_units_are_joined_as_they_were():
    text = "First line. Second sentence.\nMara: Third. Fourth."
    units = units_of((SpanAction("output", text), SpanAction("do", "wait here")), TOKENIZER, 80)
    assert joined(units) == "First line. Second sentence.\nMara: Third. Fourth.\n> wait here"
    assert joined([units[0], units[3], units[4]]) == "First line.\nMara: Fourth.\n> wait here"
    assert joined([]) == ""

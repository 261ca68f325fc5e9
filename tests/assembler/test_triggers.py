"""What a trigger matches: literal text, in every script, with positions that lead back (SPEC.md section 4)."""

import time
import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assembler import Action, AdventureError, StoryCard
from assembler.dynamic.triggers import Match, TriggerIndex

MODES = ["word_start", "word", "substring"]


def card(*triggers: str, id: str = "c1", match: str = "word_start", enabled: bool = True) -> StoryCard:
    return StoryCard(id, triggers, "Lore.", match=match, enabled=enabled)


def match(cards: StoryCard | list[StoryCard], *texts: str) -> list[Match]:
    """Matches of the cards in the texts, the newest text first."""
    cards = [cards] if isinstance(cards, StoryCard) else cards
    actions = [Action(f"a{len(texts) - age}", "output", text) for age, text in enumerate(texts)]
    return TriggerIndex(cards).match(actions)


def mentions(text: str, *triggers: str, mode: str = "word_start") -> float:
    """How many mentions one action has: the score at age 0."""
    found = match(card(*triggers, match=mode), text)
    return found[0].score if found else 0


def ranked(cards: list[StoryCard], *texts: str) -> list[str]:
    return [found.card.id for found in match(cards, *texts)]


@pytest.mark.parametrize(
    ("trigger", "text", "in_modes"),
    [
        ("elf", "an elf's bow", "word_start word substring"),
        ("elf", "two elfs", "word_start substring"),
        ("elf", "on the shelf", "substring"),
        ("elf", "elf", "word_start word substring"),
        ("elf", "(elf)", "word_start word substring"),
        ("elf", "half-elf", "word_start word substring"),
        ("elf", "an “elf”!", "word_start word substring"),
        ("ejderha", "ejderhanın alevi", "word_start substring"),
        ("cat", "The cat, runs", "word_start word substring"),
        ("cat", "a category", "word_start substring"),
        ("cat", "a bobcat", "substring"),
        ("cat", "concatenated", "substring"),
        ("앨리스", "앨리스가 왔다", "word_start substring"),
        ("Anmas", "Anmas'ın limanı", "word_start word substring"),
        ("Anmas", "Anmas’ın limanı", "word_start word substring"),
        ("Anmas", "l'Anmas", "word_start word substring"),
        ("Anmas", "l’Anmas", "word_start word substring"),
        ("волк", "два волка", "word_start substring"),
        ("the gate", "at the gates", "word_start substring"),
        ("the gate", "bathe gate", "substring"),
        ("wolf", "a dog", ""),
        ("wolf", "wol f", ""),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_a_mode_decides_which_ends_must_be_word_ends(trigger, text, in_modes, mode):
    assert mentions(text, trigger, mode=mode) == (mode in in_modes.split())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        pytest.param("佐藤", "佐藤は公園で写真を撮った。", id="Han before Kana"),
        pytest.param("龙胆", "他问龙胆在哪里", id="Han in Han"),
        pytest.param("คน", "มีคนมากมาย", id="Thai"),
        pytest.param("さくら", "昨日さくらと話した", id="Hiragana"),
        pytest.param("タワー", "東京タワーは高い", id="Katakana with a long vowel"),
        pytest.param("ຄົນ", "ມີຄົນຫຼາຍ", id="Lao"),
        pytest.param("ភ្នំ", "នៅភ្នំពេញ", id="Khmer"),
        pytest.param("မြို့", "ဒီမြို့ကြီး", id="Myanmar"),
        pytest.param("Mara", "他问Mara在哪里", id="Latin in Han"),
        pytest.param("R2D2", "昨日R2D2と話した", id="digits in Kana"),
    ],
)
def test_beside_a_letter_of_a_script_without_spaces_a_word_boundary_always_holds(trigger, text, mode):
    assert mentions(text, trigger, mode=mode) == 1


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("Işık", "ışık söndü"),
        ("İstanbul", "istanbul uyuyor"),
        ("istanbul", "İSTANBUL UYUYOR"),
        ("Isparta", "ISPARTA"),
        ("ısparta", "ISPARTA"),
        ("Weißer Turm", "WEISSER TURM brennt"),
        ("WEISSER TURM", "der weißer Turm"),
        ("STRASSE", "die Straße"),
        ("ẞ-Bahn", "ss-bahn"),
        ("ΣΙΣΥΦΟΣ", "σισυφος"),
        ("ДРАКОН", "дракон"),
        ("wolf", "WOLF"),
        ("WOLF", "wolf"),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_case_is_ignored(trigger, text, mode):
    assert mentions(text, trigger, mode=mode) == 1


I_LETTERS = {"I": "I", "i": "i", "İ": "İ", "ı": "ı", "I with dot": "I\u0307", "i with dot": "i\u0307"}


@pytest.mark.parametrize(("one", "other"), list(product(I_LETTERS, I_LETTERS)))
def test_the_four_letters_i_of_turkish_are_all_equal(one, other):
    text = f"Bu k{I_LETTERS[other]}lıç."
    found = match(card(f"K{I_LETTERS[one]}lıç"), text)
    assert [m.score for m in found] == [1]
    assert text[found[0].mention.start : found[0].mention.end] == f"k{I_LETTERS[other]}lıç"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("form", "other"), [("NFC", "NFD"), ("NFD", "NFC")])
@pytest.mark.parametrize("word", ["café", "Ångström", "Nguyễn", "앨리스", "Ωραία", "Źdźbło"])
def test_unicode_forms_are_equal(word, form, other, mode):
    text = unicodedata.normalize(other, f"Das {word}, ja.")
    assert mentions(text, unicodedata.normalize(form, word), mode=mode) == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_an_accent_is_no_matter_of_case_or_form(form, mode):
    text = unicodedata.normalize(form, "the café")
    assert mentions(text, "cafe", mode=mode) == 0
    assert mentions(text, "caf", mode=mode) == (mode != "word")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mark", ["\u0301", "\u0323", "\u20dd", "\u3099"])
def test_a_match_never_ends_inside_a_character_that_has_no_form_of_its_own(mark, mode):
    assert mentions(f"the elf{mark}", "elf", mode=mode) == 0
    assert mentions(f"the elf{mark}", f"elf{mark}", mode=mode) == 1


@pytest.mark.parametrize(
    "before",
    ["İİİİ", "ßßß", "ﬃﬃ", "e\u0301e\u0301", "ŉ", "\ud83d\udc4d", "\ud83d", "👨‍👩‍👧‍👦", "각", "\0\0", "İ" * 500],
    ids=["İ", "ß", "ligature", "NFD", "ʼn", "escaped pair", "lone half", "family", "Jamo", "NUL", "500 İ"],
)
@pytest.mark.parametrize("name", ["Fenrir", "İSKENDER", "Weißer", "Zoe\u0308"])
def test_positions_point_into_the_original_text(before, name):
    text = f"{before} {name} {before}"
    found = match(card(unicodedata.normalize("NFC", name.casefold())), text)
    mention = found[0].mention
    assert text[mention.start : mention.end] == name
    assert found[0].score == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("trigger", "not_in"),
    [
        (".", "wolf"),
        ("(", "wolf"),
        ("wo.f", "wolf"),
        ("wol?f", "wof"),
        ("[wolf]", "wolf"),
        ("wolf|cat", "cat"),
        ("^wolf$", "wolf"),
        ("*", "wolf"),
        ("\\bwolf\\b", "wolf"),
        ("AC/DC", "AC, DC"),
        ("/drag{1,2}on/i", "dragon draggon"),
        ("/(a+)+$/", "aaaa"),
        ("%wolf_", "a wolf!"),
        ("<|endoftext|>", "endoftext"),
    ],
)
def test_literal_text_is_literal(trigger, not_in, mode):
    assert mentions(not_in, trigger, mode=mode) == 0
    assert mentions(f"so {trigger} it is", trigger, mode=mode) == 1


def test_a_pattern_in_a_list_is_not_split_at_its_comma():
    dragons = card("/drag{1,2}on/i", "wyrm")
    assert [m.trigger for m in match(dragons, "the key /drag{1,2}on/i itself")] == ["/drag{1,2}on/i"]
    assert [m.trigger for m in match(dragons, "a wyrm")] == ["wyrm"]
    assert match(dragons, "dragon, draggon, /drag{1, 2}on/i") == []


@pytest.mark.parametrize("mode", MODES)
def test_what_would_be_an_explosive_pattern_costs_nothing(mode):
    began = time.process_time()
    assert mentions("a" * 5000, "/(a+)+$/", "(a+)+$", mode=mode) == 0
    assert mentions("a" * 5000, "a" * 2500, mode="substring") == 1  # 2,501 spans that overlap
    assert time.process_time() - began < 5


@pytest.mark.parametrize("written", ["wolf, Fenrir ,, ,pack", ["wolf", " Fenrir ", "", " ", "pack"]], ids=type)
@pytest.mark.parametrize("word", ["wolf", "Fenrir", "pack"])
def test_triggers_are_a_list_or_one_string_with_commas(written, word):
    one = StoryCard("c1", written, "Lore.")
    assert [m.trigger for m in match(one, f"the {word}!")] == [word]
    assert match(one, "a , b") == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("triggers", ["", " ", ",", ", ,", [], [""], ["", "  "], ["\n"]], ids=repr)
def test_empty_triggers_are_ignored(triggers, mode):
    assert match(StoryCard("c1", triggers, "Lore.", match=mode), "a wolf , and  more\n") == []


@pytest.mark.parametrize(
    ("mode", "trigger", "text", "found"),
    [
        ("substring", " elf", "an elf", True),
        ("substring", " elf", "shelf", False),
        ("substring", " elf ", "an elf ran", True),
        ("substring", " elf ", "an elf", False),
        ("substring", "elf ", "shelf life", True),
        ("word_start", " elf ", "an elf", True),
        ("word_start", " elf ", "elf", True),
        ("word", " elf ", "elf.", True),
    ],
)
def test_spaces_around_a_trigger_count_in_mode_substring_alone(mode, trigger, text, found):
    assert (mentions(text, trigger, mode=mode) == 1) is found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("trigger", ["e", ".", "的", "...", "!", "—", "é", "7", "👍", "e, ., 的"])
@pytest.mark.parametrize("text", ["The end.", "", "...", "e e e. 7 的 👍", "\ud83d"])
def test_one_character_and_punctuation_never_crash(trigger, text, mode):
    found = match(StoryCard("c1", trigger, "Lore.", match=mode), text)
    assert [m.score for m in found] in ([], [1]), "a weak trigger counts once, or `...` does by the same rule"


def test_the_rule_for_weak_triggers_in_the_example():
    weak = StoryCard("c1", "e, ., 的", "Lore.")
    found = match(weak, "The end.")
    assert [(m.trigger, m.score) for m in found] == [(".", 1)]  # *e* is no word there, the full stop is there once


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("e", "e e e e e Mara sees the tree e e e"),
        (".", "Mara . . . . . . ."),
        ("的", "的的的的 Mara 的的"),
        ("...", "Mara ... ... ... ..."),
        ("a", "a a a, Mara"),
        ("!?", "Mara !? !? !?"),
    ],
)
def test_frequency_never_makes_a_weak_trigger_outrank_a_name(trigger, text, mode):
    weak = card(trigger, id="weak", match=mode)
    assert ranked([weak, card("Mara", id="name")], text) == ["name", "weak"]
    assert ranked([weak, card("Mara", id="name")], text, text, text)[0] == "name"


@pytest.mark.parametrize(
    ("triggers", "text", "count"),
    [
        (["wolf"], "wolf wolf, wolf", 3),
        (["wolf", "wolfhound"], "a wolfhound", 1),
        (["the wolf", "wolf pack"], "the wolf pack", 1),
        (["wolf", "wolf"], "wolf", 1),
        (["wolf", "WOLF", "Wolf"], "wolf", 1),
        (["wolf", "pack"], "wolf pack", 2),
        (["wolf", "wolfhound", "hound"], "wolfhound and hound", 2),
        (["aba"], "ababa", 1),
        (["ab", "cd"], "abcd", 2),
    ],
)
def test_mentions_are_spans_and_overlapping_ones_count_once(triggers, text, count):
    assert mentions(text, *triggers, mode="substring") == count


def test_two_cards_with_one_trigger_both_match():
    assert ranked([card("wolf", id="c1"), card("wolf", "pack", id="c2")], "wolf pack") == ["c2", "c1"]


def test_the_score_is_mentions_by_age():
    found = match(card("wolf"), "wolf", "wolf wolf", "dog", "wolf wolf wolf wolf")
    assert found[0].score == 1 / 1 + 2 / 2 + 4 / 4
    assert (found[0].trigger, found[0].action_id) == ("wolf", "a4")


def test_the_newest_mention_is_the_one_reported():
    found = match(card("wolf", "Fenrir"), "nothing", "Fenrir, the wolf", "wolf")
    assert (found[0].trigger, found[0].action_id) == ("Fenrir", "a2")


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        pytest.param(["bear bear wolf"], ["bear", "wolf"], id="score first"),
        pytest.param(["bear", "wolf wolf"], ["bear", "wolf"], id="then the more recent mention"),
        pytest.param(["wolf bear"], ["wolf", "bear"], id="then the order in the document"),
        pytest.param(["bear wolf"], ["wolf", "bear"], id="and not that in the text"),
        pytest.param(["", "bear bear bear", "wolf wolf wolf"], ["bear", "wolf"], id="age weighs"),
        pytest.param(["bear", "wolf wolf wolf"], ["wolf", "bear"], id="frequency weighs"),
    ],
)
def test_order_of_rank(texts, order):
    assert ranked([card("wolf", id="wolf"), card("bear", id="bear")], *texts) == order


def test_a_card_that_is_switched_off_never_matches():
    assert ranked([card("wolf", id="off", enabled=False), card("wolf", id="on")], "wolf") == ["on"]


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        pytest.param("\ud83d\udc4d up", "so 👍 up", id="escaped pair in the trigger"),
        pytest.param("👍 up", "so \ud83d\udc4d up", id="escaped pair in the text"),
        pytest.param("x\ud83d", "so x\ud83d it is", id="lone half in both"),
        pytest.param("a\0b", "so a\0b it is", id="NUL"),
        pytest.param("<|im_start|>", "so <|im_start|> it is", id="control token"),
        pytest.param("👨‍👩‍👧‍👦 Smith", "the 👨‍👩‍👧‍👦 Smiths", id="family"),
    ],
)
def test_triggers_hold_anything_a_player_can_type(trigger, text):
    assert mentions(text, trigger) == 1


def test_two_cards_with_one_id_are_refused_by_name():
    with pytest.raises(AdventureError, match=r"story_cards\[1\].*'c1'"):
        TriggerIndex([card("wolf"), card("bear")])


WORDS = st.text("abA", min_size=2, max_size=4).filter(str.strip)


@given(
    text=st.text("abA .'-", max_size=40), triggers=st.lists(WORDS, min_size=1, max_size=4), mode=st.sampled_from(MODES)
)
def test_mentions_agree_with_a_search_by_hand(text, triggers, mode):
    spans = []
    for trigger, start in product(triggers, range(len(text))):
        end = start + len(trigger)
        starts_word = start == 0 or not text[start - 1].isalpha()
        ends_word = end >= len(text) or not text[end].isalpha()
        holds = mode == "substring" or (starts_word and (mode == "word_start" or ends_word))
        if text[start:end].lower() == trigger.lower() and holds:
            spans.append((start, end))
    spans.sort()
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    assert mentions(text, *triggers, mode=mode) == len(joined)
    if joined:
        mention = match(card(*triggers, match=mode), text)[0].mention
        assert (mention.start, mention.end) == joined[0]


def test_1589_triggers_on_one_card():
    triggers = [f"name{number}" for number in range(1589)]
    began = time.process_time()
    assert mentions("so name1588 came, and name7x too", *triggers) == 2
    assert time.process_time() - began < 5


def test_105_matches_of_975_cards_in_a_stable_order():
    cards = [card(f"being{number:03}", id=f"c{number}") for number in range(975)]
    text = " ".join(f"being{number:03}" for number in range(104, -1, -1))
    began = time.process_time()
    index = TriggerIndex(cards)
    runs = [[m.card.id for m in index.match([Action("a1", "do", text)])] for _ in range(3)]
    assert time.process_time() - began < 5
    assert runs == [[f"c{number}" for number in range(105)]] * 3


def test_a_huge_action_takes_bounded_time():
    text = ("Mara and the wolf went on. " * 20_000)[:437_595]
    began = time.process_time()
    assert mentions(text, "wolf") == text.count("wolf")
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("cards", "text", "score"),
    [
        pytest.param([["wolf"]] * 975, "wolf " * 8_752, 8752, id="975 cards, 8,752 wolves"),
        pytest.param([["wolf", "you"]] * 975, "you see the wolf. " * 300, 600, id="975 cards of two triggers"),
        pytest.param([["wolf"]] * 100, "wolf " * 87_519, 87_519, id="100 cards, a novel of wolves"),
        pytest.param([["ha" * n for n in range(1, 50)]], "ha" * 218_000, 1, id="nested triggers, a long laugh"),
        pytest.param([["a" * n for n in range(1, 1_590)]], "a" * 400_000, 1, id="1,589 nested triggers"),
        pytest.param([["a" * 100_000]], "a" * 400_000, 1, id="a trigger of 100,000 characters"),
    ],
)
def test_hostile_cards_and_actions_take_bounded_time(cards, text, score):
    index = TriggerIndex([StoryCard(f"c{n}", triggers, "x", match="substring") for n, triggers in enumerate(cards)])
    began = time.process_time()
    matches = index.match([Action("a1", "output", text)])
    assert time.process_time() - began < 10
    assert [match.score for match in matches] == [score] * len(cards)


@pytest.mark.parametrize("length", [199, 200, 201, 5_000])
def test_a_long_trigger_is_found_like_a_short_one(length):
    trigger = ("the wolf of the north " * 300)[:length].strip()
    text = f"Here: {trigger}. And {trigger}! xthe wolf"
    (match,) = TriggerIndex([StoryCard("c1", [trigger], "x")]).match([Action("a1", "output", text)])
    assert (match.score, match.mention.start, match.mention.end) == (2, 6, 6 + len(trigger))


def test_a_trigger_on_the_edge_of_what_is_searched_at_once():
    for before in range(4_080, 4_100):
        text = "x" * before + " wolfhound " + "y" * 5_000
        (match,) = TriggerIndex([StoryCard("c1", ["wolfhound"], "x")]).match([Action("a1", "output", text)])
        assert match.score == 1


def test_a_thousand_marks_on_a_letter_take_bounded_time():
    text = "wolf " + "a" + "\u0301\u0316" * 80_000 + " wolf"
    began = time.process_time()
    (match,) = TriggerIndex([StoryCard("c1", ["wolf"], "x")]).match([Action("a1", "output", text)])
    assert time.process_time() - began < 5
    assert match.score == 2

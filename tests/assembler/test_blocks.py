"""Costs add up, and where a tokenizer breaks that the context still fits (SPEC.md section 2)."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assembler import Action, Adventure, AssembledContext, ContextTooSmallError, Settings, StoryCard, assemble
from assembler.blocks import BlockMaker
from benchmarks.adventures import random_adventure
from benchmarks.assembly import StubBank
from benchmarks.fidelity_check import could_have_gone_in
from memorybank.memory import NewMemory
from memorybank.tokenizer import Tokenizer, open_tokenizer
from tests.support.banks import RankedBank
from tests.support.strategies import byte_level_bpe
from tests.support.words import CountedWords, Words


class JoinsCostMore:
    """A token for each word and two for each line end with something behind it."""

    name = "joins cost more"
    is_estimate = False

    def count(self, text: str) -> int:
        return len(self.starts(text))

    def starts(self, text: str) -> list[int]:
        joins = [match.start() for match in re.finditer(r"\n(?=.)", text, re.DOTALL)]
        return sorted([word.start() for word in re.finditer(r"\S+", text)] + joins * 2)


class JoinsCostLess:
    """A token for each word and three for a line end with nothing behind it."""

    name = "joins cost less"
    is_estimate = False

    def count(self, text: str) -> int:
        return len(self.starts(text))

    def starts(self, text: str) -> list[int]:
        ends = [len(text) - 1] * 3 if text.endswith("\n") else []
        return [word.start() for word in re.finditer(r"\S+", text)] + ends


@pytest.fixture(params=["o200k_base", "cl100k_base", "byte level"], scope="module")
def tokenizer(request) -> Tokenizer:
    return open_tokenizer(byte_level_bpe() if request.param == "byte level" else request.param)


# What a block is.


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("  The gate. \n\n", "The gate."),
        ("one\r\ntwo\rthree\n", "one\ntwo\nthree"),
        ("\r\n\r\n", ""),
        ("", ""),
        (" \t\u3000\u2028 ", ""),
        ("a\n\n b", "a\n\n b"),
        ("half \ud83d", "half \ufffd"),
        ("\ud83d\udc4d", "👍"),
        ("\0", "\0"),
    ],
)
def test_a_block_is_a_text_without_surrounding_whitespace(text, block):
    made = BlockMaker(open_tokenizer())(text)
    assert made.text == block
    assert made.tokens == (open_tokenizer().count(block + "\n") if block else 0)
    assert BlockMaker(open_tokenizer())(text, last=True).tokens == open_tokenizer().count(block)


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("do", "look around", "> look around"),
        ("say", "“Hello.”", "> “Hello.”"),
        ("do", "> look around", "> look around"),
        ("say", ">Hello", ">Hello"),
        ("do", "  > look", "> look"),
        ("do", "\n look \n", "> look"),
        ("start", "You wake.", "You wake."),
        ("story", "Rain falls.", "Rain falls."),
        ("output", "A gate.", "A gate."),
        ("output", "> quoted", "> quoted"),
        ("continue", "", ""),
        ("do", "  ", ""),
    ],
)
def test_what_the_player_did_or_said_stands_behind_a_prompt(kind, text, shown):
    assert BlockMaker(Words()).action(Action("a1", kind, text)).text == shown


def test_a_prefix_is_part_of_the_block_and_counted():
    blocks = BlockMaker(Words())
    made = blocks("be brief", "[Author's note: ", "]")
    assert (made.text, made.tokens) == ("[Author's note: be brief]", 4)
    assert blocks(" ", "[Author's note: ", "]").text == ""


def test_a_block_is_counted_once():
    counted = CountedWords()
    blocks = BlockMaker(counted)
    assert [blocks("the same text").tokens for _ in range(10)] == [3] * 10
    assert counted.texts == 1


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr("assembler.blocks.GENERATION", 10_000)
    blocks = BlockMaker(Words())
    for number in range(1000):
        assert blocks(f"text {number} " + "x" * 1000).tokens == 3
    assert len(blocks._young) + len(blocks._old) < 100


# Costs add up.

HOSTILE = st.text(
    st.one_of(
        st.sampled_from(" \n\r\t.,!?…'\"/\\<>|{}[]()&^-—_*#"),
        st.sampled_from("abzAZ09éß哈ağıก앨👍🏽\u0301\u200d\ufe0f\0\u2028\u3000\x85\xa0\ufffd"),
        st.characters(codec="utf-8"),
    ),
    max_size=20,
)
LINES = st.lists(HOSTILE, min_size=1, max_size=8)
SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@given(texts=LINES)
@settings(max_examples=150, **SHARED)
def test_the_cost_of_a_context_is_the_sum_of_its_blocks(tokenizer, texts):
    blocks = BlockMaker(tokenizer)
    made = [block for block in map(blocks, texts) if block.text and not block.text.startswith("/")]
    joined = "\n".join(block.text for block in made) + "\n"
    assert tokenizer.count(joined) == sum(block.tokens for block in made) or not made


@given(texts=st.lists(st.one_of(HOSTILE, HOSTILE.map("/".__add__)), min_size=1, max_size=8), size=st.integers(20, 200))
@settings(max_examples=100, **SHARED)
def test_also_with_blocks_that_begin_with_a_slash_the_count_is_exact(tokenizer, texts, size):
    actions = [Action(f"a{n}", "story", text) for n, text in enumerate(texts)]
    adventure = Adventure(actions, ai_instructions=texts[0], story_summary=texts[-1])
    try:
        context = assemble(adventure, None, Settings(size, tokenizer))
    except ContextTooSmallError:
        return
    assert_exact(context, tokenizer, size)


@pytest.mark.parametrize(
    ("first", "second", "difference"), [("}", "/", -1), ("Hello {日//", "/c` the,", 1)], ids=["one less", "one more"]
)
def test_a_slash_behind_a_line_end_in_o200k(first, second, difference):
    tokenizer = open_tokenizer("o200k_base")
    blocks = BlockMaker(tokenizer)
    parts = blocks(first).tokens + blocks(second, last=True).tokens
    assert tokenizer.count(f"{first}\n{second}") == parts + difference
    header = blocks("Recent Story:").tokens
    actions = [Action("a1", "output", "Long ago."), Action("a2", "output", first), Action("a3", "output", second)]
    for size in range(header + parts, header + parts + 10):
        assert_exact(assemble(Adventure(actions), None, Settings(size)), tokenizer, size)


def assert_exact(context: AssembledContext, tokenizer: Tokenizer, size: int) -> None:
    assert context.tokens == tokenizer.count(context.text) <= size
    assert sum(line.used for line in context.report.lines) == context.tokens
    assert all(line.used >= 0 for line in context.report.lines)
    assert sum(part.used for part in context.report.parts.values()) == context.tokens


# Tokenizers that break additivity.


def everything(size: int, tokenizer: object, layout: str = "classic") -> AssembledContext:
    """Nine blocks of 11 words: two cards, two memories, an older action and the last one, and three headers."""
    adventure = Adventure(
        [Action("a1", "output", "old"), Action("a2", "output", "Mara")],
        (StoryCard("c1", ["Mara"], "one"), StoryCard("c2", ["Mara"], "two")),
    )
    bank = RankedBank.of([NewMemory("three", "m1"), NewMemory("four", "m2")])
    return assemble(adventure, bank, Settings(size, tokenizer, layout=layout))


def kept(context: AssembledContext) -> str:
    ids = ("c1", "c2", "m1", "m2", "a1")
    lines = {line.item: line for line in context.report.lines}
    return " ".join(id for id in ids if id in lines and lines[id].verdict == "kept")


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
@pytest.mark.parametrize(
    ("sizes", "expected", "tokens"),
    [
        # 11 words and 8 joins of 2 are 27. Each item that goes takes its word and one join with it: 3;
        # the last one of a section takes its header's words and join too.
        pytest.param([27, 28, 50], "c1 c2 m1 m2 a1", 27, id="everything"),
        pytest.param([24, 25, 26], "c1 c2 m1 m2", 24, id="the oldest history first"),
        pytest.param([21, 22, 23], "c1 c2 m1", 21, id="then the lowest-ranked memory"),
        pytest.param([15, 17, 20], "c1 c2", 15, id="then the next, and the header with it"),
        pytest.param([12, 13, 14], "c1", 12, id="then the lowest-ranked card"),
        pytest.param([11], "", 5, id="then the last card"),
    ],
)
def test_joins_that_cost_more(sizes, expected, tokens, layout):
    for size in sizes:
        context = everything(size, JoinsCostMore(), layout)
        assert kept(context) == expected
        assert context.tokens == tokens
        assert_exact(context, JoinsCostMore(), size)


def test_of_history_the_oldest_goes_first():
    actions = [Action(f"a{n}", "output", f"w{n}") for n in range(1, 9)]
    # All ten words and 8 joins of 2 are 26; each action less is 3 less, so three go and 17 is left.
    context = assemble(Adventure(actions), None, Settings(19, JoinsCostMore()))
    assert context.text == "Recent Story:\nw4\nw5\nw6\nw7\nw8"
    assert_exact(context, JoinsCostMore(), 19)
    dropped = [line for line in context.report.lines if line.verdict == "dropped"]
    assert [line.item for line in dropped] == ["a3"]
    assert "exact count" in dropped[0].reason


@pytest.mark.parametrize("size", [5, 6, 7, 8])
def test_where_even_required_is_over_its_size_by_the_exact_count(size):
    # `Recent Story:`, the last action and Front Memory are 5 words, and 9 with their two joins.
    adventure = Adventure([Action("a1", "output", "last one")], front_memory="front")
    with pytest.raises(ContextTooSmallError, match=str(size)):
        assemble(adventure, None, Settings(size, JoinsCostMore()))
    assert assemble(adventure, None, Settings(9, JoinsCostMore())).tokens == 9


def test_the_slash_of_o200k_where_nothing_can_be_left_out():
    tokenizer = open_tokenizer("o200k_base")
    adventure = Adventure([Action("a1", "output", "Hello {日//")], front_memory="/c` the,")
    exact = tokenizer.count("Recent Story:\nHello {日//\n/c` the,")
    assert assemble(adventure, None, Settings(exact)).tokens == exact
    with pytest.raises(ContextTooSmallError):
        assemble(adventure, None, Settings(exact - 1))


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
@pytest.mark.parametrize("size", range(5, 45))
def test_joins_that_cost_less(size, layout):
    try:
        context = everything(size, JoinsCostLess(), layout)
    except ContextTooSmallError:
        assert size < 6  # `Recent Story:\n` 5 and `Mara` 1
        return
    assert_exact(context, JoinsCostLess(), size)
    if size >= 35:  # the blocks apart: 11 words and 8 line ends of 3
        assert kept(context) == "c1 c2 m1 m2 a1"
        assert context.tokens == 11  # and together


@given(
    history=st.lists(st.integers(1, 9), max_size=12),
    cards=st.lists(st.integers(1, 9), max_size=5),
    memories=st.lists(st.integers(1, 9), max_size=5),
    size=st.integers(1, 150),
    kind=st.sampled_from([JoinsCostMore(), JoinsCostLess(), open_tokenizer("chars/4")]),
    layout=st.sampled_from(["classic", "cache_friendly"]),
    anchor=st.sampled_from([None, "a0", "a3"]),
)
@settings(max_examples=150, deadline=None)
def test_whatever_the_tokenizer_the_exact_count_fits(history, cards, memories, size, kind, layout, anchor):
    adventure = Adventure(
        [*(Action(f"a{n}", "output", "w " * count) for n, count in enumerate(history)), Action("z", "do", "Mara")],
        tuple(StoryCard(f"c{n}", ["Mara"], "c " * count) for n, count in enumerate(cards)),
        plot_essentials="p " * 9,
    )
    bank = RankedBank.of(NewMemory("m " * count) for count in memories)
    try:
        context = assemble(adventure, bank, Settings(size, kind, layout=layout, anchor_step=10), anchor=anchor)
    except ContextTooSmallError:
        return
    assert_exact(context, kind, size)
    assert context.text.endswith("> Mara")


# What costs less at its place than by itself.


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
def test_an_action_that_fits_at_its_place_goes_in(layout):
    # By itself `/roll the dice` costs a token more than behind the line end of `Recent Story:`.
    tokenizer = open_tokenizer("o200k_base")
    adventure = Adventure([Action("a1", "story", "/roll the dice"), Action("a2", "story", "Rain.")])
    text = "Recent Story:\n/roll the dice\nRain."
    size = tokenizer.count(text)
    assert size < sum(map(tokenizer.count, ("Recent Story:\n", "/roll the dice\n", "Rain.")))
    context = assemble(adventure, None, Settings(size, tokenizer, layout=layout))
    assert context.text == text
    assert_exact(context, tokenizer, size)
    smaller = assemble(adventure, None, Settings(size - 1, tokenizer, layout=layout))
    assert smaller.text == "Recent Story:\nRain."
    assert "no room" in smaller.report.lines[-1].reason


def test_where_something_was_given_up_what_fits_goes_in_instead():
    # History has 9 words and takes all that is left. With its joins it is over, and goes; then the memory has room:
    # 5 words and 3 joins of 2. Without it there are 3 words and one join.
    actions = [Action("a1", "output", " ".join(["old"] * 9)), Action("a2", "output", "Mara")]
    bank = RankedBank.of([NewMemory("three", "m1")])
    settings = {"memory_bank_percent": 0, "story_cards_percent": 0}
    for size, tokens in ((12, 11), (13, 11)):
        context = assemble(Adventure(actions), bank, Settings(size, JoinsCostMore(), **settings))
        assert context.text == "Memories:\nthree\nRecent Story:\nMara"
        assert context.tokens == tokens
        assert_exact(context, JoinsCostMore(), size)
        dropped = [line for line in context.report.lines if not line.kept]
        assert [(line.item, "exact count" in line.reason) for line in dropped] == [("a1", True)]


def test_the_seeds_that_had_room_for_more():
    for number in (9125, 9240):
        one = random_adventure(f"fidelity/{number}")
        context = assemble(one.adventure, StubBank.of(one.ranking), one.settings_for("o200k_base"))
        room = context.report.context_size - context.tokens
        assert_exact(context, open_tokenizer("o200k_base"), context.report.context_size)
        assert could_have_gone_in(context.report, room, one.adventure, open_tokenizer("o200k_base")) == []


def test_an_estimate_of_the_whole_decides_whether_the_last_action_fits():
    # 14 characters of the header with its line end are 4 by themselves and 5 of the action are 2; 19 are 5.
    adventure = Adventure([Action("a1", "output", "Rain!")])
    context = assemble(adventure, None, Settings(5, "chars/4"))
    assert context.text == "Recent Story:\nRain!"
    assert_exact(context, open_tokenizer("chars/4"), 5)
    with pytest.raises(ContextTooSmallError, match="need 6 tokens, but the context size is 4"):
        assemble(adventure, None, Settings(4, "chars/4"))


@pytest.mark.parametrize("every", [1, 2, 63, 64, 65])
@pytest.mark.parametrize("size", [50, 900, 5000])
def test_slashes_in_a_long_history(every, size):
    tokenizer = open_tokenizer("o200k_base")
    actions = [Action(f"a{n}", "story", f"/go {n}!" if n % every == 0 else f"Gate {n} is shut. //") for n in range(300)]
    adventure = Adventure(actions[:150])
    for action in actions[150:170]:
        adventure = adventure.with_actions([action])
        context = assemble(adventure, None, Settings(size, tokenizer))
        assert context.tokens == len(tokenizer.starts(context.text))
        assert_exact(context, tokenizer, size)
        begins = len(context.text)  # newest first in the report, and so from the end in the text
        for line in (line for line in context.report.lines if line.kept and line.section == "history"):
            begins = context.text.rindex(line.block, 0, begins)

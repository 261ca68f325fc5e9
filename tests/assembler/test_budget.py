"""How a context size is divided, and how what one part cannot use flows to the others (SPEC.md sections 3 and 4)."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assembler import Action, Adventure, AssembledContext, Settings, StoryCard, assemble
from assembler.budget import Shares, card_window, required_limit, split
from memorybank.memory import NewMemory
from memorybank.tokenizer import open_tokenizer
from tests.support.banks import RankedBank
from tests.support.words import Words

WORDS = Words()


def words(count: int, word: str = "w") -> str:
    return " ".join([word] * count)


@pytest.mark.parametrize(
    ("size", "percent", "limit"), [(4096, 70, 2867), (1, 70, 0), (10**9, 70, 7 * 10**8), (7, 50, 3), (99, 100, 99)]
)
def test_required_limit(size, percent, limit):
    assert required_limit(size, percent) == limit


@pytest.mark.parametrize(
    ("left", "with_bank", "without"),
    [
        (2896, (724, 1448, 724), (724, 2172, 0)),
        (1000, (250, 500, 250), (250, 750, 0)),
        (7, (1, 5, 1), (1, 6, 0)),
        (3, (0, 3, 0), (0, 3, 0)),
        (0, (0, 0, 0), (0, 0, 0)),
    ],
)
def test_shares(left, with_bank, without):
    assert split(left, memory_bank=True) == Shares(*with_bank)
    assert split(left, memory_bank=False) == Shares(*without)


def test_shares_are_settings():
    assert split(200, memory_bank=True, story_cards_percent=10, memory_bank_percent=40) == Shares(20, 100, 80)
    adventure = Adventure([Action("a1", "output", "go")])
    asked = Settings(203, WORDS, story_cards_percent=10, memory_bank_percent=40)
    parts = assemble(adventure, RankedBank(()), asked).report.parts
    assert [parts[name].allowed for name in ("story_cards", "history", "memory_bank")] == [20, 100, 80]


@pytest.mark.parametrize(
    ("share", "window"), [(0, 4), (499, 4), (500, 4), (501, 5), (599, 5), (600, 6), (900, 9), (999, 9), (25_000, 250)]
)
def test_window_of_the_cards(share, window):
    assert card_window(share) == window


def test_left_is_what_required_really_used():
    # Required uses 3 + 10 of its 70; left is 87: 21, 21 and 45.
    adventure = Adventure([Action("a1", "output", "go")], ai_instructions=words(10))
    report = assemble(adventure, RankedBank(()), Settings(100, WORDS)).report
    assert {name: (part.allowed, part.used) for name, part in report.parts.items()} == {
        "required": (70, 13),
        "story_cards": (21, 0),
        "history": (45, 0),
        "memory_bank": (21, 0),
    }


@pytest.mark.parametrize("off", ["no bank", "memory_bank false"])
def test_with_the_bank_off_history_has_75_percent(off):
    adventure = Adventure([Action("a1", "output", "go")], memory_bank=off == "no bank")
    bank = None if off == "no bank" else RankedBank.of([NewMemory("m")])
    context = assemble(adventure, bank, Settings(103, WORDS))
    parts = context.report.parts
    assert [parts[name].allowed for name in ("story_cards", "history", "memory_bank")] == [25, 75, 0]
    assert "Memories:" not in context.text


@dataclass(frozen=True)
class Case:
    """What is offered, in words; and what goes in, by hand. Dynamic has 100 tokens: 25, 50, 25."""

    cards: tuple[int, ...] = ()
    history: tuple[int, ...] = ()  # newest first
    memories: tuple[int, ...] = ()
    used: tuple[int, int, int] = (0, 0, 0)  # cards, history, memories; headers of 2 and 1 included


CASES = {
    "nothing at all": Case(),
    "each uses its share": Case((23, 9), (25, 25, 9), (24, 9), (25, 50, 25)),
    "cards less: history has what they leave": Case((8,), (60, 9), (34, 24), (10, 60, 25)),
    "history less: the memories have what it leaves": Case((23, 30), (10,), (40, 30), (25, 10, 41)),
    "memories less: history goes on": Case((23, 30), (50, 20), (4,), (25, 70, 5)),
    "history and memories less: cards that had no room": Case((23, 30), (10,), (4,), (55, 10, 5)),
    "no history: memories before cards": Case((30, 20), (), (60,), (22, 0, 61)),
    "no cards": Case((), (50, 25, 25), (24,), (0, 75, 25)),
    "no memories": Case((23,), (50, 25, 9), (), (25, 75, 0)),
    "only cards": Case((60, 38), (), (), (100, 0, 0)),
    "only history": Case((), (50, 50, 1), (), (0, 100, 0)),
    "only memories": Case((), (), (90, 9), (0, 0, 100)),
    "the first action that does not fit ends history": Case((), (50, 60, 1), (), (0, 50, 0)),
    "and so it does after the memories too": Case((), (50, 30, 1), (19,), (0, 80, 20)),
    "history is not unbroken for a memory's sake": Case((), (76, 1), (25,), (0, 0, 26)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_a_part_cannot_use_flows_on(case):
    context = dynamic(case, 100)
    parts = context.report.parts
    assert (parts["story_cards"].used, parts["history"].used, parts["memory_bank"].used) == case.used
    assert context.tokens == 3 + sum(case.used)


def dynamic(case: Case, left: int, *, tokenizer: object = WORDS) -> AssembledContext:
    """Assemble what the case offers with `left` tokens for Dynamic."""
    older = [Action(f"h{number}", "output", words(size)) for number, size in enumerate(case.history)]
    adventure = Adventure(
        [*reversed(older), Action("last", "output", "Mara")],
        tuple(StoryCard(f"c{number}", ["Mara"], words(size)) for number, size in enumerate(case.cards)),
    )
    bank = RankedBank.of(NewMemory(words(size), f"m{number}") for number, size in enumerate(case.memories))
    return assemble(adventure, bank, Settings(left + 3, tokenizer))


def by_hand(case: Case, left: int) -> set[str]:
    """The four steps of SPEC.md section 4, written down apart from the implementation."""
    taken: dict[str, int] = {}

    def used(kind: str) -> int:
        header = {"c": 2, "h": 0, "m": 1}[kind]
        costs = [cost for id, cost in taken.items() if id[0] == kind]
        return sum(costs) + (header if costs else 0)

    def take_whole(kind: str, sizes: tuple[int, ...], most: int) -> None:
        for number, size in enumerate(sizes):
            id = f"{kind}{number}"
            if id not in taken:
                taken[id] = size
                if used(kind) > most:
                    del taken[id]

    def take_history(most: int) -> None:
        for number, size in enumerate(case.history):
            if sum(case.history[: number + 1]) > most:
                break
            taken[f"h{number}"] = size

    cards_share, memory_share = left * 25 // 100, left * 25 // 100
    take_whole("c", case.cards, cards_share)
    take_history(left - used("c") - memory_share)
    take_whole("m", case.memories, left - used("c") - used("h"))
    take_history(left - used("c") - used("m"))
    take_whole("c", case.cards, left - used("h") - used("m"))
    return set(taken)


SIZES = st.lists(st.integers(1, 60), max_size=8).map(tuple)


@given(case=st.builds(Case, SIZES, SIZES, SIZES), left=st.integers(0, 160))
@settings(max_examples=200, deadline=None)
def test_the_four_steps_agree_with_the_specification_by_hand(case, left):
    context = dynamic(case, left)
    kept = {line.item for line in context.report.lines if line.verdict == "kept"} - {"header", "text"}
    assert kept == by_hand(case, left)
    assert context.tokens == WORDS.count(context.text) <= left + 3


@given(case=st.builds(Case, SIZES, SIZES, SIZES), size=st.integers(6, 200))
@settings(max_examples=60, deadline=None)
def test_nothing_that_fits_is_left_out_while_there_is_room(case, size):
    context = dynamic(case, size - 3, tokenizer=open_tokenizer())
    free = size - context.tokens
    has = {line.section for line in context.report.lines if line.verdict == "kept"}
    for line in context.report.lines:
        if line.verdict == "dropped":
            header = {"story_cards": "World Lore:\n", "memory_bank": "Memories:\n"}.get(line.section, "")
            needs = line.offered + (open_tokenizer().count(header) if line.section not in has else 0)
            assert needs > free, line


@pytest.mark.parametrize("size", [1, 2, 3, 5, 10, 99, 100])
def test_a_small_context_size_is_obeyed_to_the_letter(size):
    context = assemble(Adventure(ai_instructions=words(80)), None, Settings(size, WORDS))
    assert context.tokens == size * 70 // 100
    assert context.report.context_size == size


@pytest.mark.parametrize("size", [10**9, 2**31 - 1])
def test_a_huge_context_size_takes_everything(size):
    adventure = Adventure([Action(f"a{n}", "output", words(200)) for n in range(100)], ai_instructions=words(50))
    context = assemble(adventure, None, Settings(size, WORDS))
    assert context.tokens == 50 + 2 + 100 * 200
    assert context.report.context_size == size


ENDS = {
    "a space": "The end. ",
    "half an emoji": "The end \ud83d",
    "two line ends": "The end.\n\n",
    "carriage returns": "The end.\r\n\r",
    "many spaces": "The end." + " " * 50,
    "NUL": "The end\0",
    "a joiner": "The end 👨\u200d",
    "a mark": "The end e\u0301",
}


@pytest.mark.parametrize("size", [60, 90, 200])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base"])
def test_labels_line_ends_and_headings_are_counted(tokenizer, end, size):
    adventure = Adventure(
        [Action(f"a{n}", kind, end) for n, kind in enumerate(["start", "do", "output", "say", "output"])],
        (StoryCard("c1", ["end"], end),),
        ai_instructions=end,
        plot_essentials=end,
        story_summary=end,
        authors_note=end,
        front_memory=end,
    )
    bank = RankedBank.of([NewMemory(end), NewMemory(end + "x")])
    context = assemble(adventure, bank, Settings(size, tokenizer))
    assert context.tokens == open_tokenizer(tokenizer).count(context.text) <= size
    assert sum(line.used for line in context.report.lines) == context.tokens
    context.text.encode()

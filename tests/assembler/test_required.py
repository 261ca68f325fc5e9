"""Required: Front Memory and Last Action whole, then four components under the limit (SPEC.md section 3)."""

import time

import pytest

from assembler import Action, Adventure, AssembledContext, ContextTooSmallError, Settings, assemble
from tests.support.words import Words

WORDS = Words()
ORDER = ["authors_note", "plot_essentials", "ai_instructions", "story_summary"]
FRAME = {"authors_note": 2, "plot_essentials": 0, "ai_instructions": 0, "story_summary": 2}
"""Words that the frame adds: `[Author's note: …]` and `Story Summary:`."""
CUT = "a higher-priority section was cut"
OVER = "over the required limit"


def words(count: int, word: str = "w") -> str:
    return " ".join([word] * count)


def build(size: int, *, last: str = "go", **components: str) -> AssembledContext:
    actions = [Action("a1", "output", last)] if last else []
    return assemble(Adventure(actions, **components), None, Settings(size, WORDS))


def lines(context: AssembledContext) -> list[tuple[str, str, int, int, str]]:
    return [
        (line.section, line.verdict, line.offered, line.used, line.reason)
        for line in context.report.lines
        if line.item != "header"
    ]


@pytest.mark.parametrize(
    ("size", "limit"), [(4096, 2867), (1000, 700), (999, 699), (10, 7), (9, 6), (1, 0), (2**31 - 1, 1503238552)]
)
def test_the_limit_is_70_percent_in_integers(size, limit):
    assert assemble(Adventure(), None, Settings(size, WORDS)).report.required_limit == limit


@pytest.mark.parametrize(("percent", "limit"), [(0, 0), (33, 33), (100, 100)])
def test_the_percentage_is_a_setting(percent, limit):
    context = assemble(Adventure(), None, Settings(100, WORDS, required_percent=percent))
    assert context.report.required_limit == context.report.parts["required"].allowed == limit


def test_500_and_400_and_300_at_1000():
    # 700 − header 2 − last action 1 − Author's Note 302 leaves 395 for Plot Essentials' 400.
    context = build(
        1000, ai_instructions=words(500), plot_essentials=words(400), authors_note=words(300), story_summary="s"
    )
    assert lines(context) == [
        ("last_action", "kept", 1, 1, ""),
        ("authors_note", "kept", 302, 302, ""),
        ("plot_essentials", "trimmed", 400, 395, OVER),
        ("ai_instructions", "dropped", 500, 0, CUT),
        ("story_summary", "dropped", 3, 0, CUT),
    ]
    assert context.report.parts["required"].used == 700
    assert context.report.parts["history"].allowed == 225  # 300 − 75: Dynamic is still served


@pytest.mark.parametrize("number", range(4), ids=ORDER)
def test_each_component_in_turn_is_the_one_that_is_cut(number):
    # 10 words each; room for those before it and for 5 words of its own with what is shown around it.
    room = sum(10 + FRAME[section] for section in ORDER[:number]) + 5 + FRAME[ORDER[number]]
    size = 100
    context = assemble(
        Adventure([Action("a1", "output", "go")], **{section: words(10, section[0]) for section in ORDER}),
        None,
        Settings(size, WORDS, required_percent=3 + room),
    )
    expected = [("last_action", "kept", 1, 1, "")]
    for place, section in enumerate(ORDER):
        offered = 10 + FRAME[section]
        if place < number:
            expected.append((section, "kept", offered, offered, ""))
        elif place == number:
            expected.append((section, "trimmed", offered, 5 + FRAME[section], OVER))
        else:
            expected.append((section, "dropped", offered, 0, CUT))
    assert lines(context) == expected


@pytest.mark.parametrize("room", [0, 1, 2])
def test_where_nothing_of_a_section_fits_the_later_ones_are_left_out_too(room):
    # `[Author's note: x]` needs three words; Plot Essentials would fit and is left out all the same.
    context = assemble(
        Adventure([Action("a1", "output", "go")], authors_note="one two", plot_essentials="p"),
        None,
        Settings(100, WORDS, required_percent=3 + room),
    )
    assert lines(context)[1:] == [
        ("authors_note", "dropped", 4, 0, OVER),
        ("plot_essentials", "dropped", 1, 0, CUT),
    ]
    assert context.text == "Recent Story:\ngo"


@pytest.mark.parametrize(
    ("section", "kept"),
    [
        ("authors_note", "[Author's note: one two]"),
        ("plot_essentials", "one two"),
        ("ai_instructions", "one two"),
        ("story_summary", "Story Summary:\none two"),
    ],
)
def test_what_is_cut_is_the_text_inside_the_frame(section, kept):
    room = 2 + FRAME[section]
    adventure = Adventure([Action("a1", "output", "go")], **{section: "one two three four five"})
    context = assemble(adventure, None, Settings(100, WORDS, required_percent=3 + room))
    assert f"{kept}\n" in context.text
    assert "three" not in context.text
    assert lines(context)[1] == (section, "trimmed", 5 + FRAME[section], room, OVER)


def test_front_memory_and_last_action_stay_whole_over_the_limit():
    # Limit 70; header 2 + last action 60 + Front Memory 38 = 100 = the context size.
    context = build(100, last=words(60), front_memory=words(38), authors_note="n", ai_instructions="i")
    assert context.text == f"Recent Story:\n{words(60)}\n{words(38)}"
    assert context.tokens == 100
    assert [(section, verdict, used) for section, verdict, _, used, _ in lines(context)] == [
        ("front_memory", "kept", 38),
        ("last_action", "kept", 60),
        ("authors_note", "dropped", 0),
        ("ai_instructions", "dropped", 0),
    ]


@pytest.mark.parametrize("over", [0, 1, 10], ids=["at the limit", "one over", "ten over"])
def test_the_first_section_without_room_is_over_the_limit_and_not_behind_one_that_was_cut(over):
    context = build(100, last=words(68 + over), authors_note="n", ai_instructions="i")
    assert lines(context)[1:] == [
        ("authors_note", "dropped", 3, 0, OVER),
        ("ai_instructions", "dropped", 1, 0, CUT),
    ]


@pytest.mark.parametrize(
    ("last", "front", "costs"),
    [(97, 2, (2, 99)), (99, 0, (0, 101)), (1, 98, (98, 3)), (0, 101, (101, 0)), (5000, 3, (3, 5002))],
)
def test_front_memory_and_last_action_beyond_the_context_size_are_an_error(last, front, costs):
    with pytest.raises(ContextTooSmallError) as caught:
        build(100, last=words(last), front_memory=words(front), authors_note="n")
    error = caught.value
    assert (error.front_memory, error.last_action, error.context_size) == (*costs, 100)
    assert all(str(number) in str(error) for number in (*costs, 100))


@pytest.mark.parametrize(("last", "front"), [(98, 0), (97, 1), (1, 97), (0, 100)])
def test_exactly_the_context_size_is_no_error(last, front):
    assert build(100, last=words(last), front_memory=words(front)).tokens == 100


@pytest.mark.parametrize("empty", ["", " ", "\n\r\n", "\t\u3000\u2028"], ids=repr)
def test_an_empty_section_costs_nothing_and_changes_nothing(empty):
    with_empty = build(
        100, authors_note=empty, plot_essentials=empty, ai_instructions="i", story_summary=empty, front_memory=empty
    )
    assert with_empty.to_dict() == build(100, ai_instructions="i").to_dict()
    assert with_empty.text == "i\nRecent Story:\ngo"


def test_without_any_action_the_components_are_packed_all_the_same():
    context = build(100, last="", authors_note=words(30), plot_essentials=words(30), ai_instructions=words(30))
    assert lines(context) == [
        ("authors_note", "kept", 32, 32, ""),
        ("plot_essentials", "kept", 30, 30, ""),
        ("ai_instructions", "trimmed", 30, 8, OVER),
    ]
    assert context.tokens == 70


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
def test_the_last_block_of_all_has_no_line_end_to_pay_for(layout):
    class Characters(Words):
        def count(self, text: str) -> int:
            return len(text)

        def starts(self, text: str) -> list[int]:
            return list(range(len(text)))

    adventure = Adventure(ai_instructions="abc", plot_essentials="哈哈哈哈")
    context = assemble(adventure, None, Settings(10, Characters(), layout=layout))
    # Limit 7: Plot Essentials come first in priority and cost 4 as the last block; `abc\n` needs 4 and finds 3.
    assert context.text == "哈哈哈哈"
    assert context.tokens == 4
    both = assemble(adventure, None, Settings(12, Characters(), layout=layout))  # limit 8 = 4 + 4
    assert both.text == "abc\n哈哈哈哈"
    assert both.tokens == 8


def test_a_megabyte_of_instructions_is_cut_in_bounded_time():
    for text in ("a" * 1_000_000, "哈" * 200_000, "The wolf ran over the hill. " * 40_000):
        began = time.process_time()
        context = assemble(Adventure([Action("a1", "do", "go")], ai_instructions=text), None, Settings(2000))
        assert time.process_time() - began < 10
        assert context.tokens <= 1400
        assert context.text.endswith("Recent Story:\n> go")

"""The report: one line for every offered item, and lines that add up (SPEC.md sections 6 and 11)."""

import json

import pytest

from assembler import Action, Adventure, AssembledContext, Settings, StoryCard, assemble
from assembler.report import no_room
from assembler.table import render
from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder
from memorybank.memory import NewMemory
from memorybank.tokenizer import open_tokenizer
from tests.support.banks import RankedBank

SECTIONS = [
    *("front_memory", "last_action", "authors_note", "plot_essentials", "ai_instructions", "story_summary"),
    *("story_cards", "history", "memory_bank"),
]
SIZES = [70, 90, 120, 150, 200, 400, 4096]


def build(size: int, tokenizer: str = "o200k_base", **settings: object) -> AssembledContext:
    adventure = Adventure(
        [Action(f"a{n}", "output", f"The wolf runs past gate {n}. " * 3) for n in range(1, 12)],
        tuple(StoryCard(f"c{n}", [f"gate {n}"], f"Gate {n} is old. " * n) for n in range(1, 15)),
        ai_instructions="Write well. " * 4,
        plot_essentials="You are a knight. " * 3,
        story_summary="You rode for days. " * 3,
        authors_note="Dark.",
        front_memory="The sword glows.",
    )
    bank = RankedBank.of(NewMemory(f"You were at gate {n}.", f"m{n}", (f"a{n}",)) for n in range(1, 12))
    return assemble(adventure, bank, Settings(size, tokenizer, **settings))


@pytest.mark.parametrize("layout", ["classic", "cache_friendly"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base", "chars/4"])
def test_the_lines_add_up_to_the_exact_count(tokenizer, size, layout):
    context = build(size, tokenizer, layout=layout)
    assert sum(line.used for line in context.report.lines) == context.tokens
    assert context.tokens == open_tokenizer(tokenizer).count(context.text) <= size
    assert sum(part.used for part in context.report.parts.values()) == context.tokens


@pytest.mark.parametrize("size", SIZES)
def test_one_line_for_every_offered_item(size):
    lines = build(size).report.lines
    assert len({(line.section, line.item) for line in lines}) == len(lines)
    items = {section: {line.item for line in lines if line.section == section} for section in SECTIONS}
    for component in SECTIONS[:1] + SECTIONS[2:6]:
        assert items[component] == {"text"}
    assert items["last_action"] == {"header", "text"}
    window = range(8, 12) if size < 2000 else range(1, 12)
    assert items["story_cards"] - {"header"} >= {f"c{n}" for n in window}
    assert items["memory_bank"] - {"header"} == {f"m{n}" for n in range(1, 12)}
    dropped = [line for line in lines if line.section == "history" and line.verdict == "dropped"]
    assert len(dropped) == (len(items["history"]) < 10 or size < 4096)


@pytest.mark.parametrize("size", SIZES)
def test_a_line_is_kept_whole_trimmed_or_dropped_for_a_reason(size):
    for line in build(size).report.lines:
        assert line.section in SECTIONS
        if line.verdict == "kept":
            assert (line.used, line.reason) == (line.offered, "")
        elif line.verdict == "trimmed":
            assert 0 < line.used < line.offered
            assert line.reason
        else:
            assert line.verdict == "dropped"
            assert line.used == 0
            assert line.reason


def test_a_header_is_not_offered_where_nothing_stands_under_it():
    lines = build(70).report.lines
    kept = {line.section for line in lines if line.verdict == "kept" and line.item not in ("header", "text")}
    headers = {line.section for line in lines if line.item == "header"}
    assert headers == (kept & {"story_cards", "memory_bank"}) | {"last_action"}


def test_the_object_that_programs_see():
    found = build(150, list_unmatched=False).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert list(found) == ["text", "messages", "tokens", "anchor", "report"]
    assert [list(message) for message in found["messages"]] == [["role", "content"]] * 2
    report = found["report"]
    assert list(report) == [
        "tokenizer",
        "layout",
        "context_size",
        "required_limit",
        "parts",
        "cards_not_matched",
        "lines",
    ]
    assert (report["tokenizer"], report["layout"]) == ("o200k_base", "classic")
    assert (report["context_size"], report["required_limit"]) == (150, 105)
    assert {name: list(part) for name, part in report["parts"].items()} == {
        "required": ["limit", "used"],
        "story_cards": ["share", "used"],
        "history": ["share", "used"],
        "memory_bank": ["share", "used"],
    }
    for line in report["lines"]:
        assert list(line)[:6] == ["section", "item", "verdict", "offered", "used", "reason"]
        more = set(line) - {"section", "item", "verdict", "offered", "used", "reason"}
        if line["section"] == "story_cards" and line["item"] != "header":
            assert more == {"trigger", "action", "score"}
        elif line["section"] == "memory_bank" and line["item"] != "header":
            assert more == {"rank", "similarity", "actions", "made"}


def test_the_report_says_where_a_memory_comes_from():
    story = [{"id": f"a{n}", "kind": "output", "text": f"The wolf runs past gate {n}."} for n in range(1, 14)]
    with MemoryBank.open(embedder=HashingEmbedder()) as bank:
        bank.put_actions(story)
        [written] = bank.write_due()
        by_hand = bank.add("You were at a gate.", pinned=True)
        bank.mark_used([written.id])
        context = assemble(Adventure([Action("b1", "do", "look for the wolf")]), bank, Settings(300))
        written = bank.get(written.id)
    known = {line.item: line.details for line in context.report.lines if line.section == "memory_bank"}
    assert written.last_used is not None
    assert known[written.id] | {"rank": 0, "similarity": 0} == {
        "rank": 0,
        "similarity": 0,
        "actions": ["a1", "a2", "a3", "a4", "a5", "a6"],
        "made": written.created.isoformat(),
        "writer": "extractive",
        "use_count": 1,
        "last_used": written.last_used.isoformat(),
    }
    assert set(known[by_hand.id]) == {"rank", "similarity", "pinned", "made"}
    printed = render(context.report, full=True)
    assert f"from a1 … a6, by extractive, made {written.created.isoformat()[:16]}, used 1, last" in printed
    assert "by extractive" not in render(context.report)


def test_parts_of_the_spec_example():
    # 4,096: limit 2,867. Shares of what Required leaves: 25, 50 and 25 percent.
    context = assemble(Adventure([Action("a1", "output", "go")]), RankedBank(()), Settings(4096))
    left = 4096 - context.tokens
    report = context.to_dict()["report"]
    assert report["parts"] == {
        "required": {"limit": 2867, "used": context.tokens},
        "story_cards": {"share": left * 25 // 100, "used": 0},
        "history": {"share": left - 2 * (left * 25 // 100), "used": 0},
        "memory_bank": {"share": left * 25 // 100, "used": 0},
    }


def test_an_estimate_says_that_it_is_one():
    report = build(200, "chars/4").report
    assert report.is_estimate
    assert report.to_dict()["tokenizer"] == "chars/4"
    assert report.to_dict()["estimate"] is True
    assert "estimate" in render(report)
    assert "estimate" not in build(200).report.to_dict()
    assert "estimate" not in render(build(200).report)


def test_reasons_say_the_numbers():
    assert no_room(212, 40) == "no room: needs 212, 40 left"
    assert no_room(216, 40, 4) == "no room: needs 216, 40 left (4 of it for the header)"


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_the_table_says_what_the_report_says(size, full):
    report = build(size, list_unmatched=True).report
    table = render(report, full=full)
    used = sum(line.used for line in report.lines)
    assert f"{used:,} of {size:,} tokens" in table
    for name, part in report.parts.items():
        assert any(row.split() == [name, f"{part.allowed:,}", f"{part.used:,}"] for row in table.splitlines())
    rows = [row.split() for row in table.splitlines()]
    for line in report.lines:
        if full:
            assert any(row[:3] == [line.section, line.item, line.verdict] for row in rows)
            assert line.reason in table
    assert (f"story cards that did not match: {report.cards_not_matched}" in table) == (report.cards_not_matched > 0)
    for id, triggers in report.cards_waiting.items():
        assert [id, *triggers[0].split()] in rows


def test_a_short_table_sums_up_and_loses_no_token():
    report = build(4096).report
    lines = [row.split() for row in render(report).splitlines()]
    start = next(number for number, row in enumerate(lines) if row[:2] == ["section", "item"])
    rows = [row for row in lines[start + 1 :] if row and row[0] in SECTIONS]
    verdicts = [next(n for n, cell in enumerate(row) if cell in ("kept", "trimmed", "dropped")) for row in rows]
    assert sum(int(row[at + 2].replace(",", "")) for row, at in zip(rows, verdicts, strict=True)) == sum(
        line.used for line in report.lines
    )
    assert len(rows) < len(report.lines)
    assert any("10 actions" in " ".join(row) for row in rows)


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "x" * 500, "\u202egnihton", "\t", "\x00"], ids=ascii)
def test_no_name_breaks_the_table(name):
    def table(name: str) -> str:
        cards = (StoryCard(name, ["wolf"], "Lore."), StoryCard("c2", [name + "y"], "Lore."))
        adventure = Adventure([Action("a" + name, "output", "wolf")], cards)
        return render(assemble(adventure, None, Settings(200, list_unmatched=True)).report, full=True)

    lines = table(name).split("\n")
    assert all(map(str.isprintable, lines))
    assert len(lines) == len(table("plain").split("\n"))
    assert max(map(len, lines)) < 700


def test_memories_that_are_due_are_said():
    with MemoryBank.open(embedder=HashingEmbedder()) as bank:
        story = Adventure([Action(f"a{n}", "output", f"Event {n}.") for n in range(1, 13)])
        before = assemble(story, bank)
        assert "memories_pending" not in before.to_dict()["report"]
        bank.put_actions(story.actions)
        context = assemble(story, bank)
        assert context.to_dict()["report"]["memories_pending"] == 1
        assert "memories that are due and not written yet: 1" in render(context.report)
        assert context.text == before.text

"""The promises of the assembler, each a property over random adventures, tokenizers and context sizes."""

from collections import Counter

import pytest
import regex
from hypothesis import HealthCheck, assume, example, given
from hypothesis import settings as hypothesis_settings

from assembler import Action, Adventure, AssembledContext, ContextTooSmallError, Line, Settings, StoryCard, assemble
from assembler.document import dumps
from memorybank import NewMemory
from memorybank.text import clean
from tests.support.banks import RankedBank
from tests.support.strategies import adventures, settings

COMPONENTS = ["authors_note", "plot_essentials", "ai_instructions", "story_summary"]
FRAMES = {"authors_note": ("[Author's note: ", "]"), "story_summary": ("Story Summary:\n", "")}

many = hypothesis_settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


def build(adventure: Adventure, settings: Settings) -> AssembledContext:
    try:
        return assemble(adventure, RankedBank.of(adventure.memories), settings)
    except ContextTooSmallError:
        assume(False)
        raise


def lines_of(context: AssembledContext, *sections: str) -> list[Line]:
    return [line for line in context.report.lines if line.section in sections]


def must_tokens(context: AssembledContext) -> int:
    return sum(line.used for line in lines_of(context, "front_memory", "last_action"))


def shown(action: Action) -> str:
    text = clean(action.text)
    return f"> {text}" if action.kind in ("do", "say") and not text.startswith(">") else text


def block_texts(adventure: Adventure) -> dict[tuple[str, str], str]:
    """The whole text of everything that can be offered, by section and item."""
    last = adventure.last_action
    blocks = {
        **{("story_cards", card.id): clean(card.entry) for card in adventure.story_cards},
        **{("memory_bank", str(memory.id)): clean(memory.text) for memory in adventure.memories},
        **{("history", action.id): shown(action) for action in adventure.actions},
        ("front_memory", "text"): clean(adventure.front_memory),
        ("last_action", "text"): shown(last) if last else "",
        ("last_action", "header"): "Recent Story:",
        ("story_cards", "header"): "World Lore:",
        ("memory_bank", "header"): "Memories:",
    }
    for name in COMPONENTS:
        prefix, suffix = FRAMES.get(name, ("", ""))
        blocks[name, "text"] = prefix + clean(getattr(adventure, name)) + suffix
    return blocks


@many
@given(adventures(), settings())
def test_the_exact_count_never_exceeds_the_context_size_and_the_lines_sum_to_it(adventure, settings):
    context = build(adventure, settings)
    assert context.tokens == settings.open_tokenizer().count(context.text) <= settings.context_size
    assert sum(line.used for line in context.report.lines) == context.tokens
    assert sum(part.used for part in context.report.parts.values()) == context.tokens


@many
@given(adventures(), settings())
def test_front_memory_and_last_action_are_whole_at_the_end(adventure, settings):
    context = build(adventure, settings)
    last = adventure.last_action
    end = [shown(last)] if last else []
    end += [clean(adventure.front_memory)] if clean(adventure.front_memory) else []
    assert context.text.endswith("\n".join(end))
    assert all(line.verdict == "kept" for line in lines_of(context, "front_memory", "last_action"))


@many
@given(adventures(), settings())
def test_they_are_an_error_with_both_costs_only_if_they_exceed_the_size(adventure, settings):
    count = settings.open_tokenizer().count
    last, front = adventure.last_action, clean(adventure.front_memory)
    costs = {"front_memory": count(front), "last_action": 0}
    if last:
        costs["last_action"] = count("Recent Story:\n") + count(shown(last) + ("\n" if front else ""))
    bank = RankedBank.of(adventure.memories)
    if sum(costs.values()) <= settings.context_size:
        assert assemble(adventure, bank, settings).tokens <= settings.context_size
        return
    with pytest.raises(ContextTooSmallError) as caught:
        assemble(adventure, bank, settings)
    assert (caught.value.front_memory, caught.value.last_action) == tuple(costs.values())
    assert all(str(cost) in str(caught.value) for cost in (*costs.values(), settings.context_size))


@many
@given(adventures(), settings())
def test_required_keeps_to_its_limit_unless_those_two_alone_exceed_it(adventure, settings):
    context = build(adventure, settings)
    limit = settings.context_size * 70 // 100
    assert context.report.required_limit == limit
    rest = sum(line.used for line in lines_of(context, *COMPONENTS))
    assert must_tokens(context) + rest <= limit or rest == 0


@many
@given(adventures(), settings())
def test_everything_is_whole_if_everything_fits(adventure, settings):
    context = build(adventure, settings)
    used_by_required = sum(line.offered for line in lines_of(context, *COMPONENTS)) + must_tokens(context)
    assume(used_by_required <= settings.context_size * 70 // 100)
    count = settings.open_tokenizer().count
    history = [a for a in adventure.actions if a.has_text and a is not adventure.last_action]
    headers = count("World Lore:\n") + count("Memories:\n")
    rest = sum(count(shown(action) + "\n") for action in history)
    rest += sum(count(clean(memory.text) + "\n") for memory in adventure.memories)
    rest += sum(line.offered for line in lines_of(context, "story_cards"))
    assume(used_by_required + rest + headers <= settings.context_size)
    out = [line for line in context.report.lines if line.verdict != "kept"]
    assert {line.reason for line in out} <= {"already in history", "the entry is empty"}
    assert len(lines_of(context, "history")) == len(history)


@many
@given(adventures(), settings())
def test_at_most_one_cut_and_nothing_of_lower_priority_after_it(adventure, settings):
    context = build(adventure, settings)
    verdicts = [line.verdict for line in lines_of(context, *COMPONENTS)]
    assert [line.section for line in lines_of(context, *COMPONENTS)] == [
        name for name in COMPONENTS if clean(getattr(adventure, name))
    ]
    assert regex.fullmatch("(kept )*(trimmed )?(dropped )*", "".join(f"{verdict} " for verdict in verdicts))
    assert all(line.verdict != "trimmed" for line in context.report.lines if line.section not in COMPONENTS)


@many
@given(adventures(), settings())
def test_a_cut_text_is_a_clean_prefix_and_the_next_word_would_not_have_fitted(adventure, settings):
    context = build(adventure, settings)
    trimmed = [line for line in context.report.lines if line.verdict == "trimmed"]
    assume(trimmed)
    (line,) = trimmed
    source = clean(getattr(adventure, line.section))
    prefix, suffix = FRAMES.get(line.section, ("", ""))
    part = line.block.removeprefix(prefix).removesuffix(suffix)
    assert source.startswith(part)
    assert f"\n{prefix}{part}{suffix}\n" in f"\n{context.text}\n"
    assert not part[-1].isspace()
    rest = source[len(part) :]
    assert len(part) in {match.end() for match in regex.finditer(r"\X", source)}, "inside a grapheme cluster"
    unspaced = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]"
    inside_word = regex.search(r"\p{L}$", part) and regex.match(r"\p{L}", rest)
    assert not inside_word or regex.search(rf"{unspaced}\p{{M}}*$", part) or regex.match(unspaced, rest)
    if not regex.search(r"[.!?…。]+[\"'”’»)\]*_」]*$", part):
        longer = source[: len(part) + regex.match(r"\s*\S+", rest).end()]
        before = context.report.lines[: context.report.lines.index(line)]
        room = context.report.required_limit - sum(whole.offered for whole in before)
        end = "" if context.text.endswith(prefix + part + suffix) else "\n"
        assert settings.open_tokenizer().count(prefix + longer + suffix + end) > room


@many
@given(adventures(), settings())
def test_history_is_an_unbroken_run_to_the_newest_action(adventure, settings):
    context = build(adventure, settings)
    actions = [a.id for a in adventure.actions if a.has_text and a is not adventure.last_action]
    kept = [line.item for line in lines_of(context, "history") if line.verdict == "kept"]
    assert kept == actions[::-1][: len(kept)]
    dropped = [line.item for line in lines_of(context, "history") if line.verdict == "dropped"]
    assert dropped == actions[::-1][len(kept) : len(kept) + 1]


@many
@given(adventures(), settings())
def test_cards_and_memories_are_whole_or_absent_and_once(adventure, settings):
    context = build(adventure, settings)
    texts = block_texts(adventure)
    kept = [line for line in context.report.lines if line.verdict == "kept"]
    assert all(count == 1 for count in Counter((line.section, line.item) for line in context.report.lines).values())
    trimmed = [line for line in context.report.lines if line.verdict == "trimmed"]
    if not trimmed:  # the context is exactly the kept blocks, each once
        parts = Counter(texts[line.section, line.item] for line in kept)
        assert Counter(context.text.split("\n")) == Counter("\n".join(parts.elements()).split("\n"))
    for line in kept:
        assert f"\n{texts[line.section, line.item]}\n" in f"\n{context.text}\n"


@many
@given(adventures(), settings())
@example(
    Adventure(
        actions=[Action("a1", "output", "word " * 30), Action("a2", "do", "wolf")],
        story_cards=(StoryCard("c1", "wolf", "lore " * 12),),
        memories=(NewMemory("memory " * 12, id="m1"), NewMemory("small", id="m2")),
    ),
    Settings(context_size=60),
)
def test_nothing_that_fits_is_dropped_for_want_of_room(adventure, settings):
    context = build(adventure, settings)
    left = settings.context_size - context.tokens
    count = settings.open_tokenizer().count
    headed = {line.section for line in context.report.lines if line.item == "header"}
    headers = {"story_cards": count("World Lore:\n"), "memory_bank": count("Memories:\n")}
    for line in lines_of(context, "story_cards", "memory_bank", "history"):
        if line.reason.startswith("no room"):
            assert line.offered + (0 if line.section in headed else headers.get(line.section, 0)) > left, line
        else:
            assert line.verdict == "kept" or line.reason in ("already in history", "the entry is empty"), line


@many
@given(adventures(), settings())
@example(Adventure(actions=[Action("a1", "output", "You wait."), Action("a2", "output", "/")]), Settings(100))
def test_one_line_for_every_offered_item(adventure, settings):
    context = build(adventure, settings)
    bank_is_on = adventure.memory_bank and adventure.last_action is not None
    memories = {str(memory.id) for memory in adventure.memories} if bank_is_on else set()
    assert {line.item for line in lines_of(context, "memory_bank")} - {"header"} == memories
    slashes = f"\n{context.text}".count("\n/")
    matched = [line.item for line in lines_of(context, "story_cards") if line.item != "header"]
    assert len(matched) + context.report.cards_not_matched == len(adventure.story_cards)
    for line in context.report.lines:
        if line.offered and settings.tokenizer != "chars/4":  # an estimate gives each line its part of a rounded sum
            differs = abs(line.used - line.offered) if line.verdict == "kept" else 0
            assert differs <= slashes, "SPEC.md section 2: a block that starts with / can differ by one"
            assert line.verdict == "kept" or line.used < line.offered
        assert (line.reason == "") == (line.verdict == "kept")
        assert (line.used == 0) <= (line.verdict != "trimmed")


@many
@given(adventures(), settings())
def test_the_same_input_gives_the_same_bytes_and_is_not_changed(adventure, settings):
    before = dumps(adventure)
    first, second = build(adventure, settings), build(adventure, settings)
    assert first.to_dict() == second.to_dict()
    assert dumps(adventure) == before


@many
@given(adventures(), settings())
def test_the_messages_joined_are_the_text(adventure, settings):
    context = build(adventure, settings)
    assert "\n".join(message.content for message in context.messages) == context.text
    assert [m.role for m in context.messages] in ([], ["user"], ["system"], ["system", "user"])
    context.text.encode("utf-8")


def test_the_properties_see_every_verdict_and_reason() -> None:
    """A guard against strategies that never reach the interesting cases."""
    seen: Counter[str] = Counter()

    @hypothesis_settings(max_examples=300, deadline=None, database=None)
    @given(adventures(), settings())
    def look(adventure: Adventure, settings: Settings) -> None:
        for line in build(adventure, settings).report.lines:
            seen[line.verdict] += 1
            seen[line.reason.partition(":")[0]] += 1

    look()
    expected = {"kept", "trimmed", "dropped", "no room", "already in history", "over the required limit"}
    assert expected | {"a higher-priority section was cut"} <= set(seen), seen


@pytest.mark.parametrize("size", [2048, 8192])
def test_the_text_of_a_long_log_is_the_same_however_the_log_was_made(size: int) -> None:
    actions = [Action(f"a{n}", "output", f"Line {n} of the story.") for n in range(2000)]
    grown = Adventure(actions=actions[:1]).with_actions(actions[1:])
    at_once = Adventure(actions=actions)
    settings = Settings(context_size=size)
    assert assemble(grown, None, settings) == assemble(at_once, None, settings)

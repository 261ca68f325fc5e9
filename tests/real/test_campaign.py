"""`assembler build` on a real campaign: 13,795 actions, 61 memories, the real model."""

import json
from pathlib import Path

import pytest

from assembler import Adventure, AssembledContext, Settings, assemble, bank_of, load
from assembler.cli import main
from memorybank import MemoryBank

SIZES = [2048, 8192, 32768]
TOKENIZERS = ["o200k_base", "cl100k_base"]


@pytest.fixture(scope="module")
def bank(campaign: Path) -> MemoryBank:
    return bank_of(load(campaign))


def lines(context: AssembledContext, section: str) -> list[str]:
    return [line.item for line in context.report.lines if line.section == section and line.kept]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("size", SIZES)
def test_the_budget_is_full_and_exact(campaign: Path, bank: MemoryBank, size: int, tokenizer: str) -> None:
    adventure = load(campaign)
    settings = Settings(context_size=size, tokenizer=tokenizer)
    context = assemble(adventure, bank, settings)
    assert context.tokens == settings.open_tokenizer().count(context.text) <= size
    assert context.tokens > size - 200, "the next action of the log would not have been that long"
    assert sum(line.used for line in context.report.lines) == context.tokens
    kept = lines(context, "history")
    ids = [action.id for action in adventure.actions][-1 - len(kept) : -1]
    assert kept == ids[::-1]
    memories = [line for line in context.report.lines if line.section == "memory_bank" and line.item != "header"]
    assert len(memories) == len(adventure.memories) == 61
    assert [line.details["rank"] for line in memories] == list(range(1, 62))


@pytest.mark.parametrize("size", SIZES)
def test_without_the_bank_history_has_its_share(campaign: Path, size: int) -> None:
    context = assemble(load(campaign), None, Settings(context_size=size))
    parts = context.report.parts
    left = size - parts["required"].used
    assert (parts["memory_bank"].allowed, parts["memory_bank"].used) == (0, 0)
    assert parts["history"].allowed == left - left * 25 // 100
    assert lines(context, "memory_bank") == []


def test_what_is_recalled_is_not_told_in_the_context_already(campaign: Path, bank: MemoryBank) -> None:
    adventure = load(campaign)
    ids = [action.id for action in adventure.actions]
    for last in (adventure.memories[20].actions[-1], adventure.memories[40].actions[-1]):
        earlier = Adventure(actions=adventure.actions[: ids.index(last) + 10], memories=adventure.memories)
        context = assemble(earlier, bank, Settings(context_size=32768))
        told = {*lines(context, "history"), earlier.actions[-1].id}
        sources = {str(memory.id): set(memory.actions) for memory in adventure.memories}
        redundant = [line.item for line in context.report.lines if line.reason == "already in history"]
        assert redundant
        assert all(sources[item] <= told for item in redundant)
        # Older history that comes in last, with what the memories left, may tell a recalled one once more.
        share = context.report.parts["history"].allowed
        if context.report.parts["history"].used <= share:
            assert not [item for item in lines(context, "memory_bank")[1:] if sources[item] <= told]


@pytest.mark.parametrize("more", [[], ["--no-memory-bank"]], ids=["bank", "no_bank"])
def test_the_command_line_gives_the_same_object(
    campaign: Path, bank: MemoryBank, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    assert main(["build", str(campaign), "--context", "8192", "--json", *more]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = assemble(load(campaign), None if more else bank, Settings(context_size=8192)).to_dict()
    assert printed == json.loads(json.dumps(expected))

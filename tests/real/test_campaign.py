"""`assembler build` on a real campaign: 13,795 actions, 61 memories, the real model."""

import json
from pathlib import Path

import pytest

from assembler import AssembledContext, Settings, assemble, bank_of, load
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
    similarities = [line.details["similarity"] for line in memories]
    assert similarities == sorted(similarities, reverse=True)


@pytest.mark.parametrize("size", SIZES)
def test_without_the_bank_history_has_its_share(campaign: Path, size: int) -> None:
    context = assemble(load(campaign), None, Settings(context_size=size))
    parts = context.report.parts
    left = size - parts["required"].used
    assert (parts["memory_bank"].allowed, parts["memory_bank"].used) == (0, 0)
    assert parts["history"].allowed == left - left * 25 // 100
    assert lines(context, "memory_bank") == []


def test_a_memory_that_is_still_told_is_not_recalled(campaign: Path, bank: MemoryBank) -> None:
    context = assemble(load(campaign), bank, Settings(context_size=32768))
    history = set(lines(context, "history"))
    sources = {str(memory.id): set(memory.actions) for memory in load(campaign).memories}
    redundant = {line.item for line in context.report.lines if line.reason == "already in history"}
    assert all(sources[item] <= history for item in redundant)


@pytest.mark.parametrize("more", [[], ["--no-memory-bank"]], ids=["bank", "no_bank"])
def test_the_command_line_gives_the_same_object(
    campaign: Path, bank: MemoryBank, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    assert main(["build", str(campaign), "--context", "8192", "--json", *more]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = assemble(load(campaign), None if more else bank, Settings(context_size=8192)).to_dict()
    assert printed == json.loads(json.dumps(expected))

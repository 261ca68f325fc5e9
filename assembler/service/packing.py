"""The work behind `/v1/context`: a document becomes an adventure, a bank is found, a context is packed."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from assembler.bank import EmptyBank, bank_of, with_story_summary
from assembler.context import AssembledContext, assemble
from assembler.document import from_dict
from assembler.errors import AdventureError, ContextTooSmallError, SettingsError
from assembler.settings import Settings
from memorybank.search.ranking import DEFAULT_RANKING
from memorybank.service.problems import Problem
from memorybank.service.state import phase
from memorybank.tokenizer import HuggingFaceTokenizer, Tokenizer, open_tokenizer

if TYPE_CHECKING:
    from assembler.adventure import Adventure
    from assembler.dynamic.memory_bank import Bank
    from assembler.service.schemas import ContextRequest
    from memorybank import MemoryBank
    from memorybank.host import BankHost
    from memorybank.memory import Recalled

__all__ = ["Tokenizers", "pack"]

BUILT_IN = ("o200k_base", "cl100k_base", "o200k_harmony", "chars/4")

_PLACE = re.compile(r"([A-Za-z_][\w.\[\]]*): (.*)", re.DOTALL)


class Tokenizers:
    """The tokenizers that a request may name: the built-in ones, and those that the operator has named. Never a path.

    Args:
        named: the path of a `tokenizer.json` by name; all are opened at once.
    """

    def __init__(self, named: Mapping[str, str]) -> None:
        self._named = {name: HuggingFaceTokenizer(Path(path), name) for name, path in named.items()}

    def warm_up(self) -> None:
        """Load the usual one in the background: its vocabulary takes half a second."""
        threading.Thread(target=open_tokenizer, name="assembler-warm-up", daemon=True).start()

    def open(self, name: str) -> Tokenizer:
        """Return one. Raises a 422 problem if there is none of that name."""
        if name in self._named:
            return self._named[name]
        if name not in BUILT_IN:
            there = ", ".join([*BUILT_IN, *self._named])
            raise Problem(
                "invalid-request",
                f"tokenizer: {name!r} is not known here; use one of {there}",
                errors=[("tokenizer", f"use one of {there}")],
            )
        return open_tokenizer(name)


def pack(
    asked: ContextRequest,
    tokenizers: Tokenizers,
    stored: Callable[[str], MemoryBank],
    host: BankHost,
) -> AssembledContext:
    """Return the context that a request asks for.

    Args:
        asked: the request.
        tokenizers: those that it may name.
        stored: gives a stored bank by its name.
        host: its models are those of a document's memories too.

    Raises:
        Problem: the document, a setting or their combination is at fault.
        MemoryBankError: what the bank's search raises.
    """
    settings = _settings(asked, tokenizers)
    adventure = _adventure(asked)
    if asked.bank is not None and not adventure.memory_bank:
        raise _at_fault("bank", "goes with the memory bank turned on, and the document or `memory_bank` turns it off")
    if asked.commit and asked.bank is None:
        raise _at_fault("commit", "goes with `bank`: only a stored bank counts uses")
    if asked.bank is not None:
        adventure = with_story_summary(adventure, stored(asked.bank))
    with _bank(asked.bank, adventure, stored, host) as bank, phase("assemble"):
        try:
            context = assemble(adventure, bank, settings, anchor=asked.anchor)
        except ContextTooSmallError as error:
            raise Problem("context-too-small", str(error)) from None
        except AdventureError as error:
            raise _of_document(error) from None
    if asked.commit and asked.bank is not None:
        with phase("store"):
            stored(asked.bank).mark_used(context.recalled)
    return context


def _settings(asked: ContextRequest, tokenizers: Tokenizers) -> Settings:
    if asked.anchor is not None and asked.layout != "cache_friendly":
        raise _at_fault("anchor", "goes with the layout cache_friendly, where history has one")
    if asked.reserve >= asked.context_size:
        raise _at_fault(
            "reserve",
            f"{asked.reserve} of {asked.context_size} tokens leaves none for the context; "
            f"use at most {asked.context_size - 1}",
        )
    try:
        return Settings(
            context_size=asked.context_size - asked.reserve,
            tokenizer=tokenizers.open(asked.tokenizer),
            layout=asked.layout,
            ranking=asked.ranking,
            recent_actions=asked.recent_actions,
            list_unmatched=asked.waiting,
        )
    except SettingsError as error:
        raise Problem("invalid-request", str(error)) from None


def _adventure(asked: ContextRequest) -> Adventure:
    try:
        adventure = from_dict(asked.adventure, warn=False)
    except AdventureError as error:
        raise _of_document(error) from None
    return adventure if asked.memory_bank is None else replace(adventure, memory_bank=asked.memory_bank)


@contextmanager
def _bank(
    name: str | None, adventure: Adventure, stored: Callable[[str], MemoryBank], host: BankHost
) -> Iterator[Bank | None]:
    if not adventure.memory_bank:
        yield None
    elif name is not None:
        yield _Measured(stored(name))
    elif not adventure.memories or adventure.last_action is None:
        yield EmptyBank()
    else:
        with phase("search"):
            made = bank_of(adventure, host.embedder, reranking=host.reranking)
        with made:
            yield _Measured(made)


class _Measured:
    """A bank whose searches are a phase of the request."""

    def __init__(self, bank: MemoryBank) -> None:
        self._bank = bank

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        ranking: str = DEFAULT_RANKING,
        recent: Sequence[str] = (),
        pinned_first: bool = False,
        retellings: bool = False,
    ) -> list[Recalled]:
        with phase("search"):
            return self._bank.search(
                query,
                limit=limit,
                ranking=ranking,
                recent=recent,
                pinned_first=pinned_first,
                retellings=retellings,
            )

    def pending_count(self) -> int:
        """As the bank's."""
        return self._bank.pending_count()


def _at_fault(field: str, message: str) -> Problem:
    return Problem("invalid-request", f"{field}: {message}", errors=[(field, message)])


def _of_document(error: AdventureError) -> Problem:
    """Return the problem of a document, with the place that the message begins with."""
    found = _PLACE.fullmatch(str(error))
    place, message = (f"adventure.{found[1]}", found[2]) if found else ("adventure", str(error))
    return _at_fault(place, message)

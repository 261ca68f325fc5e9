"""Which embedding model a bank uses: loaded when a vector is needed, and compared with the model of what is stored."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from memorybank.errors import ModelMismatchError

if TYPE_CHECKING:
    from memorybank.embedding import Embedder
    from memorybank.storage import BankState, Reader, Store

__all__ = ["ModelInUse"]


class ModelInUse:
    """The embedding model of an open bank.

    Args:
        store: the database, for what messages call it.
        embedder: the model; None for the default one, which all banks of the process share.
    """

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder

    def __repr__(self) -> str:
        return "None" if self._embedder is None else repr(self._embedder)

    def embedder(self) -> Embedder:
        """Return the model. Cheap: it loads its weights when the first text is embedded."""
        from memorybank.embedding import default_embedder

        chosen = self._embedder  # read once: another thread may choose another
        return default_embedder() if chosen is None else chosen

    def use(self, embedder: Embedder) -> None:
        """Use another model from now on."""
        self._embedder = embedder

    def verify(self, bank: str) -> None:
        """Compare with the stored vectors of a bank, if there are any.

        Raises:
            ModelMismatchError: they come from another model.
        """
        with self._store.read() as reader:
            state = reader.bank(bank)
            if state is not None:
                self.adopt(reader, state, self.embedder())

    def adopt(self, reader: Reader, state: BankState, model: Embedder) -> BankState:
        """Return the bank's row as it is with vectors of `model`: a bank without memories takes any model.

        Raises:
            ModelMismatchError: it has vectors of another one.
        """
        if not _fits(state, model) and reader.has_memories(state.bank):
            self.guard(state, model)
        return replace(state, model=model.name, dimensions=model.dimensions)

    def guard(self, state: BankState, model: Embedder) -> None:
        """Compare by name and by width: another model may well have the same width.

        `model` is the one that made the vectors at hand; the one in use may be another by now (`use`).

        Raises:
            ModelMismatchError: the bank's vectors come from another model.
        """
        where = self._store.where
        if not _fits(state, model):
            command = shlex.join(["memorybank", "reembed", "--db", where, "--bank", state.bank, "--model", model.name])
            raise ModelMismatchError(
                f"bank {state.bank!r} in {where} has vectors of the model {state.model!r} ({state.dimensions} "
                f"dimensions), the model in use is {model.name!r} ({model.dimensions} dimensions): use that model, "
                f"or move the bank to this one with `{command}`"
            )


def _fits(state: BankState, model: Embedder) -> bool:
    return (state.model, state.dimensions) == (model.name, model.dimensions)

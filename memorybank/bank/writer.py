"""How the bank is changed. Vectors are computed before the write transaction begins, then one transaction does it all.

Nothing here touches the index: it follows the database by itself (`search/live_index.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memorybank.bank.draft import Draft, evicted
from memorybank.bank.model import ModelInUse
from memorybank.bank.reads import not_found
from memorybank.errors import BankNotFoundError, PreconditionError
from memorybank.memory import Memory, NewMemory, Progress, State
from memorybank.search.vectors import embed, to_bytes
from memorybank.storage import BankState, Store, Writer
from memorybank.storage.rows import text_hash
from memorybank.story.work import dropped

if TYPE_CHECKING:
    from memorybank.embedding import Embedder

__all__ = ["BankWriter"]


class BankWriter:
    """All changes to one bank, for any number of threads.

    Args:
        store: the database.
        bank: the bank's name.
        model: the embedding model in use.
        clock: gives the time, with its zone.
    """

    def __init__(self, store: Store, bank: str, model: ModelInUse, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._bank = bank
        self._model = model
        self._clock = clock

    def add(self, items: Sequence[NewMemory], progress: Progress | None = None) -> list[Memory]:
        """Add checked memories; return each as it is after the call."""
        model = self._model.embedder()
        vectors = self._vectors([item.text for item in items], model, progress)
        ids = [item.id for item in items if item.id is not None]
        with self._draft(ids, texts=list(vectors), model=model) as draft:
            draft.reserve(ids)
            written = [draft.add(item, vectors[item.text]) for item in items]
        return [draft.memory(id_) for id_ in written]

    def edit(
        self,
        changes: Sequence[tuple[str, Mapping[str, Any]]],
        progress: Progress | None = None,
        *,
        versions: Set[str] | None = None,
    ) -> list[Memory]:
        """Change fields of memories, in order, if they are among `versions`; return each as it is after the call."""
        texts = [fields["text"] for _, fields in changes if "text" in fields]
        model = self._model.embedder() if texts else None
        vectors = {} if model is None else self._vectors(texts, model, progress)
        ids = [id_ for id_, _ in changes]
        with self._draft(ids, model=model, known=True) as draft:
            draft.match(ids, versions)
            for id_, fields in changes:
                draft.edit(id_, vectors.get(fields.get("text", "")), **fields)
        return [draft.memory(id_) for id_ in ids]

    def set_state(self, ids: Sequence[str], state: State) -> list[Memory]:
        """Give memories a state."""
        with self._draft(ids, known=True) as draft:
            for id_ in ids:
                draft.edit(id_, state=state)
        return [draft.memory(id_) for id_ in ids]

    def delete(self, ids: Sequence[str], *, versions: Set[str] | None = None) -> None:
        """Delete memories, if they are among `versions`."""
        with self._draft(ids, known=True) as draft:
            draft.match(ids, versions)
            draft.drop(ids)

    def count_use(self, ids: Sequence[str]) -> int:
        """Count one use of each of the memories that exist; return how many these are."""
        now = self._clock()
        with self._store.write() as writer:
            state = writer.bank(self._bank)
            used = writer.count_use(self._bank, ids, now) if state is not None else 0
            if state is not None and used:
                writer.save_bank(replace(state, revision=state.revision + 1))
        return used

    def _vectors(self, texts: Sequence[str], model: Embedder, progress: Progress | None) -> dict[str, bytes]:
        """Return the vector of each text: the bank's own if it has that text already, else a new one."""
        distinct = list(dict.fromkeys(texts))
        with self._store.read() as reader:
            state = reader.bank(self._bank)
            if state is not None:
                self._model.adopt(reader, state, model)  # before minutes of embedding, and again when it is stored
            known = {
                row.memory.text: row.vector
                for row in reader.by_hashes(self._bank, [text_hash(text) for text in distinct])
                if len(row.vector) == 4 * model.dimensions  # a damaged one is not passed on
            }
        new = [text for text in distinct if text not in known]
        if new:
            told = None if progress is None else _told(progress, len(known), len(distinct))
            known |= zip(new, to_bytes(embed(model, new, progress=told)), strict=True)
        elif progress is not None:
            progress(len(distinct), len(distinct))
        return known

    @contextmanager
    def _draft(self, ids: Sequence[str], **options: Any) -> Iterator[Draft]:
        """Begin a write about some memories, and store the draft when the block ends; see `_write`."""
        with self._write(ids, **options) as (_, draft):
            yield draft

    @contextmanager
    def _write(
        self,
        ids: Sequence[str],
        *,
        texts: Sequence[str] = (),
        model: Embedder | None = None,
        known: bool = False,
        create: bool = False,
        must_exist: bool = False,
        versions: Set[str] | None = None,
        only_new: bool = False,
    ) -> Iterator[tuple[Writer, Draft]]:
        """Begin a write about some memories, and store the draft when the block ends.

        Args:
            ids: those in question.
            texts: take in the memories with these texts too.
            model: whose vectors will be stored; None when there are none.
            known: whether all of `ids` must exist.
            create: make the bank when it is not there, as also happens with a `model`.
            must_exist: whether the bank must be there, whatever else is given.
            versions: those of the bank that the caller would change; None for any.
            only_new: whether the bank must not be there yet.
        """
        now = self._clock()
        with self._store.write() as writer:
            state = writer.bank(self._bank)
            if state is None and must_exist:
                raise BankNotFoundError(f"there is no bank {self._bank!r} any more: nothing was changed")
            if state is None and model is None and not create:
                raise not_found(self._bank, ids)
            self._match(writer, state, versions, only_new)
            if state is None:
                new = self._new_bank(model or self._model.embedder(), now)
                state = writer.create_bank(new)
                # Another process may have been faster.
                self._match(writer, None if state == new else state, versions, only_new)
            rows = writer.by_ids(self._bank, ids)
            rows += writer.by_hashes(self._bank, [text_hash(text) for text in texts])
            draft = Draft(state if model is None else self._model.adopt(writer, state, model), rows, now)
            if known:
                draft.require(ids)
            yield writer, draft
            if draft.arrived or draft.state.capacity != state.capacity:
                self._keep_capacity(writer, draft)
            self._save(writer, state, draft)

    def _match(self, writer: Writer, before: BankState | None, versions: Set[str] | None, only_new: bool) -> None:
        if only_new and before is not None:
            raise PreconditionError(f"bank {self._bank!r} is there already: nothing was changed")
        if versions is None:
            return
        version = None if before is None else before.version(writer.story.rhythm(self._bank))
        if version not in versions:
            found = "is not there" if version is None else f"has version {version} by now"
            raise PreconditionError(f"bank {self._bank!r} {found}: read it again and repeat the change")

    def _new_bank(self, model: Embedder, now: datetime) -> BankState:
        """Return the row of a bank that nothing was written to: of revision 0, which no stored bank keeps."""
        return BankState(self._bank, uuid.uuid4().hex, model.name, model.dimensions, 0, 1, 1, None, now)

    def _keep_capacity(self, writer: Writer, draft: Draft) -> None:
        capacity = draft.state.capacity
        if capacity is None:
            return
        rows = draft.rows()
        arrived = [ordinal for ordinal in dict.fromkeys(draft.arrived) if rows[ordinal].memory.state == "active"]
        arrivals = [rows[ordinal].memory for ordinal in arrived]
        active = writer.counts(self._bank).get("active", 0) + draft.change_of_active(arrived)
        surplus = active + len(arrivals) - capacity
        if surplus <= 0:
            return
        least_used = [one for one in writer.least_used(self._bank, surplus + len(rows)) if one[1] not in rows]
        known = [
            (row.memory.use_count, ordinal)
            for ordinal, row in rows.items()
            if row.memory.state == "active" and not row.memory.pinned and ordinal not in arrived
        ]
        came = [(memory.use_count, ordinal, memory.pinned) for ordinal, memory in zip(arrived, arrivals, strict=True)]
        gone = evicted(least_used + known, came, active, capacity)
        draft.load(writer.by_ordinals(self._bank, [ordinal for ordinal in gone if ordinal not in rows]))
        draft.forget(gone)

    def _save(self, writer: Writer, before: BankState, draft: Draft) -> None:
        inserts, updates = draft.inserts(), draft.updates()
        unchanged = before.revision > 0 and draft.state == replace(before, revision=draft.state.revision)
        if unchanged and not inserts and not updates and not draft.dropped:
            return
        writer.save_bank(draft.state)
        writer.insert(self._bank, inserts)
        writer.update(self._bank, updates)
        writer.delete(self._bank, draft.dropped, draft.state.revision)
        for row in draft.unwanted:
            writer.story.put_task(self._bank, dropped(row))


def _told(progress: Progress, before: int, total: int) -> Callable[[int], None]:
    progress(before, total)
    return lambda done: progress(before + done, total)

"""Copying banks from database to database: exact, one bank at a time, all of it or nothing.

Each bank is read from one snapshot and written in one transaction, which is committed only if what stands in the target
then has the checksum of what was read. So the target never holds half a bank, and a copy that was broken off, however,
goes on with the first bank that is not there. What is in the target already is compared and never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from memorybank.errors import BankNotFoundError, InvalidInputError
from memorybank.memory import Progress
from memorybank.moving.tables import BANK_TABLES, Checksum, UnsoundCopyError, checksum_of, pages
from memorybank.storage import Store
from memorybank.storage.schema import api_keys, banks, memories

__all__ = ["CopiedBank", "CopyReport", "copy_database"]


@dataclass(frozen=True, slots=True)
class CopiedBank:
    """A bank that is in both databases now.

    Attributes:
        bank: its name as it is stored.
        memories: how many it has.
        checksum: over all its rows, the same in both.
        was_there: whether the target had it already.
    """

    bank: str
    memories: int
    checksum: str
    was_there: bool


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a copy has come to.

    Attributes:
        banks: in the order of their names.
        keys: API keys that are in both databases now.
    """

    banks: Sequence[CopiedBank]
    keys: int


def copy_database(
    source: Store,
    target: Store,
    *,
    names: Sequence[str] | None = None,
    namespace: str | None = None,
    progress: Progress | None = None,
) -> CopyReport:
    """Copy banks and API keys, and prove that the copies are exact.

    Others may use both databases meanwhile. A bank is copied as it is when its turn comes; what is written to it in the
    source afterwards is not.

    Args:
        source: where they are.
        target: where they will be, too.
        names: of the banks, as they are stored; no keys are copied then. None for all.
        namespace: only its banks and keys; "" is that of the banks without a slash in their name.
        progress: called with (memories copied, memories in all).

    Raises:
        BankNotFoundError: one of `names` is not in the source.
        InvalidInputError: the target has a bank or a key of that name which is another one; nothing was copied.
        UnsoundCopyError: a copy is not equal to its original.
        StorageError: one of the databases failed. What was copied by then is whole.
    """
    if _same(source, target):
        raise InvalidInputError(f"{source.where} would be copied into itself: give two databases")
    with source.read_tables() as (_, connection):
        sizes = _sizes(connection, names, namespace)
        keys = [] if names is not None else _keys(connection, namespace)
    _refuse_others(source, target, sizes, keys)
    _copy_keys(target, keys)
    done = 0
    copied = []
    for bank in sizes:
        told = None if progress is None else _told(progress, done, sum(sizes.values()))
        copied.append(_copy(source, target, bank, told))
        done += sizes[bank]
    return CopyReport([one for one in copied if one is not None], len(keys))


def _same(source: Store, target: Store) -> bool:
    paths = Path(source.where), Path(target.where)
    return source.where == target.where or (all(path.is_file() for path in paths) and paths[0].samefile(paths[1]))


def _told(progress: Progress, before: int, total: int) -> Callable[[int], None]:
    return lambda done: progress(before + done, total)


def _sizes(connection: Connection, names: Sequence[str] | None, namespace: str | None) -> dict[str, int]:
    """Return the number of memories of each bank that is asked for, in the order of their names."""
    found = dict.fromkeys(connection.execute(select(banks.c.bank)).scalars(), 0)
    for bank, number in connection.execute(select(memories.c.bank, func.count()).group_by(memories.c.bank)):
        found[bank] = number
    if missing := [name for name in names or () if name not in found]:
        raise BankNotFoundError(f"there is no bank {missing[0]!r} to be copied: `memorybank banks` lists them")
    wanted = (name for name in found if namespace is None or _namespace(name) == namespace)
    return {name: found[name] for name in sorted(wanted if names is None else set(names))}


def _namespace(bank: str) -> str:
    return bank.partition("/")[0] if "/" in bank else ""


def _keys(connection: Connection, namespace: str | None) -> list[dict[str, Any]]:
    rows = connection.execute(select(api_keys).order_by(api_keys.c.id)).mappings()
    return [dict(row) for row in rows if namespace is None or row["namespace"] == namespace]


def _refuse_others(source: Store, target: Store, names: Collection[str], keys: Sequence[dict[str, Any]]) -> None:
    """Raise unless the target's banks and keys of these names can be the same ones."""
    with source.read_tables() as (_, original), target.read_tables() as (_, copy):
        copies = _rows(copy)
        others = [name for name, row in _rows(original).items() if copies.get(name, row) != row]
        known = {key["id"]: key for key in _keys(copy, None)}
    for name in sorted(set(others).intersection(names)):
        raise InvalidInputError(f"{_another(target, name)}: nothing was copied")
    for key in keys:
        if key["id"] in known and known[key["id"]] | {"revoked": None} != key | {"revoked": None}:
            raise InvalidInputError(f"{target.where} has another API key {key['id']!r}: nothing was copied")


def _rows(connection: Connection) -> dict[str, Row[Any]]:
    return {row.bank: row for row in connection.execute(select(banks))}


def _copy_keys(target: Store, keys: Sequence[dict[str, Any]]) -> None:
    """Store keys that are not there. One that was revoked on either side is revoked in the target."""
    with target.write_tables() as (_, connection):
        known = {key["id"]: key for key in _keys(connection, None)}
        for key in keys:
            if key["id"] not in known:
                connection.execute(insert(api_keys), key)
            elif known[key["id"]]["revoked"] is None and key["revoked"] is not None:
                closing = update(api_keys).where(api_keys.c.id == key["id"]).values(revoked=key["revoked"])
                connection.execute(closing)


def _copy(source: Store, target: Store, bank: str, progress: Callable[[int], None] | None) -> CopiedBank | None:
    """Copy a bank, or compare it with the one that is there; return None if it was deleted from the source."""
    with source.read_tables() as (reader, original):
        if reader.bank(bank) is None:
            return None
        number = sum(reader.counts(bank).values())
        with target.read_tables() as (there, copy):
            found = None if there.bank(bank) is None else checksum_of(copy, bank)
        if found is None:
            written = _write(original, target, bank, progress)
            return CopiedBank(bank, number, str(written), was_there=False)
        if found != checksum_of(original, bank):
            raise InvalidInputError(f"{_another(target, bank)}: the banks before it in the alphabet are copied")
        return CopiedBank(bank, number, str(found), was_there=True)


def _write(original: Connection, target: Store, bank: str, progress: Callable[[int], None] | None) -> Checksum:
    read = Checksum()
    done = 0
    with target.write_tables() as (_, copy):
        for table in BANK_TABLES:
            for rows in pages(original, table, bank):
                read.add(table, rows)
                copy.execute(insert(table), [dict(row._mapping) for row in rows])
                if table is memories and progress is not None:
                    done += len(rows)
                    progress(done)
        written = checksum_of(copy, bank)
        if written != read:
            raise UnsoundCopyError(
                f"bank {bank!r}: {read.rows} rows with the checksum {read} were read, {written.rows} with {written} "
                "stand there now: it was not stored; the banks before it in the alphabet are whole"
            )
    return read


def _another(target: Store, bank: str) -> str:
    return (
        f"{target.where} has a bank {bank!r} already, and it is not the same one, or was changed since: delete it "
        "there, or copy other banks"
    )

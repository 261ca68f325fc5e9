"""The commands for who runs databases and services: banks, API keys, copies, backups (docs/operators.md)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memorybank import cli_output as output
from memorybank.bank import MemoryBank
from memorybank.bank.info import BankInfo
from memorybank.console import CommandParser, note, progress_bar, shown
from memorybank.errors import BankNotFoundError, InvalidInputError

if TYPE_CHECKING:
    from memorybank.host import ApiKey, BankHost
    from memorybank.storage import Store

__all__ = ["add_operator_commands"]

PAGE = 1_000


def add_operator_commands(commands: Any, add_db: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add them to a command line.

    Args:
        commands: where parsers are added.
        add_db: adds the option that names the database.
    """

    def command(name: str, run: Callable[[argparse.Namespace], int], says: str, to: Any = commands) -> CommandParser:
        added: CommandParser = to.add_parser(name, help=says, description=says, allow_abbrev=False)
        added.set_defaults(run=run)
        added.add_argument("--json", action="store_true", help="print JSON for programs")
        return added

    banks = command("banks", _banks, "List the banks of a database in the order of their names.")
    banks.add_argument("--namespace", default="", metavar="NAME", help="those of a namespace (default: of none)")
    banks.add_argument("--limit", type=int, metavar="N", help="at most so many (default: all)")
    banks.add_argument("--cursor", help="go on where the page before ended")
    capacity = command("capacity", _capacity, "Limit how many active memories a bank may have.")
    capacity.add_argument("capacity", metavar="N", help="1 or more; none lifts the limit")
    capacity.add_argument("--bank", metavar="NAME", default="default", help="the bank's name (default: default)")
    keys = commands.add_parser("keys", help="Make, list and revoke the API keys of a service.", allow_abbrev=False)
    of_keys = keys.add_subparsers(required=True, metavar="COMMAND")
    create = command("create", _create_key, "Make an API key. Its token is shown once.", of_keys)
    create.add_argument("--namespace", default="", metavar="NAME", help="whose banks it sees (default: those of none)")
    create.add_argument("--access", choices=("read", "write"), default="write", help="(default: write)")
    create.add_argument("--label", default="", metavar="TEXT", help="what its owner calls it")
    list_keys = command("list", _list_keys, "List all API keys, without their secrets.", of_keys)
    revoke = command("revoke", _revoke_key, "Close an API key for good, in all processes at once.", of_keys)
    revoke.add_argument("id", metavar="ID")
    backup = command("backup", _backup, "Copy an SQLite file that may be in use, and check the copy.")
    backup.add_argument("file", metavar="FILE", help="where the copy goes")
    backup.add_argument("--force", action="store_true", help="replace a file that is there")
    for parser in (banks, capacity, create, list_keys, revoke, backup):
        add_db(parser)
    copy = command("copy", _copy, "Copy banks and API keys into another database, and prove that they are the same.")
    copy.add_argument("source", metavar="FROM", help="SQLite file or URL")
    copy.add_argument("target", metavar="TO", help="SQLite file or URL; made if it is not there")
    some = copy.add_mutually_exclusive_group()
    some.add_argument("--bank", action="append", metavar="NAME", help="only this bank; may be repeated; no keys")
    some.add_argument("--namespace", metavar="NAME", help="only the banks and keys of a namespace")


@contextmanager
def _host(given: argparse.Namespace, *, create: bool = False) -> Iterator[BankHost]:
    from memorybank.host import BankHost

    with BankHost.open(given.db, create=create) as host:
        yield host


@contextmanager
def _store(place: str, *, create: bool = False) -> Iterator[Store]:
    from memorybank.storage import open_store

    store = open_store(place, create=create)
    try:
        yield store
    finally:
        store.close()


def _banks(given: argparse.Namespace) -> int:
    with _host(given) as host:
        found: list[BankInfo] = []
        cursor = given.cursor
        while True:
            page = host.banks(
                namespace=given.namespace, limit=PAGE if given.limit is None else given.limit, cursor=cursor
            )
            found += page.banks
            cursor = page.cursor
            if cursor is None or given.limit is not None:
                break
    if given.json:
        output.print_json({"banks": [output.plain_json(one) for one in found], "cursor": cursor})
        return 0
    if cursor is not None:
        note(f"memorybank: there are more: --cursor {cursor}")
    rows = [(one.name, sum(one.counts.values()), one.capacity or "none", one.model) for one in found]
    output.print_rows(("bank", "memories", "capacity", "model"), rows)
    return 0


def _capacity(given: argparse.Namespace) -> int:
    if given.capacity != "none" and not (given.capacity.isascii() and given.capacity.isdigit()):
        raise InvalidInputError(f"capacity must be a whole number or none, not {given.capacity!r}")
    capacity = None if given.capacity == "none" else int(given.capacity[:20])
    with MemoryBank.open(given.db, given.bank, create=False, verify_model=False) as bank:
        if not bank.info().revision:
            raise BankNotFoundError(f"there is no bank {given.bank!r}: it comes into being with its first memory")
        info = bank.set_capacity(capacity)
    if given.json:
        output.print_json(output.plain_json(info))
    else:
        most = "any number of" if capacity is None else f"at most {capacity}"
        print(f"bank {shown(info.name)}: {most} active memories, now {info.counts.get('active', 0)}")
    return 0


def _create_key(given: argparse.Namespace) -> int:
    with _host(given, create=True) as host:
        key, token = host.keys.create(namespace=given.namespace, access=given.access, label=given.label)
    if given.json:
        output.print_json({"key": output.plain_json(key), "token": token})
    else:
        note(f"memorybank: this is the token of the key {key.id}; it cannot be shown again")
        print(token)
    return 0


def _list_keys(given: argparse.Namespace) -> int:
    with _host(given) as host:
        return _print_keys(given, host.keys.list())


def _revoke_key(given: argparse.Namespace) -> int:
    with _host(given) as host:
        return _print_keys(given, [host.keys.revoke(given.id)])


def _print_keys(given: argparse.Namespace, keys: list[ApiKey]) -> int:
    if given.json:
        output.print_json({"keys": [output.plain_json(key) for key in keys]})
        return 0
    rows = [
        (key.id, key.namespace, key.access, "revoked" if key.revoked else "open", f"{key.created:%Y-%m-%d}", key.label)
        for key in keys
    ]
    output.print_rows(("id", "namespace", "access", "state", "created", "label"), rows)
    return 0


def _backup(given: argparse.Namespace) -> int:
    from memorybank.moving import UnsoundCopyError, back_up

    with _store(given.db) as store:
        try:
            made = back_up(store, given.file, force=given.force)
        except UnsoundCopyError as error:
            note(f"memorybank: {error}")
            return 1
    if given.json:
        output.print_json(output.plain_json(made))
    else:
        print(f"{shown(made.file)}: {made.banks} banks, {made.memories} memories, {made.bytes} bytes: sound")
    return 0


def _copy(given: argparse.Namespace) -> int:
    from memorybank.moving import UnsoundCopyError, copy_database

    with (
        _store(given.source) as source,
        _store(given.target, create=True) as target,
        progress_bar("copying") as progress,
    ):
        try:
            report = copy_database(source, target, names=given.bank, namespace=given.namespace, progress=progress)
        except UnsoundCopyError as error:
            note(f"memorybank: {error}")
            return 1
    if given.json:
        output.print_json(output.plain_json(report))
        return 0
    rows = [(one.bank, one.memories, "was there" if one.was_there else "copied", one.checksum) for one in report.banks]
    output.print_rows(("bank", "memories", "state", "checksum, the same in both"), rows)
    total = sum(one.memories for one in report.banks)
    note(f"memorybank: {len(rows)} banks with {total} memories and {report.keys} keys are the same in both databases")
    return 0

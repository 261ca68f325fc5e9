"""The command `memorybank`: one bank, from the shell (SPEC.md section 11).

Exit codes: 0 done, 2 the input or the call is at fault (one line on stderr says how), 1 the program is, and `check`
found something wrong. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn

from memorybank import cli_output as output
from memorybank.bank import MemoryBank
from memorybank.cli_models import add_model_commands
from memorybank.cli_operator import add_operator_commands
from memorybank.console import CommandParser, end_process, note, progress_bar, run_command, shown
from memorybank.errors import BankNotFoundError, InvalidInputError, MemoryBankError
from memorybank.memory import Memory, NewMemory
from memorybank.search.ranking import DEFAULT_RANKING
from memorybank.service.flags import SERVICE_FLAGS, SETTINGS, add_flags

if TYPE_CHECKING:
    from memorybank.embedding import Embedder
    from memorybank.search.reranking import Reranking

__all__ = ["main", "program"]

DEFAULT_DB = "memories.sqlite"
NEED_MODEL = ("add", "edit", "search", "reembed")
WITHOUT_BANK = ("export-onnx", "models", "serve")
BACKENDS = "what runs the model: auto, torch, onnx, onnx-int8 (default: $MEMORYBANK_BACKEND, else auto)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return run_command(_parser(), arguments, (MemoryBankError, OSError))


def program() -> NoReturn:
    """Be the program: run the command of this process's arguments and end with its exit code."""
    end_process(main())


def _parser() -> CommandParser:
    parser = CommandParser(prog="memorybank", description="Short texts about earlier events, found again by meaning.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], says: str, **options: Any) -> CommandParser:
        added: CommandParser = commands.add_parser(name, help=says, description=says, allow_abbrev=False, **options)
        added.set_defaults(run=run)
        added.add_argument("--json", action="store_true", help="print JSON for programs")
        if name not in WITHOUT_BANK:
            _add_place(added)
        if name in NEED_MODEL:
            added.add_argument("--model", metavar="NAME", help="embedding model (all-MiniLM-L6-v2; see `models`)")
            added.add_argument("--backend", metavar="NAME", help=BACKENDS)
        return added

    _add_changing(command)
    _add_reading(command)
    add_operator_commands(commands, _add_db)
    return parser


def _add_db(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--db",
        metavar="PATH",
        default=os.environ.get("MEMORYBANK_DB") or DEFAULT_DB,
        help=f"SQLite file, or a URL: sqlite:///…, postgresql://… (default: $MEMORYBANK_DB, else {DEFAULT_DB})",
    )


def _add_place(parser: argparse.ArgumentParser) -> None:
    _add_db(parser)
    parser.add_argument("--bank", metavar="NAME", default="default", help="the bank's name (default: default)")


def _add_changing(command: Callable[..., CommandParser]) -> None:
    add = command("add", _add, "Store memories; the same text or id again is still one memory.")
    add.add_argument("text", nargs="*", metavar="TEXT", help="what happened")
    add.add_argument("--file", metavar="FILE", help="one memory per line, as text or as JSON (.jsonl); - for stdin")
    add.add_argument("--format", choices=("jsonl", "txt"), help="of FILE, whatever its name ends in")
    add.add_argument("--id", help="of the one TEXT")
    add.add_argument("--action", action="append", default=[], metavar="ID", help="source action; may be repeated")
    add.add_argument("--pin", action="store_true", help="pin them")
    edit = command("edit", _edit, "Change a memory; another text is embedded anew.")
    edit.add_argument("id", metavar="ID")
    edit.add_argument("--text")
    edit.add_argument("--action", action="append", metavar="ID", help="source action; may be repeated, replaces all")
    edit.add_argument("--metadata", metavar="JSON", help="an object, replaces what is there")
    pin = command("pin", _pin, "Pin memories: first in every context, never forgotten for lack of room.")
    pin.add_argument("--off", action="store_true", help="take the pins off")
    forget = command("forget", _forget, "Forget memories: still listed and restorable, not searched.")
    restore = command("restore", _restore, "Make forgotten memories active again.")
    delete = command("delete", _delete, "Delete memories for good.")
    for parser in (pin, forget, restore, delete):
        parser.add_argument("id", nargs="+", metavar="ID")
    command("reembed", _reembed, "Move the bank to the embedding model --model: all of it or nothing.")


def _add_reading(command: Callable[..., CommandParser]) -> None:
    listing = command("list", _list, "List memories in the order of storing.")
    listing.add_argument("--state", choices=("active", "forgotten", "stale"))
    listing.add_argument("--limit", type=int, metavar="N", help="at most so many (default: all)")
    listing.add_argument("--cursor", help="go on where the page before ended")
    search = command("search", _search, "Find memories by meaning, best first.")
    search.add_argument("query", metavar="QUERY")
    search.add_argument("--limit", type=int, metavar="N", help="at most so many (default: 10)")
    search.add_argument("--max-tokens", type=int, metavar="N", help="what fits into so many tokens of o200k_base")
    search.add_argument("--min-similarity", type=float, metavar="X", help="from -1 to 1")
    search.add_argument(
        "--ranking", default=DEFAULT_RANKING, help="hybrid: by meaning and by words (default); semantic; or reranked"
    )
    search.add_argument(
        "--recent",
        action="append",
        default=[],
        metavar="TEXT",
        help="a text before the query; repeatable, oldest first",
    )
    search.add_argument("--reranker", metavar="NAME", help="cross-encoder for reranked: a folder, or a name on the hub")
    search.add_argument("--pinned-first", action="store_true", help="pinned memories before all others")
    search.add_argument("--explain", action="store_true", help="the parts of each score")
    command("check", _check, "Prove that database and index agree.")
    add_flags(command("serve", _serve, "Serve all banks of a database over HTTP.", epilog=SETTINGS), SERVICE_FLAGS)
    add_model_commands(command)


def _embedder(given: argparse.Namespace) -> Embedder:
    from memorybank.embedding import DEFAULT_MODEL, open_embedder

    model = DEFAULT_MODEL if given.model is None else given.model
    return open_embedder(model, backend=given.backend, on_wait=note)


def _with_model(given: argparse.Namespace, *, create: bool = False, **options: Any) -> MemoryBank:
    return MemoryBank.open(given.db, given.bank, embedder=_embedder(given), create=create, **options)


def _reranking(model: str | None) -> Reranking | None:
    from memorybank.search.reranking import open_reranking

    return None if model is None else open_reranking(model, on_wait=note)


def _without_model(given: argparse.Namespace) -> MemoryBank:
    return MemoryBank.open(given.db, given.bank, create=False, verify_model=False)


def _add(given: argparse.Namespace) -> int:
    if bool(given.text) == bool(given.file):
        raise InvalidInputError("add needs either TEXT or --file FILE")
    if given.id is not None and len(given.text) != 1:
        raise InvalidInputError("--id goes with exactly one TEXT")
    if given.file and (given.action or given.pin):
        raise InvalidInputError("--action and --pin go with TEXT; in a file, each line has its own (JSON Lines)")
    if given.file:
        from memorybank.cli_input import read_memories

        items = read_memories(given.file, given.format)
    else:
        items = [NewMemory(text, given.id, tuple(given.action), given.pin) for text in given.text]
    with _with_model(given, create=True) as bank, progress_bar("embedding") as progress:
        stored = bank.add_many(items, progress=progress)
    for id_ in dict.fromkeys(memory.id for memory in stored if memory.state == "forgotten"):
        note(f"memorybank: {id_} is there already and forgotten: `memorybank restore` makes it active")
    return _print_memories(given, stored)


def _edit(given: argparse.Namespace) -> int:
    changes: dict[str, Any] = {"text": given.text, "actions": given.action}
    if given.metadata is not None:
        try:
            changes["metadata"] = json.loads(given.metadata)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"--metadata is not JSON: {error}") from None
    changes = {name: value for name, value in changes.items() if value is not None}
    if not changes:
        raise InvalidInputError("edit needs something to change: --text, --action or --metadata")
    with _without_model(given) if given.text is None else _with_model(given) as bank:
        return _print_memories(given, bank.edit_many([{"id": given.id, **changes}]))


def _pin(given: argparse.Namespace) -> int:
    with _without_model(given) as bank:
        return _print_memories(given, bank.unpin(*given.id) if given.off else bank.pin(*given.id))


def _forget(given: argparse.Namespace) -> int:
    with _without_model(given) as bank:
        return _print_memories(given, bank.forget(*given.id))


def _restore(given: argparse.Namespace) -> int:
    with _without_model(given) as bank:
        return _print_memories(given, bank.restore(*given.id))


def _delete(given: argparse.Namespace) -> int:
    with _without_model(given) as bank:
        bank.delete(*given.id)
    if given.json:
        output.print_json({"deleted": list(dict.fromkeys(given.id))})
    return 0


def _list(given: argparse.Namespace) -> int:
    with _without_model(given) as bank:
        if given.limit is None and given.cursor is None:
            return _print_memories(given, bank.list(given.state), cursor=None)
        page = bank.page(state=given.state, limit=100 if given.limit is None else given.limit, cursor=given.cursor)
    if page.cursor and not given.json:
        note(f"memorybank: there are more: --cursor {page.cursor}")
    return _print_memories(given, page.memories, cursor=page.cursor)


def _search(given: argparse.Namespace) -> int:
    with _with_model(given, reranking=_reranking(given.reranker)) as bank:
        found = bank.search(
            given.query,
            limit=given.limit,
            max_tokens=given.max_tokens,
            min_similarity=given.min_similarity,
            ranking=given.ranking,
            recent=given.recent,
            pinned_first=given.pinned_first,
            explain=given.explain,
        )
    if given.json:
        output.print_json({"results": [one.to_dict() for one in found]})
        return 0
    parts = [" ".join(f"{name}={value:.4f}" for name, value in (one.parts or {}).items()) for one in found]
    rows = [(one.rank, f"{one.similarity:.4f}", one.memory.id, one.memory.text) for one in found]
    if given.explain:
        explained = [(*row[:3], part, row[3]) for row, part in zip(rows, parts, strict=True)]
        output.print_rows(("rank", "similarity", "id", "score", "text"), explained)
    else:
        output.print_rows(("rank", "similarity", "id", "text"), rows)
    return 0


def _reembed(given: argparse.Namespace) -> int:
    model = _embedder(given)
    with _without_model(given) as bank, progress_bar("embedding") as progress:
        number = bank.reembed(model, progress=progress)
    if given.json:
        output.print_json({"bank": given.bank, "model": model.name, "memories": number})
    else:
        print(f"bank {shown(given.bank)}: {number} memories have vectors of {model.name}")
    return 0


def _check(given: argparse.Namespace) -> int:
    with _without_model(given) as bank:
        if not bank.exists():  # a mistyped name would be sound
            raise BankNotFoundError(f"there is no bank {given.bank!r} in {given.db}: `memorybank banks` lists them")
        report = bank.check()
    if given.json:
        output.print_json({"ok": report.ok, **asdict(report)})
    else:
        for line in report.problems:
            print(shown(line))
        verdict = "database and index agree" if report.ok else f"{len(report.problems)} problems"
        print(f"bank {shown(report.bank)}: {report.memories} memories, {report.indexed} indexed: {verdict}")
    return 0 if report.ok else 1


def _serve(given: argparse.Namespace) -> int:
    from memorybank.service.command import serve

    def find_app() -> Any:
        from memorybank.service.app import create_app

        return create_app

    return serve(given, find_app)


def _print_memories(given: argparse.Namespace, memories: Sequence[Memory], **more: Any) -> int:
    if given.json:
        output.print_json({"memories": [one.to_dict() for one in memories], **more})
        return 0
    rows = [(one.id, one.state + (" pinned" if one.pinned else ""), one.text) for one in memories]
    output.print_rows(("id", "state", "text"), rows)
    return 0

"""The command line (SPEC.md section 11): `build`, `import`, `export`.

Nothing heavy is imported before it is needed: the memory bank's libraries only when a context recalls memories.
Exit codes: 0 done, 2 the input or the call is at fault, 1 the program is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from assembler.errors import AdventureError, AssemblerError, SettingsError
from memorybank.console import CommandParser, end_process, note, progress_bar, run_command
from memorybank.errors import MemoryBankError
from memorybank.search.ranking import DEFAULT_RANKING
from memorybank.service.flags import SETTINGS, add_flags

if TYPE_CHECKING:
    from assembler.adventure import Adventure
    from assembler.bank import EmptyBank
    from assembler.settings import Settings
    from memorybank import MemoryBank

__all__ = ["main", "program"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    with _warnings_as_notes():
        return run_command(_parser(), arguments, (AssemblerError, MemoryBankError, OSError))


def program() -> NoReturn:
    """Be the program: run the command of this process's arguments and end with its exit code."""
    end_process(main())


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="assembler", description="Packs an AI adventure into an exact token budget and says why."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_build(commands)
    serve = commands.add_parser("serve", help="the HTTP API with context assembly", epilog=SETTINGS)
    serve.set_defaults(run=_serve)
    serve.add_argument("--json", action="store_true", help="say in JSON where it listens")
    add_flags(serve)
    _add_formats(commands)
    return parser


def _add_build(commands: Any) -> None:
    build = commands.add_parser("build", help="the context for the next AI call and its report")
    build.set_defaults(run=_build)
    build.add_argument("file", metavar="FILE", help="an adventure/1 document; - reads standard input")
    shape = build.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print everything as JSON")
    shape.add_argument("--text", action="store_true", help="print the context alone")
    shape.add_argument("--report", action="store_true", help="print the report alone")
    build.add_argument("--context", type=int, default=4096, metavar="N", help="context size in tokens (4096)")
    build.add_argument("--reserve", type=int, default=0, metavar="N", help="tokens of it kept free for the answer (0)")
    build.add_argument(
        "--tokenizer",
        default="o200k_base",
        metavar="NAME",
        help="o200k_base (default), cl100k_base, a path to a Hugging Face tokenizer.json, or chars/4",
    )
    build.add_argument("--layout", default="classic", metavar="NAME", help="classic (default) or cache_friendly")
    build.add_argument("--anchor", metavar="ID", help="the anchor of the previous turn (cache_friendly layout)")
    source = build.add_mutually_exclusive_group()
    source.add_argument("--no-memory-bank", action="store_true", help="recall nothing; history has the share")
    source.add_argument("--bank", metavar="DATABASE", help="recall from a stored bank and not from the document")
    build.add_argument("--bank-name", metavar="NAME", help="which bank of the database (default: default)")
    _add_recall(build)
    build.add_argument("--waiting", action="store_true", help="list the cards that did not match and their triggers")
    build.add_argument("--full", action="store_true", help="a line for every item in the printed report")


def _add_recall(build: argparse.ArgumentParser) -> None:
    build.add_argument(
        "--ranking",
        default=DEFAULT_RANKING,
        metavar="NAME",
        help="of memories: hybrid, by meaning and by words (default), semantic, or reranked",
    )
    build.add_argument("--reranker", metavar="NAME", help="cross-encoder for reranked: a folder, or a name on the hub")
    build.add_argument(
        "--recent-actions", type=int, default=4, metavar="N", help="how many actions before the last help to recall (4)"
    )
    build.add_argument("--model", metavar="NAME", help="embedding model; see `memorybank models`")
    build.add_argument("--backend", metavar="NAME", help="what runs it: auto (default), torch, onnx or onnx-int8")


def _add_formats(commands: Any) -> None:
    load = commands.add_parser("import", help="turn another program's file into an adventure document")
    load.set_defaults(run=_import)
    load.add_argument("file", metavar="FILE", help="any supported file; its format is found by looking into it")
    load.add_argument("-o", "--output", metavar="FILE", help="where the document goes (standard output)")
    load.add_argument("--select", metavar="WHICH", help="which of several adventures in the file: number or title")
    load.add_argument("--into", metavar="FILE", help="an adventure document that gets what is imported added")

    save = commands.add_parser("export", help="turn an adventure document into another program's file")
    save.set_defaults(run=_export)
    save.add_argument("file", metavar="FILE", help="an adventure/1 document; - reads standard input")
    save.add_argument(
        "--as",
        dest="format",
        required=True,
        metavar="FORMAT",
        help="for example aidungeon-cards; a wrong name lists all",
    )
    save.add_argument("-o", "--output", metavar="FILE", help="where the file goes (standard output)")


def _build(call: argparse.Namespace) -> int:
    from assembler.context import assemble

    settings = _settings(call)
    adventure = _read(call.file)
    if adventure.last_action is None and (adventure.story_cards or adventure.memories):
        note("note: there is no action with text, so no card can match and nothing is recalled; add actions")
    with _bank(call, adventure) as (adventure, bank):
        context = assemble(adventure, bank, settings, anchor=call.anchor)
    if call.json:
        print(json.dumps(context.to_dict(), ensure_ascii=False, indent=2))
        return 0
    if not call.report:
        print(context.text)
    if not call.text:
        from assembler.table import render

        print("" if call.report else f"\n{'─' * 72}\n", end="")
        print(render(context.report, full=call.full))
        if context.anchor is not None:
            print(f"\nanchor for the next turn: {context.anchor}")
    return 0


def _settings(call: argparse.Namespace) -> Settings:
    from assembler.settings import Settings

    layout = call.layout.replace("-", "_")
    if call.anchor is not None and layout != "cache_friendly":
        raise SettingsError("--anchor: goes with --layout cache_friendly, where history has one")
    if call.reserve < 0:
        raise SettingsError(f"--reserve: {call.reserve} is out of range; use 0 or more")
    if 0 < call.context <= call.reserve:
        raise SettingsError(
            f"--reserve: {call.reserve} of {call.context} tokens leaves none for the context; "
            f"use at most {call.context - 1}"
        )
    return Settings(
        context_size=call.context - call.reserve,
        tokenizer=call.tokenizer,
        layout=layout,
        ranking=call.ranking,
        recent_actions=call.recent_actions,
        list_unmatched=call.waiting,
    )


def _read(file: str) -> Adventure:
    from assembler.document import load, loads

    if file != "-":
        return load(file)
    if sys.stdin is None:
        raise AdventureError("-: standard input is closed; give a file")
    return loads(sys.stdin.buffer.read())


@contextlib.contextmanager
def _bank(call: argparse.Namespace, adventure: Adventure) -> Iterator[tuple[Adventure, MemoryBank | EmptyBank | None]]:
    """Open the bank that the call asks for: the stored one, with its Story Summary, the document's own, or none."""
    from assembler.bank import EmptyBank, bank_of, with_story_summary

    if call.bank is None and call.bank_name is not None:
        raise AdventureError("--bank-name: goes with --bank, which names the database")
    if call.bank is not None and not adventure.memory_bank:
        raise AdventureError("memory_bank: the document turns the bank off; leave --bank out, or make it true there")
    if call.no_memory_bank or not adventure.memory_bank:
        yield adventure, None
        return
    if call.bank is None and not adventure.memories:
        yield adventure, EmptyBank()
        return
    from memorybank import MemoryBank
    from memorybank.embedding import DEFAULT_MODEL, open_embedder
    from memorybank.search.reranking import open_reranking

    embedder = open_embedder(call.model or DEFAULT_MODEL, backend=call.backend, on_wait=note)
    reranking = None if call.reranker is None else open_reranking(call.reranker, on_wait=note)
    if call.bank is None:
        with (
            progress_bar("embedding memories") as progress,
            bank_of(adventure, embedder, progress=progress, reranking=reranking) as bank,
        ):
            yield adventure, bank
    else:
        if adventure.memories:
            note(f"note: --bank recalls from a database; the {len(adventure.memories)} in the document are not used")
        name = call.bank_name or "default"
        with MemoryBank.open(call.bank, name, embedder=embedder, create=False, reranking=reranking) as bank:
            yield with_story_summary(adventure, bank), bank


def _serve(call: argparse.Namespace) -> int:
    from memorybank.service.command import serve

    def find_app() -> Any:
        from assembler.service.app import create_app

        return create_app

    return serve(call, find_app)


def _import(call: argparse.Namespace) -> int:
    from assembler.document import dumps
    from assembler.formats import FORMATS, import_file

    into = _read(call.into) if call.into else None
    result = import_file(call.file, into=into, select=call.select)
    _write(dumps(result.adventure).encode(), call.output)
    counts = ", ".join(_counted(name, number) for name, number in result.imported.items())
    note(f"read as {FORMATS[result.format].what}: {counts}; {len(result.skipped)} skipped")
    for skip in result.skipped:
        note(f"skipped {skip}")
    for remark in result.notes:
        note(f"note: {remark}")
    return 0


def _counted(name: str, number: int) -> str:
    singular = {"story_cards": "story card", "actions": "action", "memories": "memory"}
    if name not in singular:  # a plot component, of which there is one
        return name.replace("_", " ")
    return f"1 {singular[name]}" if number == 1 else f"{number} {name.replace('_', ' ')}"


def _export(call: argparse.Namespace) -> int:
    from assembler.formats import export, left_out

    adventure = _read(call.file)
    _write(export(adventure, call.format), call.output)
    for loss in left_out(adventure, call.format):
        note(f"note: {call.format} has no place for {loss}")
    return 0


def _write(data: bytes, output: str | None) -> None:
    if output is None:
        sys.stdout.buffer.write(data)
        return
    path = Path(output).resolve()  # a link stays one
    if path.exists() and not path.is_file():
        try:
            path.write_bytes(data)  # a device or a pipe is written to, and not replaced
        except OSError as error:
            raise AdventureError(f"{output}: cannot be written: {error.strerror or error}") from error
        return
    # Beside the file and then in its place, so that a full disk leaves no half of it.
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except (OSError, ValueError) as error:
        raise AdventureError(f"{output}: cannot be written: {getattr(error, 'strerror', None) or error}") from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            beside.unlink()


@contextlib.contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Print warnings as one plain line each."""

    def show(message: Warning | str, *_: object, file: TextIO | None = None, **__: object) -> None:
        note(f"note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")  # also where the caller has made errors of them
        warnings.showwarning = show
        yield

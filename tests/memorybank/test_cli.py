"""The command `memorybank`, as a person and as a program uses it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybank import MemoryBank, cli
from memorybank.embedding.testing import HashingEmbedder

COMMANDS = [
    "add",
    "list",
    "search",
    "edit",
    "pin",
    "forget",
    "restore",
    "delete",
    "reembed",
    "check",
    "models",
    "export-onnx",
    "serve",
]


class Shell:
    """Runs the command in this process, with a model without weights."""

    def __init__(self, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.database = database
        self._capsys = capsys

    def run(self, *arguments: object, code: int = 0, model: str | None = "hashing-64") -> str:
        """Return what it prints to stdout; what it prints to stderr is `errors`."""
        given = [str(argument) for argument in arguments]
        given += ["--model", model] if model and given[0] in ("add", "search", "edit", "reembed") else []
        try:
            found = cli.main(given)
        except SystemExit as ended:
            found = ended.code  # type: ignore[assignment]
        out, self.errors = self._capsys.readouterr()
        assert found == code, (out, self.errors)
        if code == 2:
            assert out == ""
            assert self.errors.count("\n") == 1
            assert "Traceback" not in self.errors
        return out

    def json(self, *arguments: object) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    def refused(self, *arguments: object, model: str | None = "hashing-64") -> str:
        self.run(*arguments, code=2, model=model)
        return self.errors


@pytest.fixture
def shell(database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("MEMORYBANK_DB", str(database))
    return Shell(database, capsys)


def test_a_session(shell: Shell) -> None:
    assert (
        shell.run("add", "The gate opens.", "A wolf howls.")
        == "m1\tactive\tThe gate opens.\nm2\tactive\tA wolf howls.\n"
    )
    assert shell.run("search", "wolf howls", "--limit", 1).startswith("1\t0.")
    assert shell.run("pin", "m1") == "m1\tactive pinned\tThe gate opens.\n"
    assert shell.run("pin", "--off", "m1") == "m1\tactive\tThe gate opens.\n"
    assert shell.run("forget", "m1", "m2").count("forgotten") == 2
    assert shell.run("search", "wolf") == ""
    assert shell.run("restore", "m2") == "m2\tactive\tA wolf howls.\n"
    assert shell.run("edit", "m2", "--text", "A dragon sleeps.") == "m2\tactive\tA dragon sleeps.\n"
    assert shell.run("list", "--state", "active") == "m2\tactive\tA dragon sleeps.\n"
    assert shell.run("delete", "m1") == ""
    assert shell.run("check") == "bank default: 1 memories, 1 indexed: database and index agree\n"
    assert shell.run("reembed", model="hashing-32") == "bank default: 1 memories have vectors of hashing-32\n"
    assert "hashing-32" in shell.refused("search", "dragon")
    assert shell.run("search", "dragon sleeps", model="hashing-32").startswith("1\t")


def test_json_for_programs(shell: Shell) -> None:
    [memory] = shell.json("add", "門 opens", "--id", "g", "--action", "a1", "--action", "a2", "--pin")["memories"]
    assert set(memory) == {
        "id", "text", "actions", "pinned", "metadata", "state", "model", "created", "last_used", "use_count",
        "writer", "reason", "ordinal", "version",
    }  # fmt: skip
    assert (memory["id"], memory["actions"], memory["pinned"], memory["last_used"]) == ("g", ["a1", "a2"], True, None)
    assert shell.json("list") == {"memories": [memory], "cursor": None}
    [found] = shell.json("search", "門 opens", "--explain")["results"]
    assert found == {
        "memory": memory,
        "similarity": 1.0,
        "rank": 1,
        "parts": {"semantic": 0.984314, "lexical": 0.015686, "same": 1.0},
    }
    assert "parts" not in shell.json("search", "gate")["results"][0]
    edited = shell.json("edit", "g", "--metadata", '{"k": [1]}', "--action", "a3")["memories"][0]
    assert (edited["metadata"], edited["actions"]) == ({"k": [1]}, ["a3"])
    assert shell.json("check") == {"ok": True, "bank": "default", "memories": 1, "indexed": 1, "problems": []}
    assert shell.json("reembed") == {"bank": "default", "model": "hashing-64", "memories": 1}
    assert shell.json("delete", "g", "g") == {"deleted": ["g"]}
    models = shell.json("models")["models"]
    assert {"name", "dimensions", "max_tokens", "licence", "available", "where"} <= set(models[0])


def test_files(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = tmp_path / "memories.jsonl"
    lines.write_bytes(
        b'\xef\xbb\xbf{"text": "The gate opens.", "id": "g", "pinned": true}\r\n\n'
        b'"A wolf\\nhowls."\n{"text": "sep \\u2028 \xe2\x80\xa8", "actions": ["a1"], "metadata": {"k": "\\ud83d"}}'
    )
    assert [one["id"] for one in shell.json("add", "--file", lines)["memories"]] == ["g", "m1", "m2"]
    text = tmp_path / "memories.txt"
    text.write_text("one\n\n  two  \n{not json\n", encoding="utf-8")
    assert [one["text"] for one in shell.json("add", "--file", text)["memories"]] == ["one", "two", "{not json"]
    for kind, content in (("txt", "three"), ("jsonl", '{"text": "four"}')):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        assert shell.json("add", "--file", "-", "--format", kind)["memories"][0]["text"] in ("three", "four")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"text": "x"}\n{"txt": "y"}\n', "line 2: unknown field 'txt'"),
        (b'{"text": "x"}\n\n{"text": "y"\n', "line 3: it is not JSON"),
        (b'{"text": ""}', "line 1: text is empty"),
        (b"[1]", "line 1 must be a NewMemory, a mapping or a text, not list"),
        (b'{"text": "x"}\n{"text": "\xff"}', "line 2: it is not UTF-8"),
        (b"\n \n", "there is no memory in it"),
        (b"", "there is no memory in it"),
        (b"[" * 100_000, "line 1: it is not JSON"),
    ],
)
def test_a_bad_file_names_the_line_and_stores_nothing(shell: Shell, tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(content)
    assert says in shell.refused("add", "--file", file)
    assert not shell.database.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add"], "needs either TEXT or --file"),
        (["add", "x", "--file", "y"], "needs either TEXT or --file"),
        (["add", " "], "text is empty"),
        (["add", "a", "b", "--id", "i"], "exactly one TEXT"),
        (["add", "--file", "y", "--pin"], "go with TEXT"),
        (["add", "--file", "missing.txt"], "missing.txt: it cannot be read"),
        (["add", "--file", "."], "cannot be read"),
        (["add", "--file", "a\0b"], "cannot be read: embedded null byte"),
        (["add", "x", "--id", "a\nb"], "not printable"),
        (["add", "x", "--bank", ""], "bank's name"),
        (["add", "x", "--db", "/nowhere/at/all/x.sqlite"], "check that the folder exists"),
        (["add", "x", "--db", "mysql://h/d"], "not supported"),
        (["list"], "there is no such file"),
        (["search", "x", "--limit", "many"], "invalid int value"),
        (["frobnicate"], "invalid choice"),
        ([], "required: COMMAND"),
        (["pin"], "required: ID"),
        (["list", "--stat", "active"], "unrecognized arguments"),
        *(([name, "--model", "hashing-8"], "unrecognized") for name in ("list", "check", "models")),
        *(([name, "m1", "--model", "hashing-8"], "unrecognized") for name in ("pin", "forget", "restore", "delete")),
    ],
)
def test_the_call_is_at_fault(shell: Shell, arguments: list[str], says: str) -> None:
    model = None if not arguments else "hashing-64"
    arguments = arguments or ["--json"]
    assert says in shell.refused(*arguments, model=model)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["delete", "m1", "m9"], "no memory 'm9'"),
        (["search", "x", "--limit", "0"], "limit must be"),
        (["search", "x", "--max-tokens", "-1"], "max_tokens must be"),
        (["search", "x", "--min-similarity", "nan"], "min_similarity must be"),
        (["search", "x", "--ranking", "words"], "one of semantic, hybrid"),
        (["edit", "m1"], "something to change"),
        (["edit", "m1", "--metadata", "{"], "--metadata is not JSON"),
        (["edit", "m1", "--metadata", "[]"], "metadata must be a mapping"),
        (["edit", "m1", "--text", "  "], "text is empty"),
        (["list", "--cursor", "x"], "cursor"),
    ],
)
def test_the_call_is_at_fault_in_a_bank(shell: Shell, arguments: list[str], says: str) -> None:
    shell.run("add", "x")
    assert says in shell.refused(*arguments)
    assert shell.run("list") == "m1\tactive\tx\n"


def test_looking_makes_no_database(shell: Shell) -> None:
    for command in (
        ["list"],
        ["search", "x"],
        ["check"],
        ["pin", "m1"],
        ["delete", "m1"],
        ["edit", "m1", "--text", "y"],
    ):
        shell.refused(*command)
    assert not shell.database.exists()


def test_pages(shell: Shell) -> None:
    shell.run("add", *"abcde")
    page = shell.json("list", "--limit", 2)
    assert [one["text"] for one in page["memories"]] == ["a", "b"]
    assert [one["text"] for one in shell.json("list", "--limit", 2, "--cursor", page["cursor"])["memories"]] == [
        "c",
        "d",
    ]
    shell.run("list", "--limit", 2)
    assert f"--cursor {page['cursor']}" in shell.errors


def test_what_is_forgotten_is_said(shell: Shell) -> None:
    shell.run("add", "x")
    shell.run("forget", "m1")
    assert shell.run("add", "x") == "m1\tforgotten\tx\n"
    assert "memorybank restore" in shell.errors


def test_a_mistyped_bank_is_not_called_sound(shell: Shell) -> None:
    shell.run("add", "x")
    assert "there is no bank 'defualt'" in shell.refused("check", "--bank", "defualt")


def test_check_ends_with_1_when_they_disagree(shell: Shell) -> None:
    shell.run("add", "x")
    with MemoryBank.open(shell.database, embedder=HashingEmbedder()) as bank, bank._store._writing() as connection:
        connection.exec_driver_sql("UPDATE memories SET text = 'y'")
    assert "memory 'm1': its text" in shell.run("check", code=1)
    assert json.loads(shell.run("check", "--json", code=1))["ok"] is False


def test_nothing_a_player_typed_reaches_the_terminal_raw(shell: Shell) -> None:
    shell.run("add", "a\x1b[31mred\x07\nline [bold]two[/bold]\tend", "--bank", "b")
    assert shell.run("list", "--bank", "b") == "m1\tactive\ta [31mred  line [bold]two[/bold] end\n"


def test_a_table_for_people(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.run("add", "the [red]gate[/red] opens " + "and falls " * 30)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    out = re.sub(r"\x1b\[[0-9;]*m", "", shell.run("search", "gate"))
    assert out.splitlines()[0].split() == ["rank", "similarity", "id", "text"]
    assert "[red]gate[/red]" in out
    assert max(map(len, out.splitlines())) <= 60
    assert "score" in shell.run("search", "gate", "--explain")


def test_a_progress_bar_for_people(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "many.txt"
    file.write_text("\n".join(f"text {n}" for n in range(200)), encoding="utf-8")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert len(shell.json("add", "--file", file)["memories"]) == 200


def test_the_environment_names_the_database(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEMORYBANK_DB", "")
    monkeypatch.chdir(tmp_path)
    shell.run("add", "x")
    assert (tmp_path / cli.DEFAULT_DB).exists()


def test_help_names_every_command_and_is_quick() -> None:
    started = time.process_time()
    parser = cli._parser()
    text = parser.format_help()
    assert time.process_time() - started < 0.3
    assert all(f"    {command}" in text for command in COMMANDS)


def test_as_a_module(database: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    program = """
        import runpy, sys
        sys.argv = ["memorybank", *sys.argv[1:]]
        sys.stdout.reconfigure(encoding="ascii")
        runpy.run_module("memorybank", run_name="__main__")
    """
    process = child(program, "add", "the wolf \u2192 门", "--db", database, "--model", "hashing-64")
    assert process.communicate(timeout=60) == ("m1\tactive\tthe wolf \u2192 门\n", ""), "a pipe gets UTF-8"
    process = child(program, "list", "--db", database)
    assert process.communicate(timeout=60)[0].startswith("m1\t")
    assert process.returncode == 0


def test_the_reader_may_leave_early(
    database: Path, child: Callable[..., subprocess.Popen[str]], open_bank: Any
) -> None:
    open_bank().add_many(f"{n} " + "long " * 500 for n in range(300))
    process = child(
        "import sys; from memorybank.cli import main; sys.exit(main(sys.argv[1:]))", "list", "--db", database
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    assert process.communicate(timeout=60) == (None, "")
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("list --db {database} >/dev/full", "No space left"),
        ("add --db {database} --model hashing-64 --file - <&-", "-: standard input is closed"),
    ],
)
def test_a_stream_at_fault_is_said_in_one_line(database: Path, open_bank: Any, call: str, says: str) -> None:
    open_bank().add("x")
    command = f"{sys.executable} -W error -m memorybank {call.format(database=database)}"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)  # noqa: S602
    assert says in ended.stderr
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1), ended.stderr

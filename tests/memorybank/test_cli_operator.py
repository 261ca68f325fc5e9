"""The commands for who runs databases and services."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memorybank import MemoryBank, cli
from memorybank.embedding.testing import HashingEmbedder
from memorybank.host import BankHost

Command = Callable[..., str]


@pytest.fixture
def command(database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Run a command; return what it printed to stdout, or with `code` 1 or 2 to stderr."""
    monkeypatch.setenv("MEMORYBANK_DB", str(database))

    def run(*arguments: object, code: int = 0) -> str:
        try:
            found = cli.main([str(argument) for argument in arguments])
        except SystemExit as ended:
            found = ended.code  # type: ignore[assignment]
        out, errors = capsys.readouterr()
        assert found == code, (out, errors)
        if code:
            assert out == ""
            assert errors.count("\n") == 1
        return errors if code else out

    return run


@pytest.fixture
def filled(database: Path) -> Path:
    with BankHost.open(database, embedder=HashingEmbedder()) as host:
        host.bank("default").add_many(["one", "two", "three"])
        host.bank("acme/a").add("four")
        host.bank("acme/b").add("five")
    return database


def test_banks(command: Command, filled: Path) -> None:
    assert command("banks") == "default\t3\tnone\thashing-64\n"
    assert command("banks", "--namespace", "acme") == "acme/a\t1\tnone\thashing-64\nacme/b\t1\tnone\thashing-64\n"
    page = json.loads(command("banks", "--namespace", "acme", "--limit", 1, "--json"))
    assert [one["name"] for one in page["banks"]] == ["acme/a"]
    rest = json.loads(command("banks", "--namespace", "acme", "--cursor", page["cursor"], "--json"))
    assert [one["name"] for one in rest["banks"]] == ["acme/b"]
    assert rest["cursor"] is None
    assert set(rest["banks"][0]) >= {"name", "model", "dimensions", "counts", "capacity", "revision", "created"}
    assert "limit must be" in command("banks", "--limit", 0, code=2)


def test_capacity(command: Command, filled: Path) -> None:
    assert command("capacity", 2) == "bank default: at most 2 active memories, now 2\n"
    assert json.loads(command("capacity", "none", "--json"))["capacity"] is None
    assert command("capacity", 9, "--bank", "acme/a") == "bank acme/a: at most 9 active memories, now 1\n"
    for wrong in ("0", "many", "-1", "1.5", "9" * 30):
        assert "capacity" in command("capacity", "--", wrong, code=2)
    assert "no bank 'new'" in command("capacity", 5, "--bank", "new", code=2)


def test_keys(command: Command, database: Path) -> None:
    token = command("keys", "create", "--namespace", "acme", "--access", "read", "--label", "a game").strip()
    made = json.loads(command("keys", "create", "--json"))
    assert (made["key"]["namespace"], made["key"]["access"]) == ("", "write")
    listed = command("keys", "list")
    assert [line.split("\t")[1:4] for line in listed.splitlines()] == [["acme", "read", "open"], ["", "write", "open"]]
    assert token.rpartition("_")[2] not in listed
    key_id = token.split("_")[1]
    assert command("keys", "revoke", key_id).split("\t")[3] == "revoked"
    keys = json.loads(command("keys", "list", "--json"))["keys"]
    assert [key["revoked"] is None for key in keys] == [False, True]
    assert "secret" not in json.dumps(keys)
    with BankHost.open(database) as host:
        assert host.keys.authenticate(token) is None
        assert host.keys.authenticate(made["token"]) is not None
    assert "no API key 'nobody'" in command("keys", "revoke", "nobody", code=2)
    assert "namespace must have" in command("keys", "create", "--namespace", "a/b", code=2)
    assert "required: COMMAND" in command("keys", code=2)


def test_copy(command: Command, filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "target.sqlite"
    lines = command("copy", filled, target).splitlines()
    assert [line.split("\t")[:3] for line in lines] == [
        ["acme/a", "1", "copied"],
        ["acme/b", "1", "copied"],
        ["default", "3", "copied"],
    ]
    again = json.loads(command("copy", filled, target, "--json"))
    assert [one["was_there"] for one in again["banks"]] == [True] * 3
    with MemoryBank.open(target, embedder=HashingEmbedder()) as bank:
        bank.add("new")
        bank._store.close()
    assert "not the same one" in command("copy", filled, target, code=2)
    assert "no such file" in command("copy", tmp_path / "nowhere.sqlite", tmp_path / "new.sqlite", code=2)
    assert not (tmp_path / "new.sqlite").exists(), "nothing is made for nothing"
    assert "not allowed with" in command("copy", filled, target, "--bank", "a", "--namespace", "b", code=2)
    with BankHost.open(tmp_path / "odd.sqlite") as odd, odd._store.write_tables() as (_, connection):
        connection.exec_driver_sql(
            "CREATE TRIGGER odd AFTER INSERT ON memories BEGIN UPDATE memories SET pinned = 1; END"
        )
    assert "bank 'acme/a': " in command("copy", filled, tmp_path / "odd.sqlite", code=1)


def test_backup(command: Command, filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "backup.sqlite"
    assert command("backup", file) == f"{file}: 3 banks, 5 memories, {file.stat().st_size} bytes: sound\n"
    assert "is there already" in command("backup", file, code=2)
    made: dict[str, Any] = json.loads(command("backup", file, "--force", "--json"))
    assert (made["banks"], made["memories"]) == (3, 5)
    assert command("backup", tmp_path / "restored.sqlite", "--db", file).endswith("sound\n")
    assert command("check", "--db", tmp_path / "restored.sqlite").endswith("agree\n")
    with BankHost.open(filled) as host, host._store.write_tables() as (_, connection):
        connection.exec_driver_sql("UPDATE memories SET text_hash = '' WHERE bank = 'acme/b'")
    assert "memory 'm1': its text" in command("backup", tmp_path / "unsound.sqlite", code=1)
    assert not (tmp_path / "unsound.sqlite").exists()

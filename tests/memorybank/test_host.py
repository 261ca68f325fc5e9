"""Many banks in one process: one object each, indexes within a limit, listing, deleting, API keys."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memorybank import MemoryBank
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import (
    BankNotFoundError,
    InvalidInputError,
    KeyNotFoundError,
    MemoryNotFoundError,
    PreconditionError,
)
from memorybank.host import BankHost, bank_host

INDEX_OF_TEN = 10 * (256 * 4 + 120)


@pytest.fixture
def host(database: Path) -> Iterator[BankHost]:
    with BankHost.open(database, embedder=HashingEmbedder(256)) as opened:
        yield opened


def fill(host: BankHost, name: str, number: int = 10) -> MemoryBank:
    bank = host.bank(name)
    bank.add_many([f"{name} saw the wolf number {n}" for n in range(number)])
    return bank


def test_a_bank_is_one_object_and_need_not_exist(host: BankHost) -> None:
    assert host.bank("a") is host.bank("a")
    assert host.bank("a") is not host.bank("b")
    assert host.bank("a").search("wolf", ranking="semantic") == []
    assert not host.bank("a").exists()
    assert host.banks().banks == ()
    fill(host, "a", 1)
    assert host.bank("a").exists()


def test_banks_do_not_mix(host: BankHost) -> None:
    fill(host, "a", 15)
    fill(host, "b", 5)
    assert {one.memory.text.split()[0] for one in host.bank("b").search("a saw the wolf", limit=10)} == {"b"}


def test_indexes_stay_within_the_limit_and_the_least_recently_used_go(database: Path) -> None:
    with BankHost.open(database, embedder=HashingEmbedder(256), index_bytes=2 * INDEX_OF_TEN) as host:
        for name in ("a", "b", "c"):
            fill(host, name).search("wolf", ranking="semantic")
        assert (host.stats().indexes.held, host.stats().indexes.bytes, host.stats().indexes.evictions) == (
            2,
            2 * INDEX_OF_TEN,
            1,
        )
        host.bank("b").search("wolf", ranking="semantic")
        assert (host.stats().indexes.hits, host.stats().indexes.misses) == (1, 3)
        assert len(host.bank("a").search("wolf", ranking="semantic")) == 10, "what was evicted is found all the same"
        host.bank("b").search("wolf", ranking="semantic")
        assert (host.stats().indexes.hits, host.stats().indexes.misses, host.stats().indexes.evictions) == (2, 4, 2)


def test_an_index_beyond_the_limit_serves_and_pushes_out_all_others(database: Path) -> None:
    with BankHost.open(database, embedder=HashingEmbedder(256), index_bytes=1) as host:
        fill(host, "a").search("wolf", ranking="semantic")
        assert len(fill(host, "b").search("wolf", ranking="semantic")) == 10
        assert host.stats().indexes.held == 1


def test_the_size_follows_what_is_added(host: BankHost) -> None:
    bank = fill(host, "a")
    bank.search("wolf", ranking="semantic")
    assert host.stats().indexes.bytes == INDEX_OF_TEN
    bank.delete("m1", "m2", "m3", "m4", "m5")
    bank.search("wolf", ranking="semantic")
    assert host.stats().indexes.bytes == INDEX_OF_TEN // 2


def test_the_words_are_a_part_of_the_size_once_somebody_searches_by_them(host: BankHost) -> None:
    bank = fill(host, "a")
    bank.search("wolf", ranking="semantic")
    bank.search("wolf", ranking="hybrid")
    by_words = host.stats().indexes.bytes - INDEX_OF_TEN
    assert by_words > 10 * 200
    bank.delete("m1", "m2", "m3", "m4", "m5")
    bank.search("wolf", ranking="hybrid")
    assert host.stats().indexes.bytes < INDEX_OF_TEN // 2 + by_words


def test_objects_of_banks_are_bounded(host: BankHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bank_host, "MOST_BANKS", 2)
    for name in ("a", "b", "c"):
        fill(host, name).search("wolf", ranking="semantic")
    assert (host.stats().banks, host.stats().indexes.held, host.stats().indexes.bytes) == (2, 2, 2 * INDEX_OF_TEN)
    assert len(host.bank("a").search("wolf", ranking="semantic")) == 10


def test_eviction_while_others_search(database: Path) -> None:
    with BankHost.open(database, embedder=HashingEmbedder(256), index_bytes=2 * INDEX_OF_TEN) as host:
        names = [f"bank{n}" for n in range(5)]
        for name in names:
            fill(host, name)
        failures: list[Any] = []

        def search(seed: int) -> None:
            try:
                for n in range(100):
                    name = names[(seed + n) % 5]
                    found = host.bank(name).search("wolf", limit=10)
                    assert {one.memory.text.split()[0] for one in found} == {name}
                    assert len(found) == 10
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=search, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert host.stats().indexes.bytes <= 2 * INDEX_OF_TEN


def test_banks_are_listed_by_namespace_in_order_and_in_pages(host: BankHost) -> None:
    for name in ("b", "a", "acme/z", "acme/x", "acme/é", "acmeX/y", "acme0", "ac"):
        fill(host, name, 1)
    assert [one.name for one in host.banks().banks] == ["a", "ac", "acme0", "b"]
    assert [one.name for one in host.banks(namespace="acme").banks] == ["acme/x", "acme/z", "acme/é"]
    assert host.banks(namespace="nobody").banks == ()
    names, cursor = [], None
    while True:
        page = host.banks(namespace="acme", limit=2, cursor=cursor)
        names += [one.name for one in page.banks]
        cursor = page.cursor
        if cursor is None:
            break
    assert names == ["acme/x", "acme/z", "acme/é"]


def test_what_is_listed_is_what_a_bank_says_of_itself(host: BankHost) -> None:
    bank = fill(host, "a", 3)
    bank.forget("m1")
    assert host.banks().banks == (bank.info(),)
    assert bank.info().counts == {"active": 2, "forgotten": 1}


def test_deleting_a_bank_deletes_all_of_it_and_its_namesake_starts_anew(host: BankHost, database: Path) -> None:
    bank = fill(host, "a")
    bank.delete("m1")
    fill(host, "b")
    bank.search("wolf", ranking="semantic")
    host.delete_bank("a")
    assert bank.search("wolf", ranking="semantic") == []
    assert [one.name for one in host.banks().banks] == ["b"]
    assert host.stats().indexes.held == 0
    with pytest.raises(BankNotFoundError, match="'a'"):
        host.delete_bank("a")
    fill(host, "a", 1)
    assert [one.memory.id for one in host.bank("a").search("wolf", ranking="semantic")] == ["m1"]
    with sqlite3.connect(database) as raw:
        assert raw.execute("SELECT count(*) FROM deletions WHERE bank = 'a'").fetchone() == (0,)
    raw.close()


def test_a_bank_is_deleted_only_in_the_version_that_was_seen(host: BankHost) -> None:
    seen = fill(host, "a").set_capacity(20).version
    host.bank("a").set_capacity(30)
    with pytest.raises(PreconditionError, match="read it again"):
        host.delete_bank("a", if_match=seen)
    assert host.bank("a").count() == 10
    host.delete_bank("a", if_match=host.bank("a").info().version)
    assert host.bank("a").count() == 0


class TestVersions:
    """What two clients do to one memory: the second to come is told (RFC 9110, If-Match)."""

    def test_every_editable_field_changes_it_and_a_use_does_not(self, host: BankHost) -> None:
        bank = host.bank("a")
        seen = [bank.add("The wolf ran.", id="w").version]
        for change in (
            {"text": "The wolf sleeps."},
            {"actions": ["a1"]},
            {"pinned": True},
            {"metadata": {"k": 1}},
            {"state": "forgotten"},
        ):
            seen.append(bank.edit("w", **change).version)  # type: ignore[arg-type]
        assert len(set(seen)) == 6
        bank.mark_used(["w"])
        assert bank.get("w").version == seen[-1]
        bank.delete("w")
        assert bank.add("The wolf ran.", id="w").version != seen[0], "another memory, made later"

    def test_an_edit_of_what_has_changed_is_refused_and_changes_nothing(self, host: BankHost) -> None:
        bank = host.bank("a")
        first = bank.add("The wolf ran.", id="w").version
        second = bank.edit("w", text="The wolf sleeps.", if_match=first)
        with pytest.raises(PreconditionError, match="'w' of bank 'a'"):
            bank.edit("w", text="The wolf died.", if_match=first)
        with pytest.raises(PreconditionError):
            bank.delete("w", if_match=first)
        assert bank.get("w") == second
        assert bank.edit("w", pinned=True, if_match=["other", second.version]).pinned
        with pytest.raises(MemoryNotFoundError):
            bank.edit("x", pinned=True, if_match=first)
        bank.delete("w", if_match=bank.get("w").version)
        assert bank.count() == 0

    def test_settings_have_a_version_of_their_own(self, host: BankHost) -> None:
        bank = host.bank("a")
        assert bank.info().version == ""
        with pytest.raises(PreconditionError, match="not there"):
            bank.set_capacity(5, if_match="0" * 16)
        made = bank.set_capacity(5, only_new=True)
        with pytest.raises(PreconditionError, match="there already"):
            bank.set_capacity(6, only_new=True)
        bank.add("The wolf ran.")
        assert bank.info().version == made.version, "a memory is no setting"
        assert bank.set_capacity(None, if_match=made.version).capacity is None
        with pytest.raises(PreconditionError, match="by now"):
            bank.set_capacity(7, if_match=made.version)
        assert bank.info().capacity is None

    def test_of_two_at_once_one_wins(self, host: BankHost) -> None:
        bank = host.bank("a")
        seen = bank.add("The wolf ran.", id="w").version
        outcomes: list[str] = []

        def edit(n: int) -> None:
            try:
                outcomes.append(bank.edit("w", text=f"The wolf ran {n}.", if_match=seen).text)
            except PreconditionError:
                outcomes.append("refused")

        threads = [threading.Thread(target=edit, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes.count("refused") == 7
        assert bank.get("w").text in outcomes


class TestKeys:
    def test_a_token_opens_what_it_was_made_for_until_it_is_revoked(self, host: BankHost) -> None:
        assert not host.keys.any()
        key, token = host.keys.create(namespace="acme", access="read", label="the game")
        assert host.keys.any()
        assert host.keys.authenticate(token) == key
        assert (key.namespace, key.access, key.label, key.revoked) == ("acme", "read", "the game", None)
        revoked = host.keys.revoke(key.id)
        assert revoked.revoked is not None
        assert host.keys.authenticate(token) is None
        assert host.keys.revoke(key.id) == revoked, "twice is once"
        assert host.keys.list() == [revoked]
        assert host.keys.any(), "a server whose last key is revoked stays closed"

    def test_another_process_sees_it_at_once(self, host: BankHost, database: Path) -> None:
        with BankHost.open(database, embedder=HashingEmbedder()) as other:
            key, token = host.keys.create(namespace="", access="write")
            assert other.keys.authenticate(token) == key
            other.keys.revoke(key.id)
            assert host.keys.authenticate(token) is None

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda token: "",
            lambda token: token[:-1],
            lambda token: token + "A",
            lambda token: token[:-1] + ("A" if token[-1] != "A" else "B"),
            lambda token: "mb_" + "0" * 12 + token[15:],
            lambda token: token.upper(),
            lambda token: token.replace("mb_", "mb_' OR 1=1 --"),
            lambda token: token + "\n",
        ],
    )
    def test_anything_else_opens_nothing(self, host: BankHost, spoil: Any) -> None:
        _, token = host.keys.create(namespace="", access="write")
        assert host.keys.authenticate(spoil(token)) is None

    def test_the_secret_is_not_in_the_database(self, host: BankHost, database: Path) -> None:
        _, token = host.keys.create(namespace="", access="write")
        secret = token.split("_", 2)[2]
        host.close()
        files = b"".join(file.read_bytes() for file in database.parent.iterdir())
        assert secret.encode() not in files

    @pytest.mark.parametrize(
        ("field", "value"),
        [("namespace", "a/b"), ("namespace", "x" * 65), ("namespace", 5), ("access", "admin"), ("label", "a\nb")],
    )
    def test_a_bad_key_is_refused(self, host: BankHost, field: str, value: Any) -> None:
        given: dict[str, Any] = {"namespace": "a", "access": "read", "label": "x", field: value}
        with pytest.raises(InvalidInputError, match=field):
            host.keys.create(**given)
        assert not host.keys.any()

    def test_revoking_what_is_not_there(self, host: BankHost) -> None:
        with pytest.raises(KeyNotFoundError, match="keys list"):
            host.keys.revoke("nothing")


def test_a_database_of_the_first_version_gets_the_keys(tmp_path: Path) -> None:
    from sqlalchemy import create_engine

    from memorybank.storage.upgrading import upgrade

    file = tmp_path / "old.sqlite"
    engine = create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        upgrade(connection, "0001")
    engine.dispose()
    with BankHost.open(file, embedder=HashingEmbedder()) as host:
        assert host.keys.list() == []
        assert host.bank("a").add("The wolf ran.").id == "m1"


def test_ping(host: BankHost) -> None:
    host.ping()
    host.close()
    with pytest.raises(Exception, match="closed"):
        host.ping()

"""What the clients ask for: places, bodies, batches; and what they refuse before they ask."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from assembler import Action as NewAction
from memorybank import InvalidInputError, MemoryBank, NewMemory
from memorybank.bank.info import LogChange
from memorybank.client import AsyncRemoteBank, ProtocolError, RemoteBank, ServiceError
from memorybank.writing.rhythm import Rhythm
from tests.support.fake_service import MEMORY, FakeService, memories, ok, problem, raw

ROOT = Path(__file__).parents[2]
BANK = {
    "name": "b",
    "model": "hashing-64",
    "dimensions": 64,
    "counts": {"active": 3, "forgotten": 1},
    "capacity": None,
    "revision": 9,
    "created": "2026-01-01T00:00:00Z",
    "version": "0123456789abcdef",
    "rhythm": {"every": 6, "untouched": 6, "summary_every": 15},
}
NAMES = ["a b", "%41", "a?b#c", "...", "a+b", "ümläut 門", "a%2Fb", "a&b=c;d", "~!@$'()*,:"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_one_part_of_the_path(connect: Callable[..., RemoteBank], service: FakeService, name: str) -> None:
    service.will(ok(MEMORY), ok(MEMORY), ok(MEMORY))
    connect(name).get(name)
    connect(name).get("a/b")
    connect(name).get("..")
    target = service.asked[0].target
    assert target.count("/") == 5
    assert "?" not in target
    assert [unquote(part) for part in target.split("/")] == ["", "v1", "banks", name, "memories", name]
    assert service.asked[1].target.endswith("/memories/a%2Fb")
    assert service.asked[2].target.endswith("/memories/%2E%2E")


@pytest.mark.parametrize("end", ["", "/", "//", "/behind/a/proxy", "/behind/a/proxy/"])
def test_the_url_may_have_a_path_and_a_slash_at_its_end(
    connect: Callable[..., RemoteBank], service: FakeService, end: str
) -> None:
    service.will(ok(BANK))
    bank = connect(url=service.url + end)
    assert bank.count("active") == 3
    assert service.asked[0].target == end.rstrip("/") + "/v1/banks/b"
    assert repr(bank).endswith(f"RemoteBank({service.url + end.rstrip('/')!r}, 'b')")


@pytest.mark.parametrize("kind", [RemoteBank, AsyncRemoteBank])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"url": "memories.example.com"}, "must be like https://"),
        ({"url": "ftp://memories.example.com"}, "must be like https://"),
        ({"url": "http://"}, "must be like https://"),
        ({"url": "http://a/?b=c"}, "must be like https://"),
        ({"url": "http://a:b/"}, "cannot be read"),
        ({"url": 3}, "must be a string"),
        ({"url": "https://me:hidden@a"}, "give the key as"),
        ({"key": ""}, "must be a token"),
        ({"key": "hidden\nX: y"}, "must be a token"),
        ({"key": "hïdden"}, "must be a token"),
        ({"bank": ""}, "bank's name"),
        ({"bank": "a/b"}, "no slash"),
        ({"bank": "a" * 129}, "no slash"),
        ({"bank": ".."}, "two dots"),
        ({"timeout": 0}, "timeout must be"),
        ({"deadline": float("nan")}, "deadline must be"),
        ({"timeout": True}, "timeout must be"),
        ({"retries": -1}, "retries must be"),
        ({"retries": 1.5}, "retries must be"),
    ],
)
def test_what_it_is_made_from_is_checked(kind: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says) as caught:
        kind(**{"url": "http://127.0.0.1", **options})
    assert "hidden" not in str(caught.value)


def test_a_call_at_fault_goes_nowhere(remote: RemoteBank, service: FakeService) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "memory: text is empty": lambda: remote.add(" "),
        "memory 1001: text is empty": lambda: remote.add_many(["x"] * 1000 + [""]),
        "edit 2: unknown field": lambda: remote.edit_many([{"id": "m1", "text": "x"}, {"id": "m2", "txt": "y"}]),
        "edit: pinned must be": lambda: remote.edit("m1", pinned=1),  # type: ignore[arg-type]
        "id has 0 characters": lambda: remote.get(""),
        "ids must be a list": lambda: remote.delete_many("m1"),
        "goes with one id": lambda: remote.delete("m1", "m2", if_match="0" * 16),
        "capacity must be": lambda: remote.set_capacity(0),
        "state must be": lambda: remote.list("gone"),  # type: ignore[arg-type]
        "more than 100,000": lambda: remote.put_actions({"id": str(n), "kind": "do"} for n in range(100_001)),
        "is already that of": lambda: remote.put_actions([{"id": "a", "kind": "do"}] * 2),
        "the summary must be": lambda: remote.edit_summary(3),  # type: ignore[arg-type]
        "the new bank's name": lambda: remote.branch("a/b"),
        "upto must be": lambda: remote.branch("c", upto=3),  # type: ignore[arg-type]
        "rhythm must be": lambda: remote.set_rhythm({"every": 6}),  # type: ignore[arg-type]
        "unknown setting": lambda: remote.set_settings({"size": 3}),
        "cursor must be": lambda: remote.page(cursor=3),  # type: ignore[arg-type]
        "limit must be": lambda: remote.search("x", limit=1_001),
        "max_tokens must be": lambda: remote.search("x", max_tokens=-1),
        "min_similarity must be": lambda: remote.search("x", min_similarity=2),
        "ranking must be": lambda: remote.search("x", ranking="odd"),
        "query must be": lambda: remote.search(None),  # type: ignore[arg-type]
    }
    for says, call in calls.items():
        with pytest.raises(InvalidInputError, match=says):
            call()
    assert service.asked == []


def test_nothing_to_do_asks_nothing(remote: RemoteBank, service: FakeService) -> None:
    assert remote.add_many([]) == remote.edit_many([]) == remote.pin() == remote.restore() == remote.search(" ") == []
    assert remote.mark_used([]) == 0
    remote.delete()
    remote.delete_many([])
    assert service.asked == []


def test_many_go_in_batches_and_progress_is_told(remote: RemoteBank, service: FakeService) -> None:
    service.will(memories(1000), memories(1000), memories(1))
    told: list[tuple[int, int]] = []
    assert len(remote.add_many(["x"] * 2001, progress=lambda *numbers: told.append(numbers))) == 2001
    assert [len(one.body["memories"]) for one in service.asked] == [1000, 1000, 1]
    assert told == [(1000, 2001), (2000, 2001), (2001, 2001)]
    service.asked.clear()
    service.will(ok({"used": 990}), ok({"used": 4}))
    assert remote.mark_used(f"m{n}" for n in range(1005)) == 994
    service.will(memories(1000), memories(5))
    assert len(remote.forget(*(f"m{n}" for n in range(1005)))) == 1005
    assert [len(next(iter(one.body.values()))) for one in service.asked] == [1000, 5, 1000, 5]


def test_large_texts_go_in_smaller_batches(remote: RemoteBank, service: FakeService) -> None:
    service.usual = lambda handler: memories(len(service.asked[-1].body["memories"]))(handler)
    number = len(remote.add_many(["x" * 100_000] * 200))
    assert number == 200
    assert 1 < len(service.asked) < 20
    assert max(int(one.headers["content-length"]) for one in service.asked) < 8 * 2**20


def test_only_what_is_given_is_sent(remote: RemoteBank, service: FakeService) -> None:
    service.will(memories(1), memories(1), memories(1), memories(1))
    remote.add("x")
    remote.add_many([NewMemory("y", "i", ("a1",), True, {"k": None})])
    remote.edit("m1", pinned=False, metadata={})
    remote.pin("m1", "m1")
    assert [one.body["memories"] for one in service.asked] == [
        [{"text": "x"}],
        [{"text": "y", "id": "i", "actions": ["a1"], "pinned": True, "metadata": {"k": None}}],
        [{"id": "m1", "pinned": False, "metadata": {}}],
        [{"id": "m1", "pinned": True}],
    ]


def test_what_is_sent_about_the_log(remote: RemoteBank, service: FakeService) -> None:
    change = {"length": 2, "same": 0, "stale": ["m1"], "valid": [], "pending": 0, "more": "tomorrow"}
    service.will(ok(change), ok(change), ok(BANK), raw(201, b"{}", "application/json"))
    assert remote.put_actions([{"id": "a1", "kind": "do", "text": " x\r\n"}]) == LogChange(2, 0, ("m1",), (), 0)
    remote.put_actions([NewAction("a2", "say", "y")], after="a1")
    assert remote.set_settings({"capacity": None, "rhythm": Rhythm(4, 0, 8)}).rhythm == Rhythm()
    remote.branch("c d", upto="a1")
    assert [(one.method, one.target, one.body) for one in service.asked] == [
        ("PUT", "/v1/banks/b/actions", {"actions": [{"id": "a1", "kind": "do", "text": "x"}]}),
        ("PUT", "/v1/banks/b/actions", {"actions": [{"id": "a2", "kind": "say", "text": "y"}], "after": "a1"}),
        ("PUT", "/v1/banks/b", {"capacity": None, "rhythm": {"every": 4, "untouched": 0, "summary_every": 8}}),
        ("POST", "/v1/banks/b/branches", {"name": "c d", "upto": "a1"}),
    ]


def test_conditions_are_headers_that_nothing_breaks_out_of(remote: RemoteBank, service: FakeService) -> None:
    service.usual = problem(412, "precondition-failed")
    for versions in ("0" * 16, ["f" * 16, "0" * 16], 'x"\r\nEvil: y', [], "*"):
        with pytest.raises(Exception, match="said by"):
            remote.edit("m1", pinned=True, if_match=versions)
    sent = [one.headers["if-match"] for one in service.asked]
    assert sent == ['"0000000000000000"', '"0000000000000000", "ffffffffffffffff"', '""', '""', '""']
    with pytest.raises(Exception, match="said by"):
        remote.set_capacity(3, only_new=True)
    assert service.asked[-1].headers["if-none-match"] == "*"
    assert service.asked[-1].body == {"capacity": 3}


def test_lists_are_read_page_by_page(remote: RemoteBank, service: FakeService) -> None:
    pages = [{"memories": [{**MEMORY, "id": f"m{n}"}], "cursor": str(n)} for n in range(3)]
    service.will(*map(ok, pages), ok({"memories": [], "cursor": None}))
    assert [memory.id for memory in remote.list("active")] == ["m0", "m1", "m2"]
    assert [one.target.partition("?")[2] for one in service.asked] == [
        "state=active&limit=1000",
        *(f"state=active&limit=1000&cursor={n}" for n in range(3)),
    ]
    service.will(ok({"memories": [MEMORY] * 1000, "cursor": "1000"}), ok({"memories": [MEMORY] * 500, "cursor": "7"}))
    page = remote.page(limit=1500)
    assert (len(page.memories), page.cursor) == (1500, "7")
    assert service.asked[-1].target.endswith("limit=500&cursor=1000")


@pytest.mark.parametrize("page", [{"memories": [], "cursor": "3"}, {"memories": [MEMORY], "cursor": "1"}])
def test_pages_that_lead_nowhere_end(remote: RemoteBank, service: FakeService, page: dict[str, Any]) -> None:
    service.usual = ok(page)
    with pytest.raises(ProtocolError, match="leads nowhere"):
        remote.list()


def test_a_bank_that_was_never_written_to_is_empty(remote: RemoteBank, service: FakeService) -> None:
    service.usual = problem(404, "bank-not-found")
    assert remote.list() == []
    assert remote.count() == remote.count("forgotten") == remote.mark_used(["m1"]) == 0
    assert (remote.info().name, remote.info().revision, remote.info().model) == ("b", 0, None)
    for call in (lambda: remote.get("m1"), lambda: remote.pin("m1"), lambda: remote.delete("m1")):
        with pytest.raises(LookupError, match="bank 'b' has no memory 'm1'"):
            call()


def test_a_search(remote: RemoteBank, service: FakeService) -> None:
    result = {"memory": {**MEMORY, "ordinal": 7}, "similarity": 0.5, "rank": 1, "parts": {"semantic": 0.5}}
    service.will(ok({"results": [{**result, "retold_by": [{"id": "m2", "cosine": 0.97}]}]}))
    [one] = remote.search(
        "\ud83d gate", limit=3, max_tokens=9, pinned_first=True, explain=True, retellings=True, recent=["a ", " "]
    )
    assert (one.retold_by, one.memory.ordinal) == ((("m2", 0.97),), 7)
    assert (one.memory.text, one.similarity, one.rank, one.parts) == ("The gate opens.", 0.5, 1, {"semantic": 0.5})
    body = service.asked[0].body
    assert body == {
        "query": "\ufffd gate", "limit": 3, "max_tokens": 9, "ranking": "hybrid", "recent": ["a"], "pinned_first": True,
        "explain": True, "retellings": True,
    }  # fmt: skip


def test_a_budget_counted_by_the_caller(remote: RemoteBank, service: FakeService) -> None:
    def result(place: int, text: str) -> dict[str, Any]:
        return {"memory": {**MEMORY, "id": f"m{place}", "text": text}, "similarity": 0.5, "rank": place}

    texts = ["three words here", "one two three four", "single", "two words"]
    service.usual = ok({"results": [result(place, text) for place, text in enumerate(texts, 1)]})
    count = lambda text: len(text.split())  # noqa: E731
    found = remote.search("x", max_tokens=6, count_tokens=count)
    assert [(one.memory.id, one.rank) for one in found] == [("m1", 1), ("m3", 3), ("m4", 4)]
    assert [one.rank for one in remote.search("x", limit=1, max_tokens=6, count_tokens=count)] == [1]
    assert [one.body["limit"] for one in service.asked] == [1000, 1000]
    assert all("max_tokens" not in one.body for one in service.asked)


def test_all_calls_of_a_bank_in_process_are_there_with_the_same_parameters() -> None:
    def signature(function: Any) -> tuple[list[Any], Any]:
        found = inspect.signature(function)
        same = {"list[Recalled]": "Results"}
        return list(found.parameters.values()), same.get(found.return_annotation, found.return_annotation)

    local = {"reembed", "check", "write_due"}
    calls = [
        name
        for name, value in inspect.getmembers(MemoryBank, inspect.isfunction)
        if not name.startswith("_") and name not in local
    ]
    assert {"add", "edit_many", "mark_used", "search", "page", "close", "put_actions", "branch"} <= set(calls)
    for name in calls:
        here = signature(getattr(MemoryBank, name))
        for remote in (RemoteBank, AsyncRemoteBank):
            assert signature(getattr(remote, name)) == here, (remote, name)
        assert inspect.iscoroutinefunction(getattr(AsyncRemoteBank, name))
        assert inspect.getdoc(getattr(RemoteBank, name))


def _python(code: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_importing_is_cheap() -> None:
    heavy = ["httpx", "numpy", "faiss", "sqlalchemy", "pydantic", "fastapi", "ssl", "asyncio"]
    done = _python(f"import memorybank.client, sys; print([n for n in {heavy} if n in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_without_httpx_the_pip_line_is_said() -> None:
    done = _python(
        "import sys; sys.modules['httpx'] = None\n"
        "from memorybank.client import RemoteBank, ServiceError\n"
        "try: RemoteBank('http://127.0.0.1')\n"
        "except ServiceError as error: print(error)"
    )
    assert "pip install 'story-context[client]'" in done.stdout, done.stderr


def test_a_forked_child_has_connections_of_its_own(service: FakeService) -> None:
    service.usual = ok(BANK)
    with RemoteBank(service.url, "b") as bank:
        bank.info()
        kept = bank._transport
        child = os.fork()
        if child == 0:
            os._exit(0 if bank._transport is not kept and bank.info().revision == 9 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert bank._transport is kept
        assert bank.info().revision == 9


def test_errors_say_which_service(service: FakeService) -> None:
    service.will(problem(500, "internal", "odd"))
    with RemoteBank(service.url) as bank, pytest.raises(ServiceError) as caught:
        bank.info()
    assert str(caught.value) == f"the service at {service.url} answered 500: odd (request r7)"

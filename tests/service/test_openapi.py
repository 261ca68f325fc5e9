"""The OpenAPI document: complete, and true of the living server.

Schemathesis reads it, makes calls by it and against it (each keyword of each schema kept and broken once, and some at
random), and compares every answer with it: status, media type, headers and body; what fits must be taken, what does not
must be refused, and nothing may be answered with a 5xx.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memorybank.service.problems import KINDS
from tests.support.service import Server

CONFIG = """
[generation]
deterministic = true
max-examples = {examples}
codec = "latin-1" # beyond it, no pattern of a schema can say what is printable
allow-extra-parameters = false

[checks.positive_data_acceptance]
expected-statuses = ["2xx", 404]

# Which documents are adventures, and which settings go together, no schema says.
[[operations]]
include-path = "/v1/context"
checks.positive_data_acceptance.enabled = false

# A cursor is a string like any other, and opens the one list that it came from.
[[operations]]
include-operation-id-regex = "^list_"
checks.positive_data_acceptance.expected-statuses = ["2xx", 422]

# Which actions there are, and that none is there twice, no schema says.
[[operations]]
include-path-regex = "/(actions|branches)$"
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 409, 422]

# A memory may be called `delete` or `used`, and is then read and changed at these addresses.
[[operations]]
include-path-regex = "memories/(delete|used)$"
checks.allow_header_conformance.enabled = false
"""


@pytest.fixture(scope="module", params=["memorybank", "assembler"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("api") / "m.sqlite", "--rate", 0, program=request.param)
    yield started.wait_until_ready()
    code, log = started.end()
    assert code == 0
    assert not [line for line in log if "unexpected exception" in line]


@pytest.fixture(scope="module")
def document(server: Server) -> dict[str, Any]:
    with server.client() as client:
        found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def test_answers_are_as_described(server: Server, document: dict[str, Any], tmp_path: Path) -> None:
    whole = "/v1/context" in document["paths"]
    with server.client() as client:  # what the examples speak of
        client.post("/v1/banks/story1/memories", json={"memories": [{"text": "One."}, {"text": "Two."}]})
    document = copy.deepcopy(document)
    for _, operation in operations(document):
        # Headers have tests of their own: a deadline of one millisecond is a true 503, and Schemathesis writes no tags.
        operation["parameters"] = [one for one in operation["parameters"] if one["in"] != "header"]
    (tmp_path / "api.json").write_text(json.dumps(document))
    (tmp_path / "schemathesis.toml").write_text(CONFIG.format(examples=2))
    phases = "examples,coverage" if whole else "examples,fuzzing"  # the routes that both have are the same
    command = ["--config-file", "schemathesis.toml", "run", "api.json", "--url", server.url, "--phases", phases]
    ended = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-8_000:] + ended.stderr
    assert f"Tested: {len(list(operations(document)))}" in ended.stdout


def test_everything_is_described(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for name, operation in operations(document):
        assert operation["summary"], name
        assert operation["description"], name
        for parameter in operation["parameters"]:
            assert parameter.get("description"), (name, parameter)
        statuses = operation["responses"]
        assert {"400", "404", "422", "500"} <= set(statuses), name
        if "/v1/" in name:
            assert {"401", "403", "429", "503"} <= set(statuses), name
            assert operation["security"] == [{"key": []}, {}]
            assert "X-Deadline-Ms" in {parameter["name"] for parameter in operation["parameters"]}
        if "requestBody" in operation:
            assert {"413", "415"} <= set(statuses), name
            assert operation["requestBody"]["required"]
        for status, answer in statuses.items():
            assert answer["description"], (name, status)
            assert "X-Request-Id" in answer["headers"], (name, status)
            if int(status) >= 400 and "Readiness" not in json.dumps(answer["content"]):
                [(kind, content)] = answer["content"].items()
                assert kind == "application/problem+json", (name, status)
                assert content["schema"] == {"$ref": "#/components/schemas/ProblemBody"}
                assert set(content["examples"]) <= set(KINDS)
        for status, header in {"401": "WWW-Authenticate", "429": "Retry-After"}.items():
            assert status not in statuses or header in statuses[status]["headers"], (name, status)
    for name in ("get /v1/banks/{bank}", "put /v1/banks/{bank}", "get /v1/banks/{bank}/memories/{id}"):
        assert "ETag" in dict(operations(document))[name]["responses"]["200"]["headers"]


def test_every_field_has_a_description_and_an_example(document: dict[str, Any]) -> None:
    missing = []
    for name, schema in document["components"]["schemas"].items():
        assert schema["description"], name
        for field, described in schema.get("properties", {}).items():
            has_example = "examples" in described or "examples" in schema or "$ref" in json.dumps(described)
            if not described.get("description") or not has_example:
                missing.append(f"{name}.{field}")
    assert missing == []


def test_limits_are_those_of_the_library(document: dict[str, Any]) -> None:
    from memorybank import inputs

    memory = document["components"]["schemas"]["MemoryInput"]["properties"]
    assert memory["text"]["maxLength"] == inputs.MAX_TEXT
    assert memory["actions"]["maxItems"] == inputs.MAX_ACTIONS
    assert memory["actions"]["items"]["maxLength"] == inputs.MAX_ID
    assert document["components"]["schemas"]["NewMemories"]["properties"]["memories"]["maxItems"] == 1_000
    search = document["components"]["schemas"]["SearchRequest"]["properties"]
    assert {name: search["limit"]["anyOf"][0][name] for name in ("minimum", "maximum")} == {
        "minimum": 1,
        "maximum": 1_000,
    }

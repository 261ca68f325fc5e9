"""Settings: from arguments, flags and the environment; and the command's own errors."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from assembler import cli as assembler_cli
from memorybank import cli
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import InvalidInputError
from memorybank.host import BankHost
from memorybank.service import ServiceSettings, command
from memorybank.service.flags import FLAGS, FROM_ENVIRONMENT, OF_CONTEXT, SERVICE_FLAGS
from memorybank.service.writers import writer_of


def test_every_flag_is_a_setting_and_every_setting_a_flag() -> None:
    assert set(FLAGS) | set(FROM_ENVIRONMENT) == set(ServiceSettings.model_fields)
    assert set(SERVICE_FLAGS) | set(OF_CONTEXT) == set(FLAGS)


def test_the_defaults_in_the_help_are_the_real_ones() -> None:
    units = {1 << 30: "1 GiB", 8 << 20: "8 MiB", 32 << 20: "32 MiB", 16 << 10: "16 KiB", False: "false"}
    for name, flag in FLAGS.items():
        default = ServiceSettings.model_fields[name].default
        said = flag.says.rpartition("(")[2].rstrip(")")
        if default in (None, (), {}):
            assert said in ("nowhere", "none"), name
        else:
            known = units.get(default) if isinstance(default, int) and default in units else None
            assert said in (known, str(default), str(default).removesuffix(".0")), name


def test_the_environment_is_read_when_asked_and_arguments_go_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYBANK_PORT", "1234")
    monkeypatch.setenv("MEMORYBANK_TRUSTED_PROXIES", "10.0.0.1, 10.0.0.2")
    monkeypatch.setenv("MEMORYBANK_TOKENIZERS", '{"mine": "/models/tokenizer.json"}')
    monkeypatch.setenv("MEMORYBANK_METRICS_PUBLIC", "true")
    monkeypatch.setenv("MEMORYBANK_DB", "")
    monkeypatch.setenv("MEMORYBANK_CACHE", "/somewhere")
    found = ServiceSettings()
    assert (found.port, found.db, found.metrics_public) == (1234, "memories.sqlite", True)
    assert found.trusted_proxies == ("10.0.0.1", "10.0.0.2")
    assert found.tokenizers == {"mine": "/models/tokenizer.json"}
    assert ServiceSettings(port=5).port == 5
    monkeypatch.setenv("MEMORYBANK_PORT", "70000")
    with pytest.raises(ValidationError):
        ServiceSettings()


def test_the_chat_servers_key_comes_from_the_environment_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYBANK_CHAT_KEY", "sk-secret")
    found = ServiceSettings(writer="chat", chat_url="http://127.0.0.1:1/v1", chat_model="m")
    assert "sk-secret" not in repr(found)
    with BankHost.open(":memory:", embedder=HashingEmbedder()) as host:
        make = writer_of(host, found)
        assert make is not None
        assert make().name == "chat:m" or "m" in make().name
        for missing in ({"chat_url": "http://127.0.0.1:1/v1"}, {"chat_model": "m"}):
            with pytest.raises(InvalidInputError, match="--chat-url and --chat-model"):
                writer_of(host, ServiceSettings(writer="chat", **missing))
        assert writer_of(host, ServiceSettings(writer="none")) is None


def run(main: Any, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the one line that a refused command prints."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as ended:
        code = ended.code
    out, errors = capsys.readouterr()
    assert (code, out, errors.count("\n")) == (2, "", 1), (code, out, errors)
    return str(errors)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--port", "x"], "port: "),
        (["--port", "65536"], "port: "),
        (["--rate", "-1"], "rate: "),
        (["--threads", "0", "--waiting", "-1"], "waiting: "),
        (["--log-level", "loud"], "log_level: "),
        (["--metrics-public", "maybe"], "metrics_public: "),
        (["--host", "no such host"], "--host no such host: there is no such address"),
        (["--host", "192.0.2.1"], "cannot listen there"),
        (["--model", "/nowhere/model"], "there is none of that name"),
        (["--db", "mysql://x"], "not supported"),
        (["--bank", "x"], "unrecognized arguments"),
    ],
)
def test_a_wrong_call_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], says: str
) -> None:
    given = ["serve", "--db", tmp_path / "x.sqlite", "--model", "hashing-64", "--port", 0, *arguments]
    assert says in run(cli.main, capsys, *given)


def test_tokenizers_are_a_flag_of_assembler_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = ["serve", "--db", tmp_path / "x.sqlite", "--model", "hashing-64", "--port", 0]
    assert "unrecognized" in run(cli.main, capsys, *given, "--tokenizers", "{}")
    missing = f'{{"x": "{tmp_path}/none.json"}}'
    assert "there is no file" in run(assembler_cli.main, capsys, *given, "--tokenizers", missing)
    assert "tokenizers: " in run(assembler_cli.main, capsys, *given, "--tokenizers", "{")


def test_other_machines_are_not_served_without_a_key(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = tmp_path / "x.sqlite"
    given = ["serve", "--db", place, "--model", "hashing-64", "--port", 0, "--host", "0.0.0.0"]
    said = run(cli.main, capsys, *given)
    assert f"memorybank keys create --db {place}" in said


def test_with_a_key_they_are(start: Any, tmp_path: Path) -> None:
    place = tmp_path / "x.sqlite"
    with BankHost.open(place) as host:
        _, token = host.keys.create(namespace="", access="read")
    server = start(place, "--host", "0.0.0.0", program="assembler")
    assert server.said["needs_key"] is True
    assert server.said["url"].startswith("http://0.0.0.0:")
    server.url = server.url.replace("0.0.0.0", "127.0.0.1")
    with server.client() as client:
        assert client.get("/v1/banks").status_code == 401
        assert client.get("/v1/banks", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert "/v1/context" in client.get("/openapi.json").json()["paths"]
    code, log = server.end(2)
    assert code == 0
    assert [json.loads(line)["status"] for line in log if '"request"' in line] == [401, 200, 200]
    assert not any("uvicorn.access" in line for line in log)
    assert token not in "".join(log)


def test_without_the_packages_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without(name: str) -> Any:
        return None if name == "pydantic_settings" else find_spec(name)

    monkeypatch.setattr(command, "find_spec", without)
    for main in (cli.main, assembler_cli.main):
        assert "pip install 'story-context[service]'" in run(main, capsys, "serve")


def test_the_command_lines_and_the_packages_load_nothing_of_the_service() -> None:
    heavy = [
        "fastapi",
        "starlette",
        "pydantic",
        "uvicorn",
        "prometheus_client",
        "numpy",
        "sqlalchemy",
        "faiss",
        "torch",
    ]
    code = f"""
import sys
import memorybank.cli, assembler.cli, memorybank.service, assembler.service, memorybank.service.command
try:
    memorybank.cli.main(["serve", "--help"])
except SystemExit:
    pass
print(*[name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == ""
    assert "--deadline-seconds" in ended.stdout
    assert "MEMORYBANK_PORT" in ended.stdout

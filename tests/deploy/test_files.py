"""The files for operators name what is there: settings, extras, programs, each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from memorybank.service.settings import ServiceSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return found


def test_the_container_has_the_extras_the_programs_and_the_files_that_there_are(project: dict[str, Any]) -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    extras = re.findall(r"'\.\[([a-z,]+)\]'", text)
    assert len(extras) == 1
    assert set(extras[0].split(",")) == {"model", "postgresql", "service"} <= set(project["optional-dependencies"])
    for name in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.M):
        assert all((ROOT / part).exists() for part in name.split())
    program = re.search(r'^CMD \["(\w+)"', text, re.M)
    assert program is not None
    assert program[1] in project["scripts"]
    assert "USER 10001" in text
    assert "-c constraints.txt" in text


def test_settings_in_the_environment_are_settings_of_the_service(compose: dict[str, Any]) -> None:
    texts = [file.read_text(encoding="utf-8") for file in DEPLOY.iterdir()] + [(ROOT / "docs/operators.md").read_text()]
    named = {name for text in texts for name in re.findall(r"MEMORYBANK_([A-Z_]+)", text)}
    assert {"DB", "TRUSTED_PROXIES"} <= named
    assert named - {"CACHE"} <= {name.upper() for name in ServiceSettings.model_fields}
    proxy = compose["services"]["nginx"]["networks"]["inside"]["ipv4_address"]
    for service in ("memorybank-1", "memorybank-2"):
        assert compose["services"][service]["environment"]["MEMORYBANK_TRUSTED_PROXIES"] == proxy


def test_nginx_and_compose_name_the_same_processes(compose: dict[str, Any]) -> None:
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    servers = re.findall(r"server ([\w-]+):8080 ", text)
    assert servers == [name for name in compose["services"] if name.startswith("memorybank-")]
    assert compose["services"]["nginx"]["volumes"] == ["./nginx.conf:/etc/nginx/nginx.conf:ro"]
    limits = ServiceSettings()
    assert f"client_max_body_size {limits.body_bytes >> 20}m;" in text
    assert f"client_max_body_size {limits.context_body_bytes >> 20}m;" in text
    timeout = re.search(r"proxy_read_timeout (\d+)s;", text)
    assert timeout is not None
    assert int(timeout[1]) > limits.deadline_seconds

"""Fixtures for all tests. No test writes into the cache folder of the user who runs it."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from tests.support.postgres import PostgresServer

os.environ["MEMORYBANK_CACHE"] = tempfile.mkdtemp(prefix="story-context-tests-")
atexit.register(shutil.rmtree, os.environ["MEMORYBANK_CACHE"], ignore_errors=True)

# Time is measured where a rule speaks of it, and not by the deadline of every example on a busy machine.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def examples() -> Path:
    """The folder of example adventures."""
    return Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture(scope="session")
def campaign() -> Path:
    """A real campaign of 13,795 actions, where the folder of real files stands beside the checkout."""
    path = SHARED / "data" / "adventure_crd3.json"
    if not path.is_file():
        pytest.skip("the real campaign is not part of the project; there is no folder ../shared here")
    return path


@pytest.fixture(scope="session")
def postgres() -> "Iterator[PostgresServer]":
    """A real PostgreSQL server; `postgres.emptied()` is the URL of an empty database on it."""
    from tests.support.postgres import PostgresServer

    server = PostgresServer()
    yield server
    server.close()

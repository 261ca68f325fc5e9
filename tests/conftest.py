"""Fixtures for all tests. No test writes into the cache folder of the user who runs it."""

import os
import tempfile
from pathlib import Path

import pytest

os.environ["MEMORYBANK_CACHE"] = tempfile.mkdtemp(prefix="story-context-tests-")

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

"""Every benchmark that needs no server and no minutes runs in its quick form, where no other program is installed."""

import json
from pathlib import Path

import pytest

from benchmarks import suite, table

NAMES = ["assembly", "assembly_peers", "fidelity", "prefix", "triggers", "search", "multilingual"]
WITH_PEERS = {"assembly_peers", "fidelity"}


@pytest.mark.parametrize("name", NAMES)
def test_a_quick_run_is_complete(name: str, tmp_path: Path) -> None:
    result = suite.run(name, quick=True)
    path = suite.write(result, tmp_path)
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(json.dumps(result))
    assert result["measurements"]
    assert all(one["n"] > 0 and one["min"] <= one["p50"] <= one["p95"] for one in result["measurements"])
    assert result["summary"] in table.markdown([result])
    # The tests have a cache folder of their own, in which there is no peer.
    assert any("python -m benchmarks peers" in note for note in result["notes"]) == (name in WITH_PEERS)


def test_no_random_adventure_is_over_its_limit_or_leaves_room_unused() -> None:
    result = suite.run("fidelity", quick=True)
    found = {(one["name"], one["factors"]["tokenizer"]): one["p50"] for one in result["measurements"]}
    for tokenizer in ("o200k_base", "cl100k_base", "chars/4"):
        assert found["adventures: packed", tokenizer] + found["adventures: refused", tokenizer] == 60
        assert found["adventures: packed", tokenizer] > 40
        assert found["adventures: over their limit", tokenizer] == 0
        assert found["adventures: with room for more", tokenizer] == 0


def test_a_prompt_with_an_anchor_can_be_reused_more_than_one_without() -> None:
    result = suite.run("prefix", quick=True)
    share = {
        (one["factors"]["layout"], one["factors"]["anchor step"]): one["p50"]
        for one in result["measurements"]
        if one["name"] == "share of the prompt reusable, mean"
    }
    assert share["cache_friendly", 512] > share["cache_friendly", "none"]
    assert share["cache_friendly", 512] > share["classic", "none"]

"""What is drawn of each benchmark's result, as data; `plots.py` draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PICTURES", "Panel", "Series", "panels_of", "series_of"]

Series = dict[str, list[dict[str, Any]]]

MOST_PANELS = 4


@dataclass(frozen=True)
class Panel:
    """One set of axes: a line for each value of some factors over another factor, or a bar for each.

    Attributes:
        title: what is seen; the unit is put behind it.
        names: measurements; with several, each is a line by its name.
        across: the factor on the axis to the right; "" draws bars.
        by: factors whose values tell the lines apart.
        where: values that factors must have; what has another is left out.
        log: the logarithmic axes: `xy`, `x`, `y` or "".
    """

    title: str
    names: tuple[str, ...]
    across: str = ""
    by: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    log: str = "xy"


def _stores(title: str, name: str, across: str = "memories", log: str = "xy") -> Panel:
    return Panel(title, (name,), across, ("store",), log=log)


_KILLS = ("killed writers", "acknowledged changes", "lost or wrong afterwards")
_WRITERS, _LONG = ("memories", "query", "writer"), {"max_tokens": 80}
_ENGLISH = {"language": "english"}
_REUSABLE = "share of the prompt reusable, mean"
_USUAL = {"tokenizer": "o200k_base", "context": 8192}

PICTURES: Mapping[str, tuple[Panel, ...]] = {
    "quality": tuple(
        Panel(f"{figure} on {name}", (figure,), "", ("step",), {"set": name, "half": "all"}, log="")
        for name, figure in (("LoCoMo turns", "nDCG@10"), ("CRD3 campaign 2", "recall@10"))
    ),
    "multilingual": tuple(
        Panel(
            f"Recall@5: {asked} to {told}",
            ("recall@5",),
            by=("model", "ranking"),
            where={"asked in": asked, "memories in": told},
            log="",
        )
        for asked, told in (*((one, one) for one in ("English", "Italian", "Turkish")), ("Turkish", "English"))
    ),
    "assembly": (
        Panel("One context of 8,192 tokens, by bank", ("assemble",), "actions", ("bank", "log"), _USUAL),
        Panel("A turn of a growing game, by bank", ("a turn of a growing game",), "actions", ("bank",), _USUAL),
        Panel(
            "One context, by context size, bank off, 1,000 actions",
            ("assemble",),
            "context",
            ("tokenizer",),
            {"bank": "off", "actions": 1000},
        ),
        Panel(
            "Of it, the one exact count, by bank",
            ("of it the one exact count",),
            "actions",
            ("bank",),
            {**_USUAL, "log": "synthetic"},
        ),
    ),
    "assembly_peers": (
        Panel("A turn of a growing game, 8,192 tokens", ("a turn",), "actions", ("program",), {"context": 8192}),
        Panel("The first turn", ("first turn",), "actions", ("program",), {"context": 8192}),
        Panel("A turn, 131,072 tokens", ("a turn",), "actions", ("program",), {"context": 131_072}),
        Panel(
            "The fastest other, as a multiple", ("the fastest peer, times as long as here",), "actions", ("context",)
        ),
    ),
    "fidelity": (
        Panel("Contexts over their limit", ("adventures: over their limit",), by=("tokenizer",), log=""),
        Panel("Contexts with room for more", ("adventures: with room for more",), by=("tokenizer",), log=""),
        Panel("Histories over their limit", ("histories: over their limit",), by=("program", "tokenizer"), log=""),
    ),
    "prefix": (
        Panel("Share of a prompt that can be reused", (_REUSABLE,), by=("layout", "anchor step"), log=""),
        Panel("Tokens to compute on a turn", ("tokens to compute, mean",), by=("layout", "anchor step"), log=""),
    ),
    "triggers": (
        Panel(
            "One new action: the index, and expressions", ("match, warm", "expressions, warm"), "cards", (), _ENGLISH
        ),
        Panel("All actions new", ("match, cold", "expressions, cold"), "cards", (), _ENGLISH),
        Panel("One new action, by language", ("match, warm",), "cards", ("language",)),
        Panel("Building the index", ("build",), "cards", ("language",)),
    ),
    "search": (
        Panel("Search, by number of results", ("search",), "memories", ("limit",)),
        Panel("Writing", ("add one", "delete one", "search after one was added"), "memories"),
        Panel("Opening in a fresh process", ("restart",), "memories", ("step",)),
        Panel("Resident memory", ("resident memory",), "memories", ("when",)),
    ),
    "stores": (
        _stores("Search for 10", "search"),
        _stores("Search after a write", "search after it"),
        _stores("Adding in bulk (more is better)", "add in bulk"),
        _stores("Adding one", "add one"),
        _stores("Deleting one", "delete one"),
        _stores("First answer of a fresh process", "first answer"),
        _stores("Search in a bank that was not searched yet", "search in a bank, cold", "banks"),
        _stores("Search in it again", "search in a bank, warm", "banks"),
        _stores("Recall in one bank (more is better)", "recall@10", log="x"),
        _stores("Resident memory", "resident memory"),
    ),
    "service": (
        Panel("Searches in a second", ("searches in a second",), "clients", ("model",), log="x"),
        Panel("A search", ("a search", "99th percentile of a search", "/healthz meanwhile"), "clients", ("model",)),
    ),
    "soak": (
        Panel("Resident memory", ("resident memory",), "minute", log=""),
        Panel("Open files and threads", ("open files", "threads"), "minute", log=""),
    ),
    "kills": (Panel("Killed writers and what was lost", _KILLS, log=""),),
    "writers": (
        Panel("Likeness to what a person wrote", ("mean cosine with a person's memory",), "", _WRITERS, _LONG, log=""),
        Panel("Found again among the first 10", ("found among the first 10",), "", _WRITERS, _LONG, log=""),
    ),
    "startup": (
        Panel("From start to exit", ("process",), by=("command",), log="x"),
        Panel("Peak of resident memory", ("peak of resident memory",), by=("command",), log="x"),
    ),
}


def panels_of(result: Mapping[str, Any]) -> tuple[Panel, ...]:
    """Return what is drawn of a result: what is said here, or its first measurements with all their factors."""
    known = PICTURES.get(result["benchmark"])
    if known:
        return known
    across = [result["across"]] if isinstance(result["across"], str) else result["across"]
    panels = []
    for name in list(dict.fromkeys(one["name"] for one in result["measurements"]))[:MOST_PANELS]:
        found = [one["factors"] for one in result["measurements"] if one["name"] == name]
        chosen = next((factor for factor in across if len({one.get(factor) for one in found}) > 1), "")
        numbers = all(isinstance(one.get(chosen), int | float) for one in found)
        by = tuple(key for key in dict.fromkeys(key for one in found for key in one) if key != chosen or not numbers)
        panels.append(Panel(name, (name,), chosen if numbers else "", by, log="x" if numbers else ""))
    return tuple(panels)


def series_of(result: Mapping[str, Any], panel: Panel) -> Series:
    """Return the measurements of a panel by the label of their line; empty if there is nothing to draw."""
    found = [
        one
        for one in result["measurements"]
        if one["name"] in panel.names and panel.where.items() <= one["factors"].items()
    ]
    if panel.across:
        found = [one for one in found if isinstance(one["factors"].get(panel.across), int | float)]
    telling = [factor for factor in panel.by if len({str(one["factors"].get(factor)) for one in found}) > 1]
    series: Series = {}
    for one in found:
        series.setdefault(_label(one, panel, telling), []).append(one)
    return series if any(one["n"] for one in found) else {}


def _label(one: Mapping[str, Any], panel: Panel, telling: Sequence[str]) -> str:
    """Return what tells a line from the others: the measurement's name and its factors, numbers with their names."""
    named = [one["name"]] if len(panel.names) > 1 else []
    told = [(factor, one["factors"][factor]) for factor in telling if factor in one["factors"]]
    return ", ".join(
        [*named, *(f"{key} {value:,}" if isinstance(value, int | float) else str(value) for key, value in told)]
    )

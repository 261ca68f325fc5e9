"""Results for people: as plain text for a terminal, as Markdown for a README. Every number comes from a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["for_terminal", "markdown", "update"]

BEGIN, END = "<!-- benchmarks: begin, by `python -m benchmarks table --update FILE` -->", "<!-- benchmarks: end -->"

Row = Sequence[str]


def for_terminal(result: dict[str, Any]) -> str:
    """Return a result as text with aligned columns."""
    lines = [f"{result['benchmark']}: {result['summary']}", *_circumstances(result)]
    for title, rows in _tables(result):
        lines += ["", title, *_aligned(rows)]
    return "\n".join(lines)


def markdown(results: Iterable[dict[str, Any]], pictures: Mapping[str, str] | None = None) -> str:
    """Return results as Markdown sections.

    Args:
        results: as they are stored.
        pictures: the path of a benchmark's picture by its name; one that has none is shown without.
    """
    sections = [_section(result, (pictures or {}).get(result["benchmark"])) for result in results]
    return "\n\n".join(sections) if sections else "No results yet: run `python -m benchmarks all`."


def update(file: Path, text: str) -> None:
    """Put the text between the marks in a file, in place of what stands there."""
    before, begin, rest = file.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{file}: it must contain these two lines:\n{BEGIN}\n{END}")
    file.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def _section(result: dict[str, Any], picture: str | None) -> str:
    name = result["benchmark"]
    parts = [f"### {name}: {result['summary']}", _commands(name, picture)]
    if picture is not None:
        parts.append(f"![{name}: {result['summary']}]({Path(picture).as_posix()})")
    parts.append("  \n".join(_circumstances(result)))
    for title, rows in _tables(result):
        parts += [title, "\n".join(_piped(rows))]
    return "\n\n".join(parts)


def _commands(name: str, picture: str | None) -> str:
    drawn = "" if picture is None else "; `python -m benchmarks plots` draws the picture"
    return f"`python -m benchmarks {name}` measures this{drawn}."


def _circumstances(result: dict[str, Any]) -> list[str]:
    """Return in lines where and how it was measured."""
    machine, load = result["machine"], result["load_average"]
    threads = ", ".join(f"{name}={value}" for name, value in result["threads"].items() if value)
    commit = result["commit"][:12] if result["commit"] else "a tree with uncommitted changes"
    loop = result.get("loop_ms")
    where = [
        result["date"][:10],
        commit,
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB",
        result["python"],
        threads or "threads as the libraries choose",
        f"a loop of a million steps takes {_shown(loop['p50'])} ms" if loop else "",
        f"load average {_load(load['before'])} before, {_load(load['after'])} after",
    ]
    return [
        ("QUICK RUN, its numbers say little. " if result["quick"] else "") + "; ".join(filter(None, where)),
        f"Cached: {result['cached']}",
        *result["notes"],
    ]


def _load(load: list[float] | None) -> str:
    return "unknown" if load is None else f"{load[0]:g}"


def _tables(result: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    tables = [("Targets (the worst median in question)", _targets(result["targets"]))] if result["targets"] else []
    for name in dict.fromkeys(one["name"] for one in result["measurements"]):
        chosen = [one for one in result["measurements"] if one["name"] == name]
        tables.append((_title(name, chosen), _pivot(chosen, _across(chosen, result["across"]))))
    return tables


def _title(name: str, chosen: Sequence[dict[str, Any]]) -> str:
    numbers = sorted({one["n"] for one in chosen if one["n"]}) or [0]
    repeated = f"n = {numbers[0]}" if len(numbers) == 1 else f"n = {numbers[0]} to {numbers[-1]}"
    with_cpu = any("cpu" in one for one in chosen)
    what = "median (p95) / median of processor time" if with_cpu else "median (p95)"
    return f"{name}, {chosen[0]['unit']}: {'value' if numbers == [1] and not with_cpu else what}, {repeated}"


def _across(chosen: Sequence[dict[str, Any]], across: str | Sequence[str]) -> str:
    """Return the factor whose values are the columns: of several, the first that these measurements have."""
    factors = [across] if isinstance(across, str) else across
    return next((factor for factor in factors if any(factor in one["factors"] for one in chosen)), factors[0])


def _targets(targets: Sequence[dict[str, Any]]) -> list[Row]:
    rows: list[Row] = [("target", "limit", "found", "processor time", "met", "where")]
    for one in targets:
        where = ", ".join(f"{key} {_shown(value)}" for key, value in one["worst"].items() if key != "name")
        found = [f"{_shown(one[key])} {one['unit']}" for key in ("limit", "found")]
        found[0] = f"at least {found[0]}" if one.get("least") else found[0]
        found.append("" if one["cpu"] is None else f"{_shown(one['cpu'])} {one['unit']}")
        rows.append((one["target"], *found, _verdict(one), where))
    return rows


def _verdict(target: dict[str, Any]) -> str:
    if target["met"]:
        return "yes"
    if target["cpu"] is None:
        return "NO"
    in_cpu = target["cpu"] >= target["limit"] if target.get("least") else target["cpu"] < target["limit"]
    return "in processor time" if in_cpu else "NO"


def _pivot(measurements: Sequence[dict[str, Any]], across: str) -> list[Row]:
    """Return rows of all factors but `across`, whose values are the columns, or some of them if they are many."""
    columns = _some(list(dict.fromkeys(one["factors"].get(across) for one in measurements)))
    names = [name for name in dict.fromkeys(key for one in measurements for key in one["factors"]) if name != across]
    rows: dict[tuple[str, ...], dict[Any, str]] = {}
    for one in measurements:
        key = tuple(_shown(one["factors"].get(name, "")) for name in names)
        rows.setdefault(key, {})[one["factors"].get(across)] = _cell(one)
    head = ["" if column is None else _shown(column) for column in columns]
    head = [f"{across} {head[0]}".strip(), *head[1:]] if columns != [None] else ["all"]
    body = [(*key, *(cells.get(column, "") for column in columns)) for key, cells in rows.items()]
    return [(*names, *head), *body]


def _some(columns: list[Any], most: int = 11) -> list[Any]:
    """Return at most so many, evenly chosen, the first and the last among them."""
    if len(columns) <= most:
        return columns
    return [columns[round(place * (len(columns) - 1) / (most - 1))] for place in range(most)]


def _cell(one: dict[str, Any]) -> str:
    if not one["n"]:
        return str(one["missing"])
    if one["n"] == 1 and "cpu" not in one:
        return _shown(one["p50"])
    wall = f"{_shown(one['p50'])} ({_shown(one['p95'])})"
    return f"{wall} / {_shown(one['cpu']['p50'])}" if "cpu" in one else wall


def _shown(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _aligned(rows: Sequence[Row]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _piped(rows: Sequence[Row]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]

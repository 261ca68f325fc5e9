"""Pictures of the stored results: one PNG for each benchmark, the same bytes for the same result.

`pictures.py` says what is drawn. Lines and bars are medians, the thin lines above them reach to the 95th percentile.
Needs matplotlib (the extra `bench`); nothing of pyplot, so no global state and no display.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from benchmarks.pictures import Panel, Series, panels_of, series_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLOTS", "draw", "draw_all"]

PLOTS = Path(__file__).resolve().parent / "plots"

WIDTH, PANEL_HEIGHT, DPI = 9.0, 2.9, 100
"""Inches: 900 pixels wide."""
COLOURS = ("#1f4e79", "#c8643c", "#5a8f5a", "#8a6fa8", "#b09030", "#4fa3a5", "#777777", "#a0526d", "#333333")
LONG_NAME = 50
"""Characters of a name that leaves no place for a second panel beside it."""
FIRST_WIDTH, OTHER_WIDTH = 2.2, 1.4
"""The first series is the one in question."""
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#999999",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "figure.facecolor": "white",
}


def draw_all(results: Iterable[dict[str, Any]], folder: Path = PLOTS) -> list[Path]:
    """Draw each result into `folder/NAME.png`; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [draw(result, folder / f"{result['benchmark']}.png") for result in results]


def draw(result: Mapping[str, Any], file: Path) -> Path:
    """Draw one result and return the file.

    Raises:
        SystemExit: matplotlib is not installed; the message says how to install it.
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SystemExit("plots need matplotlib: pip install -c constraints.txt '.[bench]'") from error

    panels = [(panel, found) for panel in panels_of(result) if (found := series_of(result, panel))]
    with matplotlib.rc_context(matplotlib.rcParamsDefault | STYLE):
        side_by_side = 1 if any(len(label) > LONG_NAME for _, found in panels for label in found) else 2
        rows = math.ceil(len(panels) / side_by_side) or 1
        figure = Figure(figsize=(WIDTH, rows * PANEL_HEIGHT + 0.4), dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(
            fill(f"{result['benchmark']}: {result['summary']}", 100), x=0.01, ha="left", fontsize=10.5, weight="bold"
        )
        grid = figure.add_gridspec(rows, side_by_side)
        for place, (panel, found) in enumerate(panels):
            row, column = divmod(place, side_by_side)
            alone = place == len(panels) - 1 and column == 0
            axes = figure.add_subplot(grid[row, :] if alone else grid[row, column])
            _draw_panel(axes, panel, found)
        figure.savefig(file, metadata={"Software": None})
    return file


def _draw_panel(axes: Axes, panel: Panel, series: Series) -> None:
    units = {one["unit"] for found in series.values() for one in found}
    axes.set_title(", ".join([panel.title, *(units if len(units) == 1 else ())]))
    if panel.across:
        _draw_lines(axes, panel, series)
        axes.set_xlabel(panel.across, loc="right", fontsize=8)
    else:
        _draw_bars(axes, panel, series)
    axes.tick_params(length=2)
    axes.set_axisbelow(True)


def _draw_lines(axes: Axes, panel: Panel, series: Series) -> None:
    ends = []
    for place, (label, found) in enumerate(series.items()):
        done = [one for one in found if one["n"]]
        if not done:
            continue
        colour = COLOURS[place % len(COLOURS)]
        xs, ys = [one["factors"][panel.across] for one in done], [one["p50"] for one in done]
        width = FIRST_WIDTH if place == 0 else OTHER_WIDTH
        axes.plot(xs, ys, color=colour, linewidth=width, marker="o" if len(xs) < 20 else "", markersize=3)
        if len(xs) < 20:
            axes.vlines(xs, ys, [one["p95"] for one in done], color=colour, linewidth=0.7, alpha=0.5)
        if len(done) < len(found):
            axes.plot(xs[-1:], ys[-1:], color=colour, marker="x", markersize=7)
            label += " × then unfinished"
        ends.append((xs[-1], ys[-1], label, colour))
    _scale(axes, panel, sorted({one["factors"][panel.across] for found in series.values() for one in found}))
    _name_lines(axes, ends)


def _scale(axes: Axes, panel: Panel, xs: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    if "x" in panel.log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        if len(xs) < 8:
            axes.set_xticks([x for place, x in enumerate(xs) if not place or x > 1.5 * xs[place - 1]])
    if "y" in panel.log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 200 else (1,)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
        axes.set_ylim(top=axes.get_ylim()[1] * 1.08)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))


def _name_lines(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write each line's name to the right of the axes, at the height of its end, and none over another."""
    if len(ends) < 2:
        return
    heights = [
        (axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1], place)
        for place, (x, y, _, _) in enumerate(ends)
    ]
    step = 0.085
    free = math.inf
    places = {}
    for height, place in sorted(heights, reverse=True):
        free = min(height, free - step)
        places[place] = free
    lift = max(0.0, -min(places.values()))
    for place, (_, _, label, colour) in enumerate(ends):
        axes.annotate(
            label, (1.015, places[place] + lift), xycoords="axes fraction", color=colour, va="center", fontsize=8
        )


def _draw_bars(axes: Axes, panel: Panel, series: Series) -> None:
    from matplotlib.ticker import NullLocator

    shown = [(label, one) for label, found in series.items() for one in found if one["n"]]
    labels, values = [label for label, _ in shown], [one["p50"] for _, one in shown]
    places = list(range(len(shown)))
    left, right = (min(values) / 1.5, max(values) * 2.2) if "x" in panel.log else (0, max(values) * 1.2 or 1)
    if "x" in panel.log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(left, right)
    axes.hlines(places, left, values, color="#c9d6e3", linewidth=2)
    axes.plot(values, places, "o", color=COLOURS[0], markersize=5)
    axes.set_yticks(places, labels)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    for place, value in zip(places, values, strict=True):
        axes.annotate(_short(value), (value, place), (6, 0), textcoords="offset points", va="center", fontsize=8)
    axes.tick_params(axis="x", labelbottom=False)


def _short(value: float) -> str:
    """Return a number for an axis.

    >>> [_short(value) for value in (0.5, 20, 1500, 100_000, 2_000_000)]
    ['0.5', '20', '1.5k', '100k', '2M']
    """
    for limit, letter in ((1_000_000, "M"), (1_000, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g}"

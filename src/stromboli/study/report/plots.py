"""Plots as inline SVG, drawn by matplotlib without a display; equal data give equal bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any, Final

from stromboli.study.report.statistics import Interval
from stromboli.study.tables import needed

COLOURS: Final = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c")
STYLE: Final = {
    "svg.fonttype": "none", "svg.hashsalt": "stromboli", "font.family": "sans-serif", "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e6e6e6",
    "axes.axisbelow": True, "figure.constrained_layout.use": True,
}  # fmt: skip
HOUR: Final = 3600.0
DAY: Final = 86_400.0


def colour(number: int) -> str:
    """The colour of a configuration, by its place in the sweep."""
    return COLOURS[number % len(COLOURS)]


def bars(title: str, unit: str, loads: Sequence[float], rows: Mapping[str, Sequence[Interval]]) -> str:
    """A group of bars for each load, a bar for each configuration, with what 95 % confidence leaves open."""
    figure, axes = _figure(4.6, 2.9)
    width = 0.8 / max(len(rows), 1)
    for number, (name, intervals) in enumerate(rows.items()):
        places = [place + (number - (len(rows) - 1) / 2) * width for place in range(len(loads))]
        axes.bar(
            places, [one.mean for one in intervals], width * 0.92, yerr=[one.half or 0.0 for one in intervals],
            color=colour(number), label=name, capsize=2, error_kw={"elinewidth": 0.9, "ecolor": "#333"},
        )  # fmt: skip
    axes.set_xticks(range(len(loads)), [f"load {load:g}" for load in loads])
    axes.grid(axis="x", visible=False)
    axes.set_ylim(0, 100 if unit == "%" else None)
    return _svg(figure, axes, title, unit)


def distribution(title: str, rows: Mapping[str, Sequence[float]]) -> str:
    """:func:`waits` as SVG."""
    figure = waits(rows)
    return _svg(figure, figure.axes[0], title, "% of jobs")


def waits(rows: Mapping[str, Sequence[float]]) -> Any:
    """Which part of all jobs waited at most so long, a line for each configuration; seconds on a logarithmic scale.

    A matplotlib Figure.  Raises StudyError without matplotlib.
    """
    figure, axes = _figure(4.6, 2.9)
    for number, (name, values) in enumerate(rows.items()):
        found = sorted(max(value, 1.0) for value in values)
        parts = [100 * (place + 1) / len(found) for place in range(len(found))]
        kept = slice(None, None, max(len(found) // 400, 1))
        axes.step(
            [*found[kept], *found[-1:]], [*parts[kept], *parts[-1:]], where="post", color=colour(number), label=name
        )
    axes.set_xscale("log")
    axes.set_xlabel("seconds waited, at most")
    axes.set_ylim(0, 101)
    axes.set_ylabel("% of jobs")
    return figure


def lines(title: str, unit: str, rows: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> str:
    """A line for each configuration over the time of the trace."""
    figure, axes = _figure(4.6, 2.9)
    last = max((times[-1] for times, _ in rows.values() if times), default=0.0)
    scale, name_of = (DAY, "days") if last > 3 * DAY else (HOUR, "hours") if last > 3 * HOUR else (1.0, "seconds")
    for number, (name, (times, values)) in enumerate(rows.items()):
        axes.step(
            [time / scale for time in times], values, where="post", color=colour(number), label=name, linewidth=1.1
        )
    axes.set_xlabel(f"{name_of} from the beginning")
    axes.set_ylim(bottom=0)
    return _svg(figure, axes, title, unit)


def _figure(width: float, height: float) -> tuple[Any, Any]:
    matplotlib = needed("matplotlib")
    matplotlib.rcParams.update(STYLE)
    figure = needed("matplotlib.figure").Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def _svg(figure: Any, axes: Any, title: str, unit: str) -> str:
    """The figure as an SVG element: no header, and nothing that changes from run to run."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.set_ylabel(unit)
    handles, labels = axes.get_legend_handles_labels()
    if len(handles) > 1:
        figure.legend(handles, labels, loc="outside lower left", ncols=4, frameon=False, fontsize=8)
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    ids = f"{abs(hash_of(title)):x}"
    svg = re.sub(r'id="([^"]+)"', rf'id="{ids}-\g<1>"', svg)
    return re.sub(r'(href="#|url\(#)([^")]+)', rf"\g<1>{ids}-\g<2>", svg)


def hash_of(text: str) -> int:
    """A number of a text, the same in every process."""
    number = 0
    for letter in text:
        number = (number * 131 + ord(letter)) % 2**31
    return number

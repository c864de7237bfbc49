"""A chart of pairs, written by hand as SVG: one thin line a history, from what it was to what it is, and the median."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

WIDTH, HEIGHT, GAP, LEFT, TOP = 180, 150, 46, 60, 46
THIN: Final = 'stroke="#7a8a99" stroke-opacity="0.45" stroke-width="1"'
BOLD: Final = 'stroke="#b3261e" stroke-width="3"'
TEXT: Final = 'font-family="sans-serif" fill="#333"'


class Panel(NamedTuple):
    """One drawing: a heading, what its scale counts, and a pair of figures for each history."""

    title: str
    unit: str
    pairs: Sequence[tuple[float, float]]


def drawn(rows: Sequence[Sequence[Panel]]) -> str:
    """Rows of panels, as one SVG image."""
    width = LEFT + max(len(row) for row in rows) * (WIDTH + GAP)
    height = len(rows) * (HEIGHT + TOP + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    ]
    parts.append('<rect width="100%" height="100%" fill="white"/>')
    for down, row in enumerate(rows):
        for across, panel in enumerate(row):
            x, y = LEFT + across * (WIDTH + GAP), TOP + down * (HEIGHT + TOP + GAP)
            parts.append(f'<g transform="translate({x},{y})">{_panel(panel)}</g>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel) -> str:
    top = _round_up(max(max(pair) for pair in panel.pairs))
    lines = [_line(pair, top, THIN) for pair in panel.pairs]
    middle = median(off for off, _ in panel.pairs), median(on for _, on in panel.pairs)
    words = [
        _text(0, -24, panel.title, "start", 13),
        _text(0, -8, panel.unit, "start", 11),
        _text(0, HEIGHT + 16, "not kept", "start", 11),
        _text(WIDTH, HEIGHT + 16, "kept", "end", 11),
        *(_text(-6, HEIGHT - HEIGHT * part + 4, f"{top * part:g}", "end", 10) for part in (0, 0.5, 1)),
    ]
    frame = f'<path d="M0 0V{HEIGHT}H{WIDTH}V0" fill="none" stroke="#bbb"/>'
    return "".join([frame, *lines, _line(middle, top, BOLD), *words])


def _line(pair: tuple[float, float], top: float, style: str) -> str:
    off, on = (HEIGHT - HEIGHT * figure / top for figure in pair)
    return f'<line x1="0" y1="{off:.1f}" x2="{WIDTH}" y2="{on:.1f}" {style}/>'


def _text(x: float, y: float, words: str, anchor: str, size: int) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" {TEXT}>{words}</text>'


def _round_up(value: float) -> float:
    """The next of 10, 20, 40, 50, 100, 200 ... that is not smaller."""
    step = 10.0
    while True:
        for part in (1, 2, 4, 5):
            if step * part >= value:
                return step * part
        step *= 10

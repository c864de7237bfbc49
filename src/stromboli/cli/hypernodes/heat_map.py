"""A picture of network domains: a box for each of the closest ones, a cell for each node, darker the fuller it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from stromboli.sim.domains import NodeView, TopologyView

CELL: Final = 14
GAP: Final = 3
ACROSS: Final = 16
"""Cells in a row of a box."""
BOXES: Final = 4
"""Boxes in a row of the picture."""
TITLE: Final = 20
MARGIN: Final = 16
WIDTH: Final = ACROSS * (CELL + GAP) + GAP
FREE, TAKEN = (232, 240, 247), (8, 69, 148)
"""Colours of a node that is empty and of one that is full."""


def heat_map(view: TopologyView) -> str:
    """The picture as an SVG document; each cell's tooltip names its node and how full it is."""
    boxes: dict[str, list[NodeView]] = {}
    for node in view.nodes:
        boxes.setdefault(node.domain, []).append(node)
    ordered = [name for name in (domain.name for domain in view.domains) if name in boxes]
    titles = _titles(view)
    parts: list[str] = []
    top = MARGIN + TITLE
    for first in range(0, len(boxes), BOXES):
        row = [*ordered, *(name for name in boxes if name not in titles)][first : first + BOXES]
        for place, name in enumerate(row):
            left = MARGIN + place * (WIDTH + MARGIN)
            parts += _box(titles.get(name, name), boxes[name], left, top)
        top += max(_height(len(boxes[name])) for name in row) + MARGIN
    width = MARGIN + min(BOXES, max(len(boxes), 1)) * (WIDTH + MARGIN)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 {width} {top}">'
    style = "<style>text { font: 12px sans-serif; fill: #222 }</style>"
    ground = f'<rect width="{width}" height="{top}" fill="white"/>'
    legend = f'<text x="{MARGIN}" y="{MARGIN + 4}">{escape(_legend(view))}</text>'
    return "\n".join([head, style, ground, legend, *parts, "</svg>"])


def _titles(view: TopologyView) -> dict[str, str]:
    """The path of each domain from the top."""
    paths: dict[str, str] = {}
    for domain in view.domains:
        above = paths.get(domain.parent)
        paths[domain.name] = f"{above} › {domain.name}" if above else domain.name
    return paths


def _legend(view: TopologyView) -> str:
    empty = sum(node.used == 0 for node in view.nodes)
    return f"{len(view.nodes)} nodes, {empty} empty; the darker a cell, the more of its scarcest resource is in use"


def _height(nodes: int) -> int:
    return TITLE + -(-nodes // ACROSS) * (CELL + GAP) + GAP


def _box(title: str, nodes: list[NodeView], left: int, top: int) -> Iterator[str]:
    height = _height(len(nodes))
    yield f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{height}" fill="none" stroke="#999"/>'
    yield f'<text x="{left + GAP}" y="{top + 14}">{escape(_short(title))}<title>{escape(title)}</title></text>'
    for place, node in enumerate(nodes):
        x = left + GAP + place % ACROSS * (CELL + GAP)
        y = top + TITLE + place // ACROSS * (CELL + GAP)
        told = escape(f"{node.name}: {node.used:.0%} in use")
        colour = quoteattr(_colour(node.used))
        yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill={colour}><title>{told}</title></rect>'


def _short(title: str, most: int = 38) -> str:
    return title if len(title) <= most else "…" + title[1 - most :]


def _colour(used: float) -> str:
    red, green, blue = (round(free + (taken - free) * used) for free, taken in zip(FREE, TAKEN, strict=True))
    return f"rgb({red},{green},{blue})"

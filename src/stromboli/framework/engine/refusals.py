"""Why no node takes a task: the reasons of all nodes, counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stromboli.framework.engine.classes import TaskClass
from stromboli.framework.engine.fits import Fits
from stromboli.framework.engine.rows import Bools
from stromboli.framework.extension.reason import Reason
from stromboli.model.table import Ints, NodeRows

INSUFFICIENT = Reason("Insufficient {resource}")
"""A node lacks room; the first resource that falls short is named."""


def refusals(cls: TaskClass, within: Bools | None, *, room: bool) -> Fits:
    """What the nodes (those of ``within``, or all) say to a task of ``cls`` that fits nowhere.

    ``room`` says whether too little room, future room included, is a reason; backfill does not look at it.
    """
    key = (len(cls.table.journal), None if within is None else within.tobytes(), room)
    if cls.refused is not None and cls.refused[0] == key:
        return cls.refused[1]
    nodes = cls.table.view()
    asked = np.ones(len(nodes), dtype=bool) if within is None else within.copy()
    fits = Fits(nodes=int(asked.sum()))
    if room:
        asked = _count_short(cls, nodes, asked, fits)
    _count_refused(cls, nodes, asked, fits)
    cls.refused = (key, fits)
    return fits


def _count_short(cls: TaskClass, nodes: NodeRows, asked: Bools, fits: Fits) -> Bools:
    """Count the nodes without room by the first resource that they lack; returns which of ``asked`` have room."""
    axes = cls.table.axes
    names = axes.names_of(cls.need, cls.task.request)
    columns = [axes.known(name) for name in names]
    counts, left = first_short(cls.request[columns].tolist(), nodes.future[columns], asked)
    fits.counts.update(insufficient(names, counts))
    return left


def first_short(amounts: Sequence[int], future: Ints, asked: Bools) -> tuple[list[int], Bools]:
    """How many of the nodes ``asked`` lack each of ``amounts`` first, in their order, and which of them lack none.

    ``future`` is what each node will have of each, shape (amounts, nodes).
    """
    left, counts = asked, []
    for amount, there in zip(amounts, future, strict=True):
        enough = left & (there >= amount)
        counts.append(int(left.sum()) - int(enough.sum()))
        left = enough
    return counts, left


def insufficient(names: Sequence[str], counts: Sequence[int]) -> dict[Reason, int]:
    """The reasons of the nodes that :func:`first_short` has counted; ``names`` are those of the amounts."""
    return {INSUFFICIENT.of(resource=name): count for name, count in zip(names, counts, strict=True) if count}


def _count_refused(cls: TaskClass, nodes: NodeRows, asked: Bools, fits: Fits) -> None:
    """Count the predicates' reasons: a plugin's hooks in order until one aborts, later plugins only for the rest."""
    for plugin in cls.hooks.fits:
        going, refused = asked.copy(), np.zeros(len(nodes), dtype=bool)
        for fit in plugin:
            masks = fit.masks(cls.task, nodes)
            if masks is None:
                continue
            masks = np.where(going, masks, np.uint64(0))
            for bit, reason in enumerate(fit.reasons):
                if count := int(((masks >> np.uint64(bit)) & np.uint64(1)).sum()):
                    fits.counts[reason] = fits.counts.get(reason, 0) + count
            refused |= masks != 0
            going &= (masks & np.uint64(fit.abort_bits)) == 0
        asked = asked & ~refused

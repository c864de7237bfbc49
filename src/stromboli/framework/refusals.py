"""Why no node takes a task: the reasons of all nodes, counted."""

from __future__ import annotations

import numpy as np

from stromboli.framework.classes import TaskClass
from stromboli.framework.fits import Fits
from stromboli.framework.reason import Reason
from stromboli.framework.rows import Bools
from stromboli.model.table import NodeRows

INSUFFICIENT = Reason("Insufficient {resource}")
"""A node lacks room; the first resource that falls short is named."""


def refusals(cls: TaskClass, within: Bools | None = None, *, room: bool = True) -> Fits:
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
        asked &= ~_count_short(cls, nodes, asked, fits)
    _count_refused(cls, nodes, asked, fits)
    cls.refused = (key, fits)
    return fits


def _count_short(cls: TaskClass, nodes: NodeRows, asked: Bools, fits: Fits) -> Bools:
    """Count the nodes without room by the first resource that they lack; returns which they are."""
    columns = [column for column in cls.table.axes.order if column in cls.need]
    short = cls.request[columns][:, None] > nodes.future[columns]
    lacking: Bools = np.any(short, axis=0)
    first, counts = np.unique(short[:, lacking & asked].argmax(axis=0), return_counts=True)
    for position, count in zip(first.tolist(), counts.tolist(), strict=True):
        name = cls.table.axes.names[columns[position]]
        fits.counts[INSUFFICIENT.of(resource=name)] = count
    return lacking


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

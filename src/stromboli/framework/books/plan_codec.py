"""Plans as bytes and back, in the same form as snapshots (:mod:`stromboli.model.codec`)."""

from __future__ import annotations

from typing import Final

from stromboli.framework.books.plan import Plan
from stromboli.model.values.format import Format

PLAN: Final = Format("plan", 3, Plan)
"""How plans are written."""


def encode_plan(plan: Plan) -> bytes:
    """``plan`` as bytes.  Raises :class:`~stromboli.errors.SnapshotError` for what cannot be written."""
    return PLAN.pack(plan)


def decode_plan(data: bytes) -> Plan:
    """The plan that :func:`encode_plan` wrote.

    Raises :class:`~stromboli.errors.SnapshotError` for another kind or version of record, and for damage.
    """
    return PLAN.unpack(data)

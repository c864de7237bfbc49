"""Loads of nodes out of a file, for plans, simulations and tests: what a monitoring system would have measured.

::

    n1: {cpu: 81.5, memory: 40}                    # percent, measured just now
    n2: {cpu: 12, memory: 30, ageSeconds: 600}     # ten minutes ago: too old to count
"""

from __future__ import annotations

from stromboli.cluster.files.scenario import NodeUsage
from stromboli.cluster.files.yaml_values import load
from stromboli.errors import ManifestError
from stromboli.model import usage
from stromboli.model.spec import without_nulls
from stromboli.model.values.reading import convert, unreadable


class MeasuredNode(NodeUsage, frozen=True):
    """One node of the file; without an age the sample is new."""

    age_seconds: float | None = 0.0


def usage_of(text: str | bytes, now: float, file: str = "") -> dict[str, usage.NodeUsage]:
    """The samples that ``text`` (YAML or JSON) states, by node; ``now`` is what ages are counted from.

    Raises :class:`~stromboli.errors.ManifestError` naming ``file`` and field.
    """
    try:
        stated = without_nulls(load(text if isinstance(text, str) else text.decode())) or {}
        nodes = convert(stated, dict[str, MeasuredNode])
    except ManifestError as error:
        raise ManifestError(error.problem, file=file, path=error.path) from error
    except UnicodeDecodeError as error:
        raise ManifestError(unreadable(error), file=file) from error
    return {name: node.at(now) for name, node in nodes.items()}

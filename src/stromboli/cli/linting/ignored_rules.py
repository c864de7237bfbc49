"""The rules for what objects say in vain, as one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stromboli.cli.linting.cluster_rules import Cluster
from stromboli.cli.linting.findings import Rule, Spot


def _unknown_field(cluster: Cluster) -> Iterator[Spot]:
    for error in cluster.loading.ignored:
        where = f"{error.file}, document {error.document}" if error.document else error.file
        yield Spot(error.problem, 0, error.object, error.path, where)


def _kind_not_read(cluster: Cluster) -> Iterator[Spot]:
    yield from (Spot(text, 0, "manifests") for text in cluster.loading.kinds_ignored())


def _unfulfilled(cluster: Cluster) -> Iterator[Spot]:
    for found in cluster.loading.unfulfilled(cluster.heeded):
        yield Spot(found.text, 0, found.object, found.path, severity="note" if found.minor else None)


IGNORED_RULES: Final[tuple[Rule[Cluster], ...]] = (
    Rule("unknown-field", "warning", _unknown_field,
         "What is written there has no effect, and a cluster that checks fields refuses the object.",
         "Correct the field's name, or take it out."),
    Rule("asked-in-vain", "warning", _unfulfilled,
         "Nothing here does what the object asks for.",
         "Take it out, or do not rely on it."),
    Rule("kind-not-read", "note", _kind_not_read,
         "Objects of this kind change nothing in what is checked and planned.",
         "List what they make, such as their pods, next to them."),
)  # fmt: skip
"""All rules for what is ignored."""

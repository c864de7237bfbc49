"""Refusals: for one task, how many nodes said no and why.  Texts are made only when they are read."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.framework.extension.reason import Reason, StatusCode

ALL_NODES_UNAVAILABLE = "all nodes are unavailable"
"""The text where no better reason is known."""


class Fits:
    """Why a task found no node.

    ``counts`` says how many nodes gave each reason, ``nodes`` how many were asked; ``error`` replaces the usual
    beginning of the text; ``hyper_node`` names the hypernode that was searched (empty: all nodes).
    """

    __slots__ = ("counts", "error", "hyper_node", "nodes", "unresolvable")

    def __init__(
        self, counts: Mapping[Reason, int] | None = None, nodes: int = 0, error: str = "", hyper_node: str = ""
    ) -> None:
        self.counts: dict[Reason, int] = dict(counts or {})
        self.nodes = nodes
        self.error = error
        self.hyper_node = hyper_node
        self.unresolvable: object = None

    @property
    def text(self) -> str:
        """The sentence that users know: ``0/3 nodes are unavailable: 1 Insufficient cpu, 2 node(s) ….``"""
        base = self.error or f"0/{self.nodes} nodes are unavailable"
        if not self.nodes:
            return base
        by_text: dict[str, int] = {}
        for reason, count in self.counts.items():
            if reason.text:
                by_text[reason.text] = by_text.get(reason.text, 0) + count
        histogram = ", ".join(sorted(f"{count} {text}" for text, count in by_text.items()))
        where = f"In hyperNode {self.hyper_node}: " if self.hyper_node else ""
        return f"{where}{base}: {histogram}."

    @classmethod
    def everywhere(cls, reason: Reason, nodes: int) -> Fits:
        """The same reason on all nodes."""
        return cls({reason: nodes}, nodes)


ABORTING = frozenset({StatusCode.ERROR, StatusCode.UNSCHEDULABLE_AND_UNRESOLVABLE, StatusCode.WAIT, StatusCode.SKIP})
"""Codes after which a plugin's further filters are not asked."""

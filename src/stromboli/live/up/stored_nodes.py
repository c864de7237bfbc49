"""Simulated nodes that the embedded cluster has kept from an earlier start.

They get kubelets again where a start names no nodes of its own; those that it leaves out are not ready from its
beginning, so that no pod is placed where nothing runs it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from stromboli.cluster.body import Body, meta
from stromboli.server.api import Api
from stromboli.server.controllers.outages import silenced, tainted
from stromboli.server.kubelet.shapes import is_simulated

_NODES: Final = ("", "nodes")
_MOST_NAMES: Final = 10
_LOG: Final = logging.getLogger(__name__)


def stored_nodes(api: Api) -> list[Body]:
    """The simulated nodes that are there, as kubelets register them."""
    return [_registered(node) for node in _simulated(api)]


def _simulated(api: Api) -> Iterator[Body]:
    return (entry.body for entry in api.store.of(_NODES).sorted() if is_simulated(entry.body))


def _registered(node: Body) -> Body:
    known = meta(node)
    metadata = {key: known.get(key) or {} for key in ("labels", "annotations")}
    return {**node, "metadata": {"name": known["name"], **metadata}}


def silence_all_but(nodes: Iterable[Body], api: Api) -> None:
    """Have stored simulated nodes that are not among ``nodes`` unreachable at once, and say which they are."""
    served, now = {meta(node)["name"] for node in nodes}, api.clock()
    left = [node for node in _simulated(api) if meta(node)["name"] not in served]
    for node in left:
        api.store.put(_NODES, tainted(silenced(node, now), now))
    if left:
        names = [str(meta(node)["name"]) for node in left]
        shown = ", ".join(names[:_MOST_NAMES]) + (
            f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else ""
        )
        _LOG.warning(
            "nodes of an earlier start that this one does not name have no kubelet and are not ready: %s "
            "(without --nodes all stored nodes run; kubectl delete node removes them)",
            shown,
        )

"""References between objects that cannot hold: names that do not exist, and cycles of parents.

No object is dropped for it; each consumer of the objects treats such a queue or HyperNode by its own rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from stromboli.api.scheduling import POD_GROUP_COMPLETED
from stromboli.api.topology import HYPER_NODE
from stromboli.cluster.events import Event
from stromboli.cluster.kinds import HyperNode, Pod, PodGroup, Queue
from stromboli.errors import ManifestError
from stromboli.model.names import DEFAULT_QUEUE, GROUP_NAME, POD_FAILED, POD_SUCCEEDED, ROOT_QUEUE

_BUILT_IN: Final = (
    ("Queue", ROOT_QUEUE),
    ("Queue", DEFAULT_QUEUE),
    ("PriorityClass", "system-node-critical"),
    ("PriorityClass", "system-cluster-critical"),
)
"""Names that exist without an object."""
_FINISHED: Final = (POD_SUCCEEDED, POD_FAILED, POD_GROUP_COMPLETED)
"""Phases in which a pod or PodGroup needs nothing any more, so that what it names may be gone."""
_GROUP_PATH: Final = f"metadata.annotations.{GROUP_NAME}"


class References:
    """Collects references between objects: pass every event to :meth:`see`, then call :meth:`problems`."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], None] = dict.fromkeys(_BUILT_IN)
        self._named: dict[tuple[str, str], tuple[str, str]] = {}
        self._parents: dict[str, str] = {}
        self._holders: dict[str, list[str]] = {}

    def see(self, event: Event) -> None:
        """Take note of an object that is there and of the names it mentions."""
        found, meta = event.object, event.object.metadata
        name = f"{meta.namespace}/{meta.name}".removeprefix("/")
        self._known[event.kind, name] = None
        match found:
            case Pod() | PodGroup() if found.status.phase in _FINISHED:
                pass
            case Pod():
                group = meta.annotations.get(GROUP_NAME, "")
                self._name("PodGroup", group and f"{meta.namespace}/{group}", f"Pod {name}", _GROUP_PATH)
                self._name("Node", found.spec.node_name, f"Pod {name}", "spec.nodeName")
            case PodGroup():
                self._name("Queue", found.spec.queue, f"PodGroup {name}", "spec.queue")
                class_name = found.spec.priority_class_name
                self._name("PriorityClass", class_name, f"PodGroup {name}", "spec.priorityClassName")
            case Queue():
                self._parents[name] = found.spec.parent
                self._name("Queue", found.spec.parent, f"Queue {name}", "spec.parent")
            case HyperNode():
                self._see_members(found, name)

    def _name(self, kind: str, name: str, by: str, path: str) -> None:
        if name:
            self._named.setdefault((kind, name), (by, path))

    def _see_members(self, hyper_node: HyperNode, name: str) -> None:
        for number, member in enumerate(hyper_node.spec.members):
            exact = member.selector.exact_match
            if exact is not None and member.type == HYPER_NODE:
                self._holders.setdefault(exact.name, []).append(name)
                path = f"spec.members[{number}].selector.exactMatch.name"
                self._name("HyperNode", exact.name, f"HyperNode {name}", path)

    def problems(self) -> Iterator[ManifestError]:
        """What cannot be, each with the first object that says so."""
        for (kind, name), (by, path) in self._named.items():
            if (kind, name) not in self._known:
                yield ManifestError(f"there is no {kind} {name:.253}", object=by, path=path)
        for circle in circles(self._parents):
            yield ManifestError(_is_circle(circle), object=f"Queue {circle[0]}", path="spec.parent")
        first = {member: holders[0] for member, holders in self._holders.items()}
        for circle in circles(first):
            problem = f"cyclic dependency detected: {_is_circle(circle)}"
            yield ManifestError(problem, object=f"HyperNode {circle[0]}", path="spec.members")
        for member, holders in self._holders.items():
            if len(holders) > 1:
                yield ManifestError(
                    f"HyperNode {member} already has a parent {holders[0]}, and cannot set another parent {holders[1]}",
                    object=f"HyperNode {holders[1]}",
                    path="spec.members",
                )


def circles(parents: Mapping[str, str]) -> list[list[str]]:
    """The circles among ``parents`` (child -> parent), each once, from the member that comes first in ``parents``."""
    done: dict[str, None] = {}
    found = []
    for start in parents:
        path: dict[str, None] = {}
        name = start
        while name in parents and name not in done and name not in path:
            path[name] = None
            name = parents[name]
        if name in path:
            found.append(list(path)[list(path).index(name) :])
        done.update(path)
    return found


def _is_circle(names: list[str]) -> str:
    shown = [*names[:10], "..."] if len(names) > 10 else [*names, names[0]]
    return f"the parents form a circle: {' -> '.join(shown)}"

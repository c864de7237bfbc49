"""The controller of network discovery: keeps the HyperNodes of each source equal to what the source finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from stromboli.api.topology import HyperNode
from stromboli.controllers.changes import Outcome, Subject, warning
from stromboli.controllers.discovery import domains, labels, static_tree, ufm
from stromboli.controllers.discovery.configuration import Source, sources_of
from stromboli.controllers.discovery.domains import Found
from stromboli.controllers.world import Shelf, World
from stromboli.errors import ManifestError

FAILED: Final = "NetworkTopologyDiscoveryFailed"
"""Reason of the events on the ConfigMap."""

POLLED: Final[Mapping[str, Callable[[bytes, list[HyperNode]], Found]]] = {
    ufm.SOURCE: lambda body, known: ufm.discover(ufm.ports_of(body), known),
    static_tree.SOURCE: lambda body, _: static_tree.discover(body.decode(errors="replace")),
}
"""What each source that is polled makes of an answer and of the HyperNodes that it made before."""


class Discovery:
    """What the sources are and what they last answered.

    A source that is removed or disabled stops; its HyperNodes stay, as jobs may run in them.
    """

    def __init__(self, world: World, hyper_nodes: Shelf[HyperNode]) -> None:
        self.sources: dict[str, Source] = {}
        self._world, self._hyper_nodes = world, hyper_nodes
        self._config_map = Subject("v1", "ConfigMap", "", "", "")
        self._answers: dict[str, bytes] = {}
        self._labels: frozenset[str] = frozenset()
        self._said: dict[str, tuple[str, ...]] = {}
        self._problems: dict[str, tuple[str, ...]] = {}

    @property
    def namespace(self) -> str:
        """Where the ConfigMap is."""
        return self._config_map.namespace

    def configure(self, about: Subject, data: Mapping[str, str]) -> list[str]:
        """Take the ConfigMap in; returns the sources to look at.  What cannot be read changes nothing but an event."""
        self._config_map = about
        try:
            found, problems = sources_of(data)
        except ManifestError as error:
            self._problems[""] = (f"{error}; the sources stay as they were",)
            return [""]
        self._problems[""] = problems
        return ["", *self._set(found)]

    def stop(self) -> None:
        """The ConfigMap is gone: no source is asked any more."""
        self._set(())

    def answered(self, source: str, body: bytes) -> bool:
        """Take a polled source's answer in; whether there is something to look at."""
        if source not in self.sources:
            return False
        self._answers[source] = body
        self._problems.pop(source, None)
        return True

    def failed(self, source: str, problem: str) -> bool:
        """A source could not be asked: what it answered before stays; whether there is something to look at."""
        self._problems[source] = (problem,)
        return source in self.sources

    def depends_on(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """Whether a node whose labels change that way may change a domain; a node that is not there has none."""
        return any(before.get(label) != after.get(label) for label in self._labels)

    def look(self, source: str) -> Outcome:
        """Make the HyperNodes of ``source`` equal to its domains; the empty name is the ConfigMap itself."""
        problems = [*self._problems.get(source, ())]
        outcome = Outcome()
        if source in self.sources:
            found = self._found(source, problems)
            if found is not None:
                by_name = {node.metadata.name: node for node in self._hyper_nodes.values()}
                outcome = domains.changes(source, found.domains, by_name)
                problems += [*found.problems, *domains.taken(source, found.domains, by_name)]
        said = tuple(problems)
        if self._said.get(source, ()) != said:
            self._said[source] = said
            outcome.then(*(warning(self._config_map, FAILED, _titled(source, text)) for text in said))
        return outcome

    def _set(self, found: tuple[Source, ...]) -> list[str]:
        """Replace the sources; returns those that are new or have changed."""
        wanted = {source.name: source for source in found}
        changed = [name for name, source in wanted.items() if self.sources.get(name) != source]
        for name in self.sources.keys() - wanted.keys():
            self._answers.pop(name, None)
            self._problems.pop(name, None)
        self.sources = wanted
        self._labels = labels.labels_of(wanted[labels.SOURCE].config) if labels.SOURCE in wanted else frozenset()
        return changed

    def _found(self, source: str, problems: list[str]) -> Found | None:
        """The domains of a source; None where it has not answered yet, or not in a form that can be read."""
        known = domains.owned(source, self._hyper_nodes.values())
        if source == labels.SOURCE:
            return labels.discover(self.sources[source].config, self._world.nodes, known)
        if source not in self._answers:
            return None
        try:
            return POLLED[source](self._answers[source], known)
        except ManifestError as error:
            problems.append(f"the answer cannot be used: {error}; what was found before stays")
            return None


def _titled(source: str, text: str) -> str:
    return f"source {source}: {text}" if source else text

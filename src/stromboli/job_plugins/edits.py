"""Changes of a pod, as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]
Entry: TypeAlias = Mapping[str, Any]

CONTAINERS: Final = "containers"
INIT_CONTAINERS: Final = "initContainers"
ENTRY: Final = 20
"""Bytes that a variable takes at least besides its name and its value."""
_BOTH: Final = (CONTAINERS, INIT_CONTAINERS)


class AddEnv(NamedTuple):
    """Append variables in all containers, in init containers only with ``init``; of two of a name the last counts."""

    entries: tuple[Entry, ...]
    init: bool = True

    def size(self, pod: Json) -> int:
        """About how many bytes they add to ``pod``, rather too few than too many."""
        one = sum(len(str(entry.get("name"))) + len(str(entry.get("value", ""))) + ENTRY for entry in self.entries)
        return one * sum(1 for _ in _containers(pod, init=self.init))

    def apply(self, pod: Json) -> None:
        """Change ``pod``."""
        for container in _containers(pod, init=self.init):
            container["env"] = [*rows(container.get("env")), *map(dict, self.entries)]


class AddPorts(NamedTuple):
    """Append ports whose numbers a container does not open yet; in the one called ``container``, or in all."""

    entries: tuple[Entry, ...]
    init: bool = False
    container: str = ""

    def apply(self, pod: Json) -> None:
        """Change ``pod``."""
        for container in _containers(pod, self.container, init=self.init):
            there = rows(container.get("ports"))
            open_already = {port.get("containerPort") for port in there}
            more = [dict(entry) for entry in self.entries if entry["containerPort"] not in open_already]
            if more:
                container["ports"] = [*there, *more]


class AddVolume(NamedTuple):
    """Append a volume, and its mount in all containers and init containers."""

    volume: Entry
    mount: Entry

    def apply(self, pod: Json) -> None:
        """Change ``pod``."""
        spec = pod["spec"]
        spec["volumes"] = [*rows(spec.get("volumes")), dict(self.volume)]
        for container in _containers(pod, init=True):
            container["volumeMounts"] = [*rows(container.get("volumeMounts")), dict(self.mount)]


class SetCommand(NamedTuple):
    """Replace the command of the container of that name; its arguments stay."""

    container: str
    command: tuple[str, ...]

    def apply(self, pod: Json) -> None:
        """Change ``pod``."""
        for container in _containers(pod, self.container, init=False):
            container["command"] = list(self.command)


class AddInitContainer(NamedTuple):
    """Append an init container unless there is one of its name."""

    container: Entry

    def apply(self, pod: Json) -> None:
        """Change ``pod``."""
        there = rows(pod["spec"].get(INIT_CONTAINERS))
        if all(one.get("name") != self.container["name"] for one in there):
            pod["spec"][INIT_CONTAINERS] = [*there, dict(self.container)]


class FillIn(NamedTuple):
    """Set a field of the spec that is empty."""

    field: str
    value: str

    def apply(self, pod: Json) -> None:
        """Change ``pod``."""
        pod["spec"][self.field] = pod["spec"].get(self.field) or self.value


class Annotate(NamedTuple):
    """Set an annotation."""

    key: str
    value: str

    def apply(self, pod: Json) -> None:
        """Change ``pod``."""
        pod["metadata"]["annotations"] = {**pod["metadata"].get("annotations", {}), self.key: self.value}


Edit: TypeAlias = AddEnv | AddPorts | AddVolume | SetCommand | AddInitContainer | FillIn | Annotate


def copied(pod: Mapping[str, Any]) -> Json:
    """A pod that edits may change: what they change of it is its own."""
    spec = dict(pod["spec"])
    spec |= {part: [dict(one) for one in rows(spec[part])] for part in _BOTH if spec.get(part)}
    return {**pod, "metadata": dict(pod["metadata"]), "spec": spec}


def apply(pod: Json, edits: Iterable[Edit]) -> None:
    """Make all ``edits``, in order, of a pod that has been :func:`copied`."""
    for edit in edits:
        edit.apply(pod)


def _containers(pod: Json, name: str = "", *, init: bool) -> Iterator[Json]:
    for part in _BOTH if init else (CONTAINERS,):
        for container in rows(pod["spec"].get(part)):
            if not name or container.get("name") == name:
                yield container


def rows(value: object) -> list[Json]:
    """The objects of a list; nothing for what is no list."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list | tuple) else []

"""Objects that admission refuses, by the rules of its webhooks, and names of resources that containers may not use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from stromboli.api.kinds import CRON_JOBS, HYPER_NODES, JOB_FLOWS, JOBS, QUEUES, RESOURCES
from stromboli.api.read import read
from stromboli.api.scheduling import QUEUE_OPEN
from stromboli.cli.linting.cluster_rules import Cluster
from stromboli.cli.linting.findings import Rule, Spot
from stromboli.cluster.body import Body, meta, with_meta
from stromboli.cluster.files.documents import readable_objects
from stromboli.cluster.files.reader import files_of
from stromboli.crds.admission import default, validate
from stromboli.crds.admission.pod_templates import name_problems
from stromboli.errors import ManifestError
from stromboli.model.spec import PodSpec
from stromboli.model.task import Task

_ASKED: Final = {
    (kind.api_version, kind.kind): resource
    for resource, kind in RESOURCES.items()
    if resource in (JOBS, CRON_JOBS, JOB_FLOWS, HYPER_NODES)
}
"""Resources whose objects no other rule holds against what admission asks, by apiVersion and kind."""
_DRAWN: Final = "00000"
"""Stands for the five characters that an API server draws for the end of a generated name."""
_MARK: Final = b".volcano.sh/"
"""What a file must hold to be read for them."""


class _AnyQueue:
    """A world in which every queue is open: those of the objects may be in the cluster."""

    def get(self, resource: str, name: str, namespace: str = "") -> Mapping[str, object] | None:
        """An open queue of that name; nothing else is there."""
        return {"metadata": {"name": name}, "status": {"state": QUEUE_OPEN}} if resource == QUEUES else None

    def list(self, resource: str) -> Iterable[Mapping[str, object]]:
        """Nothing."""
        return ()


def _refused(paths: Sequence[str]) -> Iterator[Spot]:
    for file in (file for path in paths for file in files_of(path)):
        for body in _objects(file):
            resource = _ASKED.get((str(body["apiVersion"]), str(body["kind"])))
            if resource is not None:
                yield from (Spot(text, 0, _title(body), file=file) for text in _texts(resource, body))


def _objects(file: str) -> Iterable[dict[str, Any]]:
    try:
        data = Path(file).read_bytes()
    except OSError:  # reported when the objects are read
        return ()
    return readable_objects(data) if _MARK in data else ()


def _texts(resource: str, body: Body) -> Iterator[str]:
    """What admission says of an object, once a name that it asks for is made; nothing of one that cannot be read."""
    world, found = _AnyQueue(), meta(body)
    if not found.get("name") and found.get("generateName"):
        body = with_meta(body, name=f"{found['generateName']}{_DRAWN}")
    try:
        read(RESOURCES[resource].type, body)
    except ManifestError:
        if resource in (JOBS, HYPER_NODES):  # the reader of manifests has reported it
            return
    yield from map(str.strip, validate(resource, default(resource, body, world), None, world))


def _title(body: Body) -> str:
    found = meta(body)
    return f"{body['kind']} {found.get('namespace') or 'default'}/{found.get('name') or found.get('generateName', '')}"


def _unqualified(cluster: Cluster) -> Iterator[Spot]:
    first: dict[int, Task] = {}
    for task in cluster.state.tasks.values():
        first.setdefault(task.template.number, task)
    for task in first.values():
        for name, problem in _wrong_names(task.spec):
            yield Spot(f"the resource {name:.63} {problem}", 0, f"Pod {task.key}", "spec.containers")


def _wrong_names(spec: PodSpec) -> Iterator[tuple[str, str]]:
    for container in (*spec.containers, *spec.init_containers):
        for name in {**container.resources.limits, **container.resources.requests}:
            yield from ((name, problem) for problem in islice(name_problems(name), 1))


REFUSED: Final[tuple[Rule[Sequence[str]], ...]] = (
    Rule("refused-by-admission", "error", _refused,
         "The cluster does not take the object.",
         "Correct what the text names."),
)  # fmt: skip
"""Rules for objects as they are written."""
NAMES: Final[tuple[Rule[Cluster], ...]] = (
    Rule("unqualified-resource", "error", _unqualified,
         "The API server refuses such pods: what devices offer has a domain in its name.",
         "Write the name as nodes offer it, such as nvidia.com/gpu."),
)  # fmt: skip
"""Rules for names of resources."""

"""The queues of PodGroups of scheduling.k8s.io, which have no field for one."""

from __future__ import annotations

from stromboli.cluster import kinds
from stromboli.model import names
from stromboli.model.podgroup import upstream_name

NAMESPACES = "namespaces"
WORKLOADS = "workloads"
GROUPS = "groups"
MEMBERS = "members"


class UpstreamQueues(dict[str, dict[str, str]]):
    """What names a queue by an annotation: such a PodGroup itself, else its Workload, else its namespace.

    ``namespaces``, ``workloads`` and ``groups`` map names to queues, ``members`` maps each PodGroup to its Workload.
    Names are ``namespace/name``, those of PodGroups the keys of their jobs.
    """

    def __init__(self) -> None:
        super().__init__({NAMESPACES: {}, WORKLOADS: {}, GROUPS: {}, MEMBERS: {}})

    def keep(self, group: kinds.UpstreamPodGroup, stays: bool) -> None:
        """Take a PodGroup in, or let it go."""
        meta = group.metadata
        key = f"{meta.namespace}/{upstream_name(meta.name)}"
        self._name(GROUPS, key, group, stays)
        self[MEMBERS].pop(key, None)
        if stays:
            self[MEMBERS][key] = f"{meta.namespace}/{group.spec.workload_name}"

    def of(self, key: str) -> str:
        """The queue that is named for a PodGroup; empty for none."""
        workload = self[MEMBERS].get(key, "")
        namespace = key.partition("/")[0]
        return self[GROUPS].get(key) or self[WORKLOADS].get(workload) or self[NAMESPACES].get(namespace, "")

    def of_namespace(self, name: str) -> str:
        """The queue that a namespace names for its PodGroups; empty for none."""
        return self[NAMESPACES].get(name, "")

    def workload(self, workload: kinds.Workload, stays: bool) -> list[str]:
        """Take a Workload in, or let it go; the PodGroups whose queue is another one since."""
        name = f"{workload.metadata.namespace}/{workload.metadata.name}"
        if self._names_the_same(WORKLOADS, name, workload, stays):
            return []
        members = [key for key, its in self[MEMBERS].items() if its == name]
        return self._changed(WORKLOADS, name, workload, stays, members)

    def namespace(self, namespace: kinds.Object, stays: bool) -> list[str]:
        """Take a namespace in, or let it go; the PodGroups whose queue is another one since."""
        name = namespace.metadata.name
        if self._names_the_same(NAMESPACES, name, namespace, stays):
            return []
        members = [key for key in self[MEMBERS] if key.partition("/")[0] == name]
        return self._changed(NAMESPACES, name, namespace, stays, members)

    def _names_the_same(self, kind: str, name: str, found: kinds.Object, stays: bool) -> bool:
        """Whether an object names the queue that it has named before: no PodGroup need be looked at then."""
        queue = found.metadata.annotations.get(names.QUEUE_NAME, "") if stays else ""
        return queue == self[kind].get(name, "")

    def _changed(self, kind: str, name: str, found: kinds.Object, stays: bool, members: list[str]) -> list[str]:
        before = [(key, self.of(key)) for key in members]
        self._name(kind, name, found, stays)
        return [key for key, queue in before if queue != self.of(key)]

    def _name(self, kind: str, name: str, found: kinds.Object, stays: bool) -> None:
        """Note the queue that an object names."""
        self[kind].pop(name, None)
        if stays and (queue := found.metadata.annotations.get(names.QUEUE_NAME, "")):
            self[kind][name] = queue

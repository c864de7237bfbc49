"""What the controllers know of a pod: little, as there are many."""

from __future__ import annotations

import sys
from typing import Final

import msgspec

from stromboli.api.kinds import KINDS
from stromboli.cluster.decoding.annotations import read_int
from stromboli.cluster.kinds import OwnerReference, Pod
from stromboli.cluster.objects import from_json
from stromboli.errors import ManifestError
from stromboli.model.names import (
    CONTROLLER_OUT_OF_SYNC,
    GROUP_NAME,
    JOB_NAME,
    JOB_VERSION,
    PARTITION_ID,
    POD_PENDING,
    SCHEDULER_NAME,
    TASK_SPEC,
)
from stromboli.model.spec import SchedulingGroup, Wire

JOB_KIND: Final = "Job"
JOB_API: Final = KINDS[JOB_KIND].api_version


class _Terminated(Wire, frozen=True):
    exit_code: int = 0


class _State(Wire, frozen=True):
    terminated: _Terminated | None = None


class _Container(Wire, frozen=True):
    ready: bool = False
    restart_count: int = 0
    state: _State = _State()


class _Status(Wire, frozen=True):
    phase: str = POD_PENDING
    container_statuses: tuple[_Container, ...] = ()
    init_container_statuses: tuple[_Container, ...] = ()
    pod_ip: str = msgspec.field(default="", name="podIP")


class _Spec(Wire, frozen=True):
    scheduler_name: str = ""
    host_network: bool = False
    scheduling_group: SchedulingGroup | None = None


class _Metadata(Wire, frozen=True):
    name: str = ""
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class _Pod(Wire, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


_decode: Final = msgspec.json.Decoder(_Pod).decode


class PodView(msgspec.Struct, frozen=True):
    """One pod.

    ``job`` is the name of the Volcano Job that controls it, empty for others; ``task``, ``version`` and ``partition``
    are what its annotations and labels say of its place in the job.  ``restarts`` counts those of all containers,
    ``exit_code`` is the first container's.  ``address`` is its own, empty in its node's network.  ``group`` is the
    PodGroup that it names; ``whole`` is the pod in full where it is ours to put into one.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    job: str
    job_uid: str
    task: str
    version: int
    partition: str
    phase: str
    terminating: bool
    out_of_sync: bool
    ready: bool
    restarts: int
    exit_code: int
    address: str
    group: str
    whole: Pod | None

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name


def pod_view(raw: bytes | msgspec.Raw, schedulers: tuple[str, ...] = (SCHEDULER_NAME,)) -> PodView:
    """A pod out of JSON.  Raises :class:`~stromboli.errors.ManifestError`."""
    try:
        pod = _decode(raw)
    except msgspec.DecodeError as error:
        raise ManifestError(str(error), object="Pod") from error
    meta, statuses = pod.metadata, pod.status.container_statuses
    annotations, labels = meta.annotations or {}, meta.labels or {}
    owner = _owner(pod)
    plain = owner is None and not _is_grouped(pod) and pod.spec.scheduler_name in schedulers
    job, job_uid = (owner.name, owner.uid) if owner else ("", "")
    return PodView(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        job=job,
        job_uid=job_uid,
        task=annotations.get(TASK_SPEC, ""),
        version=read_int(annotations.get(JOB_VERSION, ""), 32) or 0,
        partition=labels.get(PARTITION_ID, ""),
        phase=pod.status.phase,
        terminating=meta.deletion_timestamp is not None,
        out_of_sync=CONTROLLER_OUT_OF_SYNC in annotations,
        ready=bool(statuses) and all(container.ready for container in statuses),
        restarts=sum(container.restart_count for container in (*statuses, *pod.status.init_container_statuses)),
        exit_code=_exit_code(statuses),
        address=_own_address(pod),
        group=sys.intern(annotations.get(GROUP_NAME, "")),
        whole=_whole(raw) if plain else None,
    )


def _is_grouped(pod: _Pod) -> bool:
    """Whether the pod names a PodGroup, ours or Kubernetes' own."""
    return bool((pod.metadata.annotations or {}).get(GROUP_NAME)) or pod.spec.scheduling_group is not None


def _own_address(pod: _Pod) -> str:
    return "" if pod.spec.host_network else pod.status.pod_ip


def _owner(pod: _Pod) -> OwnerReference | None:
    """The Volcano Job that controls the pod, if its annotations say which part it is of it."""
    annotations = pod.metadata.annotations or {}
    for owner in pod.metadata.owner_references or ():
        if owner.controller and owner.kind == JOB_KIND and owner.api_version == JOB_API:
            return owner if annotations.keys() >= {TASK_SPEC, JOB_NAME, JOB_VERSION} else None
    return None


def _exit_code(containers: tuple[_Container, ...]) -> int:
    ended = containers[0].state.terminated if containers else None
    return ended.exit_code if ended else 0


def _whole(raw: bytes | msgspec.Raw) -> Pod | None:
    found = from_json("Pod", raw)
    return found if isinstance(found, Pod) else None

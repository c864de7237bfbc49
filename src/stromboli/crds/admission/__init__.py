"""What Volcano's webhooks do, as pure functions: fill in what an object leaves open, refuse what cannot work.

An API server of ours calls them at its border; a webhook server can serve them under the same paths.

* :func:`default` when an object is created, before its schema is checked;
* :func:`validate` after the schema's own defaults and checks, for create, update (``old`` given) and delete (``value``
  None, ``old`` the object that is to go).

Both take the resource as its definition is named (``jobs.batch.volcano.sh``; ``pods`` for v1 Pods), objects as plain
values, which they never change, and a :class:`World` in which other objects are looked up.  :func:`denied` is the text
that kubectl shows for a refusal; it goes out as HTTP 400 without a reason, as from any webhook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from stromboli.api.batch import CronJob, Job
from stromboli.api.flow import JobFlow
from stromboli.api.kinds import CRON_JOBS, HYPER_NODES, JOB_FLOWS, JOBS, POD_GROUPS, PODS, QUEUES
from stromboli.api.read import read
from stromboli.api.scheduling import PodGroup, Queue
from stromboli.api.topology import HyperNode
from stromboli.crds.admission.cron_jobs import check_cron_job
from stromboli.crds.admission.defaults import default_job, default_pod_group, default_queue
from stromboli.crds.admission.hyper_nodes import check_hyper_node
from stromboli.crds.admission.job_flows import check_job_flow
from stromboli.crds.admission.jobs import check_changed_job, check_new_job
from stromboli.crds.admission.pod_groups import check_new_pod_group
from stromboli.crds.admission.pods import check_new_pod, default_pod
from stromboli.crds.admission.queues import check_deleted_queue, check_queue
from stromboli.crds.admission.world import Object, Objects, Scene, Settings, World
from stromboli.errors import ManifestError

DEFAULTS: Final = Settings()
"""How admission is set up by default."""

Defaulter = Callable[[Object, Scene], Object]
Validator = Callable[[Object | None, Object | None, Scene], list[str]]


@dataclass(frozen=True, slots=True)
class Hooks:
    """What is done for a resource; ``name`` as in ``mutatejob.volcano.sh``."""

    name: str
    default: Defaulter | None = None
    validate: Validator | None = None


def _job(value: Object | None, old: Object | None, scene: Scene) -> list[str]:
    if value is None:
        return []
    return (
        check_new_job(read(Job, value), scene) if old is None else check_changed_job(read(Job, value), read(Job, old))
    )


def _queue(value: Object | None, old: Object | None, scene: Scene) -> list[str]:
    before = None if old is None else read(Queue, old)
    if value is not None:
        return check_queue(read(Queue, value), before, scene)
    return [] if before is None else check_deleted_queue(before, scene)


def _pod_group(value: Object | None, old: Object | None, scene: Scene) -> list[str]:
    return [] if value is None or old is not None else check_new_pod_group(read(PodGroup, value), scene)


def _pod(value: Object | None, old: Object | None, scene: Scene) -> list[str]:
    return [] if value is None or old is not None else check_new_pod(value, scene)


def _hyper_node(value: Object | None, old: Object | None, scene: Scene) -> list[str]:
    return [] if value is None else check_hyper_node(read(HyperNode, value))


def _cron_job(value: Object | None, old: Object | None, scene: Scene) -> list[str]:
    return [] if value is None else check_cron_job(read(CronJob, value))


def _job_flow(value: Object | None, old: Object | None, scene: Scene) -> list[str]:
    return [] if value is None else check_job_flow(read(JobFlow, value))


HOOKS: Final[Mapping[str, Hooks]] = {
    JOBS: Hooks("job", default_job, _job),
    QUEUES: Hooks("queue", default_queue, _queue),
    POD_GROUPS: Hooks("podgroup", default_pod_group, _pod_group),
    PODS: Hooks("pod", default_pod, _pod),
    HYPER_NODES: Hooks("hypernodes", None, _hyper_node),
    CRON_JOBS: Hooks("cronjob", None, _cron_job),
    JOB_FLOWS: Hooks("jobflow", None, _job_flow),
}
"""By resource."""


def default(resource: str, value: Object, world: World, settings: Settings = DEFAULTS) -> Object:
    """A new object with what admission fills in; the same object when that is nothing.

    What cannot be read is left as it is: the schema's checks say what is wrong with it.
    """
    hooks = HOOKS.get(resource)
    if hooks is None or hooks.default is None:
        return value
    try:
        return hooks.default(value, Scene(world, settings))
    except ManifestError:
        return value


def validate(
    resource: str, value: Object | None, old: Object | None, world: World, settings: Settings = DEFAULTS
) -> list[str]:
    """Why an object may not be created (``old`` None), changed, or deleted (``value`` None); empty when it may."""
    hooks = HOOKS.get(resource)
    if hooks is None or hooks.validate is None:
        return []
    try:
        return hooks.validate(value, old, Scene(world, settings))
    except ManifestError as error:
        return [str(error)]


def denied(resource: str, messages: Iterable[str]) -> str:
    """How an API server words a refusal by :func:`validate`."""
    text = "; ".join(messages)
    return f'admission webhook "validate{HOOKS[resource].name}.volcano.sh" denied the request: {text}'


__all__ = ["DEFAULTS", "HOOKS", "Hooks", "Object", "Objects", "Settings", "World", "default", "denied", "validate"]

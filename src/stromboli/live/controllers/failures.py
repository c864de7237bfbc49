"""What the object that is looked at is told of a change that has failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from stromboli.api.kinds import JOBS, POD_GROUPS, PODS
from stromboli.controllers.changes import Change, Create, Delete, Drop, Keep, KillPod, Patch
from stromboli.controllers.jobs.plugins import FAILED
from stromboli.errors import AccessError, ApiError, StromboliError, Unreachable
from stromboli.job_plugins.wanted import SORTS
from stromboli.kube.contact import NO_SERVER

UNHEARD: Final = NO_SERVER | {401, 429}
"""Answers that say nothing of the object: the server is away, does not accept our login now, or is overloaded."""


class Failure(NamedTuple):
    """The event about a failure: its reason and its text."""

    reason: str
    text: str


_NOT_DELETED: Final = "Execute plugin when job delete failed, err: {error}"
FAILURES: Final[Mapping[tuple[type[Change], str], Failure]] = {
    (Create, PODS): Failure("FailedCreate", "Error creating pods: {error}"),
    (KillPod, PODS): Failure("FailedDelete", "Error deleting pods: {error}"),
    (Create, POD_GROUPS): Failure("PodGroupError", "Failed to create PodGroup, err: {error}"),
    (Patch, JOBS): Failure("JobStatusError", "Failed to update job status, err: {error}"),
    (Create, JOBS): Failure("FailedCreate", "Failed to create job: {error}"),
    (Delete, JOBS): Failure("FailedDelete", 'Error deleting job "{name}": {error}'),
    **dict.fromkeys(((Keep, kind) for kind in SORTS), Failure("PluginError", FAILED + "{error}")),
    **dict.fromkeys(((Drop, kind) for kind in SORTS), Failure("PluginError", _NOT_DELETED)),
}
"""By sort of change and resource; ``{name}`` is that of the object that was to be changed."""

_LEAVING: Final = "being terminated"
"""What stands in an API server's answer when an object is made in a namespace that is being deleted."""
_NO_ROOM: Final = "Namespace {namespace} is terminating, skipping job creation"


def failure_of(change: Change, error: StromboliError) -> Failure | None:
    """What is told of a change that has failed; None where nothing is."""
    resource = PODS if isinstance(change, KillPod) else getattr(change, "resource", "")
    found = FAILURES.get((type(change), resource))
    if found is None:
        return None
    if isinstance(change, Create) and resource == JOBS and _LEAVING in str(error):
        return Failure("NamespaceTerminating", _NO_ROOM.format(namespace=change.namespace))
    return Failure(found.reason, found.text.format(error=error, name=getattr(change, "name", "")))


def is_away(error: Exception) -> bool:
    """Whether no server was there that listened to us, which says nothing of the object."""
    return isinstance(error, Unreachable | AccessError) or (isinstance(error, ApiError) and error.code in UNHEARD)

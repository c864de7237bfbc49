"""bus.volcano.sh: Command."""

from __future__ import annotations

from typing import Annotated, Final

from stromboli.api.fields import OwnerReference, Resource, rule, says

ABORT_JOB: Final = "AbortJob"
RESTART_JOB: Final = "RestartJob"
RESTART_TASK: Final = "RestartTask"
RESTART_POD: Final = "RestartPod"
RESTART_PARTITION: Final = "RestartPartition"
TERMINATE_JOB: Final = "TerminateJob"
COMPLETE_JOB: Final = "CompleteJob"
RESUME_JOB: Final = "ResumeJob"
SYNC_JOB: Final = "SyncJob"
ENQUEUE_JOB: Final = "EnqueueJob"
SYNC_QUEUE: Final = "SyncQueue"
OPEN_QUEUE: Final = "OpenQueue"
CLOSE_QUEUE: Final = "CloseQueue"

JOB_ACTIONS: Final = (
    ABORT_JOB,
    RESTART_JOB,
    RESTART_TASK,
    RESTART_POD,
    RESTART_PARTITION,
    TERMINATE_JOB,
    COMPLETE_JOB,
    RESUME_JOB,
)
"""What may be asked to be done to a job, by policy or by command."""


class Command(Resource, frozen=True):
    """Asks the controllers to do something to a job or a queue, once."""

    action: Annotated[str, says("What is to be done: AbortJob, ResumeJob, OpenQueue, CloseQueue ….")] = ""
    target: Annotated[
        OwnerReference | None, rule(x_kubernetes_map_type="atomic"), says("What it is to be done to.")
    ] = None
    reason: Annotated[str, says("One word on why.")] = ""
    message: Annotated[str, says("A sentence on why.")] = ""

"""batch.volcano.sh: Job and CronJob."""

from __future__ import annotations

from typing import Annotated, Final

from stromboli.api.fields import (
    CLAIM,
    DNS_LABEL,
    LONGEST_LABEL,
    NEEDED,
    POD_TEMPLATE,
    Anything,
    Count,
    DnsName,
    Int32,
    Int64,
    Name,
    NetworkTopology,
    Resource,
    Texts,
    Time,
    of_type,
    one_of,
    rule,
    says,
)
from stromboli.model.names import DEFAULT_QUEUE
from stromboli.model.spec import Wire

ANY: Final = "*"
"""Event of a policy that is for all events."""
ON_PENDING: Final = "PodPending"
ON_RUNNING: Final = "PodRunning"
ON_FAILED: Final = "PodFailed"
ON_EVICTED: Final = "PodEvicted"
ON_UNKNOWN: Final = "Unknown"
ON_TASK_COMPLETED: Final = "TaskCompleted"
OUT_OF_SYNC: Final = "OutOfSync"
COMMAND_ISSUED: Final = "CommandIssued"
ON_JOB_UPDATED: Final = "JobUpdated"
ON_TASK_FAILED: Final = "TaskFailed"
EVENTS: Final = (
    ANY,
    ON_PENDING,
    ON_RUNNING,
    ON_FAILED,
    ON_EVICTED,
    ON_UNKNOWN,
    ON_TASK_COMPLETED,
    OUT_OF_SYNC,
    COMMAND_ISSUED,
    ON_JOB_UPDATED,
    ON_TASK_FAILED,
)
"""What can happen to a job."""

PENDING: Final = "Pending"
ABORTING: Final = "Aborting"
ABORTED: Final = "Aborted"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
COMPLETING: Final = "Completing"
COMPLETED: Final = "Completed"
TERMINATING: Final = "Terminating"
TERMINATED: Final = "Terminated"
FAILED: Final = "Failed"
PHASES: Final = (
    PENDING,
    ABORTING,
    ABORTED,
    RUNNING,
    RESTARTING,
    COMPLETING,
    COMPLETED,
    TERMINATING,
    TERMINATED,
    FAILED,
)
"""Where a job can be in its life."""
FINISHED: Final = (COMPLETED, FAILED, TERMINATED, ABORTED)
"""Phases of jobs that get no pods."""

JOB_PLUGINS: Final = ("env", "svc", "ssh", "tensorflow", "mpi", "pytorch", "ray", "hcclrank")
"""Job plugins that are always there."""
NO_POLICY: Final = "none"
BEST_EFFORT: Final = "best-effort"
RESTRICTED: Final = "restricted"
SINGLE_NUMA_NODE: Final = "single-numa-node"
TOPOLOGY_POLICIES: Final = (NO_POLICY, BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE)
"""NUMA topology policies, those of kubelets."""

ALLOW: Final = "Allow"
FORBID: Final = "Forbid"
REPLACE: Final = "Replace"
"""What happens to a new job of a CronJob while an old one runs."""

DEFAULT_RETRIES: Final = 3
"""Restarts of a job, and of a task's containers, where none are stated."""


class LifecyclePolicy(Wire, frozen=True):
    """What is done when something happens to the job or its pods."""

    action: Annotated[
        str,
        says(
            "What is done: AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, CompleteJob"
            " or ResumeJob."
        ),
    ] = ""
    event: Annotated[str, one_of(*EVENTS), says("The event that it is done for. Excludes exitCode.")] = ""
    events: Annotated[
        tuple[Annotated[str, one_of(*EVENTS)], ...], says("The events that it is done for. Excludes exitCode.")
    ] = ()
    exit_code: Annotated[
        Int32 | None, says("Exit code, other than 0, of a failed pod's first container that it is done for.")
    ] = None
    timeout: Annotated[str | None, says("How long after the event it is done, such as 10m. At once when absent.")] = (
        None
    )


class DependsOn(Wire, frozen=True):
    """Tasks that must be ready before this one starts."""

    name: Annotated[tuple[str, ...], says("Names of the tasks that are waited for.")] = ()
    iteration: Annotated[str, says("any: one ready task is enough; all (default): every one must be ready.")] = ""


class PartitionPolicy(Wire, frozen=True):
    """A task split into parts, each a small gang of its own."""

    total_partitions: Annotated[
        Int32, NEEDED, rule(minimum=1), says("Number of parts; times partitionSize it is the task's replicas.")
    ] = 0
    partition_size: Annotated[Int32, NEEDED, rule(minimum=1), says("Pods of each part.")] = 0
    network_topology: Annotated[NetworkTopology | None, says("How close together the pods of a part must be.")] = None
    min_partitions: Annotated[
        Count, rule(default=0), says("Parts that must run; times partitionSize it is the task's minAvailable.")
    ] = 0


class Task(Wire, frozen=True):
    """A role of the job: pods made of one template."""

    name: Annotated[
        str,
        rule(maxLength=LONGEST_LABEL, pattern=DNS_LABEL),
        says("Name of the task; default0, default1 … when absent."),
    ] = ""
    replicas: Annotated[Count, says("Number of pods.")] = 0
    min_available: Annotated[Count | None, says("Pods that must run at once; the replicas when absent.")] = None
    template: Annotated[
        dict[str, object], of_type(POD_TEMPLATE), says("The pod that copies are made of (PodTemplateSpec).")
    ] = {}
    policies: Annotated[tuple[LifecyclePolicy, ...], says("What is done on events of this task's pods.")] = ()
    topology_policy: Annotated[str, one_of(*TOPOLOGY_POLICIES), says("NUMA topology policy of the pods.")] = ""
    max_retry: Annotated[
        Count, says("Restarts of the task's containers after which the event TaskFailed is raised; 3 when absent.")
    ] = 0
    depends_on: Annotated[DependsOn | None, says("Tasks that must be ready before this one starts.")] = None
    partition_policy: Annotated[PartitionPolicy | None, says("How the task is split into parts.")] = None


class Volume(Wire, frozen=True):
    """A volume that all containers of the job mount."""

    mount_path: Annotated[
        str, NEEDED, rule(minLength=1, pattern="^[^:]+$"), says("Path in the containers; must not contain ':'.")
    ] = ""
    volume_claim_name: Annotated[Name, says("Name of a PersistentVolumeClaim that is there.")] = ""
    volume_claim: Annotated[
        dict[str, object] | None,
        of_type(CLAIM),
        says("Spec of a PersistentVolumeClaim that is made for the job (PersistentVolumeClaimSpec)."),
    ] = None


class JobSpec(Wire, frozen=True):
    """What a job asks for."""

    scheduler_name: Annotated[
        str, rule(maxLength=LONGEST_LABEL), says("Scheduler of the pods that name none; volcano when absent.")
    ] = ""
    min_available: Annotated[Count, says("Pods that must run at once; the sum over the tasks when 0 or absent.")] = 0
    volumes: Annotated[tuple[Volume, ...], says("Volumes that all containers mount.")] = ()
    tasks: Annotated[tuple[Task, ...], rule(minItems=1), says("Roles of the job.")] = ()
    policies: Annotated[
        tuple[LifecyclePolicy, ...], says("What is done on events; a task's own policies come first.")
    ] = ()
    plugins: Annotated[
        dict[str, tuple[str, ...]],
        says(
            "Job plugins and their arguments, written as command-line flags: env, svc, ssh, pytorch, tensorflow, mpi,"
            " ray, hcclrank, and those that the controllers were given."
        ),
    ] = {}
    running_estimate: Annotated[str | None, says("How long the user expects the job to run, such as 2h.")] = None
    queue: Annotated[DnsName, rule(default=DEFAULT_QUEUE), says("Queue that the job waits in.")] = ""
    max_retry: Annotated[
        Count, rule(default=DEFAULT_RETRIES), says("How many times the job may be restarted before it has failed.")
    ] = 0
    ttl_seconds_after_finished: Annotated[
        Count | None, says("Seconds after which a finished job is deleted; never when absent.")
    ] = None
    priority_class_name: Annotated[DnsName, says("PriorityClass of the job and of the pods that name none.")] = ""
    min_success: Annotated[
        Int32 | None, rule(minimum=1), says("Succeeded pods that are enough to complete the job.")
    ] = None
    network_topology: Annotated[NetworkTopology | None, says("How close together the pods must be.")] = None


class JobState(Wire, frozen=True):
    """Where the job is in its life."""

    phase: Annotated[str, one_of(*PHASES), says("Phase of the job.")] = ""
    reason: Annotated[str, says("One word on why.")] = ""
    message: Annotated[str, says("A sentence on why.")] = ""
    last_transition_time: Annotated[Time | None, says("When the status was last written.")] = None


class TaskState(Wire, frozen=True):
    """How a task's pods are doing."""

    phase: Annotated[dict[str, Int32], says("Number of pods by phase.")] = {}


class JobCondition(Wire, frozen=True):
    """A phase that the job has been in."""

    status: Annotated[str, NEEDED, says("The phase.")] = ""
    last_transition_time: Annotated[Time | None, says("When the job entered it.")] = None
    reason: Annotated[str, says("One word on what keeps the job back in this phase.")] = ""
    message: Annotated[str, says("A sentence on what keeps the job back, and what would help.")] = ""


class JobStatus(Wire, frozen=True):
    """How a job is doing."""

    state: Annotated[JobState, says("Where the job is in its life.")] = JobState()
    min_available: Annotated[Count, says("Pods that must run at once, as of the job's start.")] = 0
    task_status_count: Annotated[dict[str, TaskState], says("How each task's pods are doing.")] = {}
    pending: Annotated[Count, says("Number of pending pods.")] = 0
    running: Annotated[Count, says("Number of running pods.")] = 0
    succeeded: Annotated[Count, says("Number of pods that succeeded.")] = 0
    failed: Annotated[Count, says("Number of pods that failed.")] = 0
    terminating: Annotated[Count, says("Number of pods that are being deleted.")] = 0
    unknown: Annotated[Count, says("Number of pods of which nothing is known.")] = 0
    version: Annotated[Count, says("Raised each time all pods of the job are killed.")] = 0
    retry_count: Annotated[Count, says("How many times the job has been restarted.")] = 0
    running_duration: Annotated[str | None, says("Time from creation to the end.")] = None
    controlled_resources: Annotated[Texts, says("What else the controller made for the job.")] = {}
    conditions: Annotated[
        tuple[JobCondition, ...], says("The phases that the job has been in, each once, the newest last.")
    ] = ()


class Job(Resource, frozen=True):
    """A batch job: pods of several roles that are scheduled and live together."""

    spec: Annotated[JobSpec, says("What the job asks for.")] = JobSpec()
    status: Annotated[JobStatus, says("How the job is doing.")] = JobStatus()


class ObjectReference(Wire, frozen=True):
    """Names an object."""

    api_version: str = ""
    field_path: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class JobTemplateSpec(Wire, frozen=True):
    """The job that a CronJob makes copies of."""

    metadata: Annotated[Anything, says("Labels and annotations of the jobs.")] = {}
    spec: Annotated[JobSpec, says("What the jobs ask for.")] = JobSpec()


class CronJobSpec(Wire, frozen=True):
    """When jobs are made, and which."""

    schedule: Annotated[str, NEEDED, says("Cron expression of five fields, or @hourly, @every 5m ….")] = ""
    time_zone: Annotated[str | None, says("IANA time zone of the schedule.")] = None
    starting_deadline_seconds: Annotated[
        Int64 | None, rule(minimum=0), says("Seconds after its time within which a missed job is still made.")
    ] = None
    concurrency_policy: Annotated[
        str,
        one_of(ALLOW, FORBID, REPLACE),
        rule(default=ALLOW),
        says("What happens to a new job while an old one runs."),
    ] = ""
    suspend: Annotated[bool | None, rule(default=False), says("Make no new jobs.")] = None
    job_template: Annotated[JobTemplateSpec, NEEDED, says("The job that copies are made of.")] = JobTemplateSpec()
    successful_jobs_history_limit: Annotated[
        Count | None, rule(default=3), says("How many completed jobs are kept.")
    ] = None
    failed_jobs_history_limit: Annotated[Count | None, rule(default=1), says("How many failed jobs are kept.")] = None


class CronJobStatus(Wire, frozen=True):
    """What a CronJob has done."""

    active: Annotated[
        tuple[Annotated[ObjectReference, rule(x_kubernetes_map_type="atomic")], ...],
        rule(x_kubernetes_list_type="atomic"),
        says("Jobs that have not finished."),
    ] = ()
    last_schedule_time: Annotated[Time | None, says("When a job was last made.")] = None
    last_successful_time: Annotated[Time | None, says("When a job last completed.")] = None


class CronJob(Resource, frozen=True):
    """Makes jobs at certain times."""

    spec: Annotated[CronJobSpec, says("When jobs are made, and which.")] = CronJobSpec()
    status: Annotated[CronJobStatus, says("What it has done.")] = CronJobStatus()

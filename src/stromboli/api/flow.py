"""flow.volcano.sh: JobFlow and JobTemplate."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from stromboli.api.batch import JobSpec, TaskState
from stromboli.api.fields import LONGEST_LABEL, NEEDED, Count, Name, Resource, Time, fields_of, one_of, rule, says
from stromboli.model.spec import Wire

_HIGHEST_PORT = 65535

FLOW_SUCCEED: Final = "Succeed"
FLOW_TERMINATING: Final = "Terminating"
FLOW_FAILED: Final = "Failed"
FLOW_RUNNING: Final = "Running"
FLOW_PENDING: Final = "Pending"

RETAIN: Final = "retain"
DELETE: Final = "delete"
"""What becomes of the jobs when all have succeeded."""


class HttpHeader(Wire, frozen=True):
    """A header of a request."""

    name: Annotated[str, NEEDED, says("Name of the header.")] = ""
    value: Annotated[str, NEEDED, says("Value of the header.")] = ""


class HttpGet(Wire, frozen=True):
    """A request that must be answered well."""

    task_name: Annotated[Name, says("Task whose pods are asked.")] = ""
    path: Annotated[str, says("Path of the request.")] = ""
    port: Annotated[int, rule(minimum=0, maximum=_HIGHEST_PORT), says("Port that is asked.")] = 0
    http_header: Annotated[HttpHeader | None, says("Header of the request.")] = None


class TcpSocket(Wire, frozen=True):
    """A port that must be open."""

    task_name: Annotated[Name, says("Task whose pods are asked.")] = ""
    port: Annotated[int, NEEDED, rule(minimum=0, maximum=_HIGHEST_PORT), says("Port that is asked.")] = 0


class TaskStatus(Wire, frozen=True):
    """A phase that a task must be in."""

    task_name: Annotated[Name, says("Task that is looked at.")] = ""
    phase: Annotated[str, rule(maxLength=LONGEST_LABEL), says("Phase that its pods must be in.")] = ""


class Probe(Wire, frozen=True):
    """What must hold of the jobs that are waited for."""

    http_get_list: Annotated[tuple[HttpGet, ...], says("Requests that must be answered well.")] = ()
    tcp_socket_list: Annotated[tuple[TcpSocket, ...], says("Ports that must be open.")] = ()
    task_status_list: Annotated[tuple[TaskStatus, ...], says("Phases that tasks must be in.")] = ()


class FlowDependsOn(Wire, frozen=True):
    """Jobs that are waited for."""

    targets: Annotated[tuple[str, ...], says("Flows whose jobs must be completed.")] = ()
    probe: Annotated[Probe | None, says("What else must hold.")] = None


class Patch(Wire, frozen=True):
    """What is changed in the template's job."""

    job_spec: Annotated[dict[str, object], fields_of(JobSpec), says("Fields that replace the template's.")] = {}


class Flow(Wire, frozen=True):
    """One job of the flow."""

    name: Annotated[str, NEEDED, rule(minLength=1), says("Name of the JobTemplate.")] = ""
    depends_on: Annotated[FlowDependsOn | None, says("Jobs that are waited for.")] = None
    patch: Annotated[Patch | None, says("What is changed in the template's job.")] = None


class JobFlowSpec(Wire, frozen=True):
    """Jobs, and which waits for which."""

    flows: Annotated[tuple[Flow, ...], says("The jobs.")] = ()
    job_retain_policy: Annotated[
        str, one_of(RETAIN, DELETE), says("What becomes of the jobs when all have succeeded.")
    ] = ""


class RunningHistory(Wire, frozen=True):
    """A phase that a job has been in."""

    start_timestamp: Annotated[Time | None, says("When it began.")] = None
    end_timestamp: Annotated[Time | None, says("When it ended.")] = None
    state: Annotated[str, says("The phase.")] = ""


class FlowJobStatus(Wire, frozen=True):
    """How a job of the flow is doing."""

    name: Annotated[str, says("Name of the job.")] = ""
    state: Annotated[str, says("Phase of the job.")] = ""
    start_timestamp: Annotated[Time | None, says("When it was made.")] = None
    end_timestamp: Annotated[Time | None, says("When it finished.")] = None
    restart_count: Annotated[Count, says("How many times it was restarted.")] = 0
    running_histories: Annotated[tuple[RunningHistory, ...], says("The phases that it has been in.")] = ()


class FlowCondition(Wire, frozen=True):
    """What is known of a job of the flow."""

    phase: Annotated[str, says("Phase of the job.")] = ""
    create_time: Annotated[Time | None, says("When it was made.")] = None
    running_duration: Annotated[str | None, says("Time from creation to the end.")] = None
    task_status_count: Annotated[dict[str, TaskState], says("How each task's pods are doing.")] = {}


class FlowState(Wire, frozen=True):
    """Where the flow is in its life."""

    phase: Annotated[
        str,
        one_of(FLOW_SUCCEED, FLOW_TERMINATING, FLOW_FAILED, FLOW_RUNNING, FLOW_PENDING),
        says("Phase of the flow."),
    ] = ""


class JobFlowStatus(Wire, frozen=True):
    """How a flow is doing."""

    pending_jobs: Annotated[tuple[str, ...], says("Pending jobs.")] = ()
    running_jobs: Annotated[tuple[str, ...], says("Running jobs.")] = ()
    failed_jobs: Annotated[tuple[str, ...], says("Failed jobs.")] = ()
    completed_jobs: Annotated[tuple[str, ...], says("Completed jobs.")] = ()
    terminated_jobs: Annotated[tuple[str, ...], says("Terminated jobs.")] = ()
    unknown_jobs: Annotated[tuple[str, ...], says("Jobs in any other phase.")] = msgspec.field(
        default=(), name="unKnowJobs"
    )
    job_status_list: Annotated[tuple[FlowJobStatus, ...], says("How each job is doing.")] = ()
    conditions: Annotated[dict[str, FlowCondition], says("What is known of each job.")] = {}
    state: Annotated[FlowState, says("Where the flow is in its life.")] = FlowState()


class JobFlow(Resource, frozen=True):
    """Jobs that wait for each other."""

    spec: Annotated[JobFlowSpec, says("The jobs.")] = JobFlowSpec()
    status: Annotated[JobFlowStatus, says("How the flow is doing.")] = JobFlowStatus()


class JobTemplateStatus(Wire, frozen=True):
    """Users of a template."""

    job_depends_on_list: Annotated[tuple[str, ...], says("Jobs that were made of it.")] = ()


class JobTemplate(Resource, frozen=True):
    """A job that flows make copies of."""

    spec: Annotated[JobSpec, says("What the jobs ask for.")] = JobSpec()
    status: Annotated[JobTemplateStatus, says("The jobs that use it.")] = JobTemplateStatus()

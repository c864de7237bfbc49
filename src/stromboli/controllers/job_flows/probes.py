"""Probes that pods must pass before a flow's job is created: which addresses are probed, and the results.

The author of a JobFlow decides what the controllers connect to, from where they run.  So only pods of the flow's own
jobs are probed, at their own addresses: never pods in a node's network, never an address that is no pod's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

from stromboli.api.batch import Job
from stromboli.api.flow import Probe
from stromboli.controllers.changes import Target
from stromboli.controllers.pods import PodView
from stromboli.controllers.world import World

PERIOD: Final = 5.0
"""Seconds for which an answer counts, and after which those that wait are asked again."""

MOST_PODS: Final = 8
"""Pods of one task that are asked; of a larger task the first ones."""

MOST_TARGETS: Final = 32
"""Addresses that are asked for one flow, and of one JobFlow at once."""

LONGEST: Final = 1024
"""Characters of a path, or of a header."""

REMEMBERED: Final = 10_000
"""Answers that are kept; the oldest are forgotten."""


class Answers:
    """What addresses have answered, and when."""

    def __init__(self) -> None:
        self._said: dict[Target, tuple[bool, float]] = {}

    def note(self, target: Target, well: bool, now: float) -> None:
        """An address has answered, well or not."""
        self._said.pop(target, None)
        self._said[target] = well, now
        if len(self._said) > REMEMBERED:
            del self._said[next(iter(self._said))]

    def known(self, target: Target, now: float) -> bool | None:
        """Whether an address has answered well of late; None if that is not known."""
        said = self._said.get(target)
        return said[0] if said is not None and now - said[1] < PERIOD else None

    def heard(self, target: Target) -> float:
        """When it was last known whether an address answers, in seconds since 1970; 0 for never."""
        said = self._said.get(target)
        return said[1] if said is not None else 0.0


class Verdict(NamedTuple):
    """What is known of a probe: whether it ``holds``, else what to ``ask`` and what it ``waits`` for."""

    holds: bool
    ask: tuple[Target, ...] = ()
    waits: str = ""


def verdict(probe: Probe, targets: Iterable[Job], world: World, answers: Answers, now: float) -> Verdict:
    """Whether a probe holds of the jobs that a flow waits for."""
    jobs = list(targets)
    problems = (_task_problem(status.task_name, status.phase, jobs) for status in probe.task_status_list)
    if waits := next(filter(None, problems), ""):
        return Verdict(False, waits=waits)
    wanted: dict[Target, None] = {}
    for task, build in _addressed(probe):
        pods = _pods(task, jobs, world)
        if not pods:
            return Verdict(False, waits=f"task {task[:63]} has no pod yet with an address of its own that may be asked")
        wanted |= {build(pod.address): None for pod in pods}
        if len(wanted) > MOST_TARGETS:
            return Verdict(False, waits=f"its probes name more than {MOST_TARGETS} addresses, too many to be asked")
    return _heard({target: answers.known(target, now) for target in wanted})


def _heard(said: Mapping[Target, bool | None]) -> Verdict:
    """What follows from what each address has said, None where that is not known."""
    silent = next((target for target, well in said.items() if well is False), None)
    waits = f"{silent.address} port {silent.port} does not answer well yet" if silent else ""
    return Verdict(all(said.values()), tuple(target for target, well in said.items() if well is None), waits)


class _Http(NamedTuple):
    port: int
    path: str
    header: tuple[str, str] | None

    def __call__(self, address: str) -> Target:
        return Target(address, self.port, self.path, self.header)


def _addressed(probe: Probe) -> Iterator[tuple[str, _Http]]:
    """The tasks whose pods are asked, and what each of their addresses is asked."""
    for http in probe.http_get_list:
        stated = http.http_header
        header = (stated.name[:LONGEST], stated.value[:LONGEST]) if stated else None
        yield http.task_name, _Http(http.port, "/" + http.path[:LONGEST].removeprefix("/"), header)
    for tcp in probe.tcp_socket_list:
        yield tcp.task_name, _Http(tcp.port, "", None)


def _task_problem(task: str, phase: str, jobs: list[Job]) -> str:
    """What keeps the pods of a task from all being in a phase."""
    for job in jobs:
        for one in job.spec.tasks:
            if one.name == task:
                counts = job.status.task_status_count.get(task)
                found = counts.phase.get(phase, 0) if counts else 0
                enough = found >= one.replicas
                return "" if enough else f"{found} of {one.replicas} pods of task {task[:63]} are {phase[:63]}"
    return f"no job that it waits for has a task {task[:63]}"


def _pods(task: str, jobs: list[Job], world: World) -> list[PodView]:
    """The first pods of a task, by name, that can be asked; none if one of them cannot be yet."""
    found = [
        pod
        for job in jobs
        for pod in world.pods.of_job((job.metadata.namespace, job.metadata.name)).values()
        if pod.task == task and pod.job_uid == job.metadata.uid and not pod.terminating
    ]
    chosen = sorted(found, key=lambda pod: pod.name)[:MOST_PODS]
    return chosen if all(may_be_asked(pod.address) for pod in chosen) else []


def may_be_asked(address: str) -> bool:
    """Whether an address can be a pod's own: none of the machine itself, of its link, of a group, or none at all."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or found
    return not (
        mapped.is_loopback or mapped.is_link_local or mapped.is_multicast or mapped.is_unspecified or mapped.is_reserved
    )

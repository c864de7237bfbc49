"""One look at a JobFlow: its status, and the jobs whose turn it is."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import Any, Final

from stromboli.api.batch import COMPLETED, Job
from stromboli.api.flow import DELETE, FLOW_FAILED, FLOW_SUCCEED, Flow, JobFlow, JobFlowStatus, Probe
from stromboli.api.kinds import JOB_FLOWS, JOBS
from stromboli.controllers.changes import (
    Create,
    Delete,
    Outcome,
    Patch,
    Query,
    Target,
    builtins,
    difference,
    normal,
    subject,
    warning,
)
from stromboli.controllers.job_flows.probes import MOST_TARGETS, PERIOD, Answers, verdict
from stromboli.controllers.job_flows.status import FINAL, status_of
from stromboli.controllers.job_flows.steps import KIND, Jobs, job_body, job_name
from stromboli.controllers.world import Key, World
from stromboli.crds.admission.job_flows import MOST_FLOWS

MOST_MADE: Final = 50
"""Jobs that one look makes; the next one follows at once."""

SOON: Final = 0.2
"""Seconds until a flow is looked at again that has more to do, or has asked something."""


class JobFlowController:
    """Looks at JobFlows.  ``answers`` are those of probes; ``endings`` count flows by namespace and final phase."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.answers = Answers()
        self.endings: Counter[tuple[str, str]] = Counter()
        self._ending: dict[Key, str] = {}

    def look(self, key: Key, now: float) -> Outcome:
        """What is to be done about the JobFlow of that key."""
        flow = self._world.job_flows.get(*key)
        meant = self._ending.pop(key, "")
        if flow is None:
            return Outcome()
        if meant and flow.status.state.phase == meant:
            self.endings[key[0], meant] += 1
        if flow.metadata.deletion_timestamp is not None:
            return Outcome()
        look = Look(flow, self._world, self.answers, now)
        outcome = look.outcome()
        if look.ending:
            self._ending[key] = look.ending
        return outcome


class Look:
    """What one look leads to; ask :meth:`outcome` once.  ``ending`` is the final phase that it means, if any."""

    def __init__(self, flow: JobFlow, world: World, answers: Answers, now: float) -> None:
        self._flow, self._world, self._answers, self._now = flow, world, answers, now
        self._jobs = Jobs(flow, world)
        self._about = subject(KIND, flow.metadata)
        self._outcome = Outcome()
        self._questions: list[tuple[float, tuple[Target, ...]]] = []
        self.ending = ""

    def outcome(self) -> Outcome:
        """The status, then the jobs that nothing keeps back; when all have succeeded, their deletion if so wished."""
        flow, phase = self._flow, self._flow.status.state.phase
        if phase == FLOW_SUCCEED and flow.spec.job_retain_policy == DELETE:
            self._delete_jobs()
        if phase in FINAL:
            return self._outcome
        if len(flow.spec.flows) > MOST_FLOWS:
            return self._outcome.then(warning(self._about, "TooManyFlows", f"it has more than {MOST_FLOWS} flows"))
        status = status_of(flow, self._jobs, self._now)
        self._write(status)
        if status.state.phase in (FLOW_SUCCEED, FLOW_FAILED):
            self.ending = status.state.phase
        else:
            self._make_jobs()
        return self._outcome

    def _delete_jobs(self) -> None:
        metas = [job.metadata for job in self._jobs.own if job.metadata.deletion_timestamp is None]
        self._outcome.then(*(Delete(JOBS, meta.namespace, meta.name, meta.uid) for meta in metas))

    def _write(self, status: JobFlowStatus) -> None:
        meta = self._flow.metadata
        patch = difference(builtins(self._flow.status), builtins(status))
        if patch:
            body = {"metadata": {"resourceVersion": meta.resource_version}, "status": patch}
            self._outcome.then(Patch(JOB_FLOWS, meta.namespace, meta.name, body, status=True))

    # -- Jobs --------------------------------------------------------------------------------------------------------

    def _make_jobs(self) -> None:
        """Make the jobs whose turn it is, as far as their templates are there."""
        steps = {step.name: step for step in self._flow.spec.flows if not self._jobs.phase(step.name)}
        ready = [made for step in steps.values() if self._may_start(step) and (made := self._job(step))]
        self._outcome.then(*ready[:MOST_MADE])
        for made in ready[:MOST_MADE]:
            metadata: Any = made.body["metadata"]
            text = f"create a job named {metadata['name']}!"
            self._outcome.then(normal(self._about, "Created", text, happened=True))
        if len(ready) > MOST_MADE:
            self._outcome.after = SOON
        self._ask()

    def _job(self, step: Flow) -> Create | None:
        """The making of a flow's job; None, and an event, where it cannot be made."""
        namespace, name = self._flow.metadata.namespace, job_name(self._flow, step.name)
        if (other := self._jobs.other(step.name)) is not None:
            owner = next((one.name for one in other.metadata.owner_references if one.controller), "none")
            self._warn("ForeignJob", f"Job {name} exists but is not owned by this JobFlow (current owner: {owner})")
            return None
        template = self._world.job_templates.get(namespace, step.name)
        if template is None:
            missing = f"JobTemplate {namespace}/{step.name} is not there; its job is made once it is"
            self._warn("JobTemplateNotFound", missing)
            return None
        return Create(JOBS, namespace, job_body(self._flow, step, template))

    def _may_start(self, step: Flow) -> bool:
        """Whether the jobs that a flow waits for have completed, or answer its probe."""
        needs = step.depends_on
        if needs is None or not needs.targets:
            return True
        waiting = [name for name in needs.targets if self._jobs.phase(name) != COMPLETED]
        if not waiting or needs.probe is None:
            return not waiting
        jobs = [job for name in waiting if (job := self._jobs.of(name)) is not None]
        return len(jobs) == len(waiting) and self._holds(step.name, needs.probe, jobs)

    def _holds(self, step: str, probe: Probe, jobs: list[Job]) -> bool:
        found = verdict(probe, jobs, self._world, self._answers, self._now)
        if found.holds:
            return True
        if found.ask:
            self._questions.append((min(map(self._answers.heard, found.ask)), found.ask))
        again = SOON if found.ask else PERIOD
        self._outcome.after = again if self._outcome.after is None else min(again, self._outcome.after)
        if found.waits:
            self._outcome.then(normal(self._about, "Waiting", f"flow {step[:63]} waits: {found.waits}"))
        return False

    def _ask(self) -> None:
        """Ask pods, after all else, since some never answer: a few at once, those first that were asked longest ago."""
        chosen: dict[Target, None] = {}
        for _, targets in sorted(self._questions, key=itemgetter(0)):
            if len(chosen) + len(targets) <= MOST_TARGETS:
                chosen |= dict.fromkeys(targets)
        if chosen:
            self._outcome.then(Query(tuple(chosen)))

    def _warn(self, reason: str, text: str) -> None:
        self._outcome.then(warning(self._about, reason, text))

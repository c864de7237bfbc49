"""Jobs that are split into parts, or that must stay close together: tried hypernode by hypernode, best tier first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from stromboli.allocation.nominations import FIRST, use_nomination
from stromboli.allocation.pending_tasks import Worksheet
from stromboli.allocation.place_tasks import Placing, TaskPlacer
from stromboli.errors import PlacementError
from stromboli.framework.session.session import Session
from stromboli.framework.session.shortages import demands
from stromboli.framework.session.topology import is_hard, job_topology
from stromboli.framework.statement.statement import Saved, Statement
from stromboli.model.job import Job
from stromboli.model.podgroup import is_upstream
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.subjobs import SubJob
from stromboli.model.table import Node
from stromboli.model.topology import lowest_common

ALLOCATE = "Allocate"
"""The purpose for which plugins are asked for gradients here."""
MOST_DOMAINS = 64
"""Most domains with room that a PodGroup of Kubernetes' own is tried in where no plugin names some."""


def is_split(session: Session, job: Job) -> bool:
    """Whether the job is placed part by part within hypernodes."""
    return job.facts.is_split or is_hard(job_topology(session, job))


def place_job(session: Session, placing: Placing, job: Job, sheet: Worksheet) -> Statement | None:
    """The best placement of ``job``: every hypernode of the first gradient with a success is tried, the best is done.

    ``sheet`` keeps what is left to place afterwards.  None when no hypernode takes the job, or a handler objects to it.
    """
    job.fit_error_text = ""
    with suppress(PlacementError):
        if (statement := _best_of_gradients(session, placing, job, sheet)) is not None:
            return statement
    session.tell("no_solution", job=job.uid)
    if not job.fits and not session.compat.asks("domain-need"):
        job.fit_error_text = placing.shortages.text(job) or job.fit_error_text
    return None


def settle(session: Session, job: Job, sheet: Worksheet) -> None:
    """What was placed last is committed: the job and its parts lie in the hypernodes that were chosen for them."""
    if sheet.hyper_node:
        for uid, part in session.sub_jobs(job).items():
            part.allocated_hyper_node = sheet.places.get(uid, part.allocated_hyper_node)
        lies_in = lowest_common(session.hyper_nodes, job.hyper_nodes.allocated, sheet.hyper_node)
        job.hyper_nodes = job.hyper_nodes.with_allocated(lies_in)
        session.pod_groups.moved.add(job.uid)


def _best_of_gradients(session: Session, placing: Placing, job: Job, sheet: Worksheet) -> Statement | None:
    for gradient in _gradients(session, placing, job):
        part = _lone_part(session, job, gradient)
        found = (
            _first_of(session, placing, job, sheet, part, gradient)
            if part is not None
            else _best_of(session, placing, job, sheet, gradient)
        )
        if found is not None:
            statement, left, name = found
            sheet.adopt(left, name)
            session.tell("job_in_hyper_node", job=job.uid, hyper_node=name)
            return statement
    return None


def _gradients(session: Session, placing: Placing, job: Job) -> Sequence[Sequence[HyperNodeInfo]]:
    """The domains to be tried.  Those of Kubernetes' own PodGroups need no plugin: their key says all."""
    if session.hooks.answers.of("hyper_node_gradient_for_job") or not is_upstream(job.uid):
        return session.ask.hyper_node_gradient_for_job(job, session.hyper_nodes.top, ALLOCATE)
    found = [
        each.domain
        for demand in demands(session, job)
        for each in placing.shortages.of(demand)
        if not each.lacks and each.domain.tier == demand.topology.highest_tier_allowed
    ]
    return [found[:MOST_DOMAINS]]


Placed = tuple[Statement, Worksheet, str]
"""A job's placement, what it leaves to place, and the hypernode."""


def _lone_part(session: Session, job: Job, gradient: Sequence[HyperNodeInfo]) -> SubJob | None:
    """The part of a job that has only one, nothing of it placed, if no hypernode of ``gradient`` has others below."""
    parts = list(session.sub_jobs(job).values())
    if len(parts) > 1 or parts[0].allocated_hyper_node or job.hyper_nodes.nominated:
        return None
    return None if any(info.children for info in gradient) else parts[0]


def _first_of(
    session: Session, placing: Placing, job: Job, sheet: Worksheet, part: SubJob, gradient: Sequence[HyperNodeInfo]
) -> Placed | None:
    """The best placement of a lone part: its score is known beforehand, so the first that works is the best."""
    last: Mapping[str, object] = {}
    for hyper_node, _score in _by_score(session, part, gradient):
        found = _try_job(session, placing, job, sheet, hyper_node)
        if found is not None:
            return found[1:]
        last = dict(job.fits) if hyper_node is gradient[-1] else last
    job.fits = dict(last)
    return None


def _by_score(
    session: Session, part: SubJob, gradient: Sequence[HyperNodeInfo]
) -> Iterator[tuple[HyperNodeInfo, float]]:
    """``gradient`` and scores, the best for ``part`` first; asked after each, as ties count among those left."""
    left = {info.name: info for info in gradient}
    while left:
        scores = session.ask.hyper_node_order(part, NodesBelow(session, left))
        best = max(left, key=defaultdict(float, scores).__getitem__)
        yield left.pop(best), scores.get(best, 0.0)


def _best_of(
    session: Session, placing: Placing, job: Job, sheet: Worksheet, gradient: Sequence[HyperNodeInfo]
) -> Placed | None:
    """The placement whose parts score best of all in ``gradient``."""
    tried: list[tuple[float, Saved, Worksheet, str]] = []
    for hyper_node in gradient:
        if (found := _try_job(session, placing, job, sheet, hyper_node)) is not None:
            score, statement, left, name = found
            tried.append((score, statement.save(), left, name))
            statement.discard()
    if not tried:
        return None
    _score, saved, left, name = max(tried, key=lambda found: found[0])
    return _again(session, saved), left, name


def _try_job(
    session: Session, placing: Placing, job: Job, sheet: Worksheet, hyper_node: HyperNodeInfo
) -> tuple[float, Statement, Worksheet, str] | None:
    """Place the parts of ``job`` below ``hyper_node``; None, nothing changed, if that does not do."""
    job.fits.clear()
    left = sheet.clone()
    parts = session.sub_jobs(job).values()
    before = [part.allocated_hyper_node for part in parts]
    try:
        with session.statement() as trial:
            score = _place_parts(session, placing, job, left, hyper_node, trial)
            left.places = {part.uid: part.allocated_hyper_node for part in parts}
            if not trial.operations or not (session.ask.job_ready(job) or session.ask.job_pipelined(job)):
                return None
            placed = session.statement()
            placed.merge(trial)
    finally:
        for part, place in zip(parts, before, strict=True):
            part.allocated_hyper_node = place
    return score, placed, left, hyper_node.name


def _place_parts(
    session: Session, placing: Placing, job: Job, left: Worksheet, hyper_node: HyperNodeInfo, trial: Statement
) -> float:
    """Place parts in their turns until the job is ready, recorded in ``trial``; their scores added up."""
    score = 0.0
    while len(left):
        part = left.queue.pop()
        found = _place_part(session, placing, job, part, left, hyper_node)
        if found is None or not found[0].operations:
            continue
        trial.merge(found[0])
        score += found[1]
        if len(left.sheets[part.uid]):
            left.queue.push(part)
        if session.ask.job_ready(job):
            break
    return score


def _place_part(
    session: Session, placing: Placing, job: Job, part: SubJob, sheet: Worksheet, hyper_node: HyperNodeInfo
) -> tuple[Statement, float] | None:
    """The best placement of one part below ``hyper_node``, done, with its score."""
    nominated = job.hyper_nodes.nominated.get(part.uid, "")
    if (placed := use_nomination(session, job, part, sheet.sheets[part.uid], hyper_node)) is not None:
        _lies(session, part, nominated)
        return placed, FIRST
    for gradient in session.ask.hyper_node_gradient_for_sub_job(part, hyper_node, ALLOCATE):
        if (found := _first_for_part(session, placing, job, part, sheet, gradient)) is not None:
            return found
    return None


def _first_for_part(
    session: Session, placing: Placing, job: Job, part: SubJob, sheet: Worksheet, gradient: Sequence[HyperNodeInfo]
) -> tuple[Statement, float] | None:
    last: Mapping[str, object] = {}
    for candidate, score in _by_score(session, part, gradient):
        for uid in part.task_uids:
            job.fits.pop(uid, None)
        tasks = sheet.sheets[part.uid].clone()
        placed = TaskPlacer(session, placing.events, job, part, tasks, candidate).run()
        if placed is not None and placed.operations:
            sheet.sheets[part.uid] = tasks
            _lies(session, part, candidate.name)
            session.tell("sub_job_in_hyper_node", sub_job=part.uid, hyper_node=candidate.name)
            return placed, score
        last = dict(job.fits) if candidate is gradient[-1] else last
    job.fits = dict(last)
    return None


class NodesBelow(Mapping[str, Sequence[Node]]):
    """The nodes below each of some hypernodes by name; listed only when they are looked at."""

    def __init__(self, session: Session, names: Collection[str]) -> None:
        self._session, self._names = session, names

    def __getitem__(self, name: str) -> Sequence[Node]:
        if name not in self._names:
            raise KeyError(name)
        return [Node(self._session.table, row) for row in self._session.hyper_nodes[name].rows]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _lies(session: Session, part: SubJob, hyper_node: str) -> None:
    """Something of ``part`` was placed in ``hyper_node``: it lies in what holds that and where it lay before."""
    part.allocated_hyper_node = lowest_common(session.hyper_nodes, part.allocated_hyper_node, hyper_node)


def _again(session: Session, saved: Saved) -> Statement:
    """A statement with the saved operations done again; nothing is left of them if one fails."""
    with session.statement() as trial:
        trial.recover(saved)
        statement = session.statement()
        statement.merge(trial)
    return statement

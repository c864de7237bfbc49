"""Jobs that are split into parts, or that must stay close together: tried hypernode by hypernode, best tier first."""

from __future__ import annotations

from contextlib import suppress

from stromboli.actions.place_tasks import Lines, TaskPlacer
from stromboli.actions.worksheet import Worksheet
from stromboli.errors import PlacementError
from stromboli.framework.session import Session
from stromboli.framework.statement import Saved, Statement
from stromboli.framework.topology import is_hard, job_topology
from stromboli.model.job import Job
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.subjobs import SubJob

ALLOCATE = "Allocate"
"""The purpose for which plugins are asked for gradients here."""


def is_split(session: Session, job: Job) -> bool:
    """Whether the job is placed part by part within hypernodes."""
    return job.has_sub_group_policy or is_hard(job_topology(session, job))


def place_job(session: Session, lines: Lines, job: Job, sheet: Worksheet) -> Statement | None:
    """The best placement of ``job``: every hypernode of the first gradient with a success is tried, the best is done.

    ``sheet`` keeps what is left to place afterwards.  None when no hypernode takes the job, or a handler objects to it.
    """
    with suppress(PlacementError):
        if (statement := _best_of_gradients(session, lines, job, sheet)) is not None:
            return statement
    if say := session.tells("no_solution"):
        say(job=job.uid)
    return None


def _best_of_gradients(session: Session, lines: Lines, job: Job, sheet: Worksheet) -> Statement | None:
    for gradient in session.ask.hyper_node_gradient_for_job(job, session.top, ALLOCATE):
        tried = [
            found for hyper_node in gradient if (found := _try_job(session, lines, job, sheet, hyper_node)) is not None
        ]
        if tried:
            _score, saved, left, name = max(tried, key=lambda found: found[0])
            statement = _again(session, saved)
            sheet.adopt(left)
            session.mark_job_dirty(job.uid)
            if say := session.tells("job_in_hyper_node"):
                say(job=job.uid, hyper_node=name)
            return statement
    return None


def _try_job(
    session: Session, lines: Lines, job: Job, sheet: Worksheet, hyper_node: HyperNodeInfo
) -> tuple[float, Saved, Worksheet, str] | None:
    """Place the parts of ``job`` below ``hyper_node`` and take it back; the operations if that would do."""
    job.fits.clear()
    left, score = sheet.clone(), 0.0
    with session.statement() as trial:
        while len(left):
            part = left.turns.pop()
            found = _place_part(session, lines, job, part, left, hyper_node)
            if found is None or not found[0].entries:
                continue
            trial.merge(found[0])
            score += found[1]
            if len(left.sheets[part.uid]):
                left.turns.push(part)
            if session.ask.job_ready(job):
                break
        saved = trial.save()
        works = bool(saved) and (session.ask.job_ready(job) or session.ask.job_pipelined(job))
    return (score, saved, left, hyper_node.name) if works else None


def _place_part(
    session: Session, lines: Lines, job: Job, part: SubJob, sheet: Worksheet, hyper_node: HyperNodeInfo
) -> tuple[Statement, float] | None:
    """The best placement of one part below ``hyper_node``, done, with its score."""
    for gradient in session.ask.hyper_node_gradient_for_sub_job(part, hyper_node, ALLOCATE):
        tried: dict[str, tuple[Saved, int]] = {}
        for candidate in gradient:
            for uid in part.task_uids:
                job.fits.pop(uid, None)
            tasks = sheet.sheets[part.uid].clone()
            statement = TaskPlacer(session, lines, job, part, tasks, candidate).run()
            if statement is not None and statement.entries:
                tried[candidate.name] = statement.save(), tasks.next
                statement.discard()
        if tried:
            return _best_part(session, part, sheet, tried)
    return None


def _best_part(
    session: Session, part: SubJob, sheet: Worksheet, tried: dict[str, tuple[Saved, int]]
) -> tuple[Statement, float]:
    rows = (
        {name: [session.node_list[row] for row in session.hyper_nodes[name].rows] for name in tried}
        if len(tried) > 1
        else {}
    )
    scores = session.ask.hyper_node_order(part, rows) if rows else {}
    best = max(tried, key=lambda name: scores.get(name, 0.0))
    saved, taken = tried[best]
    statement = _again(session, saved)
    sheet.sheets[part.uid].next = taken
    if say := session.tells("sub_job_in_hyper_node"):
        say(sub_job=part.uid, hyper_node=best)
    return statement, scores.get(best, 0.0)


def _again(session: Session, saved: Saved) -> Statement:
    """A statement with the saved operations done again; nothing is left of them if one fails."""
    with session.statement() as trial:
        trial.recover(saved)
        statement = session.statement()
        statement.merge(trial)
    return statement

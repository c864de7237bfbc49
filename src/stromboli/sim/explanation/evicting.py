"""The steps of an explanation that are about evicting others: starving, candidates, victims, node and quota, gang."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stromboli.cycle import run_actions
from stromboli.framework.session.admission import Refusal
from stromboli.framework.session.session import Session
from stromboli.model.job import BINDING, BOUND, PIPELINED, RUNNING, SUCCEEDED, Job
from stromboli.sim.explanation.eviction_trace import POINTS, EvictionTrace, Look, Start
from stromboli.sim.explanation.notes import Refused
from stromboli.sim.explanation.reasons import numbers_of, quota_text
from stromboli.sim.explanation.step import Step
from stromboli.sim.planning import Planning

PLACED = (BINDING, BOUND, RUNNING, SUCCEEDED)
SHOWN = 8
"""How many nodes, or reasons, are spelt out."""


def evicts(planning: Planning) -> bool:
    """Whether the configuration has an action that is explained here."""
    return any(action in POINTS for action in planning.config.actions)


def eviction_steps(planning: Planning, uid: str) -> list[Step]:
    """How job ``uid`` fared in preempt and reclaim, up to the first step that fails; nothing where it needs neither."""
    trace = EvictionTrace(uid)
    with Session.open(
        planning.state.snapshot(), planning.config, planning.registry, planning.now, planning.seed, trace
    ) as session:
        trace.session = session
        run_actions(session)
    job = session.jobs.peek_at(uid)
    return [] if job is None or not trace.starts or _waits(trace) else list(_until_no(_steps(session, job, trace)))


def _waits(trace: EvictionTrace) -> bool:
    """Whether all that the job needs is room that it holds already: it has no need to take any from others."""
    ready, waiting, minimum = trace.content or (0, 0, 0)
    return bool(waiting) and ready + waiting >= minimum


def _until_no(steps: Iterator[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        if step.ok is False:
            return


def _steps(session: Session, job: Job, trace: EvictionTrace) -> Iterator[Step]:
    start = _told_start(trace)
    yield _starving(start, trace)
    yield _candidates(start)
    if trace.excluded:
        yield Step(7, "policy", False, trace.excluded)
    never = [why for why in trace.failures.values() if "Never" in why]
    if never and not trace.looks:
        yield Step(7, "policy", False, "preemptionPolicy Never")
    waits = bool(trace.postponed) and session.ask.job_starving(job)  # else another action has found quicker victims
    if trace.looks or not waits:
        yield _victims(trace)
        yield _node_and_quota(job, trace)
    if waits:
        yield Step(6, "patience", False, f"{trace.postponed}, and room may turn up meanwhile")
    yield _pipelined(job, trace)
    yield _committed(session, job, trace)


def _told_start(trace: EvictionTrace) -> Start:
    """The action that tells most: the first that had candidates, else the first."""
    return next((start for start in trace.starts if start.left), trace.starts[0])


def _starving(start: Start, trace: EvictionTrace) -> Step:
    if trace.content is not None:
        ready, waiting, minimum = trace.content
        text = f"not starving: ready {ready} + waiting {waiting} >= minAvailable {minimum}"
        if ready + waiting < minimum:
            text = f"a plugin says that it has enough: ready {ready} + waiting {waiting}, minAvailable {minimum}"
        return Step(1, "starving", False, text, (), {"job": {"ready": ready, "waiting": waiting, "min": minimum}})
    text = f"ready {start.ready} + waiting {start.waiting} < {start.minimum}"
    if start.ready + start.waiting >= start.minimum:
        text = f"ready {start.ready} + waiting {start.waiting} of {start.pending}"
    numbers = {"job": {"ready": start.ready, "waiting": start.waiting, "min": start.minimum}}
    return Step(1, "starving", True, text, (), {name: _floats(values) for name, values in numbers.items()})


def _floats(values: dict[str, int]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _candidates(start: Start) -> Step:
    dropped = ", ".join(f"{count} {why}" for why, count in start.dropped.items())
    seen = f"{start.pods} tasks on {start.nodes} node{'' if start.nodes == 1 else 's'}"
    numbers = {"tasks": _floats({"seen": start.pods, "left": start.left, **start.dropped})}
    if not start.left:
        return Step(3, "candidates", False, f"no victims: {seen}; {dropped or 'no pods there'}", (), numbers)
    text = f"{start.left} of {seen}" + (f" ({dropped})" if dropped else "")
    return Step(3, "candidates", True, text, (), numbers)


def _victims(trace: EvictionTrace) -> Step:
    looks = [look for look in trace.looks if look.candidates]
    if not trace.looks:
        lines = tuple(f"{task}: {why}" for task, why in list(trace.failures.items())[:SHOWN])
        return Step(5, "node", False, "no node is worth a try", lines)
    candidates = sum(look.candidates for look in looks)
    agreed = sum(look.agreed for look in looks)
    refusals = _refusals(looks)
    lines = tuple(dict.fromkeys(_ballot_lines(looks)))[: 2 * SHOWN]
    text = f"{agreed} of {candidates} on the nodes that were tried"
    return Step(4, "victims", any(look.agreed or not look.lack for look in trace.looks), text, lines, {}, refusals)


def _ballot_lines(looks: Sequence[Look]) -> Iterator[str]:
    for look in looks[:SHOWN]:
        for ballot in look.ballots:
            yield f"{look.node}: {ballot.plugin} (tier {ballot.tier}) names {ballot.named} of {ballot.candidates}"
            for why, count in ballot.why.items():
                yield f"  {count} spared: {why}"


def _refusals(looks: Sequence[Look]) -> tuple[Refusal, ...]:
    found = {(b.plugin, why, b.tier): None for look in looks for b in look.ballots for why in b.why}
    return tuple(Refusal(plugin, why, tier) for plugin, why, tier in found)


def _node_and_quota(job: Job, trace: EvictionTrace) -> Step:
    failed = [look for look in trace.looks if not look.reserved]
    lines = tuple(dict.fromkeys(map(_why_not, failed)))[:SHOWN]
    if reserved := [look for look in trace.looks if look.reserved]:
        placed = sum({look.task: look.places for look in reserved}.values())  # a later action may have tried again
        where = (f"{look.task} -> {look.node}{_after(look)}" for look in reserved)
        return Step(5, "node", True, f"{placed} of its pods could be placed", (*where, *lines))
    if refused := [look.quota for look in failed if look.quota and not look.lack]:
        numbers, why = numbers_of(refused[-1]), _quota(refused[-1])
        return Step(5, "quota", False, why, lines, numbers, (Refusal(refused[-1].plugin, why, 0, numbers),))
    return Step(5, "node", False, "no node takes any of its pods", (*lines, *trace.failures.values()))


def _after(look: Look) -> str:
    return f" after evicting {', '.join(look.tried)}" if look.tried else " without evicting a pod"


def _why_not(look: Look) -> str:
    if look.lack:
        return f"{look.node}: {look.lack}"
    if look.quota is not None:
        return f"{look.node}: with {len(look.tried)} evicted, {_quota(look.quota)}"
    return f"{look.node}: with {len(look.tried)} evicted the pod still does not fit, or predicates refuse it"


def _quota(said: Refused) -> str:
    """What the queue said against one more pod."""
    return f"queue {said.queue} is {said.state}, not Open" if said.state else quota_text(said.queue, numbers_of(said))


def _pipelined(job: Job, trace: EvictionTrace) -> Step:
    have, coming = job.number(*PLACED), job.number(PIPELINED)
    have += job.pending_best_effort_num()
    placed = len({look.task for look in trace.looks if look.reserved})
    if have + coming >= job.min_available and coming:
        return Step(6, "pipelined", True, f"{coming} wait for room, {have} run, {job.min_available} needed")
    text = f"{placed} of {max(job.min_available - have, 0)} that are missing: undone, no pod evicted"
    return Step(6, "pipelined", False, text)


def _committed(session: Session, job: Job, trace: EvictionTrace) -> Step:
    gone = {eviction.key for eviction in session.plan.evictions}
    victims = list(dict.fromkeys(key for look in trace.looks if look.reserved for key in look.tried if key in gone))
    nodes = sorted({task.node_name for task in job.of(PIPELINED)})
    text = f"{len(victims)} evicted; waits for room on {', '.join(nodes)}"
    return Step(7, "evicted", True, text, tuple(victims))

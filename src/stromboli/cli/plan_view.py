"""The plan as people read it: jobs, why some wait, queues, nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.text import Text

from stromboli.cli.terminal import counted, indented, print_table, table
from stromboli.cli.usage_view import show_nodes, show_queues, show_usage
from stromboli.model.job import Job
from stromboli.model.topology import ancestors
from stromboli.sim.explanation.reasons import PLACES, Cycle, Reason
from stromboli.sim.planning import Planning

MOST_JOBS = 30
"""Rows of jobs of each sort, unless all are asked for."""

SHOWN_NAMES = 3
"""Jobs named where many wait for the same reason."""

GOOD, PART, BAD, DIM = "green", "yellow", "red", "dim"


def show_plan(console: Console, planning: Planning, reasons: Mapping[str, Reason], *, wide: bool = False) -> None:
    """Print the plan; ``wide`` lists every job, pod and node."""
    cycle = planning.last
    most = 10**9 if wide else MOST_JOBS
    _headline(console, planning, cycle, reasons)
    _jobs(console, cycle, reasons, most, wide=wide)
    _reasons(console, reasons, most)
    if wide:
        _pods(console, planning, cycle, reasons)
    show_queues(console, cycle)
    show_usage(console, cycle)
    if wide:
        show_nodes(console, cycle)


def _headline(console: Console, planning: Planning, cycle: Cycle, reasons: Mapping[str, Reason]) -> None:
    binds = sum(len(plan.binds) for plan in planning.plans)
    waiting = sum(len(reason.waiting) for reason in reasons.values())
    cycles = f" in {len(planning.plans)} cycles" if len(planning.plans) > 1 else ""
    session = cycle.session
    sizes = (sum(1 for _ in cycle.jobs()), "job"), (len(session.queues), "queue"), (len(session.table), "node")
    text = Text.assemble(
        (counted(binds, "pod"), f"bold {GOOD}" if binds else "bold"),
        f" bound{cycles}, ",
        (counted(waiting, "pod"), f"bold {BAD}" if waiting else "bold"),
        f" of {counted(len(reasons), 'job')} wait",
        (f" ({', '.join(counted(*size) for size in sizes)})", DIM),
    )
    if evicted := sum(len(plan.evictions) for plan in planning.plans):
        text.append(f", {counted(evicted, 'pod')} evicted", style=PART)
    console.print(text)


# ---------------------------------------------------------------------- jobs


def _jobs(console: Console, cycle: Cycle, reasons: Mapping[str, Reason], most: int, *, wide: bool) -> None:
    """Jobs in one table, those that wait last."""
    jobs = list(cycle.jobs())
    if not jobs:
        return
    waiting = [job for job in jobs if job.uid in reasons]
    running = [job for job in jobs if job.uid not in reasons]
    domains = ("DOMAIN",) if wide and any(job.facts.is_close for job in jobs) else ()
    view = table("", "JOB", "QUEUE", ">PRIORITY", ">BOUND/NEEDED", ">PODS", "PHASE", *domains)
    for job in (*running[:most], *waiting[:most]):
        place = (Text(_shown_domain(cycle, job)),) if domains else ()
        view.add_row(*_job_row(cycle, job, reasons.get(job.uid)), *place)
    console.print()
    print_table(console, view)
    _more(console, len(running) - most, "jobs that have all their pods")
    _more(console, len(waiting) - most, "jobs that wait")


def _more(console: Console, number: int, what: str) -> None:
    if number > 0:
        console.print(Text(f"  ... and {number:,} more {what} (-o wide lists all)", style=DIM))


def _job_row(cycle: Cycle, job: Job, reason: Reason | None) -> list[Text]:
    mark, style = _mark(job, reason)
    bound = job.number(*PLACES)
    return [
        Text(mark, style=style),
        Text(job.uid),
        Text(job.queue),
        Text(str(job.priority)),
        Text.assemble((str(bound), style), f"/{job.min_available}"),
        Text(str(len(job.tasks))),
        Text(cycle.phase(job)),
    ]


def _shown_domain(cycle: Cycle, job: Job) -> str:
    """Where a job that asks to stay close lies, with the tier; ``-`` for one that lies nowhere or does not ask."""
    place = cycle.session.hyper_nodes.get(job.hyper_nodes.allocated)
    return f"{place.name} (tier {place.tier})" if place is not None else "-"


def _mark(job: Job, reason: Reason | None) -> tuple[str, str]:
    if reason is None:
        return "✓", GOOD
    return ("~", PART) if reason.bound and reason.bound >= job.min_available else ("✗", BAD)


# ---------------------------------------------------------------------- reasons


def _reasons(console: Console, reasons: Mapping[str, Reason], most: int) -> None:
    """Why jobs wait: each reason once with the jobs it applies to; beyond ``most`` reasons only their kind."""
    if not reasons:
        return
    console.print()
    console.print(Text("Why they wait", style="bold"))
    groups: dict[str, list[str]] = {}
    for uid, reason in reasons.items():
        groups.setdefault(reason.message, []).append(uid)
    for message, uids in list(groups.items())[:most]:
        first = reasons[uids[0]]
        indented(console, _names(uids), 2, BAD if first.bound < first.needed else PART)
        indented(console, message, 4)
    beyond = [reasons[uid].cause for uids in list(groups.values())[most:] for uid in uids]
    for cause, count in _tally(beyond):
        console.print(Text(f"  {counted(count, 'more job')}: {cause}"))
    console.print(Text("  stromboli plan ... --explain JOB tells a job's way step by step", style=DIM))


def _names(uids: list[str]) -> str:
    """The first few jobs that have a reason in common."""
    beyond = len(uids) - SHOWN_NAMES
    return ", ".join(uids[:SHOWN_NAMES]) + (f" and {beyond:,} more" if beyond > 0 else "")


def _tally(texts: Iterable[str]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])


# ---------------------------------------------------------------------- pods


def _pods(console: Console, planning: Planning, cycle: Cycle, reasons: Mapping[str, Reason]) -> None:
    """Every pod that the plan binds, and every one that waits."""
    paths = _paths(cycle)
    view = table("POD", "JOB", "NODE", *(("DOMAIN",) if paths else ()))
    for plan in planning.plans:
        for bind in plan.binds:
            path = (Text(paths.get(bind.node, "-")),) if paths else ()
            view.add_row(Text(bind.key), Text(bind.job), Text(bind.node, style=GOOD), *path)
    held = {one.key: one.node for one in cycle.session.plan.reservations}
    for uid, reason in reasons.items():
        for key in reason.waiting:
            where = f"waits for room on {held[key]}" if key in held else f"waits: {reason.cause}"
            view.add_row(Text(key), Text(uid), Text(where, style=BAD))
    console.print()
    print_table(console, view)


def _paths(cycle: Cycle) -> dict[str, str]:
    """By node the HyperNodes that it lies in, the widest first; empty where there are none."""
    hyper_nodes, names = cycle.session.hyper_nodes, cycle.session.table.statics.names
    found: dict[str, str] = {}
    for tier in hyper_nodes.by_tier.values():
        for info in (hyper_nodes[name] for name in tier if name != hyper_nodes.top.name):
            path = "/".join(name for name in ancestors(hyper_nodes, info.name)[::-1] if name != hyper_nodes.top.name)
            for row in info.rows:
                found.setdefault(names[row], path)
    return found

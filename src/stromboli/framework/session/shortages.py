"""What the domains of the network lack for a job that must lie in one of them, in figures and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stromboli.api.fields import NetworkTopology
from stromboli.framework.books.domains import Domains
from stromboli.framework.extension.figures import amounts_text, by_name
from stromboli.framework.session.topology import is_hard, job_topology
from stromboli.model.job import PENDING, Job
from stromboli.model.names import PODS
from stromboli.model.resources.axes import Vector, add_to
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.subjobs import SubJob
from stromboli.model.table import Ints
from stromboli.model.task import Task
from stromboli.model.topology import ancestors

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

MOST_LINES: Final = 8
"""So many domains are named."""


def least_need(tasks: Sequence[Task], count: int) -> list[int]:
    """What any ``count`` of ``tasks`` request at least, by column."""
    if count >= len(tasks):
        return add_up(tasks)
    rows = [task.template.vector for task in tasks]
    width = max(map(len, rows), default=0)
    return [sum(sorted(row[column] if column < len(row) else 0 for row in rows)[:count]) for column in range(width)]


def add_up(tasks: Iterable[Task]) -> list[int]:
    """What ``tasks`` request together, by column."""
    total: list[int] = []
    for template, times in Counter(task.template for task in tasks).items():
        add_to(total, template.vector, times)
    return total


def needed_at_once(part: SubJob | Job, tasks: Iterable[Task]) -> list[int]:
    """What those of ``tasks`` request at least that ``part`` needs to become ready; at least one of them."""
    pending = [task for task in tasks if task.status is PENDING and not task.best_effort]
    have = part.ready_task_num() + part.pending_best_effort_num()
    return least_need(pending, max(part.min_available - have, 1))


class Demand(NamedTuple):
    """What a job, or a part of one, needs at once below one hypernode; it may lie in one already."""

    name: str
    topology: NetworkTopology
    lies_in: str
    need: Vector


class Shortage(NamedTuple):
    """One domain, and what of a demand it lacks now, and would lack if it were empty; by name."""

    domain: HyperNodeInfo
    lacks: Mapping[str, float]
    lacks_empty: Mapping[str, float]


def demands(session: ClusterView, job: Job) -> Iterator[Demand]:
    """What ``job`` and its parts that are not ready need within a domain each, where any of their tasks wait."""
    topology = job_topology(session, job)
    if topology is not None and is_hard(topology) and any(need := needed_at_once(job, job.tasks.values())):
        yield Demand(f"job {job.name}", topology, job.hyper_nodes.allocated, need)
    for part in session.sub_jobs(job).values() if job.facts.is_split else ():
        topology = part.network_topology
        if topology is None or not is_hard(topology) or part.is_ready():
            continue
        if any(need := needed_at_once(part, part.tasks)):
            yield Demand(f"part {part.uid.removeprefix(f'{job.uid}/')}", topology, part.allocated_hyper_node, need)


class Shortages:
    """The shortages of a session's domains; sums are renewed when nodes have changed."""

    def __init__(self, session: ClusterView) -> None:
        self.session = session
        self._domains: Domains | None = None
        self._seen = 0

    @property
    def domains(self) -> Domains:
        """The domains as they stand."""
        seen = len(self.session.table.journal)
        if self._domains is None or self._seen != seen:
            self._domains, self._seen = Domains(self.session.hyper_nodes, self.session.table), seen
        return self._domains

    def of(self, demand: Demand) -> list[Shortage]:
        """Every domain that ``demand`` may use, that which lacks least first."""
        highest = demand.topology.highest_tier_allowed
        infos = self.session.hyper_nodes
        if demand.lies_in:
            around = [infos[name] for name in ancestors(infos, demand.lies_in) if infos[name].tier <= (highest or 0)]
            return self._of(demand.need, around[-1:])
        return self._of(demand.need, [info for info in self.domains.infos if info.tier <= (highest or 0)])

    def wider(self, demand: Demand) -> HyperNodeInfo | None:
        """The closest domain beyond the allowed tier that would have the room."""
        highest = demand.topology.highest_tier_allowed or 0
        beyond = self._of(demand.need, [info for info in self.domains.infos if info.tier > highest])
        return min((each.domain for each in beyond if not each.lacks), key=_by_tier, default=None)

    def _of(self, need: Vector, infos: Sequence[HyperNodeInfo]) -> list[Shortage]:
        domains = self.domains
        columns = [column for column, amount in enumerate(need) if amount]
        rows = [(info, domains.index[info.name]) for info in infos if info.name in domains.index]
        room = np.maximum(domains.idle, domains.future)
        found = [
            Shortage(info, self._lacks(need, columns, room, number), self._lacks(need, columns, domains.alloc, number))
            for info, number in rows
        ]
        wanted = by_name(self.session.axes.resource(need))
        return sorted(found, key=lambda each: (_part(each.lacks, wanted), *_by_tier(each.domain)))

    def _lacks(self, need: Vector, columns: Sequence[int], room: Ints, number: int) -> dict[str, float]:
        short = [0] * len(need)
        for column in columns:
            short[column] = max(need[column] - (int(room[column, number]) if column < len(room) else 0), 0)
        return by_name(self.session.axes.resource(short))

    # ------------------------------------------------------------------ words

    def text(self, job: Job) -> str:
        """Why no domain takes ``job``: the first demand for which none has the room; empty where one has."""
        for demand in demands(self.session, job):
            found = self.of(demand)
            if all(each.lacks for each in found):
                return f"{self.needs(demand)}: {self._nearest(found)}{self._elsewhere(demand)}"
        return ""

    def lines(self, job: Job) -> list[str]:
        """What each domain lacks for ``job`` and its parts, and where there would be room."""
        lines: list[str] = []
        for demand in demands(self.session, job):
            found = self.of(demand)
            lines.append(f"{self.needs(demand)}:")
            refused = bool(job.fit_error_text) and not all(each.lacks for each in found)
            lines += [f"  {domain_text(each, refused=refused)}" for each in found[:MOST_LINES]]
            lines += [f"  and {len(found) - MOST_LINES} more HyperNodes"] if len(found) > MOST_LINES else []
            if all(each.lacks for each in found) and (elsewhere := self._elsewhere(demand)):
                lines.append(f"  {elsewhere.removeprefix('; ')}")
        return lines

    def needs(self, demand: Demand) -> str:
        """What is needed, and where."""
        amounts = _without_pods(by_name(self.session.axes.resource(demand.need)))
        tier = demand.topology.highest_tier_allowed
        if not tier and (label := demand.topology.highest_tier_name):
            return f"{demand.name} needs {amounts} at once on nodes with one value of {label:.63}"
        lies = f" around {demand.lies_in}, where its pods run" if demand.lies_in else ""
        return f"{demand.name} needs {amounts} at once in one HyperNode up to tier {tier}{lies}"

    def _nearest(self, found: Sequence[Shortage]) -> str:
        if not found:
            return (
                "there is none"  # no node bears the label, or there are HyperNodes and none of their tiers is called so
            )
        of = f", the nearest of {len(found)}," if len(found) > 1 else ""
        return f"{found[0].domain.name}{of} lacks {_without_pods(found[0].lacks)}"

    def _elsewhere(self, demand: Demand) -> str:
        info = None if demand.lies_in or not demand.topology.highest_tier_allowed else self.wider(demand)
        return f"; {info.name} of tier {info.tier} would have the room" if info is not None else ""


def domain_text(each: Shortage, *, refused: bool = False) -> str:
    """What one domain lacks; one that lacks nothing may be ``refused`` for another reason."""
    nodes = f"{len(each.domain.rows)} node{'' if len(each.domain.rows) == 1 else 's'}"
    name = f"{each.domain.name} (tier {each.domain.tier}, {nodes})"
    if not each.lacks:
        return f"{name} has the room" + ("" if refused else ", though not for each pod on a node")
    never = f", and {_without_pods(each.lacks_empty)} even if it were empty" if each.lacks_empty else ""
    return f"{name} lacks {_without_pods(each.lacks)}{never}"


def _part(lacks: Mapping[str, float], wanted: Mapping[str, float]) -> float:
    """How much is missing, the dimensions as parts of what is wanted added up."""
    return sum(amount / wanted[name] for name, amount in lacks.items())


def _by_tier(info: HyperNodeInfo) -> tuple[int, str]:
    return info.tier, info.name


def _without_pods(amounts: Mapping[str, float]) -> str:
    alone = {name: value for name, value in amounts.items() if name != PODS}
    return amounts_text(alone or amounts)

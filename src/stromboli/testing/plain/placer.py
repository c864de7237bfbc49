"""The choice among the nodes, one task at a time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Protocol

from stromboli.framework.engine.fits import ABORTING, Fits
from stromboli.framework.engine.placement import Choice  # the record alone: two fields, no arithmetic
from stromboli.framework.engine.sampling import sampler_of
from stromboli.framework.engine.shards import own_rows
from stromboli.framework.extension.reason import Reason
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.names import NODE_NOT_IN_SHARD
from stromboli.model.table import Bools
from stromboli.model.task import Task
from stromboli.testing.plain import choosers
from stromboli.testing.plain.rules import Verdict, session_rules
from stromboli.testing.plain.scores import Scores
from stromboli.testing.plain.world import Amounts, PlainWorld, Site

INSUFFICIENT = Reason("Insufficient {resource}")


class Marks(Protocol):
    """Yes or no for each row of the node table."""

    def __getitem__(self, row: int, /) -> object:
        """Whether the row is marked."""


class PlainPlacer:
    """A :class:`~stromboli.framework.engine.placer.Placer` that looks at every node again for every task.

    1. A node must have the room, future room counted, and pass the predicates of all plugins.
    2. Nodes with idle room come first; only without any those whose room is about to become free.
    3. Among these the highest score wins, in ties the first node (or one drawn by the session's seed).

    ``draws`` counts what was drawn so far.
    """

    def __init__(self, session: Session, draws: int = 0) -> None:
        self.session, self.draws = session, draws
        self.rules = session_rules(session)
        self._world: tuple[int, PlainWorld] | None = None

    # ------------------------------------------------------------------ the seam

    def place(self, task: Task, within: Marks | None = None, *, room: bool = True) -> Choice | None:
        """The best node for ``task``, None when no node takes it; without ``room`` amounts are not looked at."""
        refused = {site.row: reasons for site, reasons in self._said(task, within, room)}
        looked_at = self._looked_at([(row, reasons == ()) for row, reasons in sorted(refused.items())])
        fitting = [site for site in self.world.sites if site.row in looked_at]
        now = [site for site in fitting if not room or self._short(task, site.idle) is None]
        kind = OperationKind.ALLOCATE if now else OperationKind.PIPELINE
        group = now or fitting
        return Choice([self._best(task, self._own(group) or group).row], kind) if group else None

    @property
    def samples(self) -> bool:
        """See :class:`~stromboli.framework.engine.placer.Placer`."""
        return sampler_of(self.session) is not None

    def idle_row(self, task: Task) -> int:
        """-1: every task has its turn in the general way."""
        return -1

    def place_run(self, tasks: Sequence[Task], within: Marks | None = None) -> Choice | None:
        """None: every task is placed by itself."""
        return None

    def foresee(self, tasks: Sequence[Task], row: int, leaving: Sequence[Task]) -> list[float]:
        """Nothing is foreseen."""
        return []

    def refusals(self, task: Task, within: Marks | None = None, *, room: bool = True) -> Fits:
        """Why no node takes ``task``: every node's reasons, counted."""
        fits = Fits()
        for _, reasons in self._said(task, within, room):
            fits.nodes += 1
            for reason in reasons:
                fits.counts[reason] = fits.counts.get(reason, 0) + 1
        return fits

    def run_length(self, tasks: Sequence[Task]) -> int:
        """1: nothing is concluded from one task about another."""
        return 1

    def hopeless(self, task: Task) -> bool:
        """No: every node is looked at for every task."""
        return False

    def kind(self, task: Task) -> str:
        """Its uid: nothing is concluded from one task about another."""
        return task.uid

    def eligible(self, task: Task) -> list[bool]:
        """All nodes: nothing is concluded from one moment about another."""
        return [True for _ in self.world.sites]

    def curable(self, task: Task) -> list[bool]:
        """The nodes against which nothing is said that no eviction could cure."""
        found = {site.row: reasons for site, reasons in self._said(task, None, room=False)}
        return [all(reason.code not in ABORTING for reason in reasons) for _, reasons in sorted(found.items())]

    def ranking(self, task: Task, members: Marks) -> list[float]:
        """Scores of the sites that ``members`` marks, among themselves; minus infinity for the others."""
        sites = [site for site in self.world.sites if members[site.row]]
        scores = {site.row: score for site, score in zip(sites, self.scores(task, sites), strict=True)}
        return [scores.get(site.row, -math.inf) for site in self.world.sites]

    def sampled(self, members: Marks) -> list[bool]:
        """Those of ``members`` that are looked at."""
        looked_at = self._looked_at([(site.row, True) for site in self.world.sites if members[site.row]])
        return [site.row in looked_at for site in self.world.sites]

    def choose(self, task: Task, members: Marks) -> int:
        """The best of the sites that ``members`` marks."""
        return self._best(task, [site for site in self.world.sites if members[site.row]]).row

    def passes(self, task: Task, row: int) -> bool:
        """Whether nothing is said against the task on one node."""
        return all(not reasons for site, reasons in self._said(task, None, room=False) if site.row == row)

    # ------------------------------------------------------------------ whether a node takes the task

    @property
    def world(self) -> PlainWorld:
        """The nodes as they stand now."""
        seen = len(self.session.ledger.log)
        if self._world is None or self._world[0] != seen:
            self._world = seen, PlainWorld(self.session)
        return self._world[1]

    def _said(self, task: Task, within: Marks | None, room: bool) -> Iterator[tuple[Site, tuple[Reason, ...]]]:
        """Every node that is looked at, with its reasons against the task: none where it fits.

        Room is looked at first, then one plugin after the other; the first that refuses a node is the last one asked.
        Within a plugin refusals add up until one comes that no eviction could cure.
        """
        asked = not room or not self._asks_for_unoffered(task) or sampler_of(self.session) is not None
        plugins = [[fit(self.world, task) for fit in rules.fits] for rules in self.rules] if asked else []
        for site in self.world.sites:
            if within is None or within[site.row]:
                lacking = self._short(task, site.future) if room else None
                refused = self._fenced(site) or _refusals(site, plugins)
                yield site, refused if lacking is None else (INSUFFICIENT.of(resource=lacking),)

    @property
    def own(self) -> Bools | None:
        """See :class:`~stromboli.framework.engine.placer.Placer`."""
        shard = self.session.snapshot.shard
        return None if shard is None or shard.hard else own_rows(shard, self.session.table)

    def _own(self, sites: Sequence[Site]) -> list[Site]:
        """Those of ``sites`` that are of this scheduler's shard."""
        shard = self.session.snapshot.shard
        return [site for site in sites if shard is not None and site.spec.name in shard.nodes]

    def _fenced(self, site: Site) -> tuple[Reason, ...]:
        """What a hard shard says to a node of another scheduler."""
        shard = self.session.snapshot.shard
        inside = shard is None or not shard.hard or site.spec.name in shard.nodes
        return () if inside else (Reason(NODE_NOT_IN_SHARD, resolvable=False),)

    def _asks_for_unoffered(self, task: Task) -> bool:
        """Whether no node offers the task's request: predicates, which note the first task asked about, are skipped."""
        return any(amount > 0 for amount in self.session.axes.unoffered(task.request).values())

    def _short(self, task: Task, amounts: Amounts) -> str | None:
        """The first resource of which ``amounts`` has less than the task asks for; cpu and memory always count."""
        axes = self.session.axes
        asked = {"cpu", "memory", *(task.request.scalars or {})}
        vector = axes.full(task.template.vector)
        known = {axes.known(name) for name in asked} - {-1}
        short = {c for c in known if vector[c] > amounts[c]}
        return next(iter(axes.names_of(short, task.request)), None)

    # ------------------------------------------------------------------ which are looked at

    def _looked_at(self, verdicts: Sequence[tuple[int, bool]]) -> set[int]:
        """The rows that will do, of those that are looked at; ``verdicts`` say of all, in order, whether they do.

        Where nodes are sampled: from where the last look ended, once around, until enough are found.
        """
        sampler, nodes = sampler_of(self.session), len(verdicts)
        if sampler is None or not nodes:
            return {row for row, fits in verdicts if fits}
        start, found = sampler.start(nodes), set[int]()
        for step in range(nodes):
            row, fits = verdicts[(start + step) % nodes]
            if fits:
                found.add(row)
            if len(found) == sampler.sampling.enough(nodes):
                sampler.ended(start + step + 1, nodes)
                return found
        sampler.ended(start, nodes)
        return found

    # ------------------------------------------------------------------ which of several

    def _best(self, task: Task, sites: Sequence[Site]) -> Site:
        """The site with the highest score among ``sites``, unless a plugin prefers another; a single one is taken."""
        totals = self.scores(task, sites) if len(sites) > 1 else [0.0]
        wanted = choosers.preferred(self.session, task, sites, totals) if len(sites) > 1 else None
        if wanted is not None:
            return wanted
        best = [site for site, total in zip(sites, totals, strict=True) if total == max(totals)]
        seed = self.session.ties.seed
        if seed is None:
            return best[0]
        self.draws += 1
        digest = hashlib.blake2b(f"{seed}/{self.draws}".encode(), digest_size=8).digest()
        return best[int.from_bytes(digest, "big") % len(best)]

    def scores(self, task: Task, sites: Sequence[Site]) -> list[float]:
        """The score of each candidate: those of nodes alone, plus those of the batch, compared and named ones last."""
        alone = self._sum([score for rules in self.rules for score in rules.alone], task, sites)
        batch = self._sum([score for rules in self.rules for score in rules.batch], task, sites)
        compared = self._sum([score for rules in self.rules for score in rules.compared], task, sites)
        mapped = choosers.mapped(self.session, task, sites)
        named = choosers.named(self.session, task, sites)
        parts = zip(mapped, alone, batch, compared, named, strict=True)
        return [(m + a) + ((b + c) + n) for m, a, b, c, n in parts]

    def _sum(self, scores: Sequence[Scores], task: Task, sites: Sequence[Site]) -> list[float]:
        totals = [0.0] * len(sites)
        for score in scores:
            totals = [total + more for total, more in zip(totals, score(self.world, task, sites), strict=True)]
        return totals


def _refusals(site: Site, plugins: Sequence[Sequence[Verdict]]) -> tuple[Reason, ...]:
    """The reasons of the first plugin that refuses the node."""
    said = (tuple(_until_abort(verdict(site) for verdict in verdicts)) for verdicts in plugins)
    return next((reasons for reasons in said if reasons), ())


def _until_abort(answers: Iterator[tuple[Reason, ...]]) -> Iterator[Reason]:
    """The reasons of one plugin's predicates, up to those of the first that ends the evaluation of the node."""
    for reasons in answers:
        yield from reasons
        if any(reason.code in ABORTING for reason in reasons):
            return

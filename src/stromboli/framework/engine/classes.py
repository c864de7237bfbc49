"""Task classes: equal tasks share one answer per node, renewed row by row as placements touch the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from stromboli.errors import PluginError
from stromboli.framework.engine.fits import Fits
from stromboli.framework.engine.hooks import Hooks
from stromboli.framework.engine.remembered import Remembered, Said
from stromboli.framework.engine.rows import Bools, Fit, Floats, Score, reads_more, row_sum
from stromboli.framework.extension.hook import Limit
from stromboli.model.table import Ints, Node, NodeRows, NodeTable, Rows
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.books.ledger import Ledger

FEW = 7
"""Up to so many touched rows are renewed one by one in plain Python: cheaper there than array operations."""

NEVER = -np.inf
"""The score of a node that is no candidate."""

Scorers = list[tuple[Score, Floats | None]]
"""Scores, each with what it says of the nodes, shape (nodes,), where placements never change that, else with None."""


class TaskClass:
    """What the nodes say to tasks that are alike.  Arrays have one entry a node.

    ``open`` nodes pass every node-local predicate and have the room, future room included; ``now`` those with idle
    room among them. ``score`` adds up the node-local scores. ``global_filters`` are predicates that look at other
    nodes and are asked each time; ``unnormalised`` the scores that are normalised over the candidates.
    ``global_scores``: a score looks at other nodes, so that each placement renews all rows.  ``simple``: the candidates
    with idle room are those with ``best_now``, and these are their scores.  ``shifting``: raw scores change with each
    placement, though perhaps for all nodes alike.  ``curable`` keeps the rows that an eviction could open, and the
    length of the journal then; ``ranked`` keeps rows that were all ``open``, likewise.  ``remembered`` are answers by
    the amounts of rows, where all hooks read nothing else.  ``runs``: a placement of this class changes only the
    answers of the touched rows, and they can be asked what they will be after further ones; where scores are
    ``shifting``, that holds among nodes for which they shift alike, and other nodes' pods count by a :meth:`limit`.
    ``scored``: scores have been asked; without them the class is not ``simple`` and has no ``runs``.
    """

    __slots__ = (
        "_ahead", "_row_forms", "_seen", "_wants", "batch", "batchers", "best_now", "columns", "constant", "curable",
        "global_filters", "global_scores", "hooks", "ledger", "levels", "moving", "need", "nonzero", "now", "open",
        "ranked", "refused", "remembered", "request", "runs", "score", "scored", "scorers", "shifting", "simple",
        "static_ok", "table", "task", "unnormalised", "want",
    )  # fmt: skip

    def __init__(self, hooks: Hooks, ledger: Ledger, task: Task, room: bool = True, *, scored: bool = True) -> None:
        self.hooks, self.ledger, self.table, self.task = hooks, ledger, ledger.table, task
        self.request, self.nonzero = ledger.arrays(task.template)
        self.need = self.table.axes.deciding(task.request) if room else []
        self._wants = [(column, int(self.request[column])) for column in self.need]
        self.columns = slice(0, len(self.need)) if self.need == [*range(len(self.need))] else self.need
        self.want = self.request[self.columns][:, None]
        self.levels = 2
        self.refused: tuple[object, Fits] | None = None
        self.curable: tuple[int, Bools] | None = None
        self.ranked: tuple[int, Bools] | None = None
        everywhere = self.table.view()
        admitted = self._ask_predicates(everywhere)
        now, fits = everywhere.fitting(self.want, self.columns)
        self.scorers: Scorers = []
        self.batchers: Scorers = []
        self.unnormalised: list[tuple[Score, Floats | None]] = []
        self.constant: Floats | None = None
        self.remembered: Remembered | None = None
        self.scored = self.global_scores = self.shifting = self.runs = self.simple = False
        self._row_forms = self._has_row_forms()
        nothing = np.zeros(len(everywhere))
        self._keep(fits & admitted, now & fits & admitted, nothing, nothing.copy())
        self._seen = self._ahead = len(self.table.journal)
        if scored:
            self.add_scores()

    def add_scores(self) -> None:
        """Score all nodes.  Until then nobody may choose among them; where none is open, there is nothing to choose."""
        everywhere = self.table.view()
        score, batch = self._ask_scores(everywhere)
        self._ask_raws(everywhere)
        self.scored = True
        self.shifting = any(raw is None for _, raw in self.unnormalised)
        self.remembered = self._memory()
        self._row_forms, self.runs = self._has_row_forms(), self._can_run()
        self.simple = not (self.global_filters or self.hooks.choosers) and (
            self.constant is not None or not self.unnormalised
        )
        self._keep(self.open, self.now, score, batch)

    def _ask_predicates(self, nodes: NodeRows) -> Bools:
        self.static_ok: Bools = np.ones(len(nodes), dtype=bool)
        moving_ok: Bools = np.ones(len(nodes), dtype=bool)
        self.moving: list[Fit] = []
        self.global_filters: list[Fit] = []
        for fit in (fit for plugin in self.hooks.fits for fit in plugin):
            admitted = fit.admits(self.task, nodes)
            if admitted is None:
                continue
            if fit.hook.static:
                self.static_ok &= admitted
            elif reads_more(fit.hook):
                self.global_filters.append(fit)
            else:
                self.moving.append(fit)
                moving_ok &= admitted
        return self.static_ok & moving_ok

    def _ask_scores(self, nodes: NodeRows) -> tuple[Floats, Floats]:
        self.scorers, score = self._speaking(self.hooks.scores, nodes)
        self.batchers, batch = self._speaking(self.hooks.batch, nodes)
        moving = (scorer.hook for scorer, fixed in (*self.scorers, *self.batchers) if fixed is None)
        self.global_scores = any(reads_more(hook) for hook in moving)
        return score, batch

    def _speaking(self, scorers: Sequence[Score], nodes: NodeRows) -> tuple[Scorers, Floats]:
        """The hooks that have something to say about this class, static ones with their answer, and all added up."""
        answers = [(s, answer) for s in scorers if (answer := s.vector(self.task, nodes)) is not None]
        total = np.zeros(len(nodes))
        for _, answer in answers:
            total += answer
        return [(s, a.astype(np.float64) if s.hook.static else None) for s, a in answers], total

    def _ask_raws(self, nodes: NodeRows) -> None:
        for scorer in self.hooks.unnormalised:
            answer = scorer.vector(self.task, nodes)
            if answer is not None:
                self.unnormalised.append((scorer, answer.astype(np.float64) if scorer.hook.static else None))
        known = [raw for _, raw in self.unnormalised if raw is not None]
        if len(known) == len(self.unnormalised) and all(raw.size and raw.min() == raw.max() for raw in known):
            with suppress(PluginError):  # reported when a task is placed by these scores
                self.constant = self.normal(np.ones(len(nodes), dtype=bool))

    def _memory(self) -> Remembered | None:
        """What keeps answers by amounts; None where a hook may read anything else."""
        scorers = (*self.scorers, *self.batchers)
        moving = [*(fit.hook for fit in self.moving), *(scorer.hook for scorer, fixed in scorers if fixed is None)]
        if self.global_scores or not all(hook.amounts for hook in moving):
            return None
        fixed = [self.static_ok, *(answer for _, answer in scorers if answer is not None)]
        return Remembered(self.table, fixed)  # a constant score is the same on all rows

    def _can_run(self) -> bool:
        if (
            (self.global_filters and not self._is_limited())
            or self.global_scores
            or self.hooks.choosers
            or any(raw is None and scorer.alike is None for scorer, raw in self.unnormalised)
        ):
            return False
        moving = (scorer.hook for scorer, fixed in (*self.scorers, *self.batchers) if fixed is None)
        # a hook for one node is given a node as it is, not as it would be
        return all(hook.form != "scalar" for hook in (*moving, *(fit.hook for fit in self.moving)))

    def _is_limited(self) -> bool:
        """Whether what looks at other nodes follows simply from placements, and no score depends on the candidates."""
        return [fit.limit is not None for fit in self.global_filters] == [True] and not (
            self.constant is None and self.unnormalised
        )

    def limit(self) -> Limit | None:
        """How the one predicate that looks at other nodes limits a run; None where it does not say."""
        (fit,) = self.global_filters
        return None if fit.limit is None else fit.limit(self.task)

    # ------------------------------------------------------------------ keeping up

    def refresh(self) -> None:
        """Renew the rows that placements have touched since this class was last looked at."""
        touched = self._touched(self._seen)
        self._seen = self._ahead = len(self.table.journal)
        if not touched:
            return
        if self.global_scores:
            self._renew_all(self.table.view())
        elif (known := self.remembered) is not None and known.applies(len(touched)):
            fits, now, score, batch, best_now = self.open, self.now, self.score, self.batch, self.best_now
            for row, said in self._recall(known, touched):
                fits[row], now[row], score[row], batch[row], best_now[row] = said
        else:
            self._renew(touched)

    def refresh_best(self) -> None:
        """As :meth:`refresh`, where nothing but ``best_now`` is looked at next."""
        if self._ahead == len(self.table.journal):
            return
        touched = self._touched(self._ahead)
        if (known := self.remembered) is None or not known.applies(len(touched)):
            self.refresh()
            return
        self._ahead = len(self.table.journal)
        for row, said in self._recall(known, touched):
            self.best_now[row] = said.best_now

    def _touched(self, since: int) -> list[int]:
        """The rows in the journal ``since`` that length, each once."""
        new = self.table.journal[since:]
        return new if len(new) < 2 else sorted(set(new))

    def _renew(self, touched: list[int]) -> None:
        """Ask the hooks about the rows ``touched``."""
        if len(touched) <= FEW and self._row_forms:
            for row in touched:
                self._renew_row(row)
        elif len(touched) < len(self.table):
            rows = np.array(touched, dtype=np.intp)
            self._store(rows, *self.look(self.table.view(rows)))
        else:
            self._renew_all(self.table.view())

    def _recall(self, known: Remembered, touched: list[int]) -> list[tuple[int, Said]]:
        """Those of ``touched`` of which a row of equal amounts has said what they say; the others are renewed."""
        answers = known.of(touched)
        if None in answers:
            asked = [row for row, said in zip(touched, answers, strict=True) if said is None]
            self._renew(asked)
            for row in asked:
                known.note(row, self._said(row))
        return [(row, said) for row, said in zip(touched, answers, strict=True) if said is not None]

    def _said(self, row: int) -> Said:
        fits = self.open.item(row), self.now.item(row)
        return Said(*fits, self.score.item(row), self.batch.item(row), self.best_now.item(row))

    def _has_row_forms(self) -> bool:
        moving = all(fit.row is not None for fit in self.moving)
        return moving and all(s.row is not None for s, fixed in (*self.scorers, *self.batchers) if fixed is None)

    def _renew_all(self, nodes: NodeRows) -> None:
        self._keep(*self.look(nodes))

    def _keep(self, fits: Bools, now: Bools, score: Floats, batch: Floats) -> None:
        self.open, self.now, self.score, self.batch = fits, now, score, batch
        self.best_now = np.where(self.now, self.total(slice(None), self.constant), NEVER)

    def _store(self, rows: Rows, fits: Bools, now: Bools, score: Floats, batch: Floats) -> None:
        self.open[rows], self.now[rows], self.score[rows], self.batch[rows] = fits, now, score, batch
        total = score + (batch if self.constant is None else batch + self.constant[rows])
        self.best_now[rows] = np.where(now, total, NEVER)

    def total(self, rows: Rows | slice, normal: Floats | None) -> Floats:
        """Score of ``rows``: node scores, plus batch scores, those normalised over the candidates included."""
        batch = self.batch[rows] if normal is None else self.batch[rows] + normal[rows]
        return self.score[rows] + batch

    def _renew_row(self, row: int) -> None:
        fits, now = self._room(row)
        node = Node(self.table, row)
        if fits:
            fits = bool(self.static_ok[row]) and self._admitted(node)
            now = now and fits
        self.open[row], self.now[row] = fits, now
        if fits or not self._wants:  # without room, refused nodes are ranked too: an eviction may cure them
            self.score[row] = score = row_sum(self.scorers, self.task, node)
            self.batch[row] = batch = row_sum(self.batchers, self.task, node)
        if not now:
            self.best_now[row] = NEVER
        elif self.constant is None:
            self.best_now[row] = score + batch
        else:
            self.best_now[row] = score + (batch + self.constant[row])

    def _admitted(self, node: Node) -> bool:
        for fit in self.moving:  # noqa: SIM110 - asked of every touched row, and any() takes twice as long
            if fit.row is not None and fit.row(self.task, node):
                return False
        return True

    def _room(self, row: int) -> tuple[bool, bool]:
        table = self.table
        used, alloc = table.used[:, row].tolist(), table.alloc[:, row].tolist()
        releasing, pipelined = table.releasing[:, row].tolist(), table.pipelined[:, row].tolist()
        now = fits = True
        for column, want in self._wants:
            idle = alloc[column] - used[column]
            now = now and want <= idle
            fits = fits and want <= idle + releasing[column] - pipelined[column]
        return fits, now and fits

    def look(self, nodes: NodeRows) -> tuple[Bools, Bools, Floats, Floats]:
        """(open, now, score, batch) of ``nodes``, hypothetical ones too, from scratch."""
        now, fits = nodes.fitting(self.want, self.columns)
        fits &= self.static_ok if nodes.index is None else self.static_ok[nodes.index]
        for fit in self.moving:
            admitted = fit.admits(self.task, nodes)
            if admitted is not None:
                fits &= admitted
        return fits, now & fits, self._sum(self.scorers, nodes), self._sum(self.batchers, nodes)

    def _sum(self, scorers: Scorers, nodes: NodeRows) -> Floats:
        """Scores of ``nodes``, added up in the order of the configuration."""
        total = np.zeros(len(nodes))
        for scorer, fixed in scorers:
            if fixed is not None:
                total += fixed if nodes.index is None else fixed[nodes.index]
            elif (answer := scorer.vector(self.task, nodes)) is not None:
                total += answer
        return total

    def normal(self, members: Bools) -> Floats | None:
        """Scores normalised over ``members``, added up; None where there are none.  Entries of others mean nothing."""
        total: Floats | None = None
        for scorer, fixed in self.unnormalised:
            raw = self._raw(scorer, members) if fixed is None else fixed
            if raw is None or scorer.normalise is None:
                continue
            inside = raw[members]
            part = scorer.normalise(self.task, raw, float(inside.min()), float(inside.max()))
            total = part if total is None else total + part
        return total

    def _raw(self, scorer: Score, members: Bools) -> Floats | None:
        """Raw scores as they are now; a hook that reads the candidates is asked about them alone."""
        if "candidates" not in scorer.hook.reads:
            answer = scorer.vector(self.task, self.table.view())
            return None if answer is None else answer.astype(np.float64)
        rows = np.flatnonzero(members)
        answer = scorer.vector(self.task, self.table.view(rows))
        if answer is None:
            return None
        raw = np.zeros(len(self.table))
        raw[rows] = answer
        return raw

    def extremes(self, members: Bools) -> list[tuple[float, float]]:
        """Least and greatest raw score over ``members``, of every normalised score that placements do not change."""
        inside = [raw[members] for _, raw in self.unnormalised if raw is not None]
        return [(float(raw.min()), float(raw.max())) if raw.size else (0.0, 0.0) for raw in inside]

    def fitting(self, within: Bools | None) -> Bools:
        """Nodes that pass everything, other nodes' pods included."""
        fits = self.open if within is None else self.open & within
        if self.global_filters and fits.any():
            everywhere = self.table.view()
            for fit in self.global_filters:
                admitted = fit.admits(self.task, everywhere)
                if admitted is not None:
                    fits = fits & admitted
        return fits


__all__ = ["FEW", "NEVER", "Ints", "NodeTable", "TaskClass"]

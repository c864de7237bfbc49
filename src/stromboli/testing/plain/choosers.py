"""Points that are asked about the candidates of each task: mapped scores, scores by name, and the best node."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stromboli.framework.session.session import Session
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.testing.plain.world import Site


def mapped(session: Session, task: Task, sites: Sequence[Site]) -> list[float]:
    """Every plugin's mapped scores, made whole, reduced where it has a reduction, and added up."""
    reductions = {answer.plugin.name: answer.function for answer in session.hooks.answers.of("node_reduce")}
    totals = [0.0] * len(sites)
    for answer in session.hooks.answers.of("node_map"):
        found = {site.spec.name: math.floor(answer.function(task, Node(session.table, site.row))) for site in sites}
        if answer.plugin.name in reductions:
            reductions[answer.plugin.name](task, found)
        totals = [total + found.get(site.spec.name, 0) for total, site in zip(totals, sites, strict=True)]
    return totals


def named(session: Session, task: Task, sites: Sequence[Site]) -> list[float]:
    """Scores that plugins give by the nodes' names, added up."""
    totals = [0.0] * len(sites)
    for answer in session.hooks.answers.of("batch_node_order"):
        table = session.table
        found = answer.function(task, table.view(table.view().rows[[site.row for site in sites]]))
        totals = [total + found.get(site.spec.name, 0.0) for total, site in zip(totals, sites, strict=True)]
    return totals


def preferred(session: Session, task: Task, sites: Sequence[Site], scores: Sequence[float]) -> Site | None:
    """The site that the first plugin with an opinion takes; None when none has one."""
    by_score: dict[float, list[Node]] = {}
    for score, site in sorted(zip(scores, sites, strict=True), key=lambda pair: -pair[0]):
        by_score.setdefault(score, []).append(Node(session.table, site.row))
    for answer in session.hooks.answers.of("best_node"):
        if (node := answer.function(task, by_score)) is not None:
            return next(site for site in sites if site.spec.name == node.name)
    return None

"""Plugins from elsewhere, as they are written and as they fail: what engine, statements and actions make of them."""

from __future__ import annotations

from typing import ClassVar

import pytest

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.config.config import load_config
from stromboli.framework.session.reference import ReferenceView
from stromboli.plugin import (
    Plugin,
    Reason,
    batch_node_order,
    best_node,
    by_template,
    node_map,
    node_order,
    node_reduce,
    on_allocate,
    on_deallocate,
    pre_predicate,
    predicate,
)
from stromboli.testing.builders import cluster, node, pod, pod_group
from stromboli.testing.plain.cycle import run_plain_cycle
from tests.acceptance.bench import Bench, task_of
from tests.acceptance.bench import conf as bench_conf


def decided(snapshot, *plugins, actions="allocate, backfill", others="gang", run=run_cycle):
    """The plan of one cycle with the plugins named and those given, in one tier."""
    registry = builtin_registry()
    for plugin in plugins:
        registry.add(plugin)
    names = [name for name in others.split() if name] + [plugin.name for plugin in plugins]
    entries = "".join(f"  - name: {name}\n" for name in names)
    text = f'actions: "{actions}"\ntiers:\n- plugins:\n{entries}'
    config = load_config(text, source="test", known_plugins=registry.plugin_names, known_actions=registry.action_names)
    return run(snapshot, config, registry)


def places(plan):
    """Where each pod is bound, by name."""
    return {bind.key.partition("/")[2]: bind.node for bind in plan.binds}


def gang(size, least=None, **fields):
    """A PodGroup of equal pods p-x-0, p-x-1, …"""
    minimum = size if least is None else least
    pods = [pod(f"p-x-{number}", group="p", **fields) for number in range(size)]
    return [pod_group("p", min_member=minimum), *pods]


# ---------------------------------------------------------------------- runs


class Emptiest(Plugin):
    """Scores a node by what is idle there."""

    name = "emptiest"

    @node_order(key=by_template)
    def idle(self, task, node):
        return node.idle.milli_cpu


class AtMostTwo(Plugin):
    """Lets two pods' worth of cpu onto a node."""

    name = "atmosttwo"

    @predicate(key=by_template)
    def few(self, task, node):
        return Reason("full") if node.used.milli_cpu >= 2000 else None


@pytest.mark.parametrize(("plugin", "wanted"), [(Emptiest, {"n1": 2, "n2": 2}), (AtMostTwo, {"n1": 2, "n2": 2})])
def test_hooks_for_one_node_see_the_earlier_pods_of_a_run(plugin, wanted):
    plan = decided(cluster(node("n1"), node("n2"), *gang(4)), plugin)
    found = list(places(plan).values())
    assert {name: found.count(name) for name in wanted} == wanted


class NotTheThird(Plugin):
    """Has something against one pod by name."""

    name = "notthethird"

    @pre_predicate
    def known(self, task):
        return Reason("not this one") if task.name == "p-x-2" else None


def test_every_task_of_a_run_is_asked_beforehand():
    snapshot = cluster(node("n1"), *gang(4, least=3))
    assert places(decided(snapshot, NotTheThird)).keys() == {"p-x-0", "p-x-1", "p-x-3"}


def test_a_run_ends_with_the_role():
    roles = {"p-x-0": "a", "p-x-1": "b", "p-x-2": "a", "p-x-3": "b"}
    objects = [
        pod_group("p", min_member=2, minTaskMember={"a": 1, "b": 1}),
        *(pod(name, group="p", role=role) for name, role in roles.items()),
        pod_group("q", created=9),
        pod("q-x-0", group="q", created=9),
    ]
    assert places(decided(cluster(node("n1", cpu=3), *objects))).keys() == {"p-x-0", "p-x-1", "q-x-0"}


# ---------------------------------------------------------------------- points that choose the node


class ByName(Plugin):
    """Scores of all candidates at once, by name, as the reference writes them."""

    name = "byname"

    @batch_node_order
    def prefer(self, task, nodes):
        return {each.name: 5.0 for each in nodes if each.name == "n2"}


class Mapped(Plugin):
    """Raw scores of single nodes; the greatest whole one wins."""

    name = "mapped"
    raw: ClassVar = {"n1": 1.9, "n2": 2.1, "n3": 2.9}

    @node_map
    def size(self, task, node):
        return self.raw[node.name]


class Reduced(Mapped):
    """The same, turned round."""

    name = "reduced"
    raw: ClassVar = {"n1": 3.7, "n2": 1.2, "n3": 2.0}
    seen: ClassVar[list] = []

    @node_reduce
    def turn_round(self, task, scores):
        self.seen.append(dict(scores))
        for name in scores:
            scores[name] = 10 - scores[name]


class Contrary(Plugin):
    """Takes the last of the worst nodes."""

    name = "contrary"
    seen: ClassVar[list] = []

    @node_order(key=by_template)
    def score(self, task, node):
        return {"n1": 5.0, "n2": 2.0, "n3": 2.0}[node.name]

    @best_node
    def worst(self, task, nodes_by_score):
        self.seen.append({score: [each.name for each in nodes] for score, nodes in nodes_by_score.items()})
        return nodes_by_score[min(nodes_by_score)][-1]


class Silent(Contrary):
    """Leaves the choice to the scores."""

    name = "silent"

    @best_node
    def worst(self, task, nodes_by_score):
        return None


class Elsewhere(Contrary):
    """Names a node that is no candidate."""

    name = "elsewhere"

    @predicate
    def not_first(self, task, node):
        return Reason("no") if node.name == "n1" else None

    @best_node
    def worst(self, task, nodes_by_score):
        return next(each for each in ReferenceView(self.session).node_list if each.name == "n1")

    def on_session_open(self, session):
        self.session = session


def three():
    return [node(f"n{number}") for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("plugin", "wanted"),
    [(ByName, "n2"), (Mapped, "n2"), (Reduced, "n2"), (Contrary, "n3"), (Silent, "n1")],
)
@pytest.mark.parametrize("request_cpu", [1, 0], ids=["allocate", "backfill"])
def test_every_point_that_chooses_a_node_is_asked(plugin, wanted, request_cpu):
    sizes = {"cpu": request_cpu, "memory": request_cpu}
    assert set(places(decided(cluster(*three(), *gang(2, **sizes)), plugin)).values()) == {wanted}


@pytest.mark.parametrize(
    "plugins",
    [(ByName,), (Mapped,), (Reduced,), (Contrary,), (Silent,), (Elsewhere,), (ByName, Reduced), (Mapped, Contrary)],
    ids=lambda plugins: "+".join(plugin.name for plugin in plugins),
)
def test_the_plain_evaluation_asks_them_as_well(plugins):
    found = cluster(*three(), *gang(4, cpu=2))
    engine, plain = (decided(found, *plugins, others="gang nodeorder", run=run) for run in (run_cycle, run_plain_cycle))
    assert places(engine) == places(plain)
    assert len(places(plain)) == 4
    assert engine.inconsistencies == plain.inconsistencies


def test_map_scores_are_whole_numbers_for_the_reduction():
    Reduced.seen.clear()
    decided(cluster(*three(), *gang(1)), Reduced)
    assert Reduced.seen == [{"n1": 3, "n2": 1, "n3": 2}]


def test_the_best_node_is_chosen_from_candidates_by_score():
    Contrary.seen.clear()
    decided(cluster(*three(), *gang(1)), Contrary)
    assert Contrary.seen == [{5.0: ["n1"], 2.0: ["n2", "n3"]}]


def test_a_best_node_that_is_no_candidate_puts_its_plugin_aside():
    plan = decided(cluster(*three(), *gang(1)), Elsewhere)
    (told,) = plan.inconsistencies
    assert told.startswith("plugin elsewhere: TypeError: best_node must answer one of the nodes or None, not ")
    assert places(plan) == {"p-x-0": "n1"}


# ---------------------------------------------------------------------- plugins that fail, or object


class FailsLate(Plugin):
    """Raises when the second pod comes."""

    name = "failslate"

    @predicate
    def fails(self, task, node):
        if task.name == "p-x-1":
            raise ValueError("late")


class FailsTold(Plugin):
    """Raises at the event of the second pod, and of every end."""

    name = "failstold"

    @on_allocate
    def come(self, event):
        if event.task.name == "p-x-1":
            raise ValueError("told")

    @on_deallocate
    def left(self, event):
        raise ValueError("told again")


class Books(Plugin):
    """Counts the events that it gets."""

    name = "books"
    held: ClassVar[dict] = {}

    @on_allocate
    def come(self, event):
        self.held[event.task.name] = self.held.get(event.task.name, 0) + 1

    @on_deallocate
    def left(self, event):
        self.held[event.task.name] = self.held.get(event.task.name, 0) - 1


@pytest.mark.parametrize("plugin", [FailsLate, FailsTold])
def test_what_a_failing_plugin_leaves_behind_is_taken_back(plugin):
    Books.held.clear()
    plan = decided(cluster(node("n1"), *gang(3)), plugin, Books)
    assert places(plan) == {f"p-x-{number}": "n1" for number in range(3)}
    assert Books.held == {f"p-x-{number}": 1 for number in range(3)}
    assert plan.allocated_not_bound == []
    assert len(plan.inconsistencies) == 1


class Objects(Plugin):
    """Objects to one pod wherever it goes."""

    name = "objects"

    @on_allocate
    def come(self, event):
        if event.task.name == "p-x-1":
            event.err = "not there"


def test_an_objection_is_about_one_task():
    plan = decided(cluster(node("n1"), *gang(3, least=1), *_other()), Objects)
    assert places(plan).keys() == {"p-x-0", "p-x-2", "o-x-0"}
    assert plan.inconsistencies == []


def _other():
    return [pod_group("o", created=5), pod("o-x-0", group="o", created=5)]


# ---------------------------------------------------------------------- scores out of range


def preferring(weight):
    """Node affinity that likes every node so much."""
    expression = {"key": "kubernetes.io/hostname", "operator": "Exists"}
    term = {"weight": weight, "preference": {"matchExpressions": [expression]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize("cpu", [1, 0], ids=["allocate", "backfill"])
def test_a_negative_preference_keeps_no_other_pod_back(cpu):
    liked = gang(2, cpu=cpu, memory=cpu, affinity=preferring(-3))
    other = [pod_group("o", created=5), pod("o-x-0", group="o", created=5, cpu=cpu, memory=cpu)]
    plan = decided(cluster(node("n1"), node("n2"), *liked, *other), others="gang nodeorder")
    assert places(plan).keys() == {"o-x-0"}
    assert plan.inconsistencies == []


def test_the_only_node_is_taken_without_a_score():
    plan = decided(cluster(node("n1"), *gang(2, affinity=preferring(-3))), others="gang nodeorder")
    assert places(plan).keys() == {"p-x-0", "p-x-1"}


# ---------------------------------------------------------------------- snapshots


def test_a_cycle_leaves_its_snapshot_as_it_was():
    snapshot = cluster(node("n1", cpu=3), *gang(3), pod("best", group="q", cpu=0, memory=0))
    first = decided(snapshot, others="gang proportion predicates nodeorder")
    assert len(first.binds) == 4
    assert decided(snapshot, others="gang proportion predicates nodeorder") == first


def test_a_split_job_without_pods_is_no_trouble():
    policy = [{"name": "g", "minSubGroups": 0, "matchLabelKeys": ["part"]}]
    objects = [pod_group("p", min_member=0, phase="Pending", subGroupPolicy=policy), *_other()]
    plan = decided(cluster(node("n1"), *objects))
    assert places(plan) == {"o-x-0": "n1"}
    assert plan.inconsistencies == []


@pytest.mark.parametrize(("within", "rows"), [(None, [0, 1]), (["n2", "n3"], [3, 2]), (["n3"], [3])])
def test_a_run_of_tasks_that_keep_apart_stays_within_the_nodes_it_is_given(within, rows):
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [pod(f"x-{i}", group="x", labels={"app": "x"}, affinity=apart) for i in range(2)]
    objects = [*(node(f"n{i}", cpu=8) for i in range(5)), pod("busy", on="n2", cpu=4), pod_group("x"), *pods]
    with Bench(objects, bench_conf("gang priority", "predicates nodeorder")).open() as session:
        table = session.table
        members = within if within is None else table.mask([table.row(name) for name in within])
        choice = session.placer.place_run([task_of(session, f"x-{i}") for i in range(2)], members)
    assert choice is not None
    assert choice.rows == rows


def test_pods_that_are_taken_for_gone_are_back_afterwards():
    pods = [pod(f"g-{i}", group="g", on="n", cpu=i + 1) for i in range(2)]
    with Bench([node("n", cpu=8), pod_group("g"), *pods]).open() as session:
        table, tasks = session.table, [task_of(session, name) for name in ("g-0", "g-1")]
        before = table.requested[:, 0].tolist(), table.nonzero[:, 0].tolist()
        with session.ledger.pretend_removed(tasks, 0):
            assert table.requested[0, 0] == 0
        assert (table.requested[:, 0].tolist(), table.nonzero[:, 0].tolist()) == before
        assert before[0][0] == 3000

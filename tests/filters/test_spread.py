from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.filters.pod_terms import Surroundings
from stromboli.filters.pods_on_nodes import Event
from stromboli.filters.spread import HOSTNAME, MISSING_LABEL, MUST, SHOULD, SKEWED, ZONE, Evenly, Spread
from stromboli.filters.taints import taint_column
from stromboli.model.spec import Affinity, LabelSelector, NodeAffinity, NodeSelector, PodSpec, SpreadConstraint, Taint
from stromboli.model.status import TaskStatus
from tests.filters import builders, plain_spread
from tests.filters.builders import node, table, task

WEB = LabelSelector({"app": "web"})
ZONES = [node("a1", labels={ZONE: "a", HOSTNAME: "a1"}), node("a2", labels={ZONE: "a", HOSTNAME: "a2"}),
         node("b1", labels={ZONE: "b", HOSTNAME: "b1"}), node("x", labels={HOSTNAME: "x"})]  # fmt: skip


def over(key=ZONE, skew=1, action=MUST, selector=WEB, **fields):
    return SpreadConstraint(key, action, skew, label_selector=selector, **fields)


def pod(*constraints, labels=None, namespace="default", **fields):
    own = {"app": "web"} if labels is None else labels
    return task(PodSpec(topology_spread_constraints=constraints, **fields), labels=own, namespace=namespace)


def web(*rows, **fields):
    return [(task(PodSpec(), labels={"app": "web"}, **fields), row) for row in rows]


def world(nodes, there, incoming, default=None):
    log: list[Event] = []
    where = table(nodes)
    around = Surroundings.of(where, lambda: there, log, lambda: incoming, {})
    rules = Spread(around, taint_column(nodes), lambda _task: default)
    placed = [(each, row) for each, row in there if each.status is not TaskStatus.Releasing]
    return SimpleNamespace(rules=rules, log=log, placed=placed, nodes=nodes, table=where, default=default)


def known(world) -> Any:
    return {each.name: each for each in world.nodes}, [(other, world.nodes[row].name) for other, row in world.placed]


def refusals(world, one):
    plain = [plain_spread.refusal(one, each, *known(world)) for each in world.nodes]
    masks = world.rules.refusals(one, world.table.view())
    found = [0] * len(plain) if masks is None else masks.tolist()
    assert found == [0 if reason is None else 1 << reason for reason in plain]
    return plain


def scores(world, one, rows=None):
    chosen = world.nodes if rows is None else [world.nodes[row] for row in rows]
    nodes, others = known(world)
    plain = plain_spread.scores(one, chosen, nodes, others, world.default)
    found = world.rules.scores(one, world.table.view(None if rows is None else np.array(rows, dtype=np.intp)))
    assert (None if found is None else found.tolist()) == plain
    return plain


@pytest.mark.parametrize(
    ("incoming", "there", "expected"),
    [
        pytest.param(pod(), web(0, 0), [None] * 4, id="S3-31-no-constraints"),
        pytest.param(pod(over()), web(0, 0, 1, 2), [SKEWED, SKEWED, None, MISSING_LABEL], id="S3-31"),
        pytest.param(pod(over(skew=3)), web(0, 0, 1, 2), [None, None, None, MISSING_LABEL], id="more-skew"),
        pytest.param(pod(over(), labels={}), web(0, 0, 2), [None, None, None, MISSING_LABEL], id="not-counting-itself"),
        pytest.param(pod(over(min_domains=3)), web(0, 2), [SKEWED] * 3 + [MISSING_LABEL], id="too-few-domains"),
        pytest.param(pod(over(min_domains=2)), web(0, 2), [None] * 3 + [MISSING_LABEL], id="enough-domains"),
        pytest.param(pod(over(selector=None)), web(0, 0), [None] * 3 + [MISSING_LABEL], id="no-selector"),
        pytest.param(pod(over(selector=LabelSelector())), web(0, 0), [None] * 3 + [MISSING_LABEL], id="empty-selector"),
        pytest.param(pod(over()), web(0, 0, namespace="other"), [None] * 3 + [MISSING_LABEL], id="other-namespace"),
        pytest.param(
            pod(over()), web(0, 0, status=TaskStatus.Releasing, ends=1), [None] * 3 + [MISSING_LABEL], id="ending-pods"
        ),
        pytest.param(pod(over(HOSTNAME)), web(0, 2), [SKEWED, None, SKEWED, None], id="by-host"),
        pytest.param(
            pod(over(HOSTNAME), over(ZONE)), web(3), [None] * 3 + [MISSING_LABEL], id="domains-need-all-labels"
        ),
        pytest.param(
            pod(over(HOSTNAME), over(ZONE)), web(0, 2), [SKEWED, None, SKEWED, MISSING_LABEL], id="first-reason"
        ),
        pytest.param(
            pod(over(HOSTNAME), node_selector={HOSTNAME: "a2"}), web(0, 2), [None] * 4, id="affinity-honoured"
        ),
        pytest.param(
            pod(over(HOSTNAME, node_affinity_policy="Ignore"), node_selector={HOSTNAME: "a2"}),
            web(0, 2),
            [SKEWED, None, SKEWED, None],
            id="affinity-ignored",
        ),
        pytest.param(pod(over(action=SHOULD)), web(0, 0), [None] * 4, id="only-a-preference"),
    ],
)
def test_refusals(incoming, there, expected):
    assert refusals(world(ZONES, there, [incoming]), incoming) == expected


@pytest.mark.parametrize(("policy", "expected"), [("Ignore", [SKEWED, None]), ("Honor", [None, None])])
def test_taints_policy(policy, expected):
    tainted = node("b", labels={ZONE: "b"}, taints=(Taint("x", "", "NoSchedule"),))
    incoming = pod(over(node_taints_policy=policy))
    assert refusals(world([node("a", labels={ZONE: "a"}), tainted], web(0), [incoming]), incoming) == expected


def test_label_keys_are_those_of_the_asking_pod():
    incoming = pod(over(match_label_keys=("rev",)), labels={"app": "web", "rev": "2"})
    assert refusals(world(ZONES[:3], web(0, 0, 2), [incoming]), incoming) == [None] * 3


def test_an_evicted_pod_no_longer_counts_and_one_ending_before_never_did():
    incoming, there = pod(over()), web(0, 0)
    here = world(ZONES[:3], there, [incoming])
    assert refusals(here, incoming) == [SKEWED, SKEWED, None]
    evicted = there[0][0]
    for each, _ in there[:2]:
        each.status = TaskStatus.Releasing
        here.log.append((each, 0, -1))
    here.placed.clear()
    assert refusals(here, incoming) == [None] * 3
    here.log.append((evicted, 0, 1))
    here.placed.append((evicted, 0))
    assert refusals(here, incoming) == [SKEWED, SKEWED, None]


def test_a_pod_that_ends_and_only_seemed_to_have_gone_still_does_not_count():
    incoming, there = pod(over()), web(0, 0, status=TaskStatus.Releasing, ends=1)
    here = world(ZONES[:3], there, [incoming])
    here.log += [(there[0][0], 0, -1), (there[0][0], 0, 1)]
    assert refusals(here, incoming) == [None] * 3


def test_a_pod_that_ends_counts_for_neither_of_two_constraints():
    ends, incoming = pod(over(HOSTNAME), over(ZONE, action=SHOULD)), pod(over(HOSTNAME), over(ZONE, action=SHOULD))
    ends.status, ends.ends = TaskStatus.Releasing, 1
    here = world(ZONES[:3], [(ends, 0)], [ends, incoming])
    assert refusals(here, incoming) == [None] * 3
    assert scores(here, incoming) == [100] * 3


def test_scores_prefer_the_emptier_zone():  # S3-07
    incoming = pod(over(action=SHOULD))
    here = world(ZONES, web(0, 0, 1, 2), [incoming])
    assert scores(here, incoming) == [25, 25, 100, 0]
    assert scores(here, incoming, [0, 1]) == [100, 100]


def test_without_own_constraints_the_services_selector_counts():
    incoming = task(PodSpec(), labels={"app": "web"})
    assert scores(world(ZONES, web(0, 0, 3), [incoming]), incoming) is None
    assert scores(world(ZONES, web(0, 0, 3), [incoming], LabelSelector()), incoming) is None
    assert scores(world(ZONES, web(0, 0, 3), [incoming], WEB), incoming) == [30, 61, 84, 100]
    assert scores(world(ZONES, [], [incoming], WEB), incoming)[:3] == [33, 33, 33]


def affinity(terms):
    return Affinity(NodeAffinity(NodeSelector(tuple(terms)))) if terms else None


pods = st.builds(
    lambda constraints, own, namespace, terms, tolerations: pod(
        *constraints, labels=own, namespace=namespace, affinity=affinity(terms), tolerations=tuple(tolerations)
    ),
    st.lists(builders.spread_constraints, max_size=3),
    builders.labels,
    st.sampled_from(("default", "other")),
    st.lists(builders.terms, max_size=1),
    st.lists(builders.tolerations, max_size=1),
)


@settings(max_examples=80)
@given(
    builders.node_lists(),
    st.lists(st.tuples(pods, st.sampled_from((TaskStatus.Running, TaskStatus.Releasing))), max_size=8),
    st.lists(pods, min_size=1, max_size=3),
    st.none() | builders.label_selectors,
    st.data(),
)
def test_one_node_and_all_nodes_agree_as_placements_come_and_go(nodes, crowd, incoming, default, data):
    rows = st.integers(0, len(nodes) - 1)
    for each, status in crowd[:5]:
        each.status, each.ends = status, int(status is TaskStatus.Releasing)
    there = [(each, data.draw(rows)) for each, _ in crowd[:5]]
    here = world(nodes, there, [*(each for each, _ in crowd), *incoming], default)
    for each in [None, *(each for each, _ in crowd[5:])]:
        if each is not None:
            row = data.draw(rows)
            here.log.append((each, row, 1))
            here.placed.append((each, row))
        if here.placed and data.draw(st.booleans()):
            gone, row = here.placed.pop(data.draw(st.integers(0, len(here.placed) - 1)))
            gone.status = TaskStatus.Releasing
            here.log.append((gone, row, -1))
        chosen = data.draw(st.lists(rows, min_size=1, unique=True).map(sorted))
        for one in incoming:
            refusals(here, one)
            scores(here, one, chosen)


def spread_over(counts, present, min_domains=1):
    """A limit over so many domains with so many pods each, of which ``present`` take part."""
    domain = SimpleNamespace(there=np.ones(len(counts), dtype=bool), codes=np.arange(len(counts)))
    constraint = SimpleNamespace(min_domains=min_domains, max_skew=1)
    tally = SimpleNamespace(counts=lambda: np.array(counts))
    counted: Any = SimpleNamespace(
        domain=domain, constraint=constraint, tally=tally, present=np.array(present, dtype=np.intp), own=True
    )
    return Evenly(counted)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.data())
def test_the_domain_with_fewest_is_known_after_each_placement(counts, data):
    present = sorted(data.draw(st.sets(st.integers(0, len(counts) - 1))))
    limit = spread_over(counts, present, data.draw(st.integers(1, 3)))
    present = present if limit._present else []
    for at in data.draw(st.lists(st.integers(0, len(counts) - 1), max_size=20)):
        before = min((counts[one] for one in present), default=0)
        assert limit.admits(at) == (counts[at] + 1 - before <= 1)
        counts[at] += 1
        assert limit.place(at) == (min((counts[one] for one in present), default=0) > before)


@pytest.mark.parametrize("domains", [100, 4000])
def test_a_placement_costs_the_same_among_many_domains(domains):
    """Lines of code that run, as each placement fills the domain with fewest."""
    limit, lines = spread_over([0] * domains, range(domains)), 0

    def count(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        for at in range(50):
            limit.place(at)
    finally:
        sys.settrace(before)
    assert lines < 50 * 20

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.filters.interpod import AFFINITY, ANTI_AFFINITY, EXISTING, InterPod
from stromboli.filters.pod_terms import Surroundings
from stromboli.filters.pods_on_nodes import Event
from stromboli.model.spec import (
    Affinity,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Requirement,
    WeightedTerm,
)
from tests.filters import builders, plain_interpod
from tests.filters.builders import node, table, task

NAMESPACES = {"default": {}, "other": {"team": "red"}, "third": {"team": "blue"}}
ZONES = [node("a1", labels={"zone": "a", "host": "a1"}), node("a2", labels={"zone": "a", "host": "a2"}),
         node("b1", labels={"zone": "b", "host": "b1"}), node("x")]  # fmt: skip


def about(app, key="zone", **fields):
    return PodAffinityTerm(key, LabelSelector({"app": app}), **fields)


def pod(need=(), avoid=(), like=(), dislike=(), **fields):
    def weighted(terms):
        return tuple(WeightedTerm(weight, term) for weight, term in terms)

    affinity = Affinity(None, PodAffinity(tuple(need), weighted(like)), PodAffinity(tuple(avoid), weighted(dislike)))
    return task(PodSpec(affinity=affinity), **fields)


def web(**fields):
    return task(PodSpec(), labels={"app": "web"}, **fields)


def world(nodes, there, incoming):
    """The rules over all nodes, and over one node at a time, beside each other."""
    log: list[Event] = []
    placed = [*there]
    where = table(nodes)
    rules = InterPod(Surroundings.of(where, lambda: there, log, lambda: incoming, NAMESPACES))
    return SimpleNamespace(rules=rules, log=log, placed=placed, nodes=nodes, view=where.view())


def refusals(world, one):
    others = [(other, world.nodes[row]) for other, row in world.placed]
    plain = [plain_interpod.refusal(one, each, others, NAMESPACES) for each in world.nodes]
    masks = world.rules.refusals(one, world.view).tolist()
    assert masks == [0 if reason is None else 1 << reason for reason in plain]
    assert world.rules.may_refuse(one) or not any(masks)
    return plain


def scores(world, one):
    others = [(other, world.nodes[row]) for other, row in world.placed]
    plain = [plain_interpod.score(one, each, others, NAMESPACES) for each in world.nodes]
    assert world.rules.scores(one, world.view).tolist() == plain
    assert world.rules.may_score(one) or not any(plain)
    return plain


@pytest.mark.parametrize(
    ("incoming", "there", "expected"),
    [
        pytest.param(pod(), [], [None] * 4, id="no-terms"),
        pytest.param(pod(need=[about("web")]), [(web(), 0)], [None, None, AFFINITY, AFFINITY], id="S3-28-zone"),
        pytest.param(pod(need=[about("web")]), [], [AFFINITY] * 4, id="no-pod-there"),
        pytest.param(pod(need=[about("web")], labels={"app": "web"}), [], [None, None, None, AFFINITY], id="first-one"),
        pytest.param(
            pod(need=[about("web")], labels={"app": "web"}), [(web(), 3)], [None, None, None, AFFINITY], id="no-key"
        ),
        pytest.param(
            pod(need=[about("web"), about("web", "host")]), [(web(), 0)], [None, *[AFFINITY] * 3], id="all-terms"
        ),
        pytest.param(pod(avoid=[about("web")]), [(web(), 0)], [ANTI_AFFINITY] * 2 + [None] * 2, id="S3-28-anti"),
        pytest.param(web(), [(pod(avoid=[about("web")]), 2)], [None, None, EXISTING, None], id="S3-28-existing"),
        pytest.param(
            pod(need=[about("web")], avoid=[about("web", "host")]),
            [(web(), 0)],
            [ANTI_AFFINITY, None, AFFINITY, AFFINITY],
            id="affinity-is-named-first",
        ),
        pytest.param(pod(avoid=[about("web")]), [(web(namespace="other"), 0)], [None] * 4, id="other-namespace"),
        pytest.param(
            pod(avoid=[about("web", namespaces=("other",))]),
            [(web(namespace="other"), 0), (web(), 2)],
            [ANTI_AFFINITY] * 2 + [None] * 2,
            id="named-namespace",
        ),
        pytest.param(
            pod(avoid=[about("web", namespace_selector=LabelSelector({"team": "red"}))]),
            [(web(namespace="other"), 0), (web(namespace="third"), 2)],
            [ANTI_AFFINITY] * 2 + [None] * 2,
            id="selected-namespace",
        ),
        pytest.param(
            pod(avoid=[about("web", namespace_selector=LabelSelector())]),
            [(web(namespace="unknown"), 2)],
            [None, None, ANTI_AFFINITY, None],
            id="every-namespace",
        ),
        pytest.param(pod(avoid=[PodAffinityTerm("zone")]), [(web(), 0)], [None] * 4, id="no-selector-matches-nothing"),
    ],
)
def test_refusals(incoming, there, expected):
    assert refusals(world(ZONES, there, [incoming]), incoming) == expected


def test_a_group_that_keeps_apart():  # S3-28: two nodes, three pods
    group = [pod(avoid=[about("web", "host")], labels={"app": "web"}) for _ in range(3)]
    here = world(ZONES[:2], [], group)
    for row in (0, 1):
        assert refusals(here, group[row])[row] is None
        here.log.append((group[row], row, 1))
        here.placed.append((group[row], row))
    assert refusals(here, group[2]) == [ANTI_AFFINITY] * 2


def test_label_keys_are_those_of_the_asking_pod():
    def of(revision):
        return pod(avoid=[about("web", match_label_keys=("rev",))], labels={"app": "web", "rev": revision})

    here = world(ZONES, [(of("1"), 0)], [of("1"), of("2")])
    assert refusals(here, of("1")) == [ANTI_AFFINITY] * 2 + [None] * 2
    assert refusals(here, of("2")) == [None] * 4


def test_scores_go_both_ways():
    liked = pod(like=[(10, about("web"))], dislike=[(3, about("db"))])
    there = [(web(), 0), (web(), 1), (task(PodSpec(), labels={"app": "db"}), 2)]
    assert scores(world(ZONES, there, [liked]), liked) == [20, 20, -3, 0]
    assert scores(world(ZONES, [(liked, 2)], []), web()) == [0, 0, 10, 0]


def test_required_terms_of_others_score_nothing():
    assert scores(world(ZONES, [(pod(need=[about("web")]), 2)], []), web()) == [0] * 4


# Whole terms, labels and nodes are drawn from lists: drawing their parts one by one takes ten times as long.
SELECTORS = (
    None,
    LabelSelector(),
    *(LabelSelector({key: value}) for key in ("app", "tier") for value in "ab"),
    LabelSelector({}, (Requirement("app", "NotIn", ("a",)),)),
    LabelSelector({}, (Requirement("tier", "Exists"),)),
)
TERMS = [
    PodAffinityTerm(
        key, selector, namespaces=named, namespace_selector=chosen, match_label_keys=same, mismatch_label_keys=other
    )
    for key, selector, named, chosen, same, other in product(
        builders.TOPOLOGIES,
        SELECTORS,
        ((), ("other",), ("default", "other")),
        (None, LabelSelector(), LabelSelector({"team": "red"})),
        ((), ("app",)),
        ((), ("tier",)),
    )
]
LABELS = [
    {key: value for key, value in (("app", app), ("tier", tier)) if value}
    for app, tier in product(("", "a", "b"), repeat=2)
]
PLACES = [
    {key: value for key, value in (("zone", zone), ("host", host)) if value}
    for zone, host in product(("", "a", "a", "b"), ("", "own", "own", "own"))
]
term_lists = st.lists(st.sampled_from(TERMS), max_size=2)
weighted_lists = st.lists(st.tuples(st.integers(1, 5), st.sampled_from(TERMS)), max_size=2)
pods = st.builds(
    pod,
    need=st.one_of(st.just([]), st.just([]), term_lists),  # a need that no pod meets hides all other reasons
    avoid=term_lists,
    like=weighted_lists,
    dislike=weighted_lists,
    labels=st.sampled_from(LABELS),
    namespace=st.sampled_from(("default", "other")),
)
node_lists = st.lists(st.sampled_from(PLACES), min_size=1, max_size=6).map(
    lambda places: [
        node(f"n{i}", labels={key: f"n{i}" if value == "own" else value for key, value in place.items()})
        for i, place in enumerate(places)
    ]
)


@settings(max_examples=100)
@given(node_lists, st.lists(pods, max_size=6), st.lists(pods, min_size=1, max_size=3), st.data())
def test_one_node_and_all_nodes_agree_as_placements_come_and_go(nodes, crowd, incoming, data):
    rows = st.integers(0, len(nodes) - 1)
    there = [(each, data.draw(rows)) for each in crowd[:3]]
    here = world(nodes, there, [*crowd, *incoming])
    for each in [None, *crowd[3:]]:
        if each is not None:
            row = data.draw(rows)
            here.log.append((each, row, 1))
            here.placed.append((each, row))
        if here.placed and data.draw(st.booleans()):
            gone, row = here.placed.pop(data.draw(st.integers(0, len(here.placed) - 1)))
            here.log.append((gone, row, -1))
        for one in incoming:
            refusals(here, one)
            scores(here, one)


@settings(max_examples=100)
@given(node_lists, st.lists(pods, max_size=6), pods, st.data())
def test_what_is_tried_counts_as_if_it_were_done(nodes, crowd, one, data):
    rows = st.integers(0, len(nodes) - 1)
    here = world(nodes, [(each, data.draw(rows)) for each in crowd[:3]], [*crowd, one])
    coming = [(each, data.draw(rows)) for each in crowd[3:]]
    going = data.draw(st.lists(st.sampled_from(here.placed), unique_by=id)) if here.placed else []
    changes = [*((each, row, 1) for each, row in coming), *((each, row, -1) for each, row in going)]
    found = [here.rules.refusal_after(one, row, changes) for row in range(len(nodes))]
    left = [entry for entry in here.placed if not any(entry is gone for gone in going)]
    others = [(other, nodes[row]) for other, row in (*left, *coming)]
    assert found == [plain_interpod.refusal(one, each, others, NAMESPACES) for each in nodes]


def test_equal_identities_get_equal_answers():
    here = world(ZONES, [(web(), 0)], [pod(avoid=[about("web")])])
    left, right = web(name="l"), web(name="r")
    right.template = left.template
    assert here.rules.identity(left) == here.rules.identity(right)
    other = task(left.template, labels={"app": "db"})
    assert here.rules.identity(left) != here.rules.identity(other)
    assert np.array_equal(here.rules.refusals(left, here.view), here.rules.refusals(right, here.view))

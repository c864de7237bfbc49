"""network-topology-aware: jobs stay within a domain, others are packed; worked examples, stories, laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.framework.books.domains import Domains
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.framework.statement.statement import Statement
from stromboli.model.jobs.hyper_nodes import JobHyperNodes
from stromboli.plugins.network_topology_aware import NetworkTopologyAware
from stromboli.plugins.network_topology_aware.gradients import Reach
from stromboli.plugins.network_topology_aware.plugin import EVICT
from stromboli.plugins.network_topology_aware.whole_domains import WholeDomains
from stromboli.testing.builders import Manifest, hyper_node, member, node, pod, pod_group, queue
from stromboli.testing.check_plugin import check_plugin
from tests.acceptance.bench import Bench, binds, conf, messages, task_of

NODES = [f"{switch}-n{number}" for switch in ("s0", "s1") for number in (0, 1)]
TREE = [
    *(node(name, cpu=8, memory="32Gi") for name in NODES),
    hyper_node("s0", 1, "s0-n0", "s0-n1"),
    hyper_node("s1", 1, "s1-n0", "s1-n1"),
    hyper_node("s4", 2, *(member("HyperNode", exactMatch={"name": name}) for name in ("s0", "s1"))),
]
"""Two switches of two nodes, 16 cores and 64Gi each, and one above them."""
HARD_1, HARD_2 = ({"mode": "hard", "highestTierAllowed": tier} for tier in (1, 2))
SOFT = {"mode": "soft"}


def tiers(**arguments: object) -> str:
    """A configuration with the plugin and ``arguments``, in whose keys ``__`` stands for a dot."""
    given = ", ".join(f"{key.replace('__', '.').replace('_', '-')}: {value}" for key, value in arguments.items())
    plugin = f"{{name: network-topology-aware, arguments: {{{given}}}}}"
    return conf("gang priority", f"[{{name: predicates}}, {{name: proportion}}, {plugin}]")


def gang(name: str, count: int, topology: Manifest | None, cpu: int = 4, **spec: Any) -> list[Manifest]:
    """A PodGroup of ``count`` equal pods, of which all must run unless ``min_member`` says otherwise."""
    least = {"min_member": count, "networkTopology": topology, **spec}
    return [pod_group(name, **least), *(pod(f"{name}-{i}", group=name, cpu=cpu, memory="1Gi") for i in range(count))]


def switches(placed: Mapping[str, str]) -> set[str]:
    """The switches of the nodes that pods are bound to."""
    return {name.partition("-")[0] for name in placed.values()}


# ---------------------------------------------------------------------- domains to try


@pytest.mark.parametrize(
    ("topology", "taken", "purpose", "found"),
    [
        pytest.param(HARD_2, "s1", "Allocate", [["s0"], ["s4"]], id="where-there-is-room-the-closest-first"),
        pytest.param(HARD_2, "", "Allocate", [["s0", "s1"], ["s4"]], id="a-tier-by-name"),
        pytest.param(HARD_1, "", "Allocate", [["s0", "s1"]], id="no-wider-than-allowed"),
        pytest.param(SOFT, "s1", "Allocate", [["s0"], ["s4"], ["<cluster-top-hypernode>"]], id="soft-up-to-the-top"),
        pytest.param(HARD_2, "s1", EVICT, [["s4"], ["s0", "s1"]], id="whatever-runs-there-if-it-may-be-evicted"),
        pytest.param(None, "", "Allocate", [["<cluster-top-hypernode>"]], id="without-topology-everywhere"),
        pytest.param({"mode": "hard"}, "", "Allocate", [["<cluster-top-hypernode>"]], id="hard-without-a-tier"),
    ],
)
def test_which_domains_are_tried(topology, taken, purpose, found):
    used = [pod(f"used-{name}", on=name, cpu=5) for name in NODES if taken and name.startswith(taken)]
    objects = [*TREE, *used, *gang("g", 4, topology, minResources={"cpu": "8", "memory": "1Gi"})]
    with Bench(objects, tiers()).open() as session:
        tried = session.ask.hyper_node_gradient_for_job(session.jobs["default/g"], session.hyper_nodes.top, purpose)
        assert [[info.name for info in gradient] for gradient in tried] == found


def test_numbers_that_no_tier_bears_are_not_kept():
    """A job may name any."""
    tree = [one for one in TREE if one["metadata"]["name"] != "s4"]
    wide = hyper_node("wide", 50, *(member("HyperNode", exactMatch={"name": name}) for name in ("s0", "s1")))
    with Bench([*tree, wide], tiers()).open() as session:
        reach, top = Reach(session.hyper_nodes, plugin_of(session).domains), session.hyper_nodes.top
        for highest in range(-100, 200):
            tried = [[info.name for info in gradient] for gradient in reach.gradients(top, highest)]
            borne = [(1, ["s0", "s1"]), (50, ["wide"]), (51, [top.name])]
            assert tried == [names for tier, names in borne if tier <= highest]
        assert len(reach._known) == 4


def test_only_so_many_domains_are_tried_for_evictions():
    objects = [*TREE, *gang("g", 4, SOFT)]
    with Bench(objects, tiers(hypernode__gradient__evict__max_hypernodes=3)).open() as session:
        tried = session.ask.hyper_node_gradient_for_job(session.jobs["default/g"], session.hyper_nodes.top, EVICT)
        assert [[info.name for info in gradient] for gradient in tried] == [["<cluster-top-hypernode>"], ["s4"], ["s1"]]


@pytest.mark.parametrize(
    ("topology", "lies_in", "found"),
    [(HARD_1, "s1", [["s1"]]), (HARD_2, "s1", [["s0", "s1"], ["s4"]]), (HARD_1, "s4", [])],
    ids=["stays-in-its-domain", "may-grow-to-the-allowed-tier", "lies-too-wide-already"],
)
def test_a_job_that_lies_somewhere_stays_near_it(topology, lies_in, found):
    bench = Bench([*TREE, *gang("g", 4, topology)], tiers())
    with bench.open() as session:
        job = session.jobs["default/g"]
        job.hyper_nodes = JobHyperNodes(lies_in)
        tried = session.ask.hyper_node_gradient_for_job(job, session.hyper_nodes.top, "Allocate")
        assert [[info.name for info in gradient] for gradient in tried] == found


# ---------------------------------------------------------------------- scores


def plugin_of(session: Session) -> NetworkTopologyAware:
    found = session.plugins["network-topology-aware"]
    assert isinstance(found, NetworkTopologyAware)
    return found


def test_the_fuller_domain_is_better_while_the_part_fits():
    used = pod("used", on="s0-n0", cpu=4, memory="16Gi")
    objects = [*TREE, used, pod_group("g", networkTopology=HARD_2), pod("g-0", group="g", cpu=8, memory="16Gi")]
    with Bench(objects, tiers()).open() as session:
        part = session.sub_jobs(session.jobs["default/g"])["default/g"]
        nodes = dict.fromkeys(("s0", "s1"), ())
        assert session.ask.hyper_node_order(part, nodes) == {"s0": (0.75 + 0.5) / 2 * 100, "s1": 37.5}
    with Bench([*objects, pod("more", on="s0-n1", cpu=5)], tiers(weight=10)).open() as session:
        part = session.sub_jobs(session.jobs["default/g"])["default/g"]
        assert session.ask.hyper_node_order(part, nodes) == {"s0": 0, "s1": 375}


def test_equal_domains_differ_by_the_tasks_that_they_hold():
    objects = [*TREE, pod_group("g", networkTopology=HARD_2), pod("g-0", group="g", on="s1-n0", cpu=2)]
    objects += [pod("g-1", group="g", cpu=2), pod("other", on="s0-n0", cpu=2)]
    with Bench(objects, tiers()).open() as session:
        part = session.sub_jobs(session.jobs["default/g"])["default/g"]
        scores = session.ask.hyper_node_order(part, dict.fromkeys(("s0", "s1"), ()))
        assert scores["s1"] - scores["s0"] == 50


@pytest.mark.parametrize(
    ("lies_in", "placed", "scores"),
    [
        pytest.param("", {}, [0, 0, 0, 0, 0], id="nothing-placed"),
        pytest.param("s0", {}, [100, 100, 50, 50, 0], id="by-tier-of-what-holds-both"),
        pytest.param("s0", {"g-0": "s0-n0", "g-1": "s0-n1"}, [150, 150, 50, 50, 0], id="ties-by-tasks-there"),
        pytest.param("s4", {"g-0": "s0-n0"}, [75, 75, 50, 50, 0], id="wider"),
    ],
)
def test_nodes_close_to_what_is_placed_are_better(lies_in, placed, scores):
    pods = [pod(f"g-{i}", group="g", on=placed.get(f"g-{i}", "")) for i in range(4)]
    objects = [*TREE, node("lonely"), pod_group("g", networkTopology=SOFT), *pods]
    with Bench(objects, tiers()).open() as session:
        part = session.sub_jobs(session.jobs["default/g"])["default/g"]
        part.lies_in = lies_in
        task, plugin = task_of(session, "g-3"), plugin_of(session)
        order = np.array([session.table.row(name) for name in (*NODES, "lonely")])
        found = plugin.closest(task, session.table.view(order))
        assert found is not None
        assert found.tolist() == scores
        assert plugin.packed(task, session.table.view()) is None


@pytest.mark.parametrize(
    ("objects", "row", "found"),
    [
        pytest.param(TREE, "s0-n0", [100, 125], id="in a domain of its own"),
        pytest.param([*TREE, hyper_node("s2", 1, "s0-n1", "s1-n0")], "s0-n0", None, id="domains share nodes"),
        pytest.param([*TREE[:4], hyper_node("s0", 1, *NODES[:3]), hyper_node("s1", 1, *NODES[2:])], "s0-n0", None,
                     id="domains share nodes, and there are no others"),
        pytest.param([*TREE, node("lonely")], "lonely", None, id="in none"),
    ],
)  # fmt: skip
def test_equal_tasks_are_looked_at_at_once_in_a_domain_that_shares_no_node(objects, row, found):
    with Bench([*objects, *gang("g", 4, SOFT)], tiers()).open() as session:
        session.sub_jobs(session.jobs["default/g"])["default/g"].lies_in = "s0"
        rows = np.array([session.table.row(row)])
        said = plugin_of(session).closest_in_one_domain(task_of(session, "g-0"), session.table.view(rows), 2)
        assert (None if said is None else said.tolist()) == found


def test_other_pods_are_packed_where_tiers_fade():
    """Tiers 1 to 3 with .5, .4 and .2: (.5 + .32 + .128) / 2.44; a node outside counts 1 for the tiers it lacks."""
    objects = [
        *(node(name, cpu=cpu, memory="1Ti") for name, cpu in (("a", 4), ("b", 1), ("lonely", 5))),
        hyper_node("s0", 1, "a"), hyper_node("s4", 2, "a", "b"),
        pod("used", on="a", cpu=1), pod_group("g"), pod("g-0", group="g", cpu=1),
    ]  # fmt: skip
    with Bench(objects, tiers(hypernode__binpack__memory=0)).open() as session:
        found = plugin_of(session).packed(task_of(session, "g-0"), session.table.view())
        assert found is not None
        assert found.round(1).tolist() == [38.9, 59.3, 79.0]


@pytest.mark.parametrize(
    "arguments", [{"weight": 0}, {"hypernode__binpack__normal_pod__enable": "false"}], ids=["weight-0", "disabled"]
)
def test_other_pods_need_not_be_packed(arguments):
    objects = [*TREE, pod("used", on="s1-n0"), pod_group("g"), pod("g-0", group="g")]
    with Bench(objects, tiers(**arguments)).open() as session:
        assert plugin_of(session).packed(task_of(session, "g-0"), session.table.view()) is None
    assert binds(Bench(objects, tiers(**arguments)).cycle()) == {"g-0": "s0-n0"}
    assert binds(Bench(objects, tiers()).cycle()) == {"g-0": "s1-n0"}


@pytest.mark.parametrize("fading", [0, 1, 1e308], ids=["closest-tier-alone", "all-alike", "beyond-numbers"])
def test_fading_has_no_bad_values(fading):
    objects = [*TREE, hyper_node("far", 10**6, "s0-n0"), pod("used", on="s1-n0"), pod_group("g"), pod("g-0", group="g")]
    assert binds(Bench(objects, tiers(hypernode__binpack__normal_pod__fading=fading)).cycle())


def test_bad_arguments_keep_the_defaults():
    plugin = NetworkTopologyAware(
        {"weight": -1, "hypernode.binpack.cpu": -2, "hypernode.binpack.normal-pod.fading": -0.1,
         "hypernode.gradient.evict.max-hypernodes": 0}
    )  # fmt: skip
    assert (plugin.weight, plugin.cpu, plugin.fading, plugin.most_domains) == (1, 1, 0.8, 8)
    assert len(plugin.complaints) == 4


# ---------------------------------------------------------------------- stories


@pytest.mark.parametrize(
    ("topology", "count", "used", "found"),
    [
        pytest.param(HARD_1, 4, [], {"s0"}, id="one-switch"),
        pytest.param(HARD_1, 4, ["s0-n0"], {"s1"}, id="the-one-with-room"),
        pytest.param(HARD_1, 5, [], set(), id="hard-waits"),
        pytest.param(HARD_2, 5, [], {"s0", "s1"}, id="hard-2-uses-both"),
        pytest.param(SOFT, 5, [], {"s0", "s1"}, id="soft-uses-both"),
        pytest.param(SOFT, 3, ["s0-n0"], {"s1"}, id="soft-prefers-one"),
    ],
)
def test_gangs_lie_close(topology, count, used, found):
    objects = [*TREE, *(pod(f"used-{name}", on=name, cpu=6) for name in used), *gang("g", count, topology)]
    placed = binds(Bench(objects, tiers()).cycle())
    assert switches(placed) == found
    assert len(placed) == (count if found else 0)


def test_a_job_says_why_it_waits_in_which_domain():
    plan = Bench([*TREE, *gang("g", 5, HARD_1)], tiers()).cycle()
    needs = "job g needs cpu 20, memory 5Gi at once in one HyperNode up to tier 1"
    why = f"{needs}: s0, the nearest of 2, lacks cpu 4; s4 of tier 2 would have the room"
    assert [text.endswith(f"Origin reason is: {why}") for text in messages(plan, "default/g")] == [True]
    plan = Bench([*TREE, *gang("g", 3, HARD_1, cpu=5)], tiers()).cycle()
    assert [
        text.endswith("In hyperNode s1: 0/2 nodes are unavailable: 2 Insufficient cpu.")
        for text in messages(plan, "default/g")
    ] == [True]


def test_a_part_of_which_no_pod_waits_needs_no_domain():
    """One pod of a part runs and the other is not there yet; a pod that belongs to no part waits."""
    policy = {"name": "w", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["app"], "networkTopology": HARD_1}
    group = pod_group("g", min_member=0, subGroupPolicy=[policy])
    pods = [pod("g-0", group="g", on="s0-n0", labels={"app": "a"}), pod("g-1", group="g")]
    plan = Bench([*TREE, group, *pods], tiers()).cycle()
    assert plan.inconsistencies == []
    assert binds(plan) == {}


def test_an_elastic_gang_grows_within_its_domain():
    """What runs holds the job in its switch: a second pod would have room elsewhere, and waits."""
    objects = [*TREE, *gang("g", 4, HARD_1, cpu=8, min_member=1)]
    bench = Bench(objects, tiers())
    assert switches(binds(bench.cycle())) == {"s0"}
    assert binds(bench.cycle()) == {}, "two of four have run out of room; s1 is empty"


def test_parts_lie_close_each_by_itself():
    policy = {"name": "w", "subGroupSize": 2, "matchLabelKeys": ["app"], "networkTopology": HARD_1}
    group = pod_group("g", min_member=4, subGroupPolicy=[policy], networkTopology=HARD_2)
    pods = [pod(f"g-{i}", group="g", cpu=8, labels={"app": "ab"[i % 2]}) for i in range(4)]
    placed = binds(Bench([*TREE, group, *pods], tiers()).cycle())
    assert len(placed) == 4
    for part in ({"g-0", "g-2"}, {"g-1", "g-3"}):
        assert len(switches({name: placed[name] for name in part})) == 1


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_room_is_made_in_a_whole_domain(action):
    """Four pods need a switch: the victims of one are evicted, none elsewhere, and their room stays nominated."""
    low = [node for name in NODES for node in gang(f"low-{name}", 1, None, cpu=6)]
    for each, name in zip((each for each in low if each["kind"] == "Pod"), NODES, strict=True):
        each["spec"]["nodeName"], each["status"] = name, {"phase": "Running"}
    for each in low:
        if each["kind"] == "PodGroup":
            each["spec"] |= {"minMember": 0} | ({"queue": "other"} if action == "gangreclaim" else {})
            each["status"] = {"phase": "Running"}
    high = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 100}
    group = gang("g", 4, HARD_1, priorityClassName="high")
    text = tiers().replace("allocate, backfill", f"allocate, {action}").replace("proportion", "capacity")
    queues = [queue("default", deserved={"cpu": "16"}), queue("other", deserved={"cpu": "1"})]
    bench = Bench([*TREE, high, *queues, *low, *group], text)
    plan = bench.cycle()
    assert len(plan.evictions) == 2
    assert len({eviction.node.partition("-")[0] for eviction in plan.evictions}) == 1
    assert [(each.job, each.hyper_node) for each in plan.nominations] == [
        ("default/g", plan.evictions[0].node.partition("-")[0])
    ]


# ---------------------------------------------------------------------- laws


amounts = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=8)


@pytest.mark.law("placements taken back leave the sums of domains as they were, bit by bit")
@given(amounts, st.integers(1, 8))
def test_undo_restores_the_sums(moves, kept):
    pods = [pod(f"g-{i}", group="g", cpu=cpu) for i, (_row, cpu) in enumerate(moves)]
    with Bench([*TREE, pod("used", on="s1-n1"), pod_group("g"), *pods], tiers()).open() as session:
        job, domains = session.jobs["default/g"], plugin_of(session).domains
        states = [domains.used.copy()]
        with session.statement() as statement:
            for i, (row, _cpu) in enumerate(moves):
                place(session, statement, f"g-{i}", row)
                states.append(domains.used.copy())
                assert (domains.used == fresh(session)).all()
            statement.rollback(min(kept, len(moves)) - 1)
            assert (domains.used == states[min(kept, len(moves)) - 1]).all()
        assert (domains.used == states[0]).all()
        assert job.ready_task_num() == 0


def place(session: Session, statement: Statement, name: str, row: int) -> None:
    statement.place(session.jobs["default/g"], (task_of(session, name),), (row,), OperationKind.ALLOCATE)


def fresh(session: Session) -> Any:
    """The sums added up from the nodes."""
    used = session.table.used
    infos = plugin_of(session).domains.infos
    return np.stack([used[:, info.rows].sum(axis=1) for info in infos], axis=1)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"weight": 7, "hypernode.binpack.resources": "nvidia.com/gpu"}, {"hypernode.keep-whole.enable": True}],
    ids=["plain", "gpus", "whole"],
)
def test_it_keeps_its_promises(arguments):
    check_plugin(NetworkTopologyAware, arguments, examples=10)


def test_how_much_of_a_whole_domain_a_placement_begins_to_use() -> None:
    """Two blocks: of racks of two nodes and one, and of a rack of two; parts are of the five nodes that are all."""
    tree = [
        hyper_node("a", 1, "n0", "n1"),
        hyper_node("b", 1, "n2"),
        hyper_node("c", 1, "n3", "n4"),
        hyper_node("ab", 2, below=["a", "b"]),
        hyper_node("cc", 2, below=["c"]),
        hyper_node("all", 3, below=["ab", "cc"]),
    ]
    with Bench([*(node(f"n{i}") for i in range(5)), *tree]).open() as session:
        domains = Domains(session.hyper_nodes, session.table)
        whole = WholeDomains(session, domains)

        def broken() -> dict[str, float]:
            parts = zip(domains.infos, whole.broken().tolist(), strict=True)
            return {info.name: part for info, part in parts if info.name in {"a", "b", "c", "ab", "cc", "all"}}

        largest = max(len(info.rows) for info in domains.infos)
        assert set(broken().values()) == {5 / largest}
        whole.moved([2], 2)
        assert broken() == {name: size / largest for name, size in
                            {"a": 2, "b": 0, "c": 2, "ab": 0, "cc": 2, "all": 0}.items()}  # fmt: skip
        whole.moved([0, 2], 1)
        assert broken()["a"] == 0
        whole.moved([2], -3)
        assert (broken()["b"], broken()["ab"]) == (1 / largest, 0)
        whole.moved([0], -1)
        assert set(broken().values()) == {5 / largest}

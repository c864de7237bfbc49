"""numa-aware: which CPUs the kubelet would give, which nodes it would refuse, what is remembered."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.batch import BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE
from stromboli.api.topology import CpuInfo
from stromboli.model.codec import decode_snapshot, encode_snapshot
from stromboli.model.numa import NumaSpec, cpus_of, mask_of
from stromboli.plugins.numa_aware import NumaAware
from stromboli.plugins.numa_aware.cpus import Hint, Layout, best, plan
from stromboli.plugins.numa_aware.plugin import kind
from stromboli.testing.builders import Manifest, node, pod, pod_group
from stromboli.testing.check_plugin import check_plugin
from tests.acceptance.bench import Bench, binds, conf, messages, task_of

CONF = conf("gang", "predicates numa-aware")
TWO = tuple((cpu, cpu // 4, cpu // 4, cpu) for cpu in range(8))
"""Two NUMA nodes, a socket each, of four cores."""
THREADS = tuple((cpu, cpu % 4 // 2, cpu % 4 // 2, cpu % 4) for cpu in range(8))
"""Two sockets of two cores with two threads: CPU 0 and 4 are one core."""


EIGHT = tuple((cpu, cpu, 0, cpu) for cpu in range(8))
"""As many NUMA nodes as are looked at, of one CPU each."""
BACKWARDS = ((0, 1, 1, 3), (1, 1, 1, 2), (2, 0, 0, 1), (3, 0, 0, 0))
"""NUMA nodes, sockets and cores are numbered against the CPUs."""
FAR = ((4, 1, 1, 4), (5, 0, 0, 5))


def numa(name: str, policy: str, free: str = "0-7", manager: str = "static", **spec: Any) -> Manifest:
    detail = {str(cpu): {"numa": on, "socket": socket, "core": core} for cpu, on, socket, core in TWO}
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name},
        "spec": {
            "policies": {"CPUManagerPolicy": manager, "TopologyManagerPolicy": policy},
            "numares": {"cpu": {"allocatable": free, "capacity": 8}},
            "cpuDetail": detail,
            **spec,
        },
    }


def guaranteed(name: str, cpu: object, policy: str = "") -> Manifest:
    amounts = {"cpu": str(cpu), "memory": "1Gi"}
    notes = {"volcano.sh/numa-topology-policy": policy} if policy else {}
    resources = {"requests": amounts, "limits": amounts}
    return pod(name, group="g", annotations=notes, container={"resources": resources})


@pytest.mark.parametrize(
    ("listed", "cpus"),
    [
        *(("", []), ("3", [3]), ("0,2,4-6", [0, 2, 4, 5, 6])),
        *(("4-2", []), ("a", []), ("0,", []), ("-1", []), ("0-99999", None)),
    ],
)
def test_lists_of_cpus(listed, cpus):
    assert cpus_of(mask_of(listed)) == (list(range(4096)) if cpus is None else cpus)


@pytest.mark.parametrize(
    ("places", "free", "policy", "counts", "cpus"),
    [
        pytest.param(TWO, "0-7", RESTRICTED, [4], "0-3", id="one-node-is-enough"),
        pytest.param(TWO, "0-2,4-6", BEST_EFFORT, [4], "0-2,4", id="best-effort-takes-two"),
        pytest.param(TWO, "0-2,4-6", RESTRICTED, [4], None, id="restricted-refuses"),
        pytest.param(TWO, "0-2,4-6", SINGLE_NUMA_NODE, [4], None, id="single-refuses"),
        pytest.param(TWO, "0-7", SINGLE_NUMA_NODE, [6], None, id="single-refuses-what-needs-two"),
        pytest.param(TWO, "0-7", RESTRICTED, [6], "0-5", id="restricted-takes-what-needs-two"),
        pytest.param(TWO, "0,4-7", RESTRICTED, [3], "4-6", id="the-one-with-room"),
        pytest.param(TWO, "0-7", SINGLE_NUMA_NODE, [3, 3], "0-2,4-6", id="container-by-container"),
        pytest.param(TWO, "0-7", SINGLE_NUMA_NODE, [4, 4, 1], None, id="the-third-finds-none"),
        pytest.param(TWO, "0-7", SINGLE_NUMA_NODE, [0], "", id="parts-of-cpus-have-no-preference"),
        pytest.param(TWO, "0-1", BEST_EFFORT, [4], "", id="too-few-at-all"),
        pytest.param(TWO, "2-7", "none", [2], "2-3", id="policy-none"),
        pytest.param(THREADS, "0-7", RESTRICTED, [2], "0,4", id="whole-cores"),
        pytest.param(THREADS, "0-3,5-7", RESTRICTED, [1], "0", id="the-fuller-core"),
        pytest.param(THREADS, "0,2-7", RESTRICTED, [2], "0,4", id="a-core-of-which-its-own-cpu-is-free"),
        pytest.param(THREADS, "1-7", RESTRICTED, [2], "1,5", id="no-core-whose-own-cpu-is-taken"),
        pytest.param((), "", RESTRICTED, [1], None, id="nothing-known"),
        pytest.param(TWO, "0-7", RESTRICTED, [0, 4], "0-3", id="the-first-has-no-preference"),
        pytest.param(THREADS, "0-2,4-6", "none", [4], "0,1,4,5", id="a-whole-socket-before-cores"),
        pytest.param(THREADS, "0-6", "none", [3], "0,1,4", id="the-rest-where-some-are-taken"),
        pytest.param(THREADS, "0-5,7", "none", [1], "2", id="a-core-of-the-fuller-socket"),
        pytest.param(EIGHT, "0-7", RESTRICTED, [1], "0", id="as-many-numa-nodes-as-are-looked-at"),
        pytest.param(BACKWARDS, "0-3", "none", [2], "2-3", id="sockets-by-number"),
        pytest.param(BACKWARDS, "0-3", "none", [1], "3", id="cores-by-number"),
        pytest.param(BACKWARDS, "0-3", RESTRICTED, [1], "3", id="numa-nodes-by-number"),
        pytest.param(FAR, "4-5", RESTRICTED, [1], "5", id="the-lowest-numa-node"),
    ],
)
def test_plans(places, free, policy, counts, cpus):
    found = plan(Layout(places), mask_of(free), policy, counts)
    assert (None if found.refused >= 0 else found.cpus) == (None if cpus is None else mask_of(cpus))


policies = st.sampled_from((BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE, "none"))


@given(st.integers(0, 255), st.lists(st.integers(0, 5), max_size=3), policies)
def test_plans_take_free_cpus_alone(free, counts, policy):
    for places in (TWO, THREADS):
        layout = Layout(places)
        found = plan(layout, free, policy, counts)
        assert found.cpus & ~free == 0
        if found.refused < 0 and found.cpus.bit_count() == sum(counts) and policy == SINGLE_NUMA_NODE:
            assert layout.spread(found.cpus) <= max(1, sum(count > 0 for count in counts))


FIVE = tuple((cpu, 3 * (cpu % 5), 0, cpu) for cpu in range(12))
"""Five NUMA nodes of two or three cores, numbered 0, 3, ..., 12."""


@given(st.integers(0, 4095), st.integers(1, 12), st.booleans())
def test_the_best_numa_nodes_are_those_the_kubelet_finds_among_all_sets(free, count, single):
    """The kubelet's own way: each set with the room is a hint; preferred, then few, then low ones win."""
    layout = Layout(FIVE)
    sets = [nodes for size in range(1, 6) for nodes in combinations(sorted(layout.numa), size)]
    least = min(len(nodes) for nodes in sets if layout.in_numa(nodes).bit_count() >= count)
    hints = [nodes for nodes in sets if (layout.in_numa(nodes) & free).bit_count() >= count]
    usable = [nodes for nodes in hints if not single or len(nodes) == least == 1]
    wanted = min(usable, key=lambda nodes: (len(nodes) != least, len(nodes), sum(1 << n for n in nodes)), default=None)
    expected = Hint(sets[-1], False) if wanted is None else Hint(wanted, len(wanted) == least)
    assert best(layout, free, count, single) == expected


def test_numbers_of_numa_nodes_and_cpus_have_no_price():
    """A Numatopology may name any number; nothing is as large as the number says."""
    far = 1 << 62
    places = ((0, -far, far, -far), (1, far, -far, far), (2, far, far, far))
    assert plan(Layout(places), 7, RESTRICTED, (2,)).cpus == 0b110
    odd = NumaSpec(cpu_detail={"9" * 5000: CpuInfo(), "07": CpuInfo(), "7": CpuInfo(), str(far): CpuInfo()})
    assert odd.places == ((7, 0, 0, 0),)


@pytest.mark.parametrize(
    ("node_policy", "manager", "pod_policy", "cpu", "free", "why"),
    [
        ("restricted", "static", "restricted", 4, "0-7", ""),
        ("restricted", "static", "", 4, "0-7", ""),
        ("restricted", "static", "", 4, "0-2,4-6", "container main cannot be assigned by numa"),
        ("restricted", "none", "", 4, "0-2,4-6", ""),
        ("none", "static", "", 4, "0-2,4-6", ""),
        ("restricted", "none", "restricted", 4, "0-7", "cpu manager policy isn't static"),
        ("none", "static", "restricted", 4, "0-7", "task topology policy[restricted] is different with node[none]"),
        ("restricted", "static", "restricted", 4, "", "cpu allocatable map is empty"),
        ("restricted", "static", "restricted", "500m", "0-2", ""),
        ("restricted", "static", "", "500m", "", ""),
        (None, "", "restricted", 4, "", "numa info is empty"),
        (None, "", "", 4, "", ""),
        *(
            ("restricted", "static", "p" * 64, 4, "0-7", f"policy[{'p' * 63}] is different with node[restricted]"),
            ("n" * 64, "static", "restricted", 4, "0-7", f"policy[restricted] is different with node[{'n' * 63}]"),
        ),
    ],
)
def test_which_nodes_are_refused(node_policy, manager, pod_policy, cpu, free, why):
    described = [] if node_policy is None else [numa("n", node_policy, free, manager)]
    objects = [node("n", cpu=8), *described, pod_group("g"), guaranteed("p", cpu, pod_policy)]
    plan = Bench(objects, CONF).cycle()
    assert bool(binds(plan)) is not bool(why)
    assert any(why in text for text in messages(plan, "default/g")) or not why


def test_burstable_pods_are_not_looked_at():
    objects = [node("n", cpu=8), numa("n", "single-numa-node", "0"), pod_group("g"), pod("p", group="g", cpu=6)]
    assert binds(Bench(objects, CONF).cycle()) == {"p": "n"}


def test_what_the_system_keeps_is_not_given():
    objects = [node("n", cpu=8), numa("n", "single-numa-node", resReserved={"cpu": "1500m"}), pod_group("g")]
    assert binds(Bench([*objects, guaranteed("p", 3)], CONF).cycle()) == {"p": "n"}
    reserved_everywhere = numa("n", "single-numa-node", resReserved={"cpu": "5"})
    assert not binds(Bench([objects[0], reserved_everywhere, objects[2], guaranteed("p", 4)], CONF).cycle())


def test_few_numa_nodes_are_better():
    nodes = [node(name, cpu=8) for name in ("split", "whole")]
    described = [numa("split", "best-effort", "0-2,4-6"), numa("whole", "best-effort")]
    objects = [*nodes, *described, pod_group("g"), guaranteed("p", 4, "best-effort")]
    with Bench(objects, CONF).open() as session:
        plugin = session.plugins["numa-aware"]
        assert isinstance(plugin, NumaAware)
        raw = plugin.numa_nodes(task_of(session, "p"), session.table.view())
        assert raw is not None
        assert plugin.fewest_best(task_of(session, "p"), raw, 1, 2).tolist() == [0, 50]
    assert binds(Bench(objects, CONF).cycle()) == {"p": "whole"}


def test_what_a_mismatched_node_would_give_and_pods_without_a_policy_are_not_scored():
    described = [numa("static", "restricted"), numa("other", "best-effort")]
    pods = [guaranteed("p", 4, "restricted"), guaranteed("q", 4), pod("r", group="g")]
    pods[2]["metadata"]["annotations"]["volcano.sh/numa-topology-policy"] = "restricted"
    objects = [*(node(name, cpu=8) for name in ("static", "other", "bare")), *described, pod_group("g"), *pods]
    with Bench(objects, CONF).open() as session:
        plugin: Any = session.plugins["numa-aware"]
        raw = [plugin.numa_nodes(task_of(session, name), session.table.view()) for name in "pqr"]
        assert (raw[0].tolist(), raw[1:]) == ([0, 0, 1], [None, None])


def test_scores_follow_each_placement():
    """Of eight CPUs on two NUMA nodes three are taken on each, and given back."""
    objects = [node("n", cpu=16), numa("n", "best-effort"), pod_group("g", min_member=0)]
    pods = [*(guaranteed(name, 3, "best-effort") for name in "ab"), guaranteed("c", 2, "best-effort")]
    with Bench([*objects, *pods], CONF).open() as session:
        plugin: Any = session.plugins["numa-aware"]

        def spread() -> float:
            return float(plugin.numa_nodes(task_of(session, "c"), session.table.view())[0])

        found = [spread()]
        with session.statement() as trial:
            for name in "ab":
                trial.pipeline(task_of(session, name), "n")
            found.append(spread())
        found.append(spread())
    assert found == [1, 2, 1]


def test_answers_depend_on_the_containers_and_the_policy():
    objects = [node("n", cpu=16), pod_group("g"), guaranteed("a", 4), guaranteed("b", 4, "restricted")]
    with Bench(objects, CONF).open() as session:
        one, other = (task_of(session, name) for name in "ab")
        assert (kind(one), kind(other)) == ((one.template, ""), (other.template, "restricted"))


def test_what_is_remembered_of_a_whole_node_leaves_nothing_free():
    objects = [node("n", cpu=16), numa("n", "restricted"), pod_group("g"), guaranteed("a", 8)]
    bench = Bench(objects, CONF)
    bench.cycle()
    with bench.open() as session:
        plugin: Any = session.plugins["numa-aware"]
        assert plugin._sites[0].usable == 0
    bench.tell(node("n", cpu=16), gone=True)
    with bench.open() as session:
        assert session.plan.memory.get("numa-aware", {}) == {}


def test_pods_of_one_session_and_of_the_next_share_no_cpus():
    """Each takes four CPUs; the third finds three on each NUMA node, and is refused until one of the others is gone."""
    objects = [node("n", cpu=16), numa("n", "single-numa-node"), pod_group("g", min_member=0)]
    bench = Bench([*objects, guaranteed("a", 4), guaranteed("b", 1), guaranteed("c", 4)], CONF)
    assert set(binds(bench.cycle())) == {"a", "b"}
    assert binds(bench.cycle()) == {}, "what was planned counts as taken before the node shows it"
    bench.tell(guaranteed("b", 1), gone=True)
    assert set(binds(bench.cycle())) == {"c"}


def test_what_a_node_shows_is_not_remembered_any_more():
    objects = [node("n", cpu=16), numa("n", "single-numa-node"), pod_group("g", min_member=0), guaranteed("a", 4)]
    bench = Bench(objects, CONF)
    bench.cycle()
    uid = next(iter(bench.state.tasks.values())).uid
    assert bench.state.memory["numa-aware"] == {f"n {uid} f": 1.0}
    bench.tell(numa("n", "single-numa-node", "4-7", podAllocations=[{"uid": uid, "name": "a", "namespace": "default"}]))
    bench.cycle()
    assert bench.state.memory["numa-aware"] == {}


def test_plans_of_pods_whose_uids_have_blanks_are_remembered():
    """As files may say; a server gives others."""
    wanted = guaranteed("a", 4)
    wanted["metadata"]["uid"] = "a  b"
    bench = Bench([node("n", cpu=16), numa("n", "single-numa-node"), pod_group("g", min_member=0), wanted], CONF)
    for _ in range(2):
        bench.cycle()
        assert bench.state.memory["numa-aware"] == {"n a  b f": 1.0}


def test_cpus_are_given_back():
    objects = [node("n", cpu=16), numa("n", "restricted"), pod_group("g", min_member=3)]
    bench = Bench([*objects, guaranteed("a", 4), guaranteed("b", 4), guaranteed("c", 4)], CONF)
    with bench.open() as session:
        plugin = session.plugins["numa-aware"]
        assert isinstance(plugin, NumaAware)
        with session.statement() as trial:
            for name in "ab":
                trial.pipeline(task_of(session, name), "n")
            assert plugin._sites[0].usable == 0
        assert plugin._sites[0].usable == 0xFF
    assert session.plan.memory["numa-aware"] == {}


def test_a_pod_whose_eviction_is_undone_takes_no_further_cpus():
    objects = [node("n", cpu=16), numa("n", "restricted"), pod_group("g", min_member=1)]
    amounts = {"cpu": "4", "memory": "1Gi"}
    runs = pod("a", group="g", on="n", container={"resources": {"requests": amounts, "limits": amounts}})
    with Bench([*objects, runs], CONF).open() as session:
        plugin = session.plugins["numa-aware"]
        assert isinstance(plugin, NumaAware)
        with session.statement() as trial:
            trial.evict(task_of(session, "a"), "preempt")
        assert plugin._sites[0].usable == 0xFF
    assert session.plan.memory["numa-aware"] == {}


def test_a_reserved_pod_is_not_kept_out_by_its_own_cpus():
    ends = pod("b", on="n", cpu=4, deleting=True)
    bench = Bench([node("n", cpu=8), numa("n", "restricted"), pod_group("g"), guaranteed("a", 8), ends], CONF)
    plan = bench.cycle()
    assert (binds(plan), [held.node for held in plan.reservations]) == ({}, ["n"])
    bench.tell(ends, gone=True)
    assert binds(bench.cycle()) == {"a": "n"}
    assert [key.rsplit(" ")[2] for key in bench.state.memory["numa-aware"]] == ["ff"]


def test_snapshots_keep_what_is_known():
    bench = Bench([node("n"), numa("n", "restricted", resReserved={"cpu": "1500m"})], CONF)
    before, after = bench.snapshot(), decode_snapshot(encode_snapshot(bench.snapshot()))
    assert (after.numa, after.numa["n"].reserved, after.numa["n"].free) == (before.numa, 2, 0xFF)
    bench.tell(numa("n", "restricted"), gone=True)
    assert bench.snapshot().numa == {}


def test_bad_descriptions_count_as_none():
    assert NumaSpec(res_reserved={"cpu": "x"}).reserved == 0
    assert NumaSpec().free == 0
    assert (Layout(FAR).all, Layout(()).all) == (0b110000, 0)
    odd = Layout(((0, 0, -1, -1), (1, 0, -1, -1)))
    assert plan(odd, 3, BEST_EFFORT, (2,)).cpus == 3
    assert NumaSpec(cpu_detail={"x": NumaSpec().cpu_detail.get("0")}).places == ()  # type: ignore[dict-item]


def test_it_keeps_its_promises():
    check_plugin(NumaAware, examples=10)

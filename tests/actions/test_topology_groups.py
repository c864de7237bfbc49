"""network-topology-aware beyond the reference: groups of PodGroups, and whole domains that stay free."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cli.main import main
from stromboli.cycle import run_action
from stromboli.framework.session.shortages import needed_at_once
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.job import Job
from stromboli.model.names import TOPOLOGY_GROUP as GROUP
from stromboli.model.names import TOPOLOGY_GROUP_POLICY as POLICY
from stromboli.model.names import TOPOLOGY_GROUP_TIER as TIER
from stromboli.model.task import Task
from stromboli.plugins.network_topology_aware import groups
from stromboli.plugins.network_topology_aware.groups import TopologyGroups, _Held
from stromboli.plugins.network_topology_aware.wishes import POLICIES, Wish
from stromboli.testing.builders import Manifest, hyper_node, member, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, binds, conf, messages, task_of

BLOCKS, RACKS, NODES = 2, 2, 2


def tree(cpu: int = 8) -> list[Manifest]:
    """Two blocks (tier 2) of two racks (tier 1) of two nodes: ``b0-r1-n0`` and so on."""
    found: list[Manifest] = [queue("default")]
    for block in range(BLOCKS):
        racks = [f"b{block}-r{rack}" for rack in range(RACKS)]
        for rack in racks:
            names = [f"{rack}-n{number}" for number in range(NODES)]
            found += [node(name, cpu=cpu, memory="64Gi") for name in names]
            found.append(hyper_node(rack, 1, *names))
        members = (member("HyperNode", exactMatch={"name": name}) for name in racks)
        found.append(hyper_node(f"b{block}", 2, *members))
        found[-1]["spec"]["tierName"] = "block"
    return found


def tiers(keep: bool = False, groups: bool = True, actions: str = "enqueue, allocate") -> str:
    given = f"hypernode.keep-whole.enable: {str(keep).lower()}, hypernode.topology-groups.enable: {str(groups).lower()}"
    plugin = f"{{name: network-topology-aware, arguments: {{{given}}}}}"
    return conf("gang priority", f"[{{name: predicates}}, {{name: nodeorder}}, {plugin}]", actions=actions)


def gang(name: str, count: int = 2, cpu: int = 4, up_to: int = 1, mode: str = "hard", **notes: str) -> list[Manifest]:
    """A gang with a topology and the annotations of a topology group."""
    names = {"group": GROUP, "policy": POLICY, "tier": TIER}
    topology = {"mode": mode, "highestTierAllowed": up_to} if mode == "hard" else {"mode": mode} if mode else None
    annotations = {names[key]: text for key, text in notes.items()}
    made = pod_group(name, min_member=count, networkTopology=topology, annotations=annotations)
    return [made, *(pod(f"{name}-{i}", group=name, cpu=cpu, memory="1Gi") for i in range(count))]


def where(placed: dict[str, str], parts: int) -> dict[str, set[str]]:
    """By job the domains of its pods: blocks with one part of the nodes' names, racks with two."""
    found: dict[str, set[str]] = {}
    for name, place in placed.items():
        found.setdefault(name.partition("-")[0], set()).add("-".join(place.split("-")[:parts]))
    return found


@pytest.mark.parametrize(
    ("policy", "tier", "parts", "domains"),
    [
        ("same", "1", 2, 1),
        ("same", "block", 1, 1),
        ("apart", "1", 2, 3),
        ("pack", "2", 1, 1),
        ("spread", "block", 1, 2),
    ],
)
def test_podgroups_of_a_group_lie_as_its_policy_says(policy: str, tier: str, parts: int, domains: int) -> None:
    count = 2 if (policy, tier) == ("same", "1") else 3
    gangs = [one for name in "xyz"[:count] for one in gang(name, group="g", policy=policy, tier=tier)]
    found = where(binds(Bench([*tree(), *gangs], tiers()).cycle()), parts)
    assert len(found) == count
    assert len(set().union(*found.values())) == domains
    if policy == "apart":
        assert all(len(each) == 1 for each in found.values())


@pytest.mark.parametrize("rack", ["b0-r0", "b0-r1", "b1-r0", "b1-r1"])
@pytest.mark.parametrize("tier", [1, 2])
@pytest.mark.parametrize("policy", ["pack", "spread"])
def test_whichever_domain_the_others_lie_in_a_job_joins_them_or_keeps_off(policy: str, tier: int, rack: str) -> None:
    made = gang("x", 1, group="g", policy=policy, tier=str(tier))[0]
    there = pod("x-0", group="x", cpu=2, memory="1Gi", on=f"{rack}-n0")
    comes = gang("y", 1, cpu=2, group="g", policy=policy, tier=str(tier))
    [found] = where(binds(Bench([*tree(), made, there, *comes], tiers()).cycle()), 3 - tier)["y"]
    assert rack.startswith(found) is (policy == "pack")


def test_without_an_annotation_or_in_another_namespace_groups_change_nothing() -> None:
    objects = [*tree(), *gang("x"), *gang("y")]
    alone = binds(Bench(objects, tiers(groups=False)).cycle())
    assert binds(Bench(objects, tiers()).cycle()) == alone


@pytest.mark.parametrize("policy", ["same", "apart"])
@pytest.mark.parametrize("has_room", [True, False])
def test_a_job_that_has_begun_stays_where_it_is_whatever_its_group_leaves_it(policy: str, has_room: bool) -> None:
    made, _, *others = gang("x", 3, group="g", policy=policy, tier="1")
    made["spec"]["minMember"] = 1
    running = pod("x-0", group="x", cpu=4, memory="1Gi", on="b0-r1-n0")
    busy = [] if has_room else [pod(f"busy-{i}", cpu=4 * (i + 1), on=f"b0-r1-n{i}") for i in range(2)]
    found = where(binds(Bench([*tree(), *busy, made, running, *others], tiers()).cycle()), 2)
    assert found == ({"x": {"b0-r1"}} if has_room else {})


def test_room_for_all_of_a_group_is_looked_for_before_the_first_is_placed() -> None:
    """x alone fits everywhere, but only block b1 has the room for both."""
    busy = [pod(f"busy-{rack}", on=f"b0-{rack}-n0", cpu=8) for rack in ("r0", "r1")]
    busy += [pod("more", on="b0-r0-n1", cpu=4)]
    gangs = [
        *gang("x", 1, group="g", policy="same", tier="2"),
        *gang("y", 6, up_to=2, group="g", policy="same", tier="2"),
    ]
    found = where(binds(Bench([*tree(), *busy, *gangs], tiers()).cycle()), 1)
    assert found == {"x": {"b1"}, "y": {"b1"}}


@pytest.mark.parametrize(
    ("gangs", "text"),
    [
        (
            [gang(name, 4, group="g", policy="same", tier="1") for name in "xy"],
            "no HyperNode of tier 1 has room for all 2 PodGroups of topology group g, even if it were empty",
        ),
        (
            [gang(name, 1, group="g", policy="apart", tier="2") for name in "xyz"],
            "topology group g keeps its PodGroups apart: no HyperNode of tier 2 is left besides b0, b1",
        ),
    ],
)
def test_a_gang_that_waits_for_its_topology_group_states_the_reason(gangs: list[list[Manifest]], text: str) -> None:
    plan = Bench([*tree(), *(one for each in gangs for one in each)], tiers()).cycle()
    waiting = {each[0]["metadata"]["name"] for each in gangs} - where(binds(plan), 1).keys()
    assert waiting
    for name in waiting:
        assert any(text in message for message in messages(plan, f"default/{name}"))


@pytest.mark.parametrize(
    ("places", "text"),
    [
        (["b0-r0"], "topology group g lies in b0-r0, which has no room for job y"),
        (
            ["b0-r0", "b1-r1"],
            "topology group g lies in several HyperNodes of tier 1: b0-r0, b1-r1; job y cannot join it",
        ),
    ],
)
def test_a_job_without_room_beside_its_group_is_told_where_that_lies(places: list[str], text: str) -> None:
    objects = tree()
    for number, rack in enumerate(places):
        made, *_ = gang(f"x{number}", 1, group="g", policy="same", tier="1")
        objects += [made, pod(f"x{number}-0", group=f"x{number}", on=f"{rack}-n0", cpu=4)]
    waiting = gang("y", 4, group="g", policy="same", tier="1")
    waiting[0]["spec"]["minResources"] = {"cpu": 16}
    plan = Bench([*objects, *waiting], tiers()).cycle()
    assert binds(plan) == {}
    assert any(text in message for message in messages(plan, "default/y"))


def test_of_the_places_where_a_group_lies_the_first_eight_are_named_in_order() -> None:
    """Its PodGroups came from the last rack to the first."""
    racks = [f"r{number}" for number in range(9)]
    objects = [each for name in racks for each in (node(f"{name}-n0", cpu=16), hyper_node(name, 1, f"{name}-n0"))]
    for place, rack in enumerate(reversed(racks)):
        made, *_ = gang(f"x{place}", 1, group="g", policy="same", tier="1")
        objects += [made, pod(f"x{place}-0", group=f"x{place}", on=f"{rack}-n0", cpu=4)]
    plan = Bench([*objects, *gang("y", 2, group="g", policy="same", tier="1")], tiers()).cycle()
    text = "topology group g lies in several HyperNodes of tier 1: r0, r1, r2, r3, r4, r5, r6, r7; job y cannot join it"
    assert any(text in message for message in messages(plan, "default/y"))


def test_of_a_job_of_which_parts_alone_are_close_the_whole_keeps_to_its_group() -> None:
    """Its own domains are all nodes; those of the group's tier are looked at in their place."""
    running = [gang("x", 1, group="g", policy="apart", tier="2")[0], pod("x-0", group="x", on="b0-r0-n0")]
    part = {"mode": "hard", "highestTierAllowed": 1}
    policy = {"name": "w", "subGroupSize": 2, "matchLabelKeys": ["app"], "networkTopology": part}
    made = pod_group("y", min_member=2, subGroupPolicy=[policy], annotations={GROUP: "g", POLICY: "apart", TIER: "2"})
    pods = [pod(f"y-{i}", group="y", cpu=4, labels={"app": "a"}) for i in range(2)]
    found = where(binds(Bench([*tree(), *running, made, *pods], tiers()).cycle()), 1)
    assert found == {"y": {"b1"}}


@pytest.mark.parametrize(("cpu", "racks"), [(4, {"b1-r0"}), (8, {"b1-r0", "b1-r1"})])
def test_parts_of_a_job_have_a_whole_domain_of_the_groups_tier(cpu: int, racks: set[str]) -> None:
    """Two parts of two pods each: in one rack if it has room for both, otherwise in two of the same block."""
    running = [gang("x", 1, group="g", policy="apart", tier="2")[0], pod("x-0", group="x", on="b0-r0-n0")]
    part = {"mode": "hard", "highestTierAllowed": 1}
    policy = {"name": "w", "subGroupSize": 2, "matchLabelKeys": ["app"], "networkTopology": part}
    made = pod_group("y", min_member=4, subGroupPolicy=[policy], annotations={GROUP: "g", POLICY: "apart", TIER: "2"})
    pods = [pod(f"y-{i}", group="y", cpu=cpu, labels={"app": "ab"[i // 2]}) for i in range(4)]
    found = where(binds(Bench([*tree(), *running, made, *pods], tiers()).cycle()), 2)
    assert found == {"y": racks}


@pytest.mark.parametrize(("policy", "alone", "rack"), [("spread", "a-r0", "a-r0"), ("pack", "z-r0", "b0-r0")])
def test_a_rack_below_no_block_is_as_good_as_those_of_a_block_without_others(
    policy: str, alone: str, rack: str
) -> None:
    """The others of the group fill the last block; of equally good racks the first by name is taken."""
    notes: dict[str, Any] = {"group": "g", "policy": policy, "tier": "2"}
    outside = [node(f"{alone}-n0", cpu=8, memory="64Gi"), node(f"{alone}-n1", cpu=8, memory="64Gi")]
    outside.append(hyper_node(alone, 1, f"{alone}-n0", f"{alone}-n1"))
    places = [f"b1-r{i}-n{j}" for i in range(RACKS) for j in range(NODES)]
    running = [pod(f"x-{i}", group="x", cpu=8, memory="1Gi", on=place) for i, place in enumerate(places)]
    objects = [*tree(), *outside, gang("x", 4, **notes)[0], *running, *gang("y", 1, **notes)]
    assert where(binds(Bench(objects, tiers()).cycle()), 2) == {"y": {rack}}


@pytest.mark.parametrize(
    ("on", "notes", "why"),
    [
        (
            False,
            {"group": "g"},
            "topology groups are off: network-topology-aware has them with hypernode.topology-groups",
        ),
        (True, {"group": "g", "policy": "near"}, "is near, not one of same, apart, pack, spread"),
        (True, {"group": "g", "tier": "zone"}, "is zone, which no HyperNode bears"),
        (True, {"group": "g", "mode": ""}, "needs a spec.networkTopology"),
    ],
)
def test_what_has_no_effect_is_told(on: bool, notes: dict[str, Any], why: str) -> None:
    plan = Bench([*tree(), *gang("x", **notes)], tiers(groups=on)).cycle()
    [event] = [event for event in plan.events if event.reason == "TopologyGroupIgnored"]
    assert why in event.message
    assert len(binds(plan)) == 2


@pytest.mark.parametrize("tier", ["0", "nonsense"])
def test_a_tier_that_no_hypernode_bears_stops_no_gang(tier: str) -> None:
    """A member without an object has no tier, not tier 0."""
    rack = hyper_node("rack", 1, "n", member("HyperNode", exactMatch={"name": "missing"}))
    objects = [queue("default"), node("n", cpu=8, memory="64Gi"), rack, *gang("x", 1, group="g", tier=tier)]
    plan = Bench([*objects, *gang("other", 1, mode="")], tiers()).cycle()
    [event] = [event for event in plan.events if event.reason == "TopologyGroupIgnored"]
    assert f"is {tier}, which no HyperNode bears" in event.message
    assert binds(plan).keys() == {"x-0", "other-0"}


def test_why_a_job_waited_is_forgotten_once_it_is_placed() -> None:
    bench = Bench([*tree(), *gang("a")], tiers())
    with bench.open() as session:
        job = session.jobs["default/a"]
        job.fit_error_text = "a job before it waits"
        run_action(session, bench.registry.action("allocate")())
        assert (len(session.plan.binds), job.fit_error_text) == (2, "")


def test_a_group_is_found_again_from_the_nodes_of_its_pods() -> None:
    objects = [*tree(), *gang("x", group="g", policy="same", tier="2")]
    bench = Bench(objects, tiers())
    block = where(binds(bench.cycle()), 1)["x"]
    runs = [pod(f"x-{i}", group="x", cpu=4, on=place) for i, place in enumerate(["b1-r0-n0", "b1-r0-n1"])]
    again = Bench([*tree(), objects[-3], *runs, *gang("y", group="g", policy="same", tier="2")], tiers())
    assert block == {"b0"}
    assert where(binds(again.cycle()), 1)["y"] == {"b1"}


# -- whole domains ---------------------------------------------------------------------------------------------------


def test_a_job_goes_where_the_largest_whole_domain_stays_free() -> None:
    """The fullest rack alone would be in a free block; a rack next to a running job leaves that block whole."""
    runs = [pod_group("old", min_member=1), pod("old-0", group="old", cpu=1, on="b1-r1-n0")]
    daemons = [pod(f"daemon-{i}", on=place, cpu=3) for i, place in enumerate(["b0-r0-n0", "b0-r0-n1"])]
    objects = [*tree(), *runs, *daemons, *gang("x", 2, cpu=5)]
    assert where(binds(Bench(objects, tiers()).cycle()), 2)["x"] == {"b0-r0"}
    assert where(binds(Bench(objects, tiers(keep=True)).cycle()), 1)["x"] == {"b1"}


@pytest.mark.law("whole domains that are kept free and groups never cost a placement, and groups stay together")
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from([2, 4, 8]), st.sampled_from(["", *POLICIES])),
        min_size=1, max_size=5,
    ),
    st.booleans(),
    st.sampled_from(["1", "2"]),
)  # fmt: skip
def test_groups_hold_whatever_is_asked(jobs: list[tuple[int, int, str]], keep: bool, tier: str) -> None:
    objects: list[Manifest] = tree()
    for number, (count, cpu, policy) in enumerate(jobs):
        notes = {"group": policy, "policy": policy, "tier": tier} if policy else {}
        objects += gang(f"j{number}", count, cpu, up_to=2, **notes)
    bench = Bench(objects, tiers(keep))
    placed = binds(bench.cycle())
    domains = where(placed, 2 if tier == "1" else 1)
    same, apart = (
        [domains[f"j{i}"] for i, job in enumerate(jobs) if job[2] == policy and f"j{i}" in domains]
        for policy in ("same", "apart")
    )
    assert len(set().union(*same)) <= 1
    assert sum(map(len, apart)) == len(set().union(*apart))
    if not keep and not any(policy for *_, policy in jobs):
        assert placed == binds(Bench(objects, tiers(groups=False)).cycle())


@pytest.mark.law("placements that are reverted restore groups and whole domains")
@given(st.integers(0, 7), st.sampled_from(POLICIES))
def test_what_is_taken_back_counts_no_more(row: int, policy: str) -> None:
    objects = [*tree(), *(one for name in "xy" for one in gang(name, 1, group="g", policy=policy, tier="2"))]
    with Bench(objects, tiers(keep=True)).open() as session:

        def seen() -> tuple[list[list[str]], dict[str, float]]:
            top, job = session.hyper_nodes.top, session.jobs["default/y"]
            found = session.ask.hyper_node_gradient_for_job(job, top, "Allocate")
            names: dict[str, Any] = {name: [] for name in session.hyper_nodes if name != top.name}
            [part] = session.sub_jobs(job).values()
            return [[info.name for info in each] for each in found], session.ask.hyper_node_order(part, names)

        before = seen()
        with session.statement() as statement:
            task = task_of(session, "x-0")
            statement.place(session.jobs["default/x"], (task,), (row,), OperationKind.ALLOCATE)
            assert seen() != before
        assert seen() == before


def test_the_wide_plan_shows_domains_and_explain_what_the_group_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gangs = [one for name in "xyz" for one in gang(name, 1, group="g", policy="apart", tier="2")]
    cluster, config = tmp_path / "cluster.json", tmp_path / "conf"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*tree(), *gangs]}))
    config.write_text(tiers())
    assert main(["plan", str(cluster), "--config", str(config), "-o", "wide"]) == 0
    shown = capsys.readouterr().out
    assert "b0-r0 (tier 1)" in shown
    assert "b1-r0-n0          b1/b1-r0" in shown
    assert main(["plan", str(cluster), "--config", str(config), "--explain", "z"]) == 0
    told = capsys.readouterr().out
    assert "b0-r0 (tier 1, 2 nodes) has the room\n" in told
    assert "- no annotation volcano.sh/topology-group of PodGroup default/z" in told


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.frozensets(st.integers(0, 3), max_size=2)), max_size=20))
def test_where_the_others_of_a_group_lie_follows_each_move(moves: list[tuple[str, frozenset[int]]]) -> None:
    lies, held = dict.fromkeys("abcd", frozenset[int]()), _Held("abcd")
    for uid, domains in moves:
        lies[uid] = domains
        held.forget(uid)
        for one in "abcd":
            expected = Counter(domain for other in "abcd" if other != one for domain in lies[other])
            assert held.others(one, lies.__getitem__) == expected


def test_a_move_costs_a_look_at_its_job_alone() -> None:
    """And HyperNodes are looked through once, however many jobs ask for a tier of them."""
    looked: list[str] = []

    def domains_of(uid: str) -> frozenset[int]:
        looked.append(uid)
        return frozenset((1,))

    names = [str(number) for number in range(200)]
    held = _Held(names)
    for name in names:
        held.forget(name)
        held.others(name, domains_of)
    assert len(looked) <= 2 * len(names)

    class Infos(dict[str, Any]):
        walked = 0

        def values(self) -> Any:
            self.walked += 1
            return super().values()

    infos: Any = Infos(r=SimpleNamespace(tier=1, known=True))
    infos.top, infos.tiers = None, {}
    facts = SimpleNamespace(is_close=True)
    jobs = [SimpleNamespace(uid=name, namespace="ns", annotations={GROUP: "g"}, facts=facts) for name in names]
    session: Any = SimpleNamespace(hyper_nodes=infos, jobs=SimpleNamespace(peek=lambda: jobs))
    made = TopologyGroups(session, SimpleNamespace())  # type: ignore[arg-type]
    assert [made.of(one) for one in jobs] == [Wish(("ns", "g"), "pack", 1)] * len(jobs)  # type: ignore[arg-type]
    assert infos.walked == 1


def test_what_a_group_needs_is_added_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all jobs that are to lie in one domain, as long as none of them moves; none has the room here."""
    asked: list[str] = []

    def counted(job: Job, tasks: Iterable[Task]) -> Any:
        asked.append(job.uid)
        return needed_at_once(job, tasks)

    monkeypatch.setattr(groups, "needed_at_once", counted)
    objects = tree()
    for name in ("a", "b", "c"):
        objects += gang(name, count=2, cpu=7, group="g", policy="same", tier="1")
    assert not binds(Bench(objects, tiers()).cycle())
    assert sorted(asked) == ["default/a", "default/b", "default/c"]


def test_what_is_placed_outside_of_all_domains_is_no_longer_needed_in_one() -> None:
    """A rack has 16 cores, and the jobs need 21 together, 7 once the pods of x lie on a node in no rack."""
    objects = [*tree(), node("out", cpu=14)]
    for name, count in (("x", 2), ("y", 1)):
        objects += gang(name, count=count, cpu=7, group="g", policy="same", tier="1")
    with Bench(objects, tiers()).open() as session:

        def racks() -> set[str]:
            job, top = session.jobs["default/y"], session.hyper_nodes.top
            found = session.ask.hyper_node_gradient_for_job(job, top, "Allocate")
            return {info.name for each in found for info in each}

        assert racks() == set()
        with session.statement() as statement:
            tasks = [task_of(session, name) for name in ("x-0", "x-1")]
            statement.place(session.jobs["default/x"], tasks, [session.table.row("out")] * 2, OperationKind.ALLOCATE)
            assert racks() == {"b0-r0", "b0-r1", "b1-r0", "b1-r1"}
        assert racks() == set()


@pytest.mark.parametrize(
    ("topology", "told"),
    [({"mode": "hard", "highestTierName": "block"}, 1), ({"mode": "hard", "highestTierName": "rack"}, 0), (None, 0)],
)
def test_a_tier_that_a_job_asks_for_and_no_hypernode_bears_is_told(topology: dict[str, Any] | None, told: int) -> None:
    rack = hyper_node("rack", 1, "n", tier_name="rack")
    more: dict[str, Any] = {"networkTopology": topology} if topology else {}
    group = pod_group("x", phase="Inqueue", **more)
    bench = Bench([queue("default"), node("n", cpu=8), rack, group, pod("x-0", group="x")], tiers())
    said = [line for line in bench.logged(5) if "which no HyperNode bears" in line]
    text = "highestTierName is block, which no HyperNode bears, so that it bounds nothing"
    events = [(event.key, event.message) for event in bench.plan.events if event.reason == "UnknownTier"]
    assert events == [("default/x", text)] * told
    assert len(said) == told
    assert all("job default/x asks for hypernode tier block, which no HyperNode bears" in line for line in said)

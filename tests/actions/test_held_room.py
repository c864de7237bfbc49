"""What reservations allow: moving to free room first, waiting for terminating pods, evicting as few as possible."""

from __future__ import annotations

import pytest

from stromboli.framework.session.topology import is_hard, job_topology
from stromboli.model.names import (
    HOSTNAME,
    NODE_GROUP_NAME,
    NODE_GROUP_RESOURCE_LIMITS,
    TASK_SPEC,
    TOPOLOGY_ZONE,
)
from stromboli.model.reservation import Held
from stromboli.plugin import Plugin, hyper_node_gradient_for_job, hyper_node_gradient_for_sub_job
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import binds, conf, task_of
from tests.acceptance.fights import evicted, reserved, running, waiting
from tests.acceptance.stories import ALL, ALLOCATE, NO_VICTIMS, Story, ending, held_on, reserved_pod, with_port, written

QUEUES = [queue("q1"), queue("q2", weight=4)]


def held_gang(*nodes, **fields):
    """A gang whose pods hold a node each."""
    return [pod_group("g", min_member=len(nodes), priorityClassName="high"),
            *(pod(f"g-{i}", group="g", cpu=4, memory=0, annotations=held_on(on), **fields)
              for i, on in enumerate(nodes))]  # fmt: skip


# ---------------------------------------------------------------------- moving


def test_a_pod_that_holds_room_moves_to_room_that_is_free_elsewhere():
    plan = Story(ending("a", "n2"), reserved_pod(), nodes=2).cycle()
    assert [(bind.key, bind.node) for bind in plan.binds] == [("default/h-0", "n1")]
    assert written(plan) == {"h-0": None}


def test_a_gang_moves_as_far_as_it_can_and_the_next_in_turn_holds_what_it_leaves():
    """n1 is free: the gang goes on waiting for n3 alone, and a lower job gets n2 instead of n1."""
    story = Story(ending("a", "n2"), ending("b", "n3"), held_gang("n2", "n3"), waiting("l", 1, cls="low", cpu=4),
                  nodes=3)  # fmt: skip
    plan = story.cycle()
    assert (plan.binds, plan.evictions) == ([], [])
    assert story.nodes_held() == {"g-0": "n1", "g-1": "n3", "l-0": "n2"}
    assert story.cycle().annotations == []  # that lasts
    story.gone("b-0")
    assert {bind.key: bind.node for bind in story.cycle().binds} == {"default/g-0": "n1", "default/g-1": "n3"}


def test_a_gang_that_could_hold_nothing_new_by_now_moves_with_all_it_holds():
    """Another of its pods is gated; without what it has moved to it would hold half of what it needs."""
    story = Story(ending("a", "n2"), ending("b", "n3"), held_gang("n2", "n3"), nodes=3, text=ALLOCATE)
    story.tell(pod("g-9", group="g", cpu=9, schedulingGates=[{"name": "wait"}]))
    assert written(story.cycle()) == {"g-0": Held("n1")}
    assert (written(story.cycle()), story.nodes_held()) == ({}, {"g-0": "n1", "g-1": "n3"})


def test_a_gang_that_can_redeem_all_it_holds_does_not_move():
    story = Story(held_gang("n2", "n3"), nodes=4)
    assert {bind.key: bind.node for bind in story.cycle().binds} == {"default/g-0": "n2", "default/g-1": "n3"}


def spread():
    """What a pod says that wants as many of its kind in each zone."""
    even = {"topologyKey": TOPOLOGY_ZONE, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1,
            "labelSelector": {"matchLabels": {"app": "x"}}}  # fmt: skip
    return {"labels": {"app": "x"}, "topologySpreadConstraints": [even]}


@pytest.mark.parametrize(("zone", "bound"), [("west", {}), ("east", {"g-0": "n3"})])
def test_a_pod_that_moves_is_not_its_own_neighbour(zone, bound):
    """One of its kind runs in the west; counted in the east, where it only waits, it would be welcome there, too."""
    there = running("o", 1, "n1", labels={"app": "x"})
    story = Story(there, ending("e", "n2"), held_gang("n2", **spread()), nodes=0)
    story.tell(
        *(node(f"n{i + 1}", cpu=4, labels={TOPOLOGY_ZONE: each}) for i, each in enumerate(("west", "east", zone)))
    )
    assert binds(story.cycle()) == bound
    assert story.nodes_held() == ({} if bound else {"g-0": "n2"})


@pytest.mark.parametrize("pods", [1, 2])
@pytest.mark.parametrize(("zone", "held"), [("west", True), ("east", False)])
def test_a_pod_that_holds_room_near_another_needs_more_neighbours_than_itself(pods, zone, held):
    """Of the pods that it must be near one runs, in the west; all hold room in the same zone, there or elsewhere."""
    near = {"topologyKey": TOPOLOGY_ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    names = [f"n{i + 2}" for i in range(pods)]
    gang = held_gang(*names, labels={"app": "x"}, affinity=together)
    story = Story(running("o", 1, "n1", labels={"app": "x"}), *(ending(f"e{name}", name) for name in names), gang,
                  nodes=0, text=ALLOCATE)  # fmt: skip
    story.tell(*(node(name, cpu=4, labels={TOPOLOGY_ZONE: each}) for name, each in
                 zip(("n1", *names), ("west", *[zone] * pods), strict=True)))  # fmt: skip
    story.cycle()
    assert bool(story.nodes_held()) is held
    assert {told["reason"] for told in story.told("metric.pipelined_given_up")} == (set() if held else {"predicate"})


@pytest.mark.parametrize(("zones", "held"), [(("west", "west"), True), (("west", "east"), False)])
def test_without_other_neighbours_pods_that_hold_room_must_be_near_each_other(zones, held):
    """The first of its kind needs no neighbour, the second needs the first."""
    near = {"topologyKey": TOPOLOGY_ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    gang = held_gang("n1", "n2", labels={"app": "x"}, affinity=together)
    story = Story(ending("e1", "n1"), ending("e2", "n2"), gang, nodes=0, text=ALLOCATE)
    story.tell(*(node(f"n{i}", cpu=4, labels={TOPOLOGY_ZONE: zone}) for i, zone in enumerate(zones, 1)))
    story.cycle()
    assert bool(story.nodes_held()) is held
    assert {told["reason"] for told in story.told("metric.pipelined_given_up")} == (set() if held else {"predicate"})


CIRCLE = [({"app": "z"}, "w"), ({"app": "w"}, "z")]
"""Two pods, each with labels and the app that has to be near it: they have nothing near them but each other."""


@pytest.mark.parametrize(
    ("pods", "held"),
    [
        pytest.param([({}, "y")], set(), id="nothing that it needs is near"),
        pytest.param([({}, "y"), ({}, "")], {"g-1"}, id="another needs nothing"),
        pytest.param([({}, ""), ({}, "y")], {"g-0"}, id="the first needs nothing"),
        pytest.param(CIRCLE, set(), id="a circle"),
        pytest.param([({}, "y"), *CIRCLE], set(), id="a circle behind another"),
        pytest.param([*CIRCLE, ({}, "")], {"g-2"}, id="a circle before one that needs nothing"),
    ],
)
def test_of_a_job_that_runs_each_reservation_needs_its_neighbours(pods, held):
    """The job runs with one pod; pods with the label y are in the west, and room is held in the east."""
    gang = [pod_group("g", min_member=1, phase="Running"), pod("g-r", group="g", cpu=1, memory=0, on="n0")]
    for number, (labels, wanted) in enumerate(pods):
        near = {"topologyKey": TOPOLOGY_ZONE, "labelSelector": {"matchLabels": {"app": wanted}}}
        together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
        gang.append(pod(f"g-{number}", group="g", cpu=4, memory=0, annotations=held_on(f"n{number + 1}"),
                        labels=labels, affinity=together if wanted else {}))  # fmt: skip
    ends = [ending(f"e{number}", f"n{number + 1}") for number in range(len(pods))]
    story = Story(running("o", 1, "n0", labels={"app": "y"}), *ends, gang, nodes=0, text=ALLOCATE)
    story.tell(*(node(f"n{number}", cpu=4, labels={TOPOLOGY_ZONE: "east" if number else "west"})
                 for number in range(len(pods) + 1)))  # fmt: skip
    story.cycle()
    assert set(story.nodes_held()) == held
    assert [told["reason"] for told in story.told("metric.pipelined_given_up")] == ["predicate"] * (
        len(pods) - len(held)
    )


def test_what_is_held_does_not_fill_a_limit_against_its_holder():
    """The queue may have four cores of the group, and has reserved them."""
    only = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["g"]}}
    limited = queue("q1", annotations={NODE_GROUP_RESOURCE_LIMITS: '{"g": {"cpu": "4"}}'}, affinity=only)
    held = [pod_group("h", queue="q1"), pod("h-0", group="h", cpu=4, memory=0, annotations=held_on("n1"))]
    story = Story([limited], ending("e", "n1"), held, nodes=0,
                  text=conf("gang", "predicates nodegroup", actions="allocate"))  # fmt: skip
    story.tell(node("n1", cpu=4, labels={NODE_GROUP_NAME: "g"}))
    story.cycle()
    assert (story.nodes_held(), story.told("reservation_given_up")) == ({"h-0": "n1"}, [])


# ---------------------------------------------------------------------- waiting for terminating pods


def listening(on, *, deleting=False, name="a"):
    """A low pod on the port of a node that it has for itself."""
    return [pod_group(name, min_member=0, phase="Running", priorityClassName="low"),
            pod(f"{name}-0", group=name, on=on, cpu=4, memory=0, deleting=deleting, **with_port())]  # fmt: skip


@pytest.mark.parametrize(("gate", "goes"), [(True, []), (False, ["b-0"])])
def test_room_whose_port_is_in_use_by_a_terminating_pod_is_held_without_evictions(gate, goes):
    story = Story(listening("n1", deleting=True), listening("n2", name="b"),
                  waiting("h", 1, cpu=4, **with_port()), nodes=2, gate=gate)  # fmt: skip
    assert evicted(story.cycle()) == goes
    assert story.nodes_held() == ({"h-0": "n1"} if gate else {})


@pytest.mark.parametrize(("nodes", "binds", "held"), [(1, [], {"h-0": "n1"}), (2, [("default/h-0", "n2")], {})])
def test_a_task_that_asks_for_nothing_keeps_its_room_unless_it_can_start_elsewhere(nodes, binds, held):
    holds = [pod_group("h"), pod("h-0", group="h", cpu=0, memory=0, annotations=held_on("n1"), **with_port())]
    story = Story(listening("n1", deleting=True), holds, nodes=nodes, text=ALLOCATE)
    plan = story.cycle()
    assert [(bind.key, bind.node) for bind in plan.binds] == binds
    assert [each.node for each in plan.reservations] == list(held.values())
    assert story.nodes_held() == held


def test_a_port_that_stays_in_use_is_not_waited_for():
    keeps = [pod_group("k", phase="Running", priorityClassName="high"),
             pod("k-0", group="k", on="n1", cpu=0, memory=0, priority=10, **with_port())]  # fmt: skip
    story = Story(keeps, ending("a", "n1"), waiting("h", 1, cpu=4, **with_port()))
    assert (story.cycle().evictions, story.held()) == ([], {})


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("taking", ["default", "q2"], ids=["preempt", "reclaim"])
def test_a_gang_waits_for_terminating_pods_and_evicts_for_the_rest_alone(taking, gate):
    """Two of three nodes are enough; a pod terminates on n3 already and holds the port until it is gone."""
    own = "q1" if taking == "q2" else "default"
    goes = 1 if gate else 0 if taking == "q2" else 2  # the share of q1 lets one go, without n3 that is of no use
    nodes = [running(f"l{i}", 1, f"n{i}", cpu=4, queue=own, **with_port()) for i in (1, 2)]
    story = Story(QUEUES, *nodes, listening("n3", deleting=True),
                  waiting("h", 2, cpu=4, queue=taking, **with_port()), nodes=3, gate=gate)  # fmt: skip
    plan = story.cycle()
    assert len(evicted(plan)) == goes
    assert set(reserved(plan)) == ({"h-0", "h-1"} if goes else set())
    assert story.cycle().evictions == [] or not gate


@pytest.mark.parametrize("taking", ["default", "q2"], ids=["gangpreempt", "gangreclaim"])
def test_gang_actions_wait_for_terminating_pods_too(taking):
    own, action = ("q1", "gangreclaim") if taking == "q2" else ("default", "gangpreempt")
    nodes = [running(f"l{i}", 1, f"n{i}", cpu=4, queue=own, **with_port()) for i in (1, 2)]
    story = Story(QUEUES, *nodes, listening("n3", deleting=True),
                  waiting("h", 2, cpu=4, queue=taking, **with_port()), nodes=3,
                  text=conf("gang priority", "predicates proportion", actions=f"allocate, {action}"))  # fmt: skip
    assert len(evicted(story.cycle())) == 1
    assert "n3" in story.nodes_held().values()


def test_a_pod_that_goes_on_listening_is_not_spared_as_another_ends():
    """Of two ports one becomes free without an eviction; there is idle room, but the other port needs an eviction."""
    ends = [pod_group("e", phase="Running", min_member=0),
            pod("e-0", group="e", on="n1", cpu=1, memory=0, deleting=True, **with_port(81))]  # fmt: skip
    both = {"ports": [*with_port(80)["container"]["ports"], *with_port(81)["container"]["ports"]]}
    story = Story(ends, running("v", 1, "n1", **with_port(80)), waiting("h", 1, container=both))
    assert (evicted(story.cycle()), story.nodes_held()) == (["v-0"], {"h-0": "n1"})


def test_room_that_is_of_no_use_to_one_pod_may_be_of_use_to_another_like_it():
    """No pod may be moved for the second pod as well: the search must see that n1 is closed only to the first."""
    keeps_out = [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "a"}}}]
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": keeps_out}}
    full = [each for i, count in ((2, 2), (3, 1)) for each in
            running(f"v{i}", count, f"n{i}", cpu=4 // count, queue="q1")]  # fmt: skip
    guard = running("k", 1, "n1", queue="q2", cls="high", priorities=(10,), affinity=alone)
    story = Story([queue("q1"), queue("q2", weight=4)], guard, full,
                  [pod_group("h", min_member=2, queue="q2", priorityClassName="high"),
                   *(pod(f"h-{app}", group="h", cpu=2, memory=0, labels={"app": app}) for app in "ab")],
                  nodes=3)  # fmt: skip
    assert evicted(story.cycle()) == ["v2-1"]
    assert story.nodes_held() == {"h-a": "n2", "h-b": "n1"}


# ---------------------------------------------------------------------- the fewest


def fight(*objects, gate=True, text=ALL):
    return evicted(Story(*objects, nodes=2, gate=gate, text=text).cycle())


@pytest.mark.parametrize(("gate", "goes"), [(True, ["b-0"]), (False, ["a-3", "a-2", "a-1", "a-0"])])
def test_of_two_nodes_the_one_with_fewer_victims(gate, goes):
    assert sorted(fight(running("a", 4), running("b", 1, "n2", cpu=4), waiting("h", 1, cpu=4), gate=gate)) == sorted(
        goes
    )


def test_rather_more_victims_than_an_important_one():
    low, mid = running("a", 2, "n1", cpu=2, priorities=(1, 1)), running("b", 1, "n2", cpu=4, priorities=(5,))
    assert sorted(fight(low, mid, waiting("h", 1, cpu=4))) == ["a-0", "a-1"]
    assert fight(running("a", 2, "n1", cpu=2), running("b", 1, "n2", cpu=4), waiting("h", 1, cpu=4)) == ["b-0"]


def test_one_victim_rather_than_several_that_are_no_less_important():
    """The latest pods go first; the eviction of both small ones would make room, too."""
    big = running("a", 1, cpu=2)
    small = running("b", 2)
    full = running("c", 1, "n2", cpu=4, cls="high", priorities=(10,))
    assert fight(big, small, full, waiting("h", 1, cpu=2)) == ["a-0"]
    assert sorted(fight(big, small, full, waiting("h", 1, cpu=2), gate=False)) == ["b-0", "b-1"]


def test_one_victim_whose_room_is_enough_for_several_pods_of_a_gang():
    """All four on n1 would have to go, and one on n2."""
    crowd = [running("a", 4), running("b", 1, "n2", cpu=4)]
    assert fight(*crowd, waiting("h", 4)) == ["b-0"]
    assert fight(*crowd, waiting("h", 1)) == ["a-3"]


def test_of_several_victims_the_larger_ones():
    """The last three small ones would do as well."""
    full = running("c", 1, "n2", cpu=8, cls="high", priorities=(10,))
    crowd = [running("a", 2, cpu=2), running("b", 4)]
    story = Story(crowd[0], crowd[1], full, waiting("h", 1, cpu=3), nodes=2, cpu=8)
    assert sorted(evicted(story.cycle())) == ["a-1", "b-3"]


@pytest.mark.parametrize(("gate", "goes"), [(True, ["b-0"]), (False, ["a-0"])])
def test_of_victims_that_cost_as_much_the_one_that_ends_sooner(gate, goes):
    crowd = [running("a", 1, "n1", cpu=4, terminationGracePeriodSeconds=300),
             running("b", 1, "n2", cpu=4, terminationGracePeriodSeconds=60)]  # fmt: skip
    text = ALL + "configurations: [{name: preempt, arguments: {patience: 0}}]"
    assert fight(*crowd, waiting("h", 1, cpu=4), gate=gate, text=text) == goes


def test_without_minimal_victims_the_order_of_nodes_decides():
    text = ALL + "configurations: [{name: preempt, arguments: {minimal-victims: false}}]"
    goes = fight(running("a", 4), running("b", 1, "n2", cpu=4), waiting("h", 1, cpu=4), text=text)
    assert len(goes) == 4


# ---------------------------------------------------------------------- what is undone, and what would be useless


def test_a_placement_that_is_undone_says_of_evictions_what_was_said_before():
    """The first of them was evicted for before, the second was not."""
    held = [pod_group("h"), pod("h-0", group="h", cpu=2, memory=0, annotations=held_on("n2", evicted=True))]
    with Story(ending("a", "n2"), held, waiting("x", 1), nodes=3).open() as session:
        first, second = task_of(session, "h-0"), task_of(session, "x-0")
        with session.statement() as statement:
            statement.pipeline(first, "n3", eviction_occurred=False)
            statement.pipeline(second, "n3", eviction_occurred=True)
            assert (first.eviction_occurred, second.eviction_occurred) == (False, True)
        assert (first.node_name, first.eviction_occurred) == ("n2", True)
        assert (second.node_name, second.eviction_occurred) == ("", False)
        statement = session.statement()
        statement.pipeline(second, "n3", eviction_occurred=True)
        saved = statement.save()
        statement.discard()
        statement.recover(saved)
        assert second.eviction_occurred
        statement.discard()
        assert not second.eviction_occurred


@pytest.mark.parametrize("ports", [True, False])
def test_two_pods_of_a_gang_with_one_port_hold_no_node_together(ports):
    """n1 has room for both, once those of another queue have gone; n2 as well."""
    lent = [each for i in (1, 2) for each in running(f"l{i}", 2, f"n{i}", cpu=2, queue="q1")]
    story = Story(QUEUES, lent, waiting("h", 2, cpu=2, queue="q2", **(with_port() if ports else {})), nodes=2)
    assert len(set(reserved(story.cycle()).values())) == (2 if ports else 1)


def roles(name, **least):
    """A gang of three pods, one of role x, two of role y, of which any two are enough, or so many of a role."""
    return [pod_group(name, min_member=2, priorityClassName="high", minTaskMember=least),
            *(pod(f"{name}-{i}", group=name, cpu=4, memory=0, priority=10, annotations={TASK_SPEC: role})
              for i, role in enumerate("xyy"))]  # fmt: skip


def test_what_is_vain_for_a_gang_with_minima_of_roles_is_tried_for_one_without():
    """Both want room that lower jobs hold, which is enough for two pods; x comes first in both."""
    low = [each for i in (1, 2) for each in (
        pod_group(f"l{i}", priorityClassName="low"),
        pod(f"l{i}-0", group=f"l{i}", cpu=4, memory=0, annotations=held_on(f"n{i}")),
    )]  # fmt: skip
    story = Story(ending("v", "n1"), ending("w", "n2"), low, roles("a", y=2), roles("b"), nodes=2, text=NO_VICTIMS)
    story.cycle()
    assert story.nodes_held() == {"b-0": "n1", "b-1": "n2"}


def switch(name, *members):
    selected = [{"type": "Node", "selector": {"exactMatch": {"name": each}}} for each in members]
    return {"kind": "HyperNode", "metadata": {"name": name}, "spec": {"tier": 1, "members": selected}}


class Switches(Plugin):
    """Keeps jobs, and parts of jobs, that have to lie close together below one switch."""

    name = "switches"

    def on_session_open(self, session):
        self.session = session

    @hyper_node_gradient_for_job
    def of_job(self, job, hyper_node, purpose):
        return self._below(job_topology(self.session, job), hyper_node)

    @hyper_node_gradient_for_sub_job
    def of_part(self, sub_job, hyper_node, purpose):
        return self._below(sub_job.network_topology, hyper_node)

    def _below(self, topology, hyper_node):
        names = ("s1", "s2") if is_hard(topology) and len(hyper_node.rows) > 2 else (hyper_node.name,)
        return [[self.session.hyper_nodes[name] for name in names]]


CLOSE = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
PARTS = [
    pytest.param(CLOSE, id="close together"),
    pytest.param({"subGroupPolicy": [{"name": "p", "matchLabelKeys": ["app"], "subGroupSize": 2, **CLOSE}]},
                 id="a part close together"),
    pytest.param({"subGroupPolicy": [{"name": "p", "matchLabelKeys": ["number"], "subGroupSize": 2,
                                      "minSubGroups": 1}]}, id="parts of a size"),
]  # fmt: skip


@pytest.mark.parametrize("bounds", PARTS)
def test_what_is_vain_for_a_gang_of_parts_is_tried_for_one_without(bounds):
    """Room for two pods, held by lower jobs, is there below two switches; the first gang asks for more than room."""
    low = [each for i in (1, 3) for each in (*ending(f"e{i}", f"n{i}"), *lower_holder(on=f"n{i}", name=f"l{i}"))]
    full = [running(f"v{i}", 1, f"n{i}", cpu=4, cls="high", priorities=(10,)) for i in (2, 4)]
    gangs = [[pod_group(name, min_member=2, priorityClassName="high", created=place, **more),
              *(pod(f"{name}-{i}", group=name, cpu=4, memory=0, priority=10, labels={"app": "x", "number": str(i)})
                for i in range(2))] for place, (name, more) in enumerate((("a", bounds), ("b", {})), 1)]  # fmt: skip
    story = Story(low, *full, *gangs, [switch("s1", "n1", "n2"), switch("s2", "n3", "n4")], nodes=4,
                  text=conf("gang priority", "predicates switches", actions="allocate"), extra=[Switches])  # fmt: skip
    story.cycle()
    assert story.nodes_held() == {"b-0": "n1", "b-1": "n3"}


@pytest.mark.parametrize("bounds", PARTS[:2])
def test_pods_that_must_stay_close_together_do_not_move(bounds):
    """n3 is free, below another switch than what is held."""
    held = [pod_group("g", min_member=2, priorityClassName="high", **bounds),
            *(pod(f"g-{i}", group="g", cpu=4, memory=0, labels={"app": "x"}, annotations=held_on(f"n{i}"))
              for i in (1, 2))]  # fmt: skip
    story = Story(ending("a", "n1"), ending("b", "n2"), held, [switch("s1", "n1", "n2"), switch("s2", "n3")], nodes=3,
                  text=conf("gang priority", "predicates switches", actions="allocate"), extra=[Switches])  # fmt: skip
    assert (written(story.cycle()), story.nodes_held()) == ({}, {"g-1": "n1", "g-2": "n2"})


def test_what_is_vain_for_pods_with_one_label_is_tried_for_pods_with_another():
    """A pod on n1 repels pods with the first gang's label."""
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "a"}}}]}}  # fmt: skip
    keeps_out = running("k", 1, "n1", cpu=0, cls="high", priorities=(10,), affinity=apart)
    gangs = [waiting(app, 1, cpu=4, labels={"app": app}, group={"created": place}) for place, app in enumerate("ab", 1)]
    story = Story(ending("e", "n1"), lower_holder(), keeps_out, *gangs, text=NO_VICTIMS)
    story.cycle()
    assert story.nodes_held() == {"b-0": "n1"}


# ---------------------------------------------------------------------- lower holders give before running pods


def lower_holder(cls="low", on="n1", cpu=4, name="l"):
    return [pod_group(name, priorityClassName=cls),
            pod(f"{name}-0", group=name, cpu=cpu, memory=0, annotations=held_on(on))]  # fmt: skip


@pytest.mark.parametrize(("cls", "goes"), [("low", 1), ("high", 2)])
def test_a_gang_takes_what_lower_jobs_hold_and_evicts_for_the_rest_alone(cls, goes):
    """n1 is ending and held; of n2 and n3 one more is enough where the holder comes strictly after the gang."""
    nodes = [running(f"v{i}", 1, f"n{i}", cpu=4) for i in (2, 3)]
    story = Story(ending("e", "n1"), lower_holder(cls), *nodes, waiting("h", 2, cpu=4), nodes=3)
    assert len(evicted(story.cycle())) == goes
    assert ("l-0" in story.held()) == (cls == "high")
    assert {"h-0", "h-1"} <= set(story.held())


@pytest.mark.parametrize(("cls", "goes"), [("low", 1), ("high", 2)])
def test_gang_actions_take_what_lower_jobs_hold_too(cls, goes):
    nodes = [running(f"v{i}", 1, f"n{i}", cpu=4) for i in (2, 3)]
    story = Story(ending("e", "n1"), lower_holder(cls), *nodes, waiting("h", 2, cpu=4), nodes=3,
                  text=conf("gang priority", "predicates proportion", actions="allocate, gangpreempt"))  # fmt: skip
    assert len(evicted(story.cycle())) == goes
    assert ("l-0" in story.held()) == (cls == "high")
    assert {"h-0", "h-1"} <= set(story.held())


def test_a_gang_takes_back_what_a_queue_after_its_own_holds():
    nodes = [running(f"v{i}", 1, f"n{i}", cpu=4, queue="q1") for i in (2, 3)]
    story = Story(QUEUES, ending("e", "n1"), lower_holder(), *nodes, waiting("h", 2, cpu=4, queue="q2"), nodes=3)
    assert len(evicted(story.cycle())) == 1
    assert set(story.held()) == {"h-0", "h-1"}


def test_lower_holders_keep_what_is_of_no_use():
    """The gang needs whole nodes; the holder has a core of n1, which is enough only for itself."""
    stays = running("s", 1, "n1", cpu=3, cls="high", priorities=(10,))
    nodes = [running(f"v{i}", 1, f"n{i}", cpu=4) for i in (2, 3)]
    story = Story(stays, ending("e", "n1", cpu=1), lower_holder(cpu=1), *nodes, waiting("h", 2, cpu=4), nodes=3)
    assert sorted(evicted(story.cycle())) == ["v2-0", "v3-0"]
    assert story.nodes_held() == {"l-0": "n1", "h-0": "n2", "h-1": "n3"}


def test_an_equal_job_takes_nothing_from_a_gang_that_has_moved_in_part():
    """n1 is free: the gang goes there with one pod, whose share would otherwise put every equal job before it."""
    story = Story(ending("a", "n2"), ending("b", "n3"), held_gang("n2", "n3", priority=10),
                  waiting("h", 2, cpu=4), nodes=3)  # fmt: skip
    story.cycle()
    assert story.nodes_held() == {"g-0": "n1", "g-1": "n3"}


def test_no_pod_takes_room_that_evictions_have_just_made_for_another():
    """Two jobs of q1 take back a node each; with the second one's left out q2 would come before q1, and has its own."""
    queues = [queue("q1", weight=3), queue("q2"), queue("q3")]
    lent = [running(f"v{i}", 1, f"n{i}", cpu=4, queue="q3") for i in range(1, 5)]
    jobs = [
        *waiting("a", 1, cpu=4, queue="q1"),
        *waiting("b", 1, cpu=4, queue="q1"),
        *waiting("c", 1, cpu=4, queue="q2"),
    ]
    story = Story(queues, *lent, jobs, nodes=4, text=conf("gang", "predicates proportion", actions="allocate, reclaim"))
    assert len(evicted(story.cycle())) == 3
    assert set(story.held()) == {"a-0", "b-0", "c-0"}

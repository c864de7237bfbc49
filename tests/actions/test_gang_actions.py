"""gangpreempt and gangreclaim: which tasks go for a gang, from which nodes, and what becomes of the room."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stromboli.actions.gangreclaim import GangReclaim
from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.config.config import load_config
from stromboli.framework.session.session import Session
from stromboli.model.names import PREEMPTABLE
from stromboli.narration.observe import Counting
from stromboli.plugin import Plugin, hyper_node_gradient_for_job, unified_evictable
from stromboli.preemption.gang_eviction import covers
from stromboli.sim.between import apply_plan
from stromboli.testing.builders import events, node, pod, pod_group, queue, state
from tests.acceptance.bench import Bench

CONF = """
actions: "enqueue, allocate, {action}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}{more}]
- plugins: [{{name: predicates}}, {{name: proportion}}]
configurations:
- {{name: {action}, arguments: {{allowWholeBundle: {whole}, maxDomains: {domains}}}}}
"""


class Racks(Plugin):
    """Tries each rack by itself, the last one first."""

    name = "racks"

    @hyper_node_gradient_for_job
    def racks(self, job, hyper_node, purpose):
        return [[self.session.hyper_nodes[name]] for name in ("r2", "r1")] if purpose == "Evict" else [[hyper_node]]

    def on_session_open(self, session):
        self.session = session


class Spares(Plugin):
    """Spares every pod with a name that ends in 0."""

    name = "spares"

    @unified_evictable
    def spare(self, context, candidates):
        assert context.job.uid == "default/high"
        assert context.kind == "GangPreempt"
        return [task for task in candidates if not task.name.endswith("0")]


def conf(action="gangpreempt", more=(), whole="true", domains=8):
    registry = builtin_registry()
    for plugin in (Racks, Spares):
        registry.add(plugin)
    text = CONF.format(
        action=action, whole=whole, domains=domains, more="".join(f", {{name: {name}}}" for name in more)
    )
    plugins, actions = registry.plugin_names, registry.action_names
    return load_config(text, source="test", known_plugins=plugins, known_actions=actions), registry


def plan(objects, observer=None, compat=False, **options):
    config, registry = conf(**options)
    cluster = state(*CLASSES, *objects)
    more = {} if observer is None else {"observer": observer}
    return run_cycle(cluster.snapshot(), replace(config, compat=compat), registry, **more)


CLASSES = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("low", 10), ("high", 100))
]


def running(name, count, on="n1", least=1, cls="low", queue="default", annotations=None, pods=None, first=0):
    group = pod_group(
        name, min_member=least, phase="Running", priorityClassName=cls, queue=queue, annotations=annotations
    )
    return [group, *(pod(f"{name}-{first + n}", group=name, on=on, annotations=pods) for n in range(count))]


def waiting(name="high", count=2, least=None, cls="high", queue="default", **more):
    group = pod_group(name, min_member=count if least is None else least, priorityClassName=cls, queue=queue)
    return [group, *(pod(f"{name}-{n}", group=name, **more) for n in range(count))]


def gone(made):
    return [eviction.key.removeprefix("default/") for eviction in made.evictions]


# ------------------------------------------------------------------------------------------------ gangpreempt


@pytest.mark.parametrize(
    ("idle", "compat", "bound", "reserved"),
    [
        pytest.param((1, 1), False, ["default/high-0"], {}, id="ours"),
        pytest.param((1, 1), True, ["default/high-0"], {"i0": 1}, id="another-idle-node-and-the-first-place-stays"),
        pytest.param((1,), True, [], {"i0": 1, "n1": 1}, id="the-victim's-room-and-the-first-place-stays-taken"),
        pytest.param((2,), True, [], {}, id="the-same-node-and-both-are-lost"),
    ],
)
def test_compat_mode_places_a_gang_once_more_in_the_same_cycle(idle, compat, bound, reserved):
    config, registry = conf()
    config = replace(config, actions=("enqueue", "gangpreempt", "allocate"), compat=compat)
    nodes = [node("n1"), *(node(f"i{number}", cpu=cpu) for number, cpu in enumerate(idle))]
    snapshot = state(*CLASSES, *nodes, *running("low", 4), *waiting(count=1)).snapshot()
    with Session.open(snapshot, config, registry) as session:
        for name in config.actions:
            registry.action(name)(config.arguments_of(name)).run(session)
        cpu = zip(session.nodes, session.table.pipelined[0].tolist(), strict=True)
        assert {name: held // 1000 for name, held in cpu if held} == reserved
    assert [bind.key for bind in session.plan.binds] == bound


def test_a_gang_takes_what_a_less_important_one_can_spare():
    made = plan([node("n1"), *running("low", 4), *waiting()])
    assert gone(made) == ["low-0", "low-1"]
    assert {eviction.reason for eviction in made.evictions} == {"gangpreempt"}
    assert [(held.key, held.node, held.evicted) for held in made.reservations] == [
        ("default/high-0", "n1", True),
        ("default/high-1", "n1", True),
    ]


@pytest.mark.parametrize(
    ("objects", "options", "evicted"),
    [
        pytest.param(running("low", 4, least=4), {}, 4, id="a-whole-gang-goes"),
        pytest.param(running("low", 4, least=4), {"whole": "false"}, 0, id="whole-gangs-stay-if-told-so"),
        pytest.param(running("low", 4, least=3), {"whole": "false"}, 0, id="one-spare-is-not-enough"),
        pytest.param(running("low", 4, cls="high"), {}, 0, id="equally-important"),
        pytest.param(running("low", 4, annotations={PREEMPTABLE: "false"}), {}, 0, id="the-group-says-no"),
        pytest.param(running("low", 4, annotations={PREEMPTABLE: "true"}), {}, 4, id="the-group-says-yes"),
        pytest.param(running("low", 4, pods={PREEMPTABLE: "false"}), {}, 0, id="the-pods-say-no"),
        pytest.param([queue("q1"), *running("low", 4, queue="q1")], {}, 0, id="another-queue"),
    ],
)  # fmt: skip
def test_gangpreempt_evicts_less_important_tasks_of_its_queue_that_may_be_preempted(objects, options, evicted):
    made = plan([node("n1"), *objects, *waiting(count=4 if evicted == 4 else 2)], **options)
    assert (len(made.evictions), len(made.reservations)) == (evicted, evicted)


def test_safe_bundles_of_all_jobs_go_before_any_gang_is_broken():
    objects = [node("n1", cpu=6), *running("a", 3, least=3), *running("b", 3, least=1)]
    assert gone(plan([*objects, *waiting()])) == ["b-0", "b-1"]
    assert sorted(gone(plan([*objects, *waiting(count=3)]))) == ["b-0", "b-1", "b-2"], "the younger job's gang first"


def test_bundles_are_added_until_the_gang_is_placed():
    # one cpu each on two nodes is as much as the gang needs, but no pod of two cpus fits: the next bundle goes as well
    objects = [node("n1", cpu=2), node("n2", cpu=2), *running("a", 1, "n1"), *running("c", 1, "n1", first=5)]
    objects += [
        *running("b", 1, "n2", cls="low"),
        pod("keep", on="n2", annotations={PREEMPTABLE: "false"}),
        *waiting(count=1, cpu=2),
    ]
    made = plan(objects)
    assert set(gone(made)) == {"c-5", "a-0"}
    assert [held.node for held in made.reservations] == ["n1"]
    assert set(gone(plan(objects, compat=True))) == {"c-5", "b-0", "a-0"}, "in compat mode no pod is spared"


def test_nothing_is_taken_where_the_gang_cannot_be_placed_whole():
    made = plan([node("n1"), *running("low", 4), *waiting(count=5)])
    assert (gone(made), made.reservations) == ([], [])


def test_room_that_pods_wait_for_is_taken_once():
    # idle room stays idle while pods wait for it; two pods must not wait for one cpu
    made = plan([node("n1", cpu=5), *running("low", 4), *waiting(count=3)])
    assert (len(made.evictions), len(made.reservations)) == (2, 3)


def test_no_victim_is_spared_without_which_the_queue_would_have_too_much():
    # n2 is idle, but the queue has all it may have until the others leave n1
    objects = [node("n1"), node("n2"), queue("q1", capability={"cpu": 4}), *running("low", 4, queue="q1")]
    assert gone(plan([*objects, *waiting(queue="q1")])) == ["low-0", "low-1"]


def test_plugins_are_asked_with_the_job_and_the_action():
    assert gone(plan([node("n1"), *running("low", 4), *waiting()], more=["spares"])) == ["low-1", "low-2"]
    assert gone(plan([node("n1"), *running("low", 4, least=4), *waiting(count=4)], more=["spares"])) == []


@pytest.mark.parametrize(("allowed", "evicted"), [(1, []), (2, ["a-0", "a-1"]), (3, ["b-0", "b-1", "b-2"])])
def test_a_budget_is_not_spent_on_a_gang_that_cannot_go_whole(allowed, evicted):
    # the gang of three would go first; what it cannot use is there for the gang of two
    web = {"app": "web"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
              "spec": {"selector": {"matchLabels": web}}, "status": {"disruptionsAllowed": allowed}}  # fmt: skip
    jobs = [each for name, count in (("a", 2), ("b", 3)) for each in running(name, count, least=count)]
    for each in jobs:
        if each["kind"] == "Pod":
            each["metadata"]["labels"] = web
    made = plan([node("n1", cpu=5), budget, *jobs, *waiting(count=2)], more=["pdb"])
    assert gone(made) == evicted


def budgets(**allowed):
    """Disruption budgets by the label that they select, each of which allows so many."""
    return [
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app},
         "spec": {"selector": {"matchLabels": {"app": app}}}, "status": {"disruptionsAllowed": count}}
        for app, count in allowed.items()
    ]  # fmt: skip


def labelled(name, *apps, least):
    """A running gang whose pods bear these labels."""
    group, *pods = running(name, len(apps), least=least)
    for each, app in zip(pods, apps, strict=True):
        each["metadata"]["labels"] = {"app": app}
    return [group, *pods]


def test_a_gang_that_can_never_go_leaves_its_part_of_a_budget_to_another():
    """Of b, which would go first, one pod may never go; without it the budget is enough for a."""
    jobs = [*labelled("a", "web", "web", least=2), *labelled("b", "web", "web", "db", least=3)]
    made = plan([node("n1", cpu=5), *budgets(web=3, db=0), *jobs, *waiting(count=2)], more=["pdb"])
    assert sorted(gone(made)) == ["a-0", "a-1"]


def test_a_gang_that_could_go_alone_stays_where_others_have_used_up_the_budget():
    jobs = [*labelled("a", "web", "web", least=2), *labelled("c", "web", "web", least=1)]
    made = plan([node("n1"), *budgets(web=2), *jobs, *waiting(count=1)], more=["pdb"])
    assert sorted(gone(made)) == ["c-0"]


def test_what_is_idle_in_a_domain_is_told():
    told = Counting(["gang_domain"])
    objects = [node("n1", cpu=6), node("n2", cpu=3), *racks(), *running("a", 4, "n1"), *running("b", 2, "n2")]
    plan([*objects, *waiting(count=4)], more=["racks"], observer=told)
    each: list[dict[str, Any]] = [fields for _, fields in told.told]
    found = [(fields["domain"], fields["idle"].milli_cpu, fields["need"].milli_cpu) for fields in each]
    assert found == [("r2", 1000, 4000), ("r1", 2000, 4000)]


def test_a_nonsensical_number_of_domains_is_told():
    told = Counting(["max_domains_invalid"])
    made = plan([node("n1"), *running("low", 4), *waiting()], domains=0, observer=told)
    assert len(made.evictions) == 2
    assert told.counts == {"max_domains_invalid": 1}


@pytest.mark.parametrize(
    ("room", "need", "covered"),
    [
        ((1000, 50, 2), (1000, 50, 2), True), ((999, 50, 2), (1000, 50, 2), False), ((1000, 49), (1000, 50), False),
        ((1000, 50, 1), (1000, 50, 2), False), ((1000, 50), (1000, 50, 1), False), ((1000, 50), (1000, 50, 0), True),
        ((1000, 50, -1), (1000, 50, 0), True), ((-1, 50, 2), (0, 50, 2), False), ((1000, -1), (1000, 0), False),
    ],
)  # fmt: skip
def test_room_covers_a_need_in_cpu_memory_and_what_is_asked_for(room, need, covered):
    """Of other dimensions only those count that are asked for; cpu and memory count always."""
    assert covers(room, need) is covered


def test_an_eviction_for_a_gang_is_counted_and_told_with_its_domain():
    told = Counting(["metric.eviction_transaction", "gang_evicts"])
    plan([node("n1"), node("n2", cpu=2), *racks(), *running("a", 4, "n1"), *waiting(count=4)], more=["racks"],
         observer=told)  # fmt: skip
    said: dict[str, Any] = dict(told.told)
    counted, evicts = said["metric.eviction_transaction"], said["gang_evicts"]
    assert counted["action"] == "gangpreempt"
    assert (evicts["domain"], len(evicts["victims"])) == ("r1", 4)


def test_a_pod_with_a_gate_needs_no_room_yet():
    gated = pod("high-9", group="high", cpu=9, schedulingGates=[{"name": "later"}])
    assert len(gone(plan([node("n1"), *running("low", 4), *waiting(count=2), gated]))) == 2


def test_a_gang_of_which_a_pod_is_refused_beforehand_takes_nothing():
    claim = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]}
    made = plan([node("n1"), *running("low", 4), *waiting(count=2, **claim)])
    assert (gone(made), made.reservations) == ([], [])


def racks():
    return [
        {
            "kind": "HyperNode",
            "metadata": {"name": name},
            "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": on}}}]},
        }
        for name, on in (("r1", "n1"), ("r2", "n2"))
    ]


@pytest.mark.parametrize(
    ("count", "domains", "nodes"),
    [(2, 8, ["n2", "n2"]), (4, 8, ["n1"] * 4), (4, 1, [])],
    ids=["the-first-domain", "the-next-one", "no-more-than-told"],
)
def test_a_gang_goes_to_one_domain(count, domains, nodes):
    objects = [node("n1"), node("n2", cpu=2), *racks(), *running("a", 4, "n1"), *running("b", 2, "n2")]
    made = plan([*objects, *waiting(count=count)], more=["racks"], domains=domains)
    assert [held.node for held in made.reservations] == nodes
    assert {eviction.node for eviction in made.evictions} == set(nodes)


# ------------------------------------------------------------------------------------------------ gangreclaim


def reclaiming(count=2, reclaimable=True, **more):
    queues = [queue("q1", reclaimable=reclaimable), queue("q2")]
    return [node("n1"), *queues, *running("a", 4, queue="q1", cls="high", **more), *waiting("b", count, queue="q2")]


@pytest.mark.parametrize(
    ("objects", "evicted"),
    [
        pytest.param(reclaiming(), 2, id="up-to-the-share"),
        pytest.param(reclaiming(count=3), 0, id="beyond-it-the-whole-gang-is-refused"),
        pytest.param(reclaiming(reclaimable=False), 0, id="not-reclaimable"),
        pytest.param(reclaiming(pods={PREEMPTABLE: "false"}), 0, id="the-pods-say-no"),
        pytest.param([node("n1"), *running("a", 4, cls="low"), *waiting("b")], 0, id="never-in-its-own-queue"),
    ],
)
def test_gangreclaim_takes_back_up_to_the_share_from_reclaimable_queues(objects, evicted):
    made = plan(objects, action="gangreclaim")
    assert {eviction.reason for eviction in made.evictions} <= {"gangreclaim"}
    assert (len(made.evictions), len(made.reservations)) == (evicted, evicted)


def test_a_queue_beyond_its_share_takes_nothing_back():
    objects = [node("n1", cpu=6), queue("q1"), queue("q2"), *running("a", 3, queue="q1")]
    objects += [*running("b0", 3, queue="q2"), *waiting("b", 1, queue="q2")]
    told = Counting(["queue_overused"])
    assert gone(plan(objects, action="gangreclaim", observer=told)) == []
    assert told.counts["queue_overused"] >= 1


# ------------------------------------------------------------------------------------------------ nominations


def cycle(cluster, config, registry):
    return run_cycle(cluster.snapshot(), config, registry)


def test_the_room_stays_the_gangs_until_its_victims_are_gone():
    config, registry = conf()
    cluster = state(*CLASSES, node("n1"), *running("low", 4), *waiting())
    first = cycle(cluster, config, registry)
    assert [(told.job, told.hyper_node) for told in first.nominations] == [("default/high", "<cluster-top-hypernode>")]
    apply_plan(cluster, first, evicted_become="terminating")
    second = cycle(cluster, config, registry)
    assert (gone(second), second.binds, second.nominations) == ([], [], [])
    assert {held.node for held in second.reservations} == {"n1"}
    for key in ("default/low-0", "default/low-1"):
        cluster.remove_task(cluster.tasks[key])
    third = cycle(cluster, config, registry)
    assert [(bind.key, bind.node) for bind in third.binds] == [("default/high-0", "n1"), ("default/high-1", "n1")]
    assert [told.hyper_node for told in third.nominations] == [""], "what it was nominated for has come true"
    apply_plan(cluster, third)
    assert cluster.jobs["default/high"].hyper_nodes.nominated == {}


def test_a_part_lies_in_the_hypernode_that_it_was_nominated_for():
    """Its job is bound to one rack, and reservations end with their session."""
    config, registry = conf(more=["racks"])
    config = replace(config, features=frozenset())
    group, *pods = waiting()
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    objects = [node("n1"), node("n2", cpu=2), *racks(), *running("a", 4, "n1"), *running("b", 2, "n2")]
    cluster = state(*CLASSES, *objects, group, *pods)
    first = cycle(cluster, config, registry)
    assert [(told.sub_job, told.hyper_node) for told in first.nominations] == [("default/high", "r2")]
    apply_plan(cluster, first)
    told = Counting(["sub_job_from_nomination"])
    second = run_cycle(cluster.snapshot(), config, registry, observer=told)
    assert [bind.node for bind in second.binds] == ["n2", "n2"]
    assert [update.parts for update in second.hyper_nodes] == [{"default/high": "r2"}]
    assert told.told[-1][1] == {"sub_job": "default/high", "hyper_node": "r2"}


def test_a_nomination_that_cannot_be_redeemed_ends():
    config, registry = conf()
    cluster = state(*CLASSES, node("n1"), node("n2", cpu=0), *running("low", 4), *waiting())
    apply_plan(cluster, cycle(cluster, config, registry))
    taken = [pod_group("rival", priorityClassName="high"), *(pod(f"r-{n}", group="rival", on="n1") for n in range(2))]
    for event in events(taken):
        cluster.apply(event)
    after = cycle(cluster, config, registry)
    assert [told.hyper_node for told in after.nominations][:1] == [""]
    assert after.binds == []
    assert len(after.evictions) == 2, "so it starves again and takes room again"


def test_in_compat_mode_nothing_is_nominated():
    config, registry = conf()
    cluster = state(*CLASSES, node("n1"), *running("low", 4), *waiting())
    made = cycle(cluster, replace(config, compat=True), registry)
    assert len(made.evictions) == 3, "and a safe bundle goes as a whole"
    assert made.nominations == []


# ------------------------------------------------------------------------------------------------ predicates


def with_port(port):
    return {"ports": [{"hostPort": port}]}


def test_no_pod_goes_for_one_that_would_not_fit_afterwards():
    # the port is taken by a pod that stays; evicting the others would not help
    keeper = pod("keeper", on="n1", cpu="100m", container=with_port(80), annotations={PREEMPTABLE: "false"})
    objects = [node("n1", cpu="4100m"), keeper, *running("low", 4), *waiting(count=1, container=with_port(80))]
    assert gone(plan(objects)) == []
    assert len(gone(plan(objects, compat=True))) == 3, "the reference takes such a refusal for cured"


def test_a_victim_that_holds_a_port_the_pod_needs_is_not_spared():
    # idle room is enough, but the port is not free until its holder goes
    holder = pod("low-9", on="n1", group="low", container=with_port(80))
    objects = [node("n1", cpu=6), *running("low", 3), holder, *waiting(count=1, container=with_port(80))]
    made = plan(objects)
    assert gone(made) == ["low-9"]
    assert [held.key for held in made.reservations] == ["default/high-0"]


def two_nodes(action):
    """Two full nodes of four cores; what a gang wants is of its own queue, or of one that holds more than its share.

    A third queue wants as much as that one, so more may be taken back than a gang needs.
    """
    own = "default" if action == "gangpreempt" else "q1"
    lent = [node("n1"), node("n2"), queue("q1"), queue("q2", weight=2)]
    for number in (1, 2):
        group, *pods = running(f"low{number}", 2, queue=own)
        names = [each["metadata"]["name"] for each in pods]
        lent += [group, *(pod(name, group=f"low{number}", on=f"n{number}", cpu=2) for name in names)]
    if action == "gangreclaim":
        lent += [queue("q3"), *waiting("idle", 1, cpu=8, queue="q3", nodeSelector={"no": "where"})]
    return lent


def gang_of(action, count=2, **more):
    home = "default" if action == "gangpreempt" else "q2"
    return waiting("x", count, cpu=2, queue=home, container=with_port(80), **more)


BOTH = pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])


@BOTH
def test_pods_with_one_port_get_a_node_each(action):
    made = plan([*two_nodes(action), *gang_of(action)], action=action)
    assert sorted(held.node for held in made.reservations) == ["n1", "n2"]
    assert sorted(eviction.node for eviction in made.evictions) == ["n1", "n2"]


@BOTH
def test_no_gang_takes_room_where_its_port_stays_in_use(action):
    keeper = pod("keeper", on="n1", cpu=0, memory=0, container=with_port(80), annotations={PREEMPTABLE: "false"})
    made = plan([*two_nodes(action), keeper, *gang_of(action, count=1)], action=action)
    assert [held.node for held in made.reservations] == ["n2"]
    assert {eviction.node for eviction in made.evictions} == {"n2"}
    made = plan([*two_nodes(action), keeper, *gang_of(action)], action=action)
    assert (gone(made), made.reservations) == ([], [])


def test_victims_of_one_queue_are_in_no_order_of_queues():
    objects = [queue("q"), queue("r"), pod_group("a", queue="q"), pod_group("b", queue="q"), pod_group("c", queue="r")]
    with Bench(objects).open() as session:
        actor, one, other = (session.jobs[f"default/{name}"] for name in "cab")
        assert GangReclaim().compare(session, actor, one, other) == 0

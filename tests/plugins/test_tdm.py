from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.framework.config.argument import parse_arguments
from stromboli.model.names import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, PREEMPTABLE, REVOCABLE_ZONE
from stromboli.narration.observe import Counting
from stromboli.plugins.tdm import Hours, Tdm, count_of, hours_of, spare_of
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, binds, conf, task_of

DAY = 86_400
NOON = 12 * 3600.0


def zoned(name, zone=None, **more):
    return node(name, labels={} if zone is None else {REVOCABLE_ZONE: zone}, **more)


def tdm(*zones, actions="allocate", others="gang predicates", period=None):
    given_ = [f'tdm.revocable-zone.{name}: "{hours}"' for name, hours in zones]
    given_ += [f"tdm.evict.period: {period}"] if period else []
    plugins = ", ".join(f"{{name: {name}}}" for name in others.split())
    return conf(f"[{{name: tdm, arguments: {{{', '.join(given_)}}}}}, {plugins}]", actions=actions)


def plugin_of(session):
    return session.plugins["tdm"]


# ---------------------------------------------------------------------- hours


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("10:00-21:00", Hours(36_000, 75_600)),
        (" 9:05-9:06 ", Hours(32_700, 32_760)),
        ("22:00-6:00", Hours(79_200, 21_600)),
        ("23:00-23:59", Hours(82_800, 86_340)),
        *((bad, None) for bad in ("24:00-1:00", "1:60-2:00", "1:0-2:00", "10-11", "1:00-2:00-3:00", "", 7, None)),
    ],
)
def test_hours_are_read(written, found):
    assert hours_of(written) == found


@pytest.mark.parametrize(
    ("hours", "open_at", "closed_at"),
    [
        (Hours(3600, 7200), [3600, 5000, 7200], [0, 3599, 7201, DAY - 1]),
        (Hours(79_200, 21_600), [79_200, DAY - 1, 0, 21_600], [21_601, 79_199]),
        (Hours(0, 0), [0, 1, DAY - 1], []),
    ],
    ids=["day", "night", "always"],
)
def test_a_zone_is_open_from_start_to_end_both_included(hours, open_at, closed_at):
    assert all(hours.hold(second, wraps=True) for second in open_at)
    assert not any(hours.hold(second, wraps=True) for second in closed_at)


def test_in_the_references_way_a_night_ends_at_midnight():
    night = Hours(79_200, 21_600)
    assert [night.hold(second, wraps=False) for second in (79_200, DAY - 1, 0, 21_600)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("compat", "closed"), [(False, ""), (True, "current time beyond revocable zone o:20:00-13:00")]
)
def test_a_zone_is_open_after_midnight_but_in_the_references_way(compat, closed):
    with Bench([zoned("n1", "o")], tdm(("o", "20:00-13:00")), compat=compat).open(now=NOON) as session:
        assert plugin_of(session).closed("o") == closed


def test_hours_are_local_time():
    bench = Bench([zoned("n1", "z"), pod_group("g"), pod("p", group="g", annotations={REVOCABLE_ZONE: "*"})],
                  tdm(("z", "13:30-14:30")))  # fmt: skip
    assert binds(bench.cycle(now=NOON)) == {}
    bench.state.utc_offset = 2 * 3600
    assert binds(bench.cycle(now=NOON)) == {"p": "n1"}


# ---------------------------------------------------------------------- nodes

NODES = [
    zoned("n0"),
    zoned("open", "o"),
    zoned("closed", "c"),
    zoned("odd", "x"),
    zoned("unknown", "u"),
    zoned("blank", ""),
]
ZONES = (("o", "11:00-13:00"), ("c", "1:00-2:00"), ("x", "late"))
TEXTS = {
    "closed": "current time beyond revocable zone c:1:00-2:00",
    "odd": "revocable zone late format error",
    "unknown": "revocable zone u not support",
}
WITH, WITHOUT = pod("w", group="g", annotations={REVOCABLE_ZONE: "*"}), pod("s", group="h")


def test_revocable_nodes_take_only_pods_that_opt_in_and_texts_name_the_rest():
    bench = Bench([*NODES, pod_group("g"), pod_group("h"), WITH, WITHOUT], tdm(*ZONES))
    with bench.open(now=NOON) as session:
        plugin, nodes = plugin_of(session), session.table.view()
        for name, own in (("w", None), ("s", "not allow to dispatch to revocable node")):
            task = task_of(session, name)
            texts = {n: plugin.refusal(task, session.nodes[n]) for n in session.nodes}
            assert {n: str(text) for n, text in texts.items() if text} == {**TEXTS, **({"open": own} if own else {})}
            assert all(not text.resolvable for text in texts.values() if text)
            scores = plugin.lent_first(task, nodes)
            expected = [100.0 if name == "w" and n == "open" else 0.0 for n in session.nodes]
            assert (np.zeros(len(nodes)) if scores is None else scores).tolist() == expected


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["", "o", "c", "x", "u", "v", None]), min_size=1, max_size=9), st.integers(0, 2 * DAY))
def test_vectors_say_what_nodes_say_one_by_one(labels, now):
    objects = [zoned(f"n{i}", zone) for i, zone in enumerate(labels)]
    bench = Bench([*objects, pod_group("g"), pod_group("h"), WITH, WITHOUT], tdm(*ZONES, ("v", "20:00-12:00")))
    with bench.open(now=float(now)) as session:
        plugin = plugin_of(session)
        reasons = next(hook.reasons for hook, _ in plugin.hooks() if hook.form == "vector" and hook.reasons)
        for task in (task_of(session, "w"), task_of(session, "s")):
            for rows in (None, np.arange(len(labels))[::2]):
                nodes = session.table.view(rows)
                masks, scores = plugin.in_open_zone(task, nodes), plugin.lent_first(task, nodes)
                for place, each in enumerate(nodes):
                    mask = 0 if masks is None else int(masks[place])
                    said = [str(reason) for bit, reason in enumerate(reasons) if mask >> bit & 1]
                    alone = plugin.refusal(task, each)
                    assert said == ([] if alone is None else [str(alone)])
                    assert (0.0 if scores is None else scores[place]) == plugin.score_of_node(task, each)


def test_more_zones_than_reasons_share_one():
    objects = [zoned(f"n{i}", f"z{i}") for i in range(80)]
    bench = Bench([*objects, pod_group("g"), WITH], tdm())
    with bench.open(now=NOON) as session:
        plugin, task = plugin_of(session), task_of(session, "w")
        assert all(plugin.in_open_zone(task, session.table.view()).tolist())
        assert str(plugin.refusal(task, session.nodes["n79"])) == "current time beyond revocable zone"
        assert plugin.in_open_zone(task, session.table.view())[session.table.row("n79")] == 0b10
        [reasons] = {len(hook.reasons) for hook, _ in plugin.hooks() if hook.reasons}
        assert reasons == 64
        assert {hook.point.name for hook, _ in plugin.hooks() if hook.reasons} == {"predicate"}
    assert len(bench.cycle().pod_conditions) == 1


def test_open_zones_are_filled_before_other_nodes_by_pods_that_may():
    pods = [WITH, pod("also", group="g2", annotations={PREEMPTABLE: "true"}), WITHOUT]
    bench = Bench([*NODES, pod_group("g"), pod_group("g2"), pod_group("h"), *pods], tdm(*ZONES))
    found = binds(bench.cycle(now=NOON))
    assert (found["w"], found["also"]) == ("open", "open")
    assert found["s"] in ("n0", "blank")


# ---------------------------------------------------------------------- jobs


def test_jobs_that_may_not_be_preempted_come_first_and_starve_while_any_task_waits():
    groups = [pod_group("soft", annotations={PREEMPTABLE: "true"}), pod_group("hard", created=9, min_member=1)]
    pods = [pod("soft-0", group="soft"), pod("hard-0", group="hard", on="n1"), pod("hard-1", group="hard")]
    with Bench([node("n1", cpu=2), *groups, *pods], tdm(others="gang")).open() as session:
        hard, soft = session.jobs["default/hard"], session.jobs["default/soft"]
        plugin = plugin_of(session)
        assert plugin.steady_first(hard, soft) == -1
        assert plugin.steady_first(soft, hard) == 1
        assert plugin.steady_first(soft, soft) == 0
        assert (plugin.steady_and_waiting(hard), plugin.steady_and_waiting(soft)) == (True, False)
        assert (plugin.enough_placed(hard), plugin.enough_placed(soft)) == (1, -1)
        task = task_of(session, "hard-1")
        assert [plugin.none_waiting_after(job, task, 3) for job in (hard, soft)] == [1, 1]


def test_as_many_tasks_as_wait_are_to_be_placed():
    with Bench([node("n1"), pod_group("g"), *(pod(f"g-{i}", group="g") for i in range(3))], tdm()).open() as session:
        job, task = session.jobs["default/g"], task_of(session, "g-0")
        job.facts.preemptable = False
        assert [plugin_of(session).none_waiting_after(job, task, k) for k in (2, 3, 4)] == [3, 3, 3]


def job_with(counts, **annotations):
    phases = {"Running": "n1", "Succeeded": "n1", "Failed": "n1", "Pending": ""}
    names = [phase for phase, number in counts.items() for _ in range(number)]
    pods = [pod(f"p{i}", group="g", on=phases[phase], phase=phase, cpu="1m", memory=0) for i, phase in enumerate(names)]
    with Bench([node("n1"), pod_group("g", annotations=annotations), *pods], conf("gang")).open() as session:
        return session.jobs["default/g"]


@pytest.mark.parametrize(
    ("counts", "annotations", "spare"),
    [
        ({"Running": 8, "Succeeded": 1, "Pending": 1}, {JDB_MAX_UNAVAILABLE: "30%"}, 2),
        ({"Running": 9, "Succeeded": 1}, {JDB_MAX_UNAVAILABLE: "30%"}, 3),
        ({"Running": 5, "Pending": 5}, {JDB_MAX_UNAVAILABLE: "3"}, 0),
        ({"Running": 5, "Failed": 2}, {JDB_MAX_UNAVAILABLE: "3"}, 3),
        ({"Running": 5}, {JDB_MIN_AVAILABLE: "3"}, 2),
        ({"Running": 5}, {JDB_MIN_AVAILABLE: "50%"}, 2),
        ({"Running": 2}, {JDB_MIN_AVAILABLE: "3"}, 1),
        ({"Running": 3}, {JDB_MIN_AVAILABLE: "3"}, 0),
        ({"Running": 5}, {}, 1),
        ({"Running": 5}, {JDB_MIN_AVAILABLE: "some"}, 5),
    ],
)
def test_a_jobs_budget_says_how_many_it_can_do_without(counts, annotations, spare):
    assert spare_of(job_with(counts, **annotations)) == spare


@pytest.mark.parametrize(
    ("written", "found"), [("3", 3), ("30%", 3), ("31%", 4), ("-1", -1), ("", 0), ("x", 0), ("1.5%", 0), ("100%", 10)]
)
def test_numbers_of_tasks(written, found):
    assert count_of(written, 10) == found
    assert count_of("100%", 1000) == 1000


# ---------------------------------------------------------------------- victims


def crowd(zone, number, group="g", preemptable="true"):
    notes = {PREEMPTABLE: preemptable}
    return [pod(f"{group}-{i}", group=group, on=zone, cpu=1, annotations=notes, priority=i) for i in range(number)]


def preempted(preemptor):
    """The pods that a pod may evict among two jobs' pods outside zones and one in a zone."""
    groups = [pod_group("g", annotations={JDB_MAX_UNAVAILABLE: "2"}), pod_group("h"), pod_group("z"), pod_group("new")]
    pods = [*crowd("n0", 4), *crowd("n0", 2, "h"), *crowd("open", 1, "z"), *crowd("n0", 1, "hard", "false")]
    objects = [*NODES, *groups, pod_group("hard"), *pods, pod("new", group="new", annotations=preemptor)]
    with Bench(objects, tdm(*ZONES)).open(now=NOON) as session:
        candidates = [task_of(session, each["metadata"]["name"]) for each in pods]
        return [task.name for task in session.ask.preemptable(task_of(session, "new"), candidates)]


def test_pods_that_keep_their_place_take_it_from_preemptable_ones_outside_zones():
    assert preempted({PREEMPTABLE: "false"}) == ["g-0", "g-1", "h-0"]
    assert preempted({}) == []  # preemptable itself, as pods are unless they say otherwise
    assert preempted({PREEMPTABLE: "false", REVOCABLE_ZONE: "*"}) == []


def test_running_preemptable_pods_outside_zones_go_and_jobs_that_are_gone_give_none():
    groups = [pod_group(name, min_member=0) for name in ("g", "hard", "z")]
    pods = [*crowd("n0", 1), *crowd("n0", 1, "hard", "false"), *crowd("closed", 1, "z"), *crowd("open", 1, "y")]
    pods += [pod("new", group="g", annotations={PREEMPTABLE: "false"})]
    observer = Counting(("spared", "tdm_budget"))
    with Bench([*NODES, *groups, pod_group("y"), *pods], tdm(*ZONES)).open(observer, now=NOON) as session:
        plugin, new = plugin_of(session), task_of(session, "new")
        zones = {name: plugin._zone(session.table.row(name)) for name in session.nodes}
        assert zones == {"n0": "", "open": "o", "closed": "c", "odd": "x", "unknown": "u", "blank": ""}
        tasks = [task_of(session, name) for name in ("g-0", "hard-0", "z-0", "y-0")]
        assert [task.name for task in plugin.outside_zones(new, tasks)] == ["g-0"]
        assert plugin._spare("default/gone", tasks, {}) == []
    why = "it is not running, not preemptable, or in a revocable zone"
    told = [(fields["task"], fields["why"]) for key, fields in observer.told if key == "spared"]
    assert told == [(f"default/{name}", why) for name in ("hard-0", "z-0", "y-0")]
    [budget] = [fields for key, fields in observer.told if key == "tdm_budget"]
    assert budget == {"job": "default/g", "most": 1, "potential": 1, "count": 1}


def test_the_first_zone_is_one_as_well():
    with Bench([zoned("a", "z"), zoned("b")], tdm()).open() as session:
        assert [plugin_of(session)._zone(session.table.row(name)) for name in "ab"] == ["z", ""]


def shuffled(bench, now):
    return [eviction.key.partition("/")[2] for eviction in bench.cycle(now=now).evictions]


def test_closed_zones_are_cleared_a_budget_at_a_time_once_a_period():
    groups = [pod_group("g", annotations={JDB_MAX_UNAVAILABLE: "2"}), pod_group("o"), pod_group("s")]
    pods = [*crowd("closed", 4), *crowd("open", 2, "o"), *crowd("closed", 2, "s", "false")]
    bench = Bench([*NODES, *groups, *pods], tdm(*ZONES, actions="shuffle", period="2m", others="priority"))
    assert shuffled(bench, NOON) == ["g-0", "g-1"]
    assert shuffled(bench, NOON + 119) == []
    assert shuffled(bench, NOON + 120) == ["g-2", "g-3"]
    assert bench.plan.memory == {"tdm": {"evicted": NOON + 120}}


@pytest.mark.parametrize(("compat", "gone"), [(False, ["g-0", "g-1"]), (True, ["g-0", "g-1", "g-2", "g-3"])])
def test_a_job_in_two_closed_zones_has_one_budget(compat, gone):
    group = pod_group("g", annotations={JDB_MAX_UNAVAILABLE: "2"})
    pods = [*crowd("closed", 2), *({**each, "spec": {**each["spec"], "nodeName": "n9"}} for each in crowd("x", 4)[2:])]
    setup = tdm(*ZONES, ("d", "3:00-4:00"), actions="shuffle", others="priority")
    bench = Bench([*NODES, zoned("n9", "d"), group, *pods], setup, compat=compat)
    assert shuffled(bench, NOON) == gone


def test_zones_that_the_configuration_does_not_name_are_left_alone():
    bench = Bench([*NODES, pod_group("g"), *crowd("unknown", 3)], tdm(*ZONES, actions="shuffle"))
    assert shuffled(bench, NOON) == []


def test_pdb_spares_pods_of_closed_zones():
    spec = {"selector": {"matchLabels": {"app": "x"}}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "spec": spec,
        "status": {"disruptionsAllowed": 1},
    }
    budget["metadata"] = {"name": "b", "namespace": "default"}
    pods = crowd("closed", 3)
    for each in pods:
        each["metadata"]["labels"] = {"app": "x"}
    group = pod_group("g", annotations={JDB_MAX_UNAVAILABLE: "3"})
    bench = Bench([*NODES, budget, group, *pods], tdm(*ZONES, actions="shuffle", others="priority pdb"))
    assert shuffled(bench, NOON) == ["g-0"]


def test_a_pod_that_is_protected_leaves_its_place_to_another():
    pods = crowd("closed", 4)
    for each in pods[:2]:
        each["spec"]["priorityClassName"] = "system-node-critical"
    group = pod_group("g", annotations={JDB_MAX_UNAVAILABLE: "2"})
    bench = Bench([*NODES, group, *pods], tdm(*ZONES, actions="shuffle", others="priority conformance"))
    assert shuffled(bench, NOON) == ["g-2", "g-3"]


def test_what_is_wrong_with_its_arguments():
    arguments = {
        "tdm.revocable-zone.a": "late",
        "tdm.revocable-zone.b": "1:00-2:00",
        "tdm.evict.period": "soon",
        "x": 1,
    }
    values, complaints = parse_arguments(Tdm.arguments, arguments, "tdm")
    assert values == {"zones": {"a": "late", "b": "1:00-2:00"}, "period": "1m"}
    assert [(each.kind, each.key) for each in complaints] == [
        ("unknown", "tdm.revocable-zone.a"), ("range", "tdm.evict.period"), ("unknown", "x"),
    ]  # fmt: skip

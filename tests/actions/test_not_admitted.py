"""What a PodGroup says while enqueue refuses it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

import pytest

from stromboli.actions import not_admitted
from stromboli.api.scheduling import PodGroupCondition, PodGroupStatus
from stromboli.builtin import builtin_registry
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import load_config
from stromboli.framework.extension.weighing import Weighed
from stromboli.framework.session.admission import Ballot, votes
from stromboli.model.job import Job
from stromboli.plugin import Plugin, job_enqueueable
from stromboli.testing.builders import events, node, pod, pod_group, queue, state
from tests.acceptance.bench import Bench, conf

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{{name: gang}}, {{name: predicates}}, {{name: {}}}]
"""
START = 1_800_000_000.0


def voter(name: str, word: int, calls: list[str]) -> type[Plugin]:
    """A plugin that gives ``word`` on every job, and notes that it was asked."""

    class Voter(Plugin):
        @job_enqueueable
        def votes(self, job: Job) -> int:
            calls.append(name)
            return word

    Voter.name = name
    return Voter


class Cluster:
    """A cluster over several cycles: statuses that a plan writes stand in the next one."""

    def __init__(self, *objects: Any, plugin: str = "overcommit", compat: bool = False, more: Any = ()) -> None:
        self.registry = builtin_registry()
        for made in more:
            self.registry.add(made)
        known, actions = self.registry.plugin_names, self.registry.action_names
        conf = CONF.format(plugin) + ("compat: volcano\n" if compat else "")
        self.config = load_config(conf, source="test", known_plugins=known, known_actions=actions)
        self.state: ClusterState = state(*objects)
        self.writes = 0

    def cycle(self, now: float = START) -> Plan:
        plan = run_cycle(self.state.snapshot(), self.config, self.registry, now)
        for update in plan.pod_groups:
            self.writes += 1
            status = PodGroupStatus(update.phase, update.conditions, update.running, update.succeeded, update.failed)
            self.state.set_status(update.key, status)
        self.state.learn(plan)
        return plan

    def add(self, *objects: Any) -> None:
        for event in events(objects):
            self.state.apply(event)

    def conditions(self, name: str = "g") -> dict[str, PodGroupCondition]:
        return {one.type: one for one in self.state.jobs[f"default/{name}"].conditions}

    def said(self, name: str = "g") -> str | None:
        found = self.conditions(name).get("NotAdmitted")
        return found.message if found else None


def waiting(name: str = "g", cpu: str = "5", **fields: Any) -> Any:
    return pod_group(name, phase="Pending", minResources={"cpu": cpu}, **fields)


QUOTA = {
    "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "default"},
    "spec": {"hard": {"cpu": "4"}}, "status": {"hard": {"cpu": "4"}, "used": {"cpu": "1"}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("plugin", "objects", "text"),
    [
        (
            "overcommit", [],
            ("overcommit: resource in cluster is overused: overused cpu "
            "(cpu: minResources 5 > idle 4.8 (overcommit-factor included))"),
        ),
        (
            "proportion", [queue("default", capability={"cpu": "2"})],
            ("proportion: queue resource quota insufficient: insufficient cpu "
            "(cpu: minResources 5 > real capability 2)"),
        ),
        (
            "capacity", [queue("default", capability={"cpu": "2"})],
            "capacity: queue resource quota insufficient: insufficient cpu (cpu: minResources 5 > real capability 2)",
        ),
        (
            "proportion", [queue("default", state="Closed")],
            "proportion: queue default is Closed, not Open (cpu: minResources 5 > real capability 4)",
        ),
        (
            "resourcequota", [QUOTA],
            ("resourcequota: resource quota insufficient, requested: map[cpu:5], used: map[cpu:1], limited: map[cpu:4] "
            "(cpu: used 1 + minResources 5 > limit 4)"),
        ),
    ],
    ids=["overcommit", "proportion", "capacity", "closed", "quota"],
)  # fmt: skip
def test_the_condition_gives_the_plugins_reason_and_numbers(plugin: str, objects: list[Any], text: str) -> None:
    cluster = Cluster(node("n", cpu="4"), waiting(), *objects, plugin=plugin)
    cluster.cycle()
    assert cluster.said() == f"not admitted: {text}"
    found = cluster.conditions()["NotAdmitted"]
    assert (found.status, found.reason, found.last_transition_time) == ("True", "Refused", "2027-01-15T08:00:00Z")


def test_it_is_written_only_when_another_reason_refuses_or_numbers_are_renewed() -> None:
    cluster = Cluster(node("n", cpu="4"), waiting())
    cluster.cycle()
    said, written = cluster.said(), cluster.writes
    assert written == 1
    cluster.add(pod("i", cpu="1", on="n"))
    for second in range(1, 50):
        cluster.cycle(START + second)
    assert (cluster.said(), cluster.writes) == (said, written)
    for second in range(50, 50 + not_admitted.RENEWED_EVERY):
        cluster.cycle(START + second)
    assert cluster.said() == (said or "").replace("4.8", "3.8")
    assert cluster.writes == written + 1


def written_at(cluster: Cluster, until: int, change: Callable[[], None]) -> list[int]:
    """The seconds of cycles that write a condition; there is one each second, and ``change`` is called before it."""
    found: list[int] = []
    for second in range(until):
        before = cluster.writes
        change()
        cluster.cycle(START + second)
        found += [second] * (cluster.writes - before)
    return found


@pytest.mark.parametrize("look_every", [60, 61])
def test_numbers_are_renewed_every_five_minutes(look_every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the job is looked at in between."""
    monkeypatch.setattr(not_admitted, "LOOK_EVERY", look_every)
    cluster = Cluster(node("n", cpu="4"), waiting())
    amounts = count(3001)
    _, first, second = written_at(cluster, 600, lambda: cluster.add(node("n", cpu=f"{next(amounts)}m")))
    assert second - first == 300


def test_later_reasons_are_looked_at_every_minute() -> None:
    """The quota refuses the job, or does not, the other way round after each write."""
    cluster = Cluster(node("n", cpu="4"), waiting(), QUOTA, plugin="overcommit}, {name: resourcequota")

    def change() -> None:
        hard = "4" if cluster.writes % 2 else "40"
        cluster.add({**QUOTA, "status": {"hard": {"cpu": hard}, "used": {"cpu": "1"}}})

    _, *found = written_at(cluster, 200, change)
    assert [later - earlier for earlier, later in pairwise(found)] == [60, 60, 60]


def test_it_is_written_again_when_the_queue_is_closed() -> None:
    cluster = Cluster(
        node("n", cpu="4"), waiting(cpu="3"), queue("default", capability={"cpu": "2"}), plugin="capacity"
    )
    cluster.cycle()
    cluster.add(queue("default", state="Closed"))
    cluster.cycle(START + not_admitted.LEAST_APART)
    assert cluster.said() == "not admitted: capacity: queue default is Closed, not Open"


def test_reasons_that_change_all_the_time_are_written_so_often_at_most() -> None:
    open_queue, closed_queue = queue("default", capability={"cpu": "2"}), queue("default", state="Closed")
    cluster = Cluster(node("n", cpu="4"), waiting(cpu="3"), open_queue, plugin="capacity")
    for second in range(100):
        cluster.add(closed_queue if second % 2 else open_queue)
        cluster.cycle(START + second)
    assert 5 <= cluster.writes <= 1 + 100 // not_admitted.LEAST_APART


def test_a_later_reason_that_is_gone_is_taken_away_soon_even_if_cycles_are_rare() -> None:
    cluster = Cluster(node("n", cpu="4"), waiting(), QUOTA, plugin="overcommit}, {name: resourcequota")
    cluster.cycle()
    assert "; resourcequota: " in (cluster.said() or "")
    cluster.add({**QUOTA, "status": {"hard": {"cpu": "40"}, "used": {"cpu": "1"}}})
    for second in range(7, not_admitted.LOOK_EVERY + 7, 7):
        cluster.cycle(START + second)
    assert "resourcequota" not in (cluster.said() or "")
    assert (cluster.said() or "").startswith("not admitted: overcommit: ")


def test_a_condition_with_a_time_that_cannot_be_read_is_written_over() -> None:
    cluster = Cluster(node("n", cpu="4"), waiting())
    theirs = PodGroupCondition("NotAdmitted", "True", last_transition_time="soon", message="theirs")
    cluster.state.set_status("default/g", PodGroupStatus("Pending", (theirs,)))
    cluster.cycle()
    assert (cluster.said() or "").startswith("not admitted: overcommit: ")


@pytest.mark.parametrize("words", [(-1, -1), (0, -1), (1, -1), (-1, 1)])
def test_every_plugin_is_asked_once_about_a_refused_job(words: tuple[int, int]) -> None:
    calls: list[str] = []
    more = [voter(name, word, calls) for name, word in zip(("one", "two"), words, strict=True)]
    cluster = Cluster(node("n", cpu="4"), waiting(), plugin="one}, {name: two", more=more)
    cluster.cycle()
    assert calls == ["one", "two"]
    refused = [name for name, word in zip(("one", "two"), words, strict=True) if word < 0]
    told = [f"{name}: gives no reason" for name in refused]
    assert cluster.said() == f"not admitted: {'; '.join(told)}"


def test_it_goes_when_the_group_is_admitted() -> None:
    cluster = Cluster(node("n", cpu="4"), waiting())
    cluster.cycle()
    cluster.add(node("m", cpu="4"))
    plan = cluster.cycle(START + 1)
    assert cluster.conditions() == {}
    assert [(update.phase, update.conditions) for update in plan.pod_groups] == [("Inqueue", ())]


def test_so_many_texts_are_made_in_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(not_admitted, "MOST", 3)
    cluster = Cluster(node("n", cpu="4"), *(waiting(f"g{number}") for number in range(7)))
    for told in (3, 6, 7, 7):
        cluster.cycle()
        assert sum(cluster.said(f"g{number}") is not None for number in range(7)) == told


def test_compat_mode_writes_none() -> None:
    cluster = Cluster(node("n", cpu="4"), waiting(), compat=True)
    assert cluster.cycle().pod_groups == []


def test_a_group_admitted_at_once_gets_no_condition() -> None:
    cluster = Cluster(node("n", cpu="8"), waiting())
    assert [(one.phase, one.conditions) for one in cluster.cycle().pod_groups] == [("Inqueue", ())]


def test_a_podgroup_whose_pods_were_bound_by_others_is_not_said_to_wait():
    found = Cluster(node("n1", cpu=4), waiting(), pod("p", group="g"))
    found.cycle()
    assert found.said() is not None
    found.add(pod("p", group="g", on="n1"))
    found.cycle()
    assert (found.state.jobs["default/g"].phase, found.said()) == ("Running", None)


class Failing(Plugin):
    """Raises when it is asked to admit a job."""

    name = "failing"

    @job_enqueueable
    def votes(self, job: Job) -> int:
        raise ValueError("no idea")


class Weighing(Plugin):
    """Abstains, and cannot say why."""

    name = "weighing"

    @job_enqueueable
    def votes(self, job: Job) -> int:
        return 0

    def weighed(self, job: Job) -> Weighed | None:
        raise ValueError("nothing was weighed")


def in_tiers(*tiers: str, more: Any) -> Bench:
    return Bench([node("n", cpu="4"), waiting()], conf(*tiers, actions="allocate"), *more)


def test_the_words_of_all_plugins_with_their_tiers() -> None:
    """What refuses is asked for its numbers, and nothing else is."""
    calls: list[str] = []
    more = [voter(name, word, calls) for name, word in (("for", 1), ("against", -1))]
    bench = in_tiers("for weighing", "failing", "against", more=[*more, Weighing, Failing])
    with bench.open() as session:
        [job] = session.jobs.values()
        found = [(vote.plugin, vote.tier, vote.word, vote.refusal) for vote in votes(session, job)]
    assert [each[:3] for each in found if each[0] != "failing"] == [
        ("for", 1, "permits"), ("weighing", 1, "abstains"), ("against", 3, "refuses"),
    ]  # fmt: skip
    assert [each[3] is None for each in found] == [True, True, True, False]
    [(_, tier, word, _)] = [each for each in found if each[0] == "failing"]
    assert (tier, word.startswith("failed: ")) == (2, True)


def test_refusals_name_the_tier_of_each_plugin() -> None:
    calls: list[str] = []
    bench = in_tiers("no1", "no2", "no3", more=[voter(f"no{tier}", -1, calls) for tier in (1, 2, 3)])
    with bench.open() as session:
        [job] = session.jobs.values()
        ballot = Ballot(session)
        first = ballot.refused(job)
        assert first is not None
        assert [(one.plugin, one.tier) for one in ballot.refusals(job, first)] == [("no1", 1), ("no2", 2), ("no3", 3)]

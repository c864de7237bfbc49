"""Acceptance rows S4: what reservations are worth, and that their sums hold, while a cluster is never at rest."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.pipelined.measuring import config_of
from stromboli.cluster.body import meta, part
from stromboli.cluster.lives import OVERSTAY, RUN_FOR, STOP_AFTER
from stromboli.framework.books.plan import Plan
from stromboli.framework.session.reference import ReferenceView
from stromboli.framework.session.session import Session
from stromboli.model.names import GROUP_NAME
from stromboli.model.status import TaskStatus
from stromboli.testing.builders import Manifest, pod, pod_group, queue
from tests.acceptance.stories import with_port
from tests.laws.bookkeeping import below_zero
from tests.laws.crowds import CLASSES, classes
from tests.laws.histories import CALM, HAPPENINGS, History, Life, Looks, Step, machine
from tests.laws.scenes import REGISTRY


def member(
    name: str, group: str, size: int, *, cls: str = "low", on: str = "", owner: str = "Job", grace: int = 60,
    lives: dict[str, str] | None = None, **fields: Any,
) -> Manifest:  # fmt: skip
    """A pod that takes its whole grace to end; if a ReplicaSet owns it, another one comes for it."""
    made = pod(
        name, group=group, cpu=size, on=on, priority=CLASSES[cls], priorityClassName=cls, schedulerName="volcano",
        annotations={STOP_AFTER: "1h", **(lives or {})}, terminationGracePeriodSeconds=grace, **fields,
    )  # fmt: skip
    made["metadata"]["ownerReferences"] = [{"kind": owner, "name": group, "controller": True}]
    return made


# ---------------------------------------------------------------------- heavy reclaim


def reclaimed(grace: int, least: int) -> History:
    """q1 has lent itself all six nodes, a port on each; every 80 seconds a job comes that has a right to two of them.

    It can begin with ``least``. While a victim ends, for ``grace`` seconds, nothing more can be promised on its node.
    """
    nodes = [machine(number, 2) for number in range(6)]
    web = [member(f"web-{i}", "web", 2, on=f"n{i}", owner="ReplicaSet", grace=grace, **with_port()) for i in range(6)]
    lent = pod_group("web", queue="q1", phase="Running", priorityClassName="low")
    work = []
    for name, lives in (*((f"short-{i}", {RUN_FOR: "100s"}) for i in range(4)), ("long-0", {}), ("long-1", {})):
        pods = [member(f"{name}-{i}", name, 2, lives=lives, **with_port()) for i in range(2)]
        work.append([pod_group(name, min_member=least, queue="q2", phase="Pending", priorityClassName="low"), *pods])
    begin = [*classes(), queue("q1"), queue("q2", weight=2), *nodes, lent, *web]
    return History("", begin, work, [Step("comes", cycles=8)] * len(work))


def come_to(grace: int, least: int, *, keep: bool) -> tuple[int, Counter[tuple[str, str, bool]]]:
    """How many are evicted, and how many pods of each job wait, run and end when it is over."""
    plans: list[Plan] = []
    life = Life(reclaimed(grace, least), config_of(keep), REGISTRY, Looks(carried_out=[plans.append]))
    life.live()
    life.pass_time(60)
    pods = [(meta(each), part(each, "status", "phase")) for each in life.world.all("Pod")]
    stand = Counter((each["annotations"][GROUP_NAME], str(phase), "deletionTimestamp" in each) for each, phase in pods)
    return sum(len(plan.evictions) for plan in plans), stand


@pytest.mark.parametrize(("grace", "least"), [(50, 1), (50, 2), (60, 2), (90, 2)])
def test_S4_33_under_heavy_reclaim_fewer_go_and_it_comes_to_the_same(grace: int, least: int) -> None:
    (kept, with_gate), (forgotten, without) = (come_to(grace, least, keep=keep) for keep in (True, False))
    assert kept < forgotten
    assert with_gate == without
    assert with_gate == {
        ("long-0", "Running", False): 2, ("long-1", "Running", False): 2,
        ("web", "Running", False): 2, ("web", "Pending", False): 4,
    }  # fmt: skip


# ---------------------------------------------------------------------- random steps


CHURN = (*HAPPENINGS, *CALM, *CALM, *CALM, "grows", "grows", "grows", "fresh", "fresh")
"""Mostly work comes and goes, and what became of nodes is soon made good: otherwise there is no room to be held."""


class Walk:
    """Random steps of a small crowded cluster, from one seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        nodes = [machine(number, 3) for number in range(3)]
        full = [self.pod(f"web-{i}", "web", 1, on=f"n{i % 3}", owner="ReplicaSet") for i in range(9)]
        lent = pod_group("web", queue="q1", phase="Running", priorityClassName="low")
        begin = [*classes(), queue("q1"), queue("q2", weight=2), *nodes, lent, *full]
        self.seen: Counter[str] = Counter()
        self.life = Life(
            History("", begin, [], []), config_of(True), REGISTRY, Looks([self.look], [self.look, self.twice])
        )
        self.life.work = self.gangs()

    def pod(self, name: str, group: str, size: int, **fields: Any) -> Manifest:
        lives = {OVERSTAY: "60s"} if self.dice.random() < 0.2 else {}
        if group != "web":
            lives[RUN_FOR] = f"{self.dice.randint(20, 200)}s"
        return member(name, group, size, grace=self.dice.choice((0, 5, 30, 90)), lives=lives, **fields)

    def gangs(self) -> Iterator[list[Manifest]]:
        number = 0
        while True:
            waiting = sum(part(each, "status", "phase") == "Pending" for each in self.life.world.all("Pod"))
            number += 1
            yield self.gang(f"gang-{number}") if waiting < 12 else []

    def gang(self, name: str) -> list[Manifest]:
        dice = self.dice
        count, size, cls = dice.randint(1, 3), dice.randint(1, 3), dice.choice(("low", "mid", "high"))
        home, least = dice.choice(("q1", "q2")), dice.choice((1, count))
        group = pod_group(name, min_member=least, queue=home, phase="Pending", priorityClassName=cls)
        return [group, *(self.pod(f"{name}-{i}", name, size, cls=cls) for i in range(count))]

    def step(self) -> None:
        """Half of the steps are cycles."""
        if self.dice.random() < 0.5:
            self.life.pass_time(1)
        else:
            what = getattr(self.life, self.dice.choice(CHURN))
            what(self.dice.randrange(6), self.dice.randrange(6))

    def look(self, session: Session) -> None:
        assert below_zero(session) == []
        self.seen["held"] += bool(session.table.pipelined.any())

    def twice(self, session: Session) -> None:
        """Evict a task twice, so that it gives back more than it holds."""
        running = [task for job in session.jobs.peek() for task in job.of(TaskStatus.Running)]
        if running and self.dice.random() < 0.1:
            task = self.dice.choice(running)
            for _ in range(2):
                ReferenceView(session).evict(session.jobs[task.job].tasks[task.uid], "test")
            self.look(session)
            self.seen["twice"] += 1


def test_S4_34_in_1000_random_steps_no_sum_is_ever_below_zero() -> None:
    walk = Walk(seed=1)
    for _ in range(1000):
        walk.step()
    assert walk.seen["held"] > 100
    assert walk.seen["twice"] > 20

"""What must hold for every eviction: its purpose, the pods it must spare, that none is needless and that all end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cycle import run_action, run_actions
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.gates import PIPELINED_STATE
from stromboli.framework.config.registry import Registry
from stromboli.framework.session.session import Session
from stromboli.model.job import PIPELINED, RELEASING, Job
from stromboli.model.snapshot import Snapshot
from stromboli.plugin import Plugin, job_pipelined
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.laws.bookkeeping import Counts, books
from tests.laws.crowds import (
    CLASSES,
    EARLY,
    TIERS,
    TREE,
    Decision,
    Step,
    below_share,
    classes,
    configurations,
    contested,
    crowds,
    last_one_spareable,
    lending,
    lived,
    newcomers,
    roomy,
    spareable,
    steps,
    uneven,
    unlike,
    watching,
)
from tests.laws.scenes import NOW, REGISTRY, Scene, digest, with_plugins

QUEUES = ("q1", "q2")
PLAIN = configurations(actions=("preempt", "reclaim"))
RECLAIMING = configurations(actions=("reclaim", "gangreclaim", "preempt, reclaim"))
LENDING = (*RECLAIMING, *[TREE] * 4)
TOPOLOGY = "configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]\n"


def decided(scene: Scene, happenings: list[Step], fresh: list[list[Manifest]], **questions: Any) -> list[Decision]:
    """All decisions to evict in a cluster's history."""
    with watching(**questions) as found:
        assert [plan.inconsistencies for plan in lived(scene, happenings, fresh) if plan.inconsistencies] == []
    return found


def importance(scene: Scene, job: str) -> int:
    group = next(each for each in scene.objects if each["kind"] == "PodGroup" and job == key_of(each))
    return CLASSES[group["spec"]["priorityClassName"]]


def key_of(each: Manifest) -> str:
    return f"{each['metadata']['namespace']}/{each['metadata']['name']}"


# ---------------------------------------------------------------------- what evictions are for


@pytest.mark.law("pods of other jobs are evicted only for a job that is complete with the room it takes")
@given(
    st.one_of(*(lending(LENDING) for _ in range(4)), contested(RECLAIMING), uneven(PLAIN), crowds()), steps, newcomers
)
def test_votes(scene: Scene, happenings: list[Step], fresh: list[list[Manifest]]) -> None:
    for made in decided(scene, happenings, fresh):
        assert made.within or (made.vote and made.ready >= made.least), made


# ---------------------------------------------------------------------- no more than needed


@pytest.mark.law("no victim could have been spared")
@given(st.one_of(*(lending(LENDING) for _ in range(3)), uneven(), crowds()), steps, newcomers)
def test_minimal(scene: Scene, happenings: list[Step], fresh: list[list[Manifest]]) -> None:
    for made in decided(scene, happenings, fresh, spareable=spareable):
        assert made.facts["spareable"] == [], made


@pytest.mark.law("the plain search's last victim was needed")
@given(uneven(configurations(["usual", "shares"], ["preempt"], "compat: volcano")))
def test_last_victim(scene: Scene) -> None:
    with watching(spareable=last_one_spareable) as found:
        scene.plan()
    for made in found:
        assert made.facts["spareable"] == [], made


@pytest.mark.law("the topology-aware search spares every victim it can")
@given(uneven(configurations(["usual", "ranked"], ["preempt"], "compat: volcano", TOPOLOGY)))
def test_reprieve(scene: Scene) -> None:
    with watching(spareable=spareable) as found:
        scene.plan()
    for made in found:
        assert len(made.held) > 1 or made.facts["spareable"] == [], made


# ---------------------------------------------------------------------- idle room


def waiting_in_vain(session: Session, decisions: Sequence[Decision]) -> list[str]:
    """Jobs that wait although all the room they hold is idle and no victim was needed for them.

    A job may need victims in spite of idle room, for instance because its queue is full.
    """
    ending = {task.node_name for job in session.jobs.peek() for task in job.of(RELEASING)}
    waiting = {job.uid: {task.node_name for task in job.of(PIPELINED)} for job in session.jobs.peek()}
    excused = {made.actor for made in decisions if not made.facts["spareable"]}
    return [uid for uid, nodes in waiting.items() if nodes and not nodes & ending and uid not in excused]


@pytest.mark.law("a job that needs no eviction does not wait for idle room")
@given(st.one_of(roomy(EARLY), roomy(EARLY), crowds()), steps, newcomers)
def test_idle_room(scene: Scene, happenings: list[Step], fresh: list[list[Manifest]]) -> None:
    """A gang holds idle room only along with its evictions; what needs none is bound, whatever the order of actions."""

    def cycle(snapshot: Snapshot, config: Config, registry: Registry, now: float) -> Plan:
        with Session.open(snapshot, config, registry, now) as session, watching(spareable=spareable) as found:
            run_actions(session)
            assert waiting_in_vain(session, found) == []
        return session.plan

    assert len(list(lived(scene, happenings, fresh, cycle))) == len(happenings)


# ---------------------------------------------------------------------- what must not be evicted


@pytest.mark.law("a queue within its deserved share in every dimension loses nothing to reclaim")
@given(st.one_of(*(lending(RECLAIMING) for _ in range(6)), contested(RECLAIMING), crowds(RECLAIMING)), steps, newcomers)
def test_shares(scene: Scene, happenings: list[Step], fresh: list[list[Manifest]]) -> None:
    for made in decided(scene, happenings, fresh, below=below_share):
        assert made.reason == "preempt" or made.facts["below"] == [], made


@pytest.mark.law("where priority's tier decides, only less important work makes room within a queue")
@given(st.one_of(crowds(configurations(["ranked"], ["preempt", "gangpreempt"])), unlike()), steps)
def test_importance(scene: Scene, happenings: list[Step]) -> None:
    for made in decided(scene, happenings, []):
        for victim in made.victims:
            if made.within:
                assert all(victim.priority < task.priority for task in made.held), made
            else:
                assert importance(scene, victim.job) < importance(scene, made.actor), made


# ---------------------------------------------------------------------- tries


class Stubborn(Plugin):
    """Lets no job be whole."""

    name = "stubborn"

    @job_pipelined
    def never(self, job: Job) -> int:
        return -1


@pytest.mark.law("dry runs leave no trace")
@given(crowds())
def test_no_trace(scene: Scene) -> None:
    config, registry = with_plugins(scene.config, Counts, Stubborn)
    config = replace(config, tiers=(config.tiers[-1], *config.tiers[:-1]))  # a plugin in the last tier is not asked
    with Session.open(scene.snapshot(), config, registry, NOW) as session, watching() as found:
        for number, name in enumerate(config.actions, 1):
            session.to_come = config.actions[number:]
            before, decisions = books(session), len(found)
            commits = committed(session)
            run_action(session, REGISTRY.action(name)(config.arguments_of(name)))
            assert all(made.within for made in found), "only the search within a job evicts without asking the plugins"
            if name not in ("enqueue", "allocate", "backfill") and (len(found), committed(session)) == (
                decisions,
                commits,
            ):
                assert books(session) == before


def committed(session: Session) -> int:
    """How many tasks hold room for which they wait: what a search within a job has taken without an eviction."""
    return sum(
        len(job.index.get(status, ()))
        for job in session.jobs.peek()
        for status in job.index
        if status.name == "Pipelined"
    )


@pytest.mark.law("equal input, equal victims")
@given(st.one_of(*(lending(RECLAIMING) for _ in range(3)), contested(RECLAIMING), crowds()))
def test_repeated(scene: Scene) -> None:
    assert digest(scene.plan()) == digest(scene.plan())


# ---------------------------------------------------------------------- an end


CYCLES, STILL = 30, 4
"""The cycles within which a cluster must come to rest, and how many cycles without an eviction count as rest."""


def settles(scene: Scene) -> list[int]:
    """Evictions cycle by cycle, with a fixed workload whose victims come back at once, until it is at rest."""
    numbers: list[int] = []
    for plan in lived(scene, [Step(-1, -1, False)] * CYCLES):
        numbers.append(len(plan.evictions))
        if numbers[-STILL:] == [0] * STILL:
            break
    return numbers


LATE = (
    *configurations(["ranked"]),
    *configurations(["capacity"], ["preempt", "gangpreempt"]),
    *configurations(["usual"], ["reclaim", "gangpreempt", "gangreclaim"]),
    *configurations(["shares"], ["preempt", "reclaim", "gangreclaim"]),
)
"""Sets of plugins and actions under which evictions end; docs/eviction.md says why not under the others."""

SETTLING = (*LATE, *(text.replace("allocate, ", "").replace(", backfill", ", allocate, backfill") for text in LATE))
"""The same, with allocate before those actions and after them."""


@pytest.mark.law("with a fixed workload evictions come to an end")
@given(crowds(SETTLING, calm=True))
def test_no_loop(scene: Scene) -> None:
    numbers = settles(scene)
    assert numbers[-STILL:] == [0] * STILL, numbers


def contest(actions: str, tiers: str) -> Scene:
    """A full node, an important job with a task to spare, and a job that starves."""
    objects = [*classes(), node("n0", cpu=2), queue("q1")]
    objects += [pod_group("a", queue="q1", priorityClassName="high", phase="Running", created=2)]
    objects += [pod(f"a-{number}", group="a", on="n0", priority=100) for number in range(2)]
    objects += [pod_group("y", queue="q1", priorityClassName="mid", created=1), pod("y-0", group="y", priority=50)]
    return Scene(objects, f'actions: "enqueue, allocate, {actions}"\ntiers:\n{tiers}')


class Forgetful(Scene):
    """A cluster in which reservations end with their session."""

    @property
    def config(self) -> Config:
        return replace(super().config, features=super().config.features - {PIPELINED_STATE})


@pytest.mark.parametrize(
    ("switch", "kind", "ends"),
    [("", Forgetful, False), (", enablePreemptable: false", Forgetful, True), ("", Scene, True)],
)
def test_drf_below_priority_goes_on_as_the_page_on_eviction_says(switch: str, kind: type[Scene], ends: bool) -> None:
    tiers = TIERS["usual"].replace("{name: drf}", f"{{name: drf{switch}}}")
    scene = contest("preempt", tiers)
    numbers = settles(kind(scene.objects, scene.conf))
    assert (numbers[-STILL:] == [0] * STILL) is ends, numbers

"""What is said of jobs and pods as a session opens and closes: reasons, votes, hypernodes, amounts."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import HyperNodeUpdate
from stromboli.framework.engine.fits import Fits
from stromboli.framework.engine.messages import fit_error, scheduling_reason
from stromboli.framework.session.admission import votes
from stromboli.framework.session.session import Session
from stromboli.model.job import ALLOCATED, PENDING, PIPELINED, RELEASING, RUNNING
from stromboli.model.jobs.hyper_nodes import JobHyperNodes
from stromboli.model.status import TaskStatus
from stromboli.model.task import Placement
from stromboli.narration.observe import Counting
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, answering, conf
from tests.acceptance.clusters import TREE
from tests.plugins.support import make_job, make_task

POSSIBLY = "Pod ns/t0 can possibly be assigned to n0, once "
MINIMUM, RELEASED = "minAvailable is satisfied", "resource is released and minAvailable is satisfied"


@pytest.mark.parametrize(
    ("status", "evicted", "reason"),
    [
        (ALLOCATED, False, ("Schedulable", POSSIBLY + MINIMUM, "")),
        (PIPELINED, False, ("Unschedulable", POSSIBLY + RELEASED, "")),
        (PIPELINED, True, ("Unschedulable", POSSIBLY + RELEASED, "n0")),
        (PENDING, False, ("Unschedulable", "the whole job", "")),
        (RUNNING, False, ("Running", "the whole job", "")),
        (RELEASING, False, ("Releasing", "the whole job", "")),
    ],
)
@pytest.mark.parametrize("discarded", [True, False])
def test_why_a_pod_is_not_bound(
    status: TaskStatus, evicted: bool, reason: tuple[str, str, str], discarded: bool
) -> None:
    """From where it stood before its statement was discarded, or from where it stands."""
    task = make_task(status=PENDING if discarded else status, node_name="" if discarded else "n0")
    if discarded:
        task.last = Placement(status, "n0", evicted)
    else:
        task.eviction_occurred = evicted
    job = make_job(tasks=[task])
    job.fit_error_text = "the whole job"
    assert tuple(scheduling_reason(job, task)) == reason


def test_a_pending_pod_has_a_reason_of_its_own_before_its_jobs() -> None:
    task = make_task()
    job = make_job(tasks=[task])
    job.fit_error_text = "the whole job"
    job.fits[task.uid] = Fits(error="no node")
    assert scheduling_reason(job, task).message == "no node"


def test_the_first_cause_is_that_of_the_pod_that_comes_first() -> None:
    tasks = [make_task("b", created=2), make_task("a", created=1), make_task("c", last=ALLOCATED), make_task("d")]
    job = make_job(tasks=tasks, min_member=5)
    counts = "pod group is not ready, 4 Pending, 5 minAvailable; Pending: 1 Schedulable, 3 Unschedulable"
    assert fit_error(job).lower() == counts.lower()
    job.fits.update({tasks[0].uid: Fits(error="late"), tasks[1].uid: Fits(error="early"), "gone": Fits(error="gone")})
    assert fit_error(job).endswith(". Origin reason is a: early")
    job.fit_error_text = "the whole job"
    assert fit_error(job).endswith(". Origin reason is: the whole job")


def test_a_plugin_that_fails_as_it_votes_is_told_with_its_error_and_the_others_vote() -> None:
    def fail(job: Any) -> int:
        raise ZeroDivisionError("boom")

    words = {"yes": lambda job: 1, "no": lambda job: -1, "silent": lambda job: 0, "bad": fail}
    plugins = [answering(name, job_enqueueable=word) for name, word in words.items()]
    bench = Bench([node("n1"), pod_group("g", phase="Pending")], conf("bad yes", "no silent"), *plugins)
    with bench.open() as session:
        found = [(vote.plugin, vote.tier, vote.word) for vote in votes(session, session.jobs["default/g"])]
    assert found == [("bad", 1, "failed: bad: ZeroDivisionError: boom"), ("yes", 1, "permits"), ("no", 2, "refuses"),
                     ("silent", 2, "abstains")]  # fmt: skip


MOVES = ["hyper_node_removed_job", "hyper_node_removed_sub_job", "hyper_node_updated_job", "hyper_node_updated_sub_job"]
PART = {"name": "part", "matchLabelKeys": ["part"], "networkTopology": {"mode": "hard", "highestTierAllowed": 2}}


def opened(places: JobHyperNodes, *pods: Any, **spec: Any) -> list[tuple[str, dict[str, object]]]:
    """The lines of an opening session on a job that is said to lie in hypernodes."""
    bench = Bench([*TREE, pod_group("g", min_member=1, **spec), *pods])
    snapshot = bench.snapshot()
    snapshot.jobs["default/g"].hyper_nodes = places
    told = Counting(MOVES)
    with Session.open(snapshot, bench.config, bench.registry, 0.0, 0, told):
        return list(told.told)


def test_hypernodes_that_jobs_and_parts_have_left_are_told() -> None:
    waits = pod("p", group="g", labels={"part": "0"})
    places = JobHyperNodes("gone", of_parts={"default/g/part-0": "gone"})
    job, uid = "default/g", "default/g/part-0"
    assert opened(places, waits, subGroupPolicy=[PART]) == [
        ("hyper_node_removed_job", {"job": job, "hyper_node": "gone"}),
        ("hyper_node_removed_sub_job", {"job": job, "sub_job": uid, "hyper_node": "gone"}),
    ]


def test_a_part_that_has_left_its_hypernode_is_written_though_its_job_lay_nowhere() -> None:
    waits = pod("p", group="g", cpu=999, labels={"part": "0"})
    bench = Bench([*TREE, pod_group("g", min_member=1, subGroupPolicy=[PART]), waits])
    snapshot = bench.snapshot()
    snapshot.jobs["default/g"].hyper_nodes = JobHyperNodes("", of_parts={"default/g/part-0": "gone"})
    plan = run_cycle(snapshot, bench.config, bench.registry)
    assert plan.hyper_nodes == [HyperNodeUpdate("default/g", "", {})]


def test_queues_name_what_their_pods_hold_and_no_node_offers_but_no_zero() -> None:
    asks: dict[str, Any] = {"example.com/x": 1, "example.com/y": "0"}
    objects = [node("n1"), queue("q"), pod_group("g", queue="q", phase="Running"),
               pod("p", group="g", on="n1", requests=asks)]  # fmt: skip
    plan = Bench(objects).cycle()
    [found] = [update for update in plan.queues if update.name == "q"]
    assert {name for name in found.allocated if "example" in name} == {"example.com/x"}


def test_the_numbers_of_a_job_that_waits_are_told_in_the_order_of_their_texts() -> None:
    pods = [pod(f"g-{number}", group="g") for number in range(3)]
    with Bench([node("n1"), pod_group("g", min_member=2), *pods]).open() as session:
        text = fit_error(session.jobs["default/g"])
    assert text.startswith("pod group is not ready, 2 minAvailable, 3 Pending; ")

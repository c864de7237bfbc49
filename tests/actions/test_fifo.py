"""Queues of `dequeueStrategy: fifo`: what a waiting job keeps waiting, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.framework.books.plan import Plan
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, binds, conf, messages

ACTIONS = "enqueue, allocate, backfill"
TOLD = "a job before it waits, and queue q starts jobs in order (dequeueStrategy: fifo)"


def cycle(strategy: str, *jobs: tuple[str, str, int, int], tiers: str = "gang predicates", more: str = "") -> Plan:
    """One cycle on a node of 4 cores: jobs are name, queue, cores of each pod and minMember; each has two pods."""
    made = []
    for number, (name, where, cores, least) in enumerate(jobs):
        asks: dict[str, Any] = {"minResources": {"cpu": f"{cores * least}"}}
        made.append(pod_group(name, min_member=least, queue=where, phase="Pending", created=number, **asks))
        made += [pod(f"{name}-{each}", group=name, cpu=cores, created=number) for each in range(2)]
    queues = queue("q", dequeueStrategy=strategy), queue("other")
    text = conf(tiers, actions=ACTIONS, more=more)
    return Bench([*queues, node("n", cpu=4), *made], text).cycle()


@pytest.mark.parametrize(
    ("strategy", "more", "placed"),
    [
        ("traverse", "", {"small-0", "small-1", "elsewhere-0", "elsewhere-1"}),
        ("", "", {"small-0", "small-1", "elsewhere-0", "elsewhere-1"}),
        ("fifo", "", {"elsewhere-0", "elsewhere-1"}),
        ("fifo", "compat: volcano", {"small-0", "small-1", "elsewhere-0", "elsewhere-1"}),
    ],
)
def test_a_job_that_waits_keeps_those_behind_it_waiting_in_its_own_queue(strategy, more, placed):
    jobs = ("big", "q", 3, 2), ("small", "q", 1, 2), ("elsewhere", "other", 1, 2)
    plan = cycle(strategy, *jobs, more=more)
    assert set(binds(plan)) == placed
    assert any(TOLD in text for text in messages(plan, "default/small")) is ("small-0" not in placed)


def test_jobs_before_the_one_that_waits_start():
    plan = cycle("fifo", ("first", "q", 1, 2), ("big", "q", 3, 2), ("small", "q", 1, 2))
    assert set(binds(plan)) == {"first-0", "first-1"}


def test_a_job_whose_minimum_runs_holds_up_no_other():
    plan = cycle("fifo", ("elastic", "q", 3, 1), ("small", "q", 1, 1))
    assert set(binds(plan)) == {"elastic-0", "small-0"}


def test_a_job_that_is_not_admitted_keeps_those_behind_it_out():
    jobs = ("huge", "q", 9, 2), ("small", "q", 1, 2)
    assert not binds(cycle("fifo", *jobs, tiers="gang overcommit predicates"))
    assert binds(cycle("traverse", *jobs, tiers="gang overcommit predicates"))

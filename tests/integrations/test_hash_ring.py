"""MULTI_SCHEDULER_ENABLE: schedulers that divide nodes and jobs among themselves, as the reference's hash ring does."""

from __future__ import annotations

import asyncio
from zlib import crc32

import pytest

from stromboli.errors import ConfigError
from stromboli.live.scheduler.hash_ring import MOST, HashRing, Replica, replica_of
from stromboli.live.scheduler.options import Options
from stromboli.live.scheduler.scheduler import LiveScheduler
from tests.support.live_world import LiveWorld, group, pod
from tests.support.virtual import run

THREE = [Replica(f"volcano-scheduler-{number}", 3) for number in range(3)]


@pytest.mark.parametrize(
    ("enabled", "number", "name", "found"),
    [
        ("true", "3", "volcano-scheduler-1", THREE[1]),
        ("", "3", "volcano-scheduler-1", None),
        ("false", "", "", None),
        ("yes", "3", "volcano-scheduler-1", "MULTI_SCHEDULER_ENABLE='yes'"),
        ("true", "", "volcano-scheduler-1", "SCHEDULER_NUM=''"),
        ("true", "99999", "volcano-scheduler-1", "SCHEDULER_NUM='99999'"),
        ("true", "3", "scheduler", "SCHEDULER_POD_NAME='scheduler'"),
        ("true", "3", "volcano-scheduler-3", "SCHEDULER_POD_NAME='volcano-scheduler-3'"),
    ],
)
def test_the_environment_is_honoured_or_refused(enabled, number, name, found):
    given = {"MULTI_SCHEDULER_ENABLE": enabled, "SCHEDULER_NUM": number, "SCHEDULER_POD_NAME": name}
    if not isinstance(found, str):
        assert replica_of(given) == found
        return
    with pytest.raises(ConfigError) as refused:
        replica_of(given)
    assert str(refused.value).startswith(found)


def test_as_many_schedulers_as_may_be():
    def found(number):
        environment = {"SCHEDULER_NUM": str(number), "SCHEDULER_POD_NAME": "s-0", "MULTI_SCHEDULER_ENABLE": "1"}
        return replica_of(environment)

    assert [found(number) for number in (1, MOST)] == [Replica("s-0", 1), Replica("s-0", 1000)]
    for number in (0, MOST + 1):
        with pytest.raises(ConfigError, match=f"'{number}': with MULTI_SCHEDULER_ENABLE a number from 1 to 1000 is"):
            found(number)


def test_each_key_has_the_owner_of_the_first_point_above_it():
    """The rule in plain words: point j of a member is the CRC-32 of j and its name."""
    points = sorted((crc32(f"{j}{each.name}".encode()), each.name) for each in THREE for j in range(20))
    for key in [f"node-{number}" for number in range(200)]:
        above = [name for point, name in points if point > crc32(key.encode())]
        wanted = (above or [points[0][1]])[0]
        assert [HashRing(each).owns(key) for each in THREE] == [each.name == wanted for each in THREE]


def test_three_schedulers_of_one_cluster_bind_no_pod_twice_and_serve_every_node():
    """Each sees its own nodes and jobs; all pods are bound, each by its job's scheduler to one of its nodes."""

    async def story() -> tuple[dict[str, str], list[list[str]], list[list[str]]]:
        world = LiveWorld(nodes=24, cpu=64)
        schedulers: list[LiveScheduler] = [world.scheduler(replica=each) for each in THREE]
        for number in range(12):
            made = [
                ("podgroups", group(f"g{number}", 2)),
                *(("pods", pod(f"p{number}-{i}", f"g{number}")) for i in "ab"),
            ]
            for kind, body in made:
                body["metadata"]["ownerReferences"] = [{"kind": "Job", "name": f"job-{number}", "uid": f"u{number}"}]
                world.server.put(kind, body)
        tasks = [world.start(each) for each in schedulers]
        async with asyncio.timeout(600):
            while world.waiting():
                await asyncio.sleep(1)
        nodes = [sorted(each.state.nodes.entries()) for each in schedulers]
        jobs = [sorted(job.name for job in each.state.jobs.values() if job.facts.queue) for each in schedulers]
        assert all(not task.done() for task in tasks)
        await world.end()
        return world.pods(), nodes, jobs

    pods, nodes, jobs = run(story())
    assert sorted(name for each in nodes for name in each) == sorted({name for each in nodes for name in each})
    assert len(pods) == 24
    assert sorted(name for each in jobs for name in each) == sorted(f"g{number}" for number in range(12))
    assert all(nodes), "each has nodes"
    assert Options().replica is None

"""Equal seeds draw equal schedules, the checker finds planted faults, and growing memory is told from flat memory."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.chaos.drawn import FAULTS, LENGTH, schedule
from benchmarks.chaos.rest import Found, gave_up_leading, orphans, refused_conf, told, unrest
from benchmarks.chaos.soak import trend
from e2e.objects import job, plain_pod


def test_a_seed_draws_the_same_schedule_again():
    drawn = [schedule(Random(f"1/{number}"), "s") for number in range(60)]
    assert drawn == [schedule(Random(f"1/{number}"), "s") for number in range(60)]
    assert len({str(one) for one in drawn}) == 60
    kinds = {step.kind for one in drawn for step in one.steps}
    assert kinds == {*FAULTS, "create"}
    assert all(0 <= step.at <= LENGTH for one in drawn for step in one.steps)


def test_pods_with_gpus_state_them_as_the_server_stores_them():
    bodies = [step.detail for seed in range(20) for step in schedule(Random(seed), "s").steps if step.kind == "create"]
    specs = [task["template"]["spec"] for one in bodies if one["kind"] == "Job" for task in one["spec"]["tasks"]]
    asked = [spec["containers"][0]["resources"] for spec in specs if "limits" in spec["containers"][0]["resources"]]
    assert asked
    assert all(one["requests"]["nvidia.com/gpu"] == one["limits"]["nvidia.com/gpu"] for one in asked)


def _pod(name, phase, of="", **annotations):
    metadata = {"name": name, "labels": {"volcano.sh/job-name": of}, "annotations": annotations}
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase}}


def _job(name, phase, size, **status):
    return {**job("s", name, size), "status": {"state": {"phase": phase}, **status}}


def _owned(name, kind, uid):
    owners = [{"kind": kind, "name": "o", "uid": uid}]
    return {"metadata": {"name": name, "uid": f"{name}-1", "ownerReferences": owners}}


@pytest.mark.parametrize(
    ("owner", "collected"), [(("Job", "gone"), True), (("Job", "there"), False), (("ReplicaSet", "gone"), False)]
)
def test_what_is_left_of_a_job_that_is_gone_is_collected(owner, collected):
    left, without = _owned("left", *owner), {"metadata": {"name": "alone", "uid": "alone-1"}}
    assert list(orphans([left, without], [{"metadata": {"name": "o", "uid": "there"}}])) == [left] * collected


WANTED = (job("s", "gang", 2), plain_pod("s", "alone"))
ENDED = (_job("gang", "Completed", 2, succeeded=2), _pod("alone", "Succeeded"))


def test_what_has_ended_is_at_rest():
    assert unrest(Found([ENDED[0]], [ENDED[1]], WANTED)) == []


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (Found([ENDED[0]], [], WANTED), "Pod alone is gone"),
        (Found([], [ENDED[1]], WANTED), "Job gang is gone"),
        (Found([ENDED[0]], [_pod("alone", "Running")], WANTED), "pod alone is Running"),
        (Found([_job("gang", "Completed", 2, succeeded=1)], [ENDED[1]], WANTED), "1 of 2 pods have succeeded"),
        (
            Found([_job("gang", "Running", 2)], [ENDED[1], _pod("g0", "Running", "gang")], WANTED),
            "1 of a gang of 2 run",
        ),
        (Found([ENDED[0]], [ENDED[1], _pod("other", "Pending")], WANTED), "pod other is Pending"),
        (
            Found([ENDED[0]], [_pod("alone", "Succeeded", **{"volcano.sh/pipelined-node": "n"})], WANTED),
            "still says",
        ),
        (Found([_job("stays", "Running", 2)], [], ()), "0 of 2 pods run"),
    ],
)
def test_what_is_planted_is_found(found, what):
    assert any(what in one for one in unrest(found))


def test_what_a_user_deleted_may_be_gone():
    assert unrest(Found([], [], WANTED, frozenset({"gang", "alone"}))) == []


def test_logs_are_read():
    assert told('{"key": "bound"}\nall is well\n') == []
    assert (
        len(told('Traceback (most recent call last):\n{"key": "drift_found"}\n{"msg": "Traceback", "key": "x"}')) == 3
    )
    assert gave_up_leading('{"key": "lease_lost"}')
    assert not gave_up_leading('{"key": "leading"}')
    assert refused_conf("stromboli: a/volcano-scheduler.conf:1: not YAML: text")
    assert not refused_conf('{"key": "stopped"}')


@pytest.mark.parametrize(("growth", "flat"), [(0.0, True), (1.9, True), (2.1, False), (30.0, False), (-5.0, True)])
def test_growth_after_the_warm_up_counts(growth, flat):
    moments = [5.0 * at for at in range(240)]
    sizes = [60.0 + at / 3 if at < 120 else 100.0 + growth * (moments[at] - 900) / 600 for at in range(240)]
    assert trend(moments, sizes).is_flat == flat

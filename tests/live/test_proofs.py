"""Reservations not written by the scheduler are ignored, removed and reported; and the key that proves its own ones."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from stromboli.cluster.decoding.proofs import UNSIGNED, Unproven
from stromboli.framework.books.plan import Plan, PodAnnotations
from stromboli.kube.transport import Request, Response
from stromboli.live.proofs.keys import LOOK_EVERY, ROTATE_AFTER, SECRET
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.model.names import NAMESPACE, PIPELINED_NODE, PIPELINED_PROOF
from stromboli.model.proof import KEY_BYTES, read_proof
from stromboli.model.reservation import KEYS, Held, restated
from tests.support.contested import GRACE, VICTIMS, Contested, cycles
from tests.support.live_world import KEY, Directed, LiveWorld, gang, group, key_secret, pod, uid
from tests.support.memory_server import status
from tests.support.virtual import run

N1, N2 = Held("n1"), Held("n2")
PATIENT = """actions: "enqueue"
tiers:
- plugins: [{name: gang}]
configurations: [{name: allocate, arguments: {reservation-timeout: 1000h}}]
"""
ALLOCATE = 'actions: "allocate"\ntiers:\n- plugins: [{name: priority}, {name: gang}, {name: predicates}]\n'


def notes_of(world: LiveWorld, name: str = "job-0") -> dict[str, str]:
    found: dict[str, str] = world.server.get("pods", name, "ns")["metadata"]["annotations"]
    return {key: text for key, text in found.items() if key != "scheduling.k8s.io/group-name"}


def annotate(world: LiveWorld, notes: dict[str, str], name: str = "job-0") -> None:
    """As the pod's author may: from now on these are its annotations, besides that of its group."""
    found = world.server.get("pods", name, "ns")
    mine = {key: text for key, text in found["metadata"]["annotations"].items() if key.startswith("scheduling")}
    world.server.put("pods", {**found, "metadata": {**found["metadata"], "annotations": {**mine, **notes}}})


def reasons(world: LiveWorld) -> list[object]:
    return [told["reason"] for told in world.told.of("metric.unproven_reservation")]


def placed(scheduler: LiveScheduler, name: str = "job-0") -> tuple[str, str]:
    task = scheduler.state.tasks[f"ns/{name}"]
    return task.status.name, task.node_name


def key_requests(world: LiveWorld) -> list[str]:
    return [request.method for request in world.server.requests if "/secrets" in request.path]


def keys_at(world: LiveWorld) -> tuple[bytes, ...]:
    data = world.server.get("secrets", SECRET, NAMESPACE)["data"]
    return tuple(b64decode(data[name]) for name in ("key", "previous") if name in data)


class Waiting(Directed):
    """A world with two pods that wait, and a scheduler with cycles that decide nothing."""

    async def begun(self, tmp_path: Path, **more: Any) -> LiveScheduler:
        self.server.put("podgroups", group("job", 1))
        for number in range(2):
            self.server.put("pods", pod(f"job-{number}", "job"))
        return await self.again(tmp_path, **more)

    async def again(self, tmp_path: Path, **more: Any) -> LiveScheduler:
        conf = tmp_path / "conf"
        conf.write_text(PATIENT)
        scheduler = self.scheduler(str(conf), **more)
        self.start(scheduler)
        await scheduler.ready.wait()
        await asyncio.sleep(3)
        return scheduler


async def says(world: LiveWorld, scheduler: LiveScheduler, held: Held | None, name: str = "job-0") -> dict[str, str]:
    """Let the scheduler decide that the pod holds ``held``; what its annotations are then."""
    scheduler.executor.finish(Plan(annotations=[PodAnnotations(uid(world, name), f"ns/{name}", held)]))
    await asyncio.sleep(0.5)
    return notes_of(world, name)


# ---------------------------------------------------------------------- forged


def test_annotations_written_by_hand_give_no_precedence(tmp_path: Path) -> None:
    """The older of two equal jobs gets the room, as it would if the younger one had stated nothing."""

    async def story() -> None:
        world = LiveWorld(nodes=1, cpu=4)
        conf = tmp_path / "conf"
        conf.write_text(ALLOCATE)
        filler = {**pod("old", cpu=4, nodeName="n0"), "status": {"phase": "Running"}}
        filler["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:30Z"
        world.server.put("pods", filler)
        gang(world.server, "older", 1, 4)
        found = world.server.put("podgroups", group("younger", 1))
        found["metadata"]["creationTimestamp"] = "2026-06-01T00:00:00Z"
        made = pod("younger-0", "younger", 4)
        made["metadata"]["annotations"] = restated(made["metadata"]["annotations"], Held("n0", evicted=True))
        world.server.put("pods", made)
        scheduler = world.scheduler(str(conf))
        world.start(scheduler)
        await asyncio.sleep(5)
        assert (placed(scheduler, "older-0"), placed(scheduler, "younger-0")) == (("Pipelined", "n0"), ("Pending", ""))
        world.server.drop("pods", "old", "ns")
        await asyncio.sleep(5)
        assert world.pods() == {"older-0": "n0", "younger-0": ""}
        await world.end()

    run(story())


def test_what_is_forged_is_ignored_removed_and_told(tmp_path: Path) -> None:
    async def story() -> None:
        world = Waiting()
        scheduler = await world.begun(tmp_path)
        for number, proof in enumerate(("", "v1.00000000.1.1." + "0" * 64, "yes"), 1):
            annotate(world, {"example.com/other": "stays", **restated({}, N1, proof)})
            await asyncio.sleep(0.02)
            assert placed(scheduler) == ("Pending", "")
            await asyncio.sleep(3)
            assert notes_of(world) == {"example.com/other": "stays"}
            assert len(reasons(world)) == number
        assert reasons(world) == ["unsigned", "forged", "unsigned"]
        events = [found for found in world.server.all("events") if found["reason"] == "ReservationIgnored"]
        assert {found["involvedObject"]["name"] for found in events} == {"job-0"}
        assert {found["type"] for found in events} == {"Warning"}
        assert "leave them out of the pod and of the template" in events[0]["message"]
        assert [told["node"] for told in world.told.of("reservation_unproven")] == ["n1"] * 3
        await world.end()

    run(story())


def test_a_reservation_of_another_pod_does_not_count(tmp_path: Path) -> None:
    async def story() -> None:
        world = Waiting()
        scheduler = await world.begun(tmp_path)
        taken = await says(world, scheduler, N1)
        annotate(world, taken, "job-1")
        annotate(world, {**taken, PIPELINED_NODE: "n2"})
        await asyncio.sleep(0.02)
        assert (placed(scheduler), placed(scheduler, "job-1")) == (("Pending", ""), ("Pending", ""))
        await asyncio.sleep(3)
        assert (notes_of(world), notes_of(world, "job-1"), reasons(world)) == ({}, {}, ["forged"] * 2)
        await world.end()

    run(story())


def test_a_pod_made_again_under_the_name_does_not_inherit_one(tmp_path: Path) -> None:
    async def story() -> None:
        world = Waiting()
        scheduler = await world.begun(tmp_path)
        taken = await says(world, scheduler, N1)
        world.server.drop("pods", "job-0", "ns")
        made = pod("job-0", "job")
        made["metadata"]["annotations"] |= taken
        world.server.put("pods", made)
        await asyncio.sleep(3)
        assert (placed(scheduler), notes_of(world), reasons(world)) == (("Pending", ""), {}, ["forged"])
        await world.end()

    run(story())


# ---------------------------------------------------------------------- replayed


@pytest.mark.parametrize("then", [None, N2], ids=["ended", "replaced"])
def test_an_older_reservation_that_is_restored_does_not_count(tmp_path: Path, then: Held | None) -> None:
    async def story() -> None:
        world = Waiting()
        scheduler = await world.begun(tmp_path)
        taken = await says(world, scheduler, N1)
        await says(world, scheduler, then)
        annotate(world, taken)
        await asyncio.sleep(0.02)
        assert placed(scheduler) == ("Pending", "")
        await asyncio.sleep(3)
        assert (notes_of(world), reasons(world)) == ({}, ["replayed"])
        again = await says(world, scheduler, N1)  # the scheduler itself may decide so again
        assert (placed(scheduler), set(again)) == (("Pipelined", "n1"), {*KEYS, PIPELINED_PROOF} - {KEYS[2]})
        await asyncio.sleep(3)
        assert reasons(world) == ["replayed"]
        await world.end()

    run(story())


def test_one_that_is_restored_while_it_is_taken_off_is_removed_again(tmp_path: Path) -> None:
    """The news of the restored one comes before the answer to the write that took it off."""

    async def story() -> None:
        world = Waiting()
        scheduler = await world.begun(tmp_path)
        taken = await says(world, scheduler, N1)

        def restored(request: Request, when: str) -> Response | None:
            if when == "after" and request.method == "PATCH" and request.path.endswith("/pods/job-0"):
                world.server.faults.clear()
                annotate(world, taken)
            return None

        world.server.latency = 0.5
        world.server.faults.append(restored)
        await says(world, scheduler, None)
        await asyncio.sleep(5)
        assert (placed(scheduler), notes_of(world), reasons(world)) == (("Pending", ""), {}, ["replayed"])
        await world.end()

    run(story())


def test_what_is_restored_after_a_restart_is_as_old_as_it_was(tmp_path: Path) -> None:
    """A scheduler that starts does not know what has ended: it counts, but not longer than from when it was first."""

    async def story() -> None:
        world = Waiting()
        scheduler = await world.begun(tmp_path)
        taken = await says(world, scheduler, N1)
        first = read_proof(taken)
        await says(world, scheduler, None)
        await world.end()
        annotate(world, taken)
        await asyncio.sleep(1800)
        scheduler = await world.again(tmp_path)
        since = scheduler.state.tasks["ns/job-0"].annotations[PIPELINED_PROOF]
        assert first is not None
        assert (placed(scheduler), since) == (("Pipelined", "n1"), str(first))
        assert world.clock() - first.since / 1000 > 1800
        await world.end()

    run(story())


def test_one_that_is_too_old_is_given_up_whatever_ends_meanwhile_and_whatever_has_restarted(tmp_path: Path) -> None:
    """A tenant's victim says that it takes a year; the scheduler restarts now and then."""

    async def story() -> None:
        world = LiveWorld(nodes=1, cpu=4)
        conf = tmp_path / "conf"
        conf.write_text(ALLOCATE)
        filler = {**pod("old", cpu=4, nodeName="n0"), "status": {"phase": "Running"}}
        filler["metadata"]["deletionTimestamp"] = "2028-01-01T00:00:00Z"
        world.server.put("pods", filler)
        gang(world.server, "job", 1, 4)
        for minutes in (20, 20, 19.5):
            scheduler = world.scheduler(str(conf), schedule_period=20.0)
            task = world.start(scheduler)
            await asyncio.sleep(minutes * 60)
            assert notes_of(world)[PIPELINED_NODE] == "n0"
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        world.start(world.scheduler(str(conf), schedule_period=20.0))
        await asyncio.sleep(60)
        assert notes_of(world) == {}
        assert {told["reason"] for told in world.told.of("metric.pipelined_given_up")} == {"timeout"}
        await world.end()

    run(story())


# ---------------------------------------------------------------------- the key


def test_the_key_is_made_at_the_first_start_and_shared(tmp_path: Path) -> None:
    async def story() -> None:
        world = Waiting()
        world.server.drop("secrets", SECRET, NAMESPACE)
        scheduler = await world.begun(tmp_path)
        (key,) = keys_at(world)
        assert len(key) == KEY_BYTES
        assert world.told.of("reservation_key_made") == [{"secret": f"{NAMESPACE}/{SECRET}"}]
        await says(world, scheduler, N1)
        await world.end()
        for _ in range(2):
            scheduler = await world.again(tmp_path)  # another replica, which has never written anything
            assert (placed(scheduler), keys_at(world), reasons(world)) == (("Pipelined", "n1"), (key,), [])
        await world.end()

    run(story())


def test_where_the_namespace_is_missing_it_says_how_to_make_it(tmp_path: Path) -> None:
    async def story() -> None:
        world = Waiting()
        world.server.drop("secrets", SECRET, NAMESPACE)
        told = f'namespaces "{NAMESPACE}" not found'
        world.server.faults.append(
            lambda request, _: (
                status(404, "NotFound", told) if request.method == "POST" and "/secrets" in request.path else None
            )
        )
        await world.begun(tmp_path)
        (fields,) = world.told.of("reservation_key_trouble")
        assert fields["error"] == f"{told}; make it: kubectl create namespace {NAMESPACE}"
        await world.end()

    run(story())


def test_where_the_key_cannot_be_read_none_is_made(tmp_path: Path) -> None:
    """Another might be there, which others sign with."""

    async def story() -> None:
        world = Waiting()
        world.server.faults.append(
            lambda request, _: status(403, "Forbidden", "not allowed") if "/secrets" in request.path else None
        )
        await world.begun(tmp_path)
        assert set(key_requests(world)) == {"GET"}
        assert "not allowed" in str(world.told.of("reservation_key_trouble")[0]["error"])
        await world.end()

    run(story())


def test_two_that_start_at_once_come_to_the_same_key(tmp_path: Path) -> None:
    async def story() -> None:
        world = Waiting()
        world.server.drop("secrets", SECRET, NAMESPACE)
        conf = tmp_path / "conf"
        conf.write_text(ALLOCATE)
        both = [world.scheduler(str(conf)) for _ in range(2)]
        for one in both:
            world.start(one)
        await asyncio.sleep(3)
        assert [one.proving._keys.keys for one in both] == [keys_at(world)] * 2
        await world.end()

    run(story())


def test_a_key_is_rotated_and_the_one_before_is_still_accepted(tmp_path: Path) -> None:
    async def story() -> None:
        world = Waiting()
        world.server.put("secrets", key_secret(KEY, made="2026-01-01T00:00:00Z"))  # more than 30 days ago
        scheduler = await world.begun(tmp_path)
        fresh, before = keys_at(world)
        assert before == KEY != fresh
        world.reserve("job-0", N1, KEY)
        await asyncio.sleep(0.1)
        assert placed(scheduler) == ("Pipelined", "n1")
        assert (await says(world, scheduler, N2))[PIPELINED_PROOF] != ""
        await asyncio.sleep(2 * LOOK_EVERY)
        assert keys_at(world) == (fresh, before)  # not again
        world.clock.jump = ROTATE_AFTER
        await asyncio.sleep(LOOK_EVERY + 10)
        newest, kept = keys_at(world)
        assert kept == fresh != newest
        assert (placed(scheduler), world.told.counts["metric.unproven_reservation"]) == (("Pipelined", "n2"), 0)
        world.reserve("job-1", N1, KEY)  # the one before the last is void
        await asyncio.sleep(3)
        assert (placed(scheduler, "job-1"), reasons(world)) == (("Pending", ""), ["forged"])
        await world.end()

    run(story())


def test_a_new_leader_believes_what_the_leader_before_has_written_with_a_newer_key(tmp_path: Path) -> None:
    async def story() -> None:
        world, leads = Waiting(), {"first": True, "second": False}
        first = await world.begun(tmp_path, may_write=lambda: leads["first"])
        second = await world.again(tmp_path, may_write=lambda: leads["second"])
        assert key_requests(world).count("GET") == 1  # only the leader reads a key
        world.server.put("secrets", key_secret(b"n" * KEY_BYTES, KEY))
        await asyncio.sleep(LOOK_EVERY + 5)
        said = await says(world, first, N1)
        assert placed(second) == ("Pending", "")  # nothing can be judged without a key, and nothing is touched
        await asyncio.sleep(5)
        leads.update(first=False, second=True)
        await asyncio.sleep(5)
        assert (placed(second), notes_of(world), reasons(world)) == (("Pipelined", "n1"), said, [])
        await world.end()

    run(story())


def test_a_secret_that_is_deleted_is_made_again_of_what_is_known(tmp_path: Path) -> None:
    async def story() -> None:
        world = Waiting()
        scheduler = await world.begun(tmp_path)
        await says(world, scheduler, N1)
        world.server.drop("secrets", SECRET, NAMESPACE)
        await asyncio.sleep(LOOK_EVERY + 5)
        assert keys_at(world) == (KEY,)
        assert placed(scheduler) == ("Pipelined", "n1")
        assert len(world.told.of("reservation_key_made")) == 1
        await world.end()

    run(story())


@pytest.mark.parametrize("kind", ["forbidden", "broken"])
def test_without_a_key_reservations_last_as_long_as_the_process_and_others_are_left_alone(
    tmp_path: Path, kind: str
) -> None:
    async def story() -> None:
        world = Waiting()
        if kind == "broken":
            world.server.put("secrets", {**key_secret(KEY), "data": {"key": "c2hvcnQ="}})
        else:
            world.server.faults.append(
                lambda request, _: status(403, "Forbidden", "no") if "/secrets" in request.path else None
            )
        scheduler = await world.begun(tmp_path)
        (told,) = world.told.of("reservation_key_trouble")
        world.reserve("job-1", N2)
        await says(world, scheduler, N1)
        await asyncio.sleep(2 * LOOK_EVERY)
        assert (placed(scheduler), notes_of(world)) == (("Pipelined", "n1"), {})
        assert placed(scheduler, "job-1") == ("Pending", "")
        assert notes_of(world, "job-1")[PIPELINED_NODE] == "n2"
        assert world.told.counts["reservation_key_trouble"] == 1  # once, and not at each look
        assert told["then"] == "reservations are neither written nor believed, and last as long as this process"
        assert "c2hvcnQ" not in str(told)
        assert {told["count"] for told in world.told.of("metric.reservation_keys")} == {0}
        world.server.faults.clear()
        world.server.put("secrets", key_secret(KEY))
        await asyncio.sleep(LOOK_EVERY + 5)
        assert (placed(scheduler), placed(scheduler, "job-1")) == (("Pipelined", "n1"), ("Pipelined", "n2"))
        assert notes_of(world)[PIPELINED_NODE] == "n1"
        assert world.told.counts["metric.unproven_reservation"] == 0
        await world.end()

    run(story())


def test_where_reservations_are_not_kept_no_key_is_asked_for(tmp_path: Path) -> None:
    async def story() -> None:
        world = Waiting()
        await world.begun(tmp_path, gates={"PipelinedStatePersistence": False})
        await asyncio.sleep(LOOK_EVERY + 5)
        assert key_requests(world) == []
        await world.end()

    run(story())


def test_a_gang_whose_author_forges_goes_its_way_as_any_other(tmp_path: Path) -> None:
    """Forged from the start, again and again: the scheduler's own reservation takes the place of it."""

    async def story() -> None:
        world = Contested(tmp_path / "conf")
        scheduler = world.mortal(schedule_period=0.25)
        world.start(scheduler)
        await asyncio.sleep(1)
        world.contend()
        for _ in range(5):
            annotate(world, restated({}, N1), "high-0")
            await asyncio.sleep(0.3)
        await cycles(scheduler, 4)
        assert len(world.victims) <= VICTIMS
        await asyncio.sleep(GRACE + 10)
        assert world.high() <= {"n0", "n1"}
        assert (world.stated(), len(world.victims)) == ({}, VICTIMS)
        world.check(scheduler)
        await world.end()

    run(story())


def test_what_was_refused_of_a_pod_that_is_another_by_now_is_not_told(tmp_path: Path) -> None:
    async def story() -> None:
        world = Waiting()
        scheduler = await world.begun(tmp_path)
        proofs = scheduler.mirror.proofs
        assert proofs is not None
        proofs.refuse("ns/job-0", Unproven("another", restated({}, N1), UNSIGNED))
        await asyncio.sleep(3)
        assert (reasons(world), notes_of(world), proofs.untold) == ([], {}, {})
        await world.end()

    run(story())

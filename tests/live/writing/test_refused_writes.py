"""Writes that are refused or come to nothing: the reports, the state afterwards, and what is tried again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stromboli.controllers.changes import Keep
from stromboli.controllers.jobs.kept import KeptObjects
from stromboli.errors import ApiError, ManifestError, StromboliError
from stromboli.framework.books.plan import Bind, Eviction, GateRemoval, Plan
from stromboli.job_plugins.plugin import config_map
from stromboli.kube.client import Client
from stromboli.kube.transport import Request, Response
from stromboli.live.controllers.keeper import Keeper
from stromboli.live.proofs.proving import Proving
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.scheduler.sharding import Sharding
from stromboli.live.writing.claims import GONE, ClaimWriter
from stromboli.live.writing.first_reports import DELAY, Sort
from tests.support.live_world import Directed, group, pod, uid
from tests.support.memory_server import MemoryServer, status
from tests.support.virtual import run


class World(Directed):
    """A pod of a job, on a node or waiting, and requests that are answered as a test says."""

    async def begin(self, tmp_path: Path, node: str = "", **more: Any) -> LiveScheduler:
        self.server.put("podgroups", group("job", 1))
        spec: dict[str, Any] = {"nodeName": node} if node else {}
        made = pod("job-0", "job", **spec)
        made["status"] = {"phase": "Running" if node else "Pending"}
        self.server.put("pods", made)
        return await self.directed(tmp_path, **more)

    def refuse(self, method: str, code: int, reason: str, part: str = "", times: int = 99) -> None:
        left = iter(range(times))

        def fault(request: Request, _: str) -> Response | None:
            meant = request.method == method and part in request.path and "/events" not in request.path
            return status(code, reason) if meant and next(left, None) is not None else None

        self.server.faults.append(fault)

    def sent(self, method: str) -> int:
        return sum(one.method == method and "/events" not in one.path for one in self.server.requests)


@pytest.mark.parametrize(
    ("code", "reason", "times", "deleted", "failed"),
    [
        (404, "NotFound", 99, 1, 0),
        (409, "Conflict", 99, 1, 0),
        (422, "Invalid", 99, 1, 0),
        (403, "Forbidden", 99, 0, 1),
        (500, "InternalError", 1, 1, 0),
    ],
)
def test_a_pod_is_deleted_unless_why_it_goes_is_refused_for_good(
    code: int, reason: str, times: int, deleted: int, failed: int, tmp_path: Path
) -> None:
    async def story() -> None:
        world = World()
        scheduler = await world.begin(tmp_path, "n1")
        world.refuse("PATCH", code, reason, "/status", times)
        scheduler.executor.evict([Eviction(uid(world, "job-0"), "ns/job-0", "ns/job", "n1", "preempt")])
        await asyncio.sleep(5)
        assert (world.sent("DELETE"), scheduler.executor.evictor.failed) == (deleted, failed)
        assert scheduler.mirror.assumed == {}
        await world.end()

    run(story())


def test_an_eviction_of_a_scheduler_that_leads_no_longer_is_forgotten(tmp_path: Path) -> None:
    async def story() -> None:
        world, leads = World(), [True]
        scheduler = await world.begin(tmp_path, "n1", may_write=lambda: leads[0])
        scheduler.executor.evict([Eviction(uid(world, "job-0"), "ns/job-0", "ns/job", "n1", "preempt")])
        assert scheduler.state.tasks["ns/job-0"].status.name == "Releasing"
        leads[0] = False
        await asyncio.sleep(2)
        assert (world.sent("DELETE"), scheduler.mirror.assumed) == (0, {})
        assert scheduler.state.tasks["ns/job-0"].status.name == "Running"
        await world.end()

    run(story())


@pytest.mark.parametrize("is_there", [True, False])
def test_a_bound_pod_of_which_no_news_come_is_asked_for_and_counts_as_the_server_says(
    is_there: bool, tmp_path: Path
) -> None:
    async def story() -> None:
        world = World()
        scheduler = await world.begin(tmp_path)
        mirror, own = scheduler.mirror, uid(world, "job-0")
        assert mirror.assume_bound(Bind(own, "ns/job-0", "ns/job", "n1"))
        assert scheduler.state.tasks["ns/job-0"].node_name == "n1"
        scheduler.executor.ask_for_overdue()
        await asyncio.sleep(1)
        assert world.sent("GET") == 0, "it is not overdue"
        mirror.carried_out("ns/job-0", own, 0.0)
        if not is_there:
            world.refuse("GET", 404, "NotFound", "/pods/job-0")
        scheduler.executor.ask_for_overdue()
        await asyncio.sleep(1)
        assert world.sent("GET") == 1
        assert {"ns/job-0"} == {fields["name"] for fields in world.told.of("resync_task")}
        found = scheduler.state.tasks.get("ns/job-0")
        assert (found.node_name if found else None) == ("" if is_there else None)
        assert mirror.assumed == {}
        await world.end()

    run(story())


def test_a_report_that_fails_is_told_and_the_others_are_made(tmp_path: Path) -> None:
    def broken() -> None:
        raise ManifestError("cannot be said")

    async def story() -> None:
        world, made = World(), list[str]()
        scheduler = await world.directed(tmp_path)
        world.server.put("podgroups", group("job", 1))
        world.server.put("pods", pod("job-0", "job"))
        await asyncio.sleep(0.01)
        reports, own = scheduler.executor.first_reports, uid(world, "job-0")
        reports.make(Sort.CONDITION, "ns/job-0", own, broken)
        reports.make(Sort.EVENT, "ns/job-0", own, lambda: made.append("event"))
        await asyncio.sleep(3 * DELAY)
        [told] = world.told.of("decision_failed")
        assert (told["what"], "cannot be said" in str(told["error"]), made) == ("ns/job-0", True, ["event"])
        await world.end()

    run(story())


def test_a_reservation_that_cannot_stand_is_told_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> bool:
        raise ManifestError("is no reservation", object="Pod ns/job-0")

    async def story() -> None:
        world = World()
        scheduler = await world.begin(tmp_path)
        monkeypatch.setattr(scheduler.mirror, "assume_reserved", refused)
        scheduler.executor.update_pod_annotations(scheduler.state.tasks["ns/job-0"], None)
        await asyncio.sleep(1)
        [told] = world.told.of("object_refused")
        assert (str(told["error"]), world.sent("PATCH")) == ("Pod ns/job-0: is no reservation", 0)
        await world.end()

    run(story())


def test_a_write_that_is_refused_and_an_object_that_cannot_be_asked_for_are_told(tmp_path: Path) -> None:
    async def story() -> None:
        world = World()
        scheduler = await world.begin(tmp_path)
        world.refuse("PATCH", 400, "BadRequest", "/pods/")
        world.refuse("GET", 403, "Forbidden", "/pods/")
        removal = GateRemoval(uid=uid(world, "job-0"), key="ns/job-0")
        scheduler.executor.finish(Plan(session="s", gates=[removal]))
        await asyncio.sleep(5)
        told = [str(one["what"]) for one in world.told.of("write_failed")]
        assert told == ["Pod:gate ns/job-0", "Pod:gate ns/job-0"], "the write, and the question"
        assert (world.sent("PATCH"), world.sent("GET")) == (1, 1)
        await world.end()

    run(story())


# -- Without a scheduler ---------------------------------------------------------------------------------------------


class Refusing:
    """A client that answers everything with an error."""

    def __init__(self, error: StromboliError) -> None:
        self.error = error

    async def get(self, *_: object, **__: object) -> Any:
        raise self.error

    patch = get


@pytest.mark.parametrize(
    ("code", "gives", "raised"),
    [(404, True, 422), (404, False, None), (500, True, 500), (500, False, 500), (403, True, 403)],
)
def test_a_claim_that_is_gone_fails_the_bind_and_has_nothing_to_take_back(
    code: int, gives: bool, raised: int | None
) -> None:
    context: Any = SimpleNamespace(client=Refusing(ApiError(code, "NotFound" if code == 404 else "R", "no")))
    work = ClaimWriter(context)._write(Bind("u", "ns/p", "ns/g", "n"), "ns/c", cast(Any, "devices") if gives else None)
    if raised is None:
        asyncio.run(work)
    else:
        with pytest.raises(ApiError) as caught:
            asyncio.run(work)
        assert caught.value.code == raised
        assert (GONE.format(key="ns/c") in str(caught.value)) == (raised == 422)


def test_the_status_of_a_shard_that_is_refused_is_told() -> None:
    told = list[tuple[str, str]]()
    shards = SimpleNamespace(
        name="s", status=lambda: SimpleNamespace(nodes_in_use=("n",), nodes_to_remove=(), nodes_to_add=())
    )
    mirror = SimpleNamespace(state=SimpleNamespace(nodes=SimpleNamespace(shards=shards)))
    context: Any = SimpleNamespace(
        client=Refusing(ApiError(403, "Forbidden", "no")), mirror=mirror, feed=SimpleNamespace(answer=None),
        clock=lambda: 0.0,
        tell=lambda key, **fields: told.append((key, fields["what"])),
    )  # fmt: skip
    asyncio.run(Sharding(context).publish())
    assert told == [("write_failed", "the status of NodeShard s")]


@pytest.mark.parametrize(("code", "reason"), [(409, "AlreadyExists"), (403, "Forbidden")])
def test_an_object_that_is_not_made_and_not_there_is_an_error(code: int, reason: str) -> None:
    async def story() -> None:
        server = MemoryServer()
        server.faults.append(lambda request, _: status(code, reason) if request.method == "POST" else None)
        keeper = Keeper(Client(server), KeptObjects(), lambda: 0.0)
        owner: dict[str, Any] = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u"}
        with pytest.raises(ApiError) as caught:
            await keeper.keep(Keep("svc", "ns", config_map("j-svc", {"a": "b"}), owner))
        assert caught.value.reason == reason
        assert [request.method for request in server.requests].count("GET") == (reason == "AlreadyExists")

    run(story())


def test_what_is_still_refused_by_the_new_keys_is_told_and_the_rest_is_judged() -> None:
    judged, told, said = list[str](), list[str](), list[str]()

    def judge(key: str) -> None:
        judged.append(key)
        if key == "ns/a":
            raise ManifestError("is forged", object="Pod ns/a")

    async def refresh() -> None:
        """The keys are known already."""

    mirror = SimpleNamespace(state=SimpleNamespace(reserving=True), judge_anew=judge)
    context: Any = SimpleNamespace(
        mirror=mirror, may_write=lambda: True, tell=lambda key, error: told.append(f"{key}: {error}")
    )
    proofs: Any = SimpleNamespace(keys=(b"old",), unproven={"ns/a": 1, "ns/b": 2})
    keys: Any = SimpleNamespace(keys=(b"new",), refresh=refresh)
    updater: Any = SimpleNamespace(say_unwritten=lambda: said.append("said"))
    proving = Proving(context, proofs, keys, updater)
    for _ in range(2):
        asyncio.run(proving.refresh())
    assert (judged, told, said) == (["ns/a", "ns/b"], ["object_refused: Pod ns/a: is forged"], ["said"])
    assert proofs.keys == (b"new",)

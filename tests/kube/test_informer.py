"""Informers: no change is missed or reported twice, whatever happens to the watch."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from stromboli.errors import StromboliError, Unreachable
from stromboli.kube.client import WATCH_SECONDS, Client
from stromboli.kube.informer import UNKNOWN_PAUSE, Change, Informer, What
from stromboli.kube.informers import Informers
from stromboli.kube.resources import PODS
from stromboli.kube.transport import Request, Response
from tests.support.memory_server import MemoryServer, status
from tests.support.virtual import run


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "labels": labels}}


class World:
    """A server, an informer on its pods, and what the informer reported."""

    def __init__(self, keep: bool = True) -> None:
        self.server = MemoryServer()
        self.troubles: list[StromboliError] = []
        client = Client(self.server, dice=random.Random(1))
        self.informer = Informer(client, PODS, keep=keep, troubled=self.troubles.append)
        self.told: list[tuple[str, str]] = []
        self.view: dict[str, str] = {}
        self.informer.subscribe(self.take)

    def take(self, change: Change[Any]) -> None:
        name = change.key[1]
        self.told.append((str(change.what), name))
        if change.what == "deleted":
            del self.view[name]
        else:
            assert (name in self.view) == (change.what == "modified")
            self.view[name] = change.version

    async def __aenter__(self) -> World:
        self.task = asyncio.create_task(self.informer.run())
        await self.informer.synced.wait()
        await asyncio.sleep(0.5)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def agrees(self) -> bool:
        """Whether the reported changes add up to what the server has."""
        held = {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in self.server.all("pods")}
        known = {key[1]: known.version for key, known in self.informer.store.items()}
        return held == self.view == known


def test_list_then_watch() -> None:
    async def main() -> None:
        world = World()
        world.server.put("pods", pod("a"))
        async with world:
            world.server.put("pods", pod("b"))
            world.server.put("pods", pod("a", x="y"))
            world.server.drop("pods", "b", "ns")
            await asyncio.sleep(0.5)
            assert world.told == [("added", "a"), ("added", "b"), ("modified", "a"), ("deleted", "b")]
            found = world.informer.get("a", "ns")
            assert found is not None
            assert found.metadata.labels == {"x": "y"}
            assert world.agrees()
            assert world.informer.relists == 1

    run(main())


def test_a_closed_watch_is_resumed_at_the_last_version() -> None:
    async def main() -> None:
        world = World()
        async with world:
            for ending in (None, Unreachable("reset")):
                world.server.cut(ending)
                world.server.put("pods", pod("a"))
                world.server.put("pods", pod("b"))
                await asyncio.sleep(10)
                assert world.agrees()
            assert world.informer.relists == 1
            assert world.informer.watches == 3

    run(main())


def test_bookmarks_move_the_version_on() -> None:
    async def main() -> None:
        world = World()
        async with world:
            world.server.version = 5000
            world.server.shout("BOOKMARK", "pods", {"kind": "Pod", "metadata": {"resourceVersion": "5000"}})
            await asyncio.sleep(0.1)
            world.server.forget()
            world.server.cut()
            await asyncio.sleep(10)
            assert world.informer.relists == 1
            assert world.server.requests[-1].params["resourceVersion"] == "5000"

    run(main())


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("by_event", [True, False])
def test_after_410_only_differences_are_told(by_event: bool, keep: bool) -> None:
    async def main() -> None:
        world = World(keep)
        for name in "abc":
            world.server.put("pods", pod(name))
        async with world:
            world.told.clear()
            watches, world.server.watches = world.server.watches, []
            world.server.put("pods", pod("a", changed="yes"))
            world.server.drop("pods", "b", "ns")
            world.server.put("pods", pod("d"))
            world.server.forget()
            world.server.watches = watches
            if by_event:
                world.server.shout("ERROR", "pods", {"code": 410, "reason": "Expired", "metadata": {}})
            else:
                world.server.cut()
            await asyncio.sleep(10)
            assert sorted(world.told) == [("added", "d"), ("deleted", "b"), ("modified", "a")]
            assert world.agrees()
            assert world.informer.relists == 2

    run(main())


def test_silence_is_no_trouble() -> None:
    """A quiet kind of a server that has no bookmarks to send: the watch is resumed without a report."""

    async def main() -> None:
        world = World()
        world.server.bookmarks = False
        async with world:
            await asyncio.sleep(300)
            world.server.put("pods", pod("a"))
            await asyncio.sleep(0.5)
            assert world.told == [("added", "a")]
            assert 300 / WATCH_SECONDS[1] <= world.informer.watches <= 300 / WATCH_SECONDS[0] + 1
            assert (world.informer.relists, world.troubles) == (1, [])

    run(main())


def doubted(world: World) -> asyncio.Task[None]:
    """Look after the world's informer as after one of several."""
    together = Informers()
    together.by_kind["Pod"] = world.informer  # type: ignore[assignment]
    return asyncio.create_task(together._doubt())


@pytest.mark.parametrize("gone", ["unreachable", "behind a gateway"])
def test_a_watch_that_a_proxy_keeps_open_is_resumed_when_the_server_is_back(gone: str) -> None:
    async def main() -> None:
        world = World()
        async with world:
            doubting = doubted(world)
            world.server.muffle()
            world.server.put("pods", pod("a"))
            client = world.informer.client

            def fault(_request: Request, _when: str) -> Response | None:
                if gone == "unreachable":
                    raise Unreachable("refused")
                return status(503, "ServiceUnavailable")

            world.server.faults.append(fault)
            with pytest.raises(StromboliError):
                await client.delete(PODS, "other", "ns")
            await asyncio.sleep(20)
            assert world.informer.watches == 1
            world.server.faults.clear()
            with pytest.raises(StromboliError):  # there is none, but the server says so
                await client.delete(PODS, "other", "ns")
            await asyncio.sleep(6)
            assert (world.told, world.informer.watches) == ([("added", "a")], 2)
            assert world.troubles == []
            doubting.cancel()

    run(main())


@pytest.mark.parametrize("quiet", [True, False])
def test_a_dead_watch_is_noticed_by_its_silence_while_others_live(quiet: bool) -> None:
    async def main() -> None:
        world = World()
        world.server.put("pods", pod("a"))
        async with world:
            for _ in range(15):
                if not quiet:
                    world.server.put("pods", pod("a"))
                await asyncio.sleep(7.7)
            world.server.muffle()
            world.server.put("pods", pod("b"))
            began = asyncio.get_running_loop().time()
            while ("added", "b") not in world.told:
                await asyncio.sleep(0.1)
            assert asyncio.get_running_loop().time() - began <= 45.3
            assert (world.informer.relists, world.troubles) == (1, [])

    run(main())


def test_a_new_list_asked_for_amid_one_is_synced_with_the_second() -> None:
    async def main() -> None:
        world = World()
        async with world:
            world.server.latency = 1.0
            world.informer.refresh()
            await asyncio.sleep(0.5)
            assert world.informer.relists == 2
            world.informer.refresh()
            await asyncio.sleep(1.0)
            assert not world.informer.synced.is_set()
            await asyncio.sleep(2.0)
            assert world.informer.synced.is_set()
            assert world.informer.relists == 3

    run(main())


def test_what_is_forgotten_amid_a_list_is_not_missed_in_it() -> None:
    async def main() -> None:
        world = World()
        for name in "ab":
            world.server.put("pods", pod(name))
        async with world:
            world.server.objects["pods"].clear()  # no watch tells it
            world.informer.subscribe(lambda change: world.informer.forget() if change.what == "deleted" else None)
            world.informer.refresh()
            await asyncio.sleep(5)
            assert (world.told[2:], world.troubles) == ([("deleted", "a")], [])
            assert world.informer.synced.is_set()

    run(main())


@pytest.mark.parametrize("served", [True, False])
def test_a_new_list_arrives_though_the_server_is_away_meanwhile(served: bool) -> None:
    """A leader that began to lead just then waited for it for ever."""

    async def main() -> None:
        world = World()
        async with world:

            def away(_request: Request, _when: str) -> Response | None:
                raise Unreachable("refused")

            world.server.faults.append(away)
            world.informer.refresh()
            await asyncio.sleep(20)
            assert not world.informer.synced.is_set()
            world.server.faults[:] = [] if served else [lambda *_: status(404, "NotFound")]
            await asyncio.sleep(20)
            assert world.informer.synced.is_set()
            assert world.informer.relists > 2

    run(main())


def test_a_kind_that_is_not_served_needs_no_new_list_to_be_synced() -> None:
    async def main() -> None:
        world = World()
        world.server.faults.append(lambda *_: status(404, "NotFound"))
        async with world:
            world.informer.refresh()
            assert world.informer.synced.is_set()
            world.server.faults.clear()
            world.server.put("pods", pod("a"))
            await asyncio.sleep(UNKNOWN_PAUSE + 1)
            assert world.told == [("added", "a")]
            world.informer.refresh()
            assert not world.informer.synced.is_set()

    run(main())


def test_a_server_that_ends_each_watch_at_once_is_asked_less_and_less_often() -> None:
    async def main() -> None:
        world = World()

        def ends(request: Request, _when: str) -> Response | None:
            if "watch" in request.params:
                asyncio.get_running_loop().call_later(0.01, world.server.cut)
            return None

        world.server.faults.append(ends)
        async with world:
            await asyncio.sleep(300)
            assert 60 < world.informer.watches < 120
            assert "ended at once" in str(world.troubles[-1])
            world.server.faults.clear()
            await asyncio.sleep(300)
            world.server.put("pods", pod("a"))
            await asyncio.sleep(1)
            assert world.told == [("added", "a")]

    run(main())


EXPIRED = b'{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "metadata": {}}}'


@pytest.mark.parametrize("gone", [status(410, "Expired"), Response(200, {}, EXPIRED + b"\n")])
def test_a_server_that_forgets_every_version_at_once_is_listed_less_and_less_often(gone: Response) -> None:
    async def main() -> None:
        world = World()
        world.server.latency = 0.01
        world.server.faults.append(lambda request, _: gone if "watch" in request.params else None)
        async with world:
            await asyncio.sleep(60)
            lists = world.informer.relists
            assert lists < 30
            world.server.faults.clear()
            world.server.put("pods", pod("a"))
            await asyncio.sleep(10)
            assert world.told == [("added", "a")]
            await asyncio.sleep(60)
            assert world.informer.relists <= lists + 1

    run(main())


def test_a_recreated_object_is_another_one() -> None:
    async def main() -> None:
        world = World()
        world.server.put("pods", pod("a"))
        async with world:
            watches, world.server.watches = world.server.watches, []
            world.server.drop("pods", "a", "ns")
            world.server.put("pods", pod("a"))
            world.server.forget()
            world.server.watches = watches
            world.server.cut()
            await asyncio.sleep(10)
            assert world.told == [("added", "a"), ("deleted", "a"), ("added", "a")]

    run(main())


def test_an_object_that_only_an_answer_told_of_is_missed_in_the_next_list() -> None:
    """It was created and deleted while no watch was open."""

    async def main() -> None:
        world = World()
        async with world:
            watches, world.server.watches = world.server.watches, []
            made, stays = (world.server.put("pods", pod(name))["metadata"] for name in ("a", "b"))
            for meta in (made, stays):
                assert world.informer.answered(("ns", meta["name"]), meta["uid"], meta["resourceVersion"])
                world.view[meta["name"]] = meta["resourceVersion"]
            world.server.drop("pods", "a", "ns")
            world.server.forget()
            world.server.watches = watches
            world.server.cut()
            await asyncio.sleep(10)
            assert world.told[-1] == ("deleted", "a")
            assert world.view == {"b": stays["resourceVersion"]}
            world.informer.refresh()
            await asyncio.sleep(1)
            assert world.told.count(("deleted", "a")) == 1

    run(main())


def test_an_answer_that_is_newer_than_a_list_is_not_missed_in_it() -> None:
    async def main() -> None:
        world = World()
        async with world:
            version = str(world.server.version + 1)
            assert world.informer.answered(("ns", "a"), "u", version)
            world.informer.refresh()
            await asyncio.sleep(1)
            assert world.told == []
            found = world.server.put("pods", pod("a"))
            assert found["metadata"]["resourceVersion"] == version
            world.server.put("pods", pod("b"))
            world.informer.refresh()
            await asyncio.sleep(1)
            assert sorted(world.told) == [("added", "a"), ("added", "b")]

    run(main())


def test_an_answer_about_an_object_that_is_gone_again_is_no_news() -> None:
    async def main() -> None:
        world = World()
        async with world:
            meta = world.server.put("pods", pod("a"))["metadata"]
            await asyncio.sleep(1)
            known = ("ns", "a"), meta["uid"], meta["resourceVersion"]
            assert world.informer.answered(*known)
            world.server.drop("pods", "a", "ns")
            await asyncio.sleep(1)
            assert not world.informer.answered(*known)

    run(main())


def test_duplicates_and_stale_events_are_told_once() -> None:
    async def main() -> None:
        world = World()
        async with world:
            old = world.server.put("pods", pod("a"))
            new = world.server.put("pods", pod("a", x="y"))
            for found in (old, new, old):
                world.server.shout("MODIFIED", "pods", found)
            await asyncio.sleep(1)
            assert world.told == [("added", "a"), ("modified", "a")]
            assert world.agrees()

    run(main())


def test_old_news_of_an_object_before_the_one_that_is_gone_ends_with_the_deletion() -> None:
    async def main() -> None:
        world = World()
        async with world:
            first = world.server.put("pods", pod("a"))
            world.server.drop("pods", "a", "ns")
            second = world.server.put("pods", pod("a"))
            world.server.drop("pods", "a", "ns")
            gone = {**second, "metadata": {**second["metadata"], "resourceVersion": str(world.server.version)}}
            await asyncio.sleep(1)
            assert first["metadata"]["uid"] != second["metadata"]["uid"]
            world.server.shout("ADDED", "pods", first)
            world.server.shout("DELETED", "pods", gone)
            await asyncio.sleep(1)
            assert world.told[-1] == ("deleted", "a")
            assert world.agrees()

    run(main())


def test_an_object_that_cannot_be_read_stops_no_other() -> None:
    async def main() -> None:
        world = World()
        async with world:
            world.server.put("pods", {"metadata": {"name": "bad", "namespace": "ns"}, "spec": {"containers": 7}})
            world.server.put("pods", pod("good"))
            await asyncio.sleep(1)
            assert world.told == [("added", "good")]
            assert "Pod ns/bad" in str(world.troubles[0])
            world.server.drop("pods", "bad", "ns")

    run(main())


def test_an_object_whose_reading_breaks_unexpectedly_stops_no_other() -> None:
    def reads(raw: Any) -> Any:
        if b"bad" in bytes(raw):
            raise ZeroDivisionError("an unforeseen error")
        return PODS.decode(raw)

    async def main() -> None:
        world = World()
        world.informer.resource = PODS.read_as(reads)
        world.server.put("pods", pod("bad"))
        async with world:
            world.server.put("pods", pod("good"))
            await asyncio.sleep(1)
            assert world.told == [("added", "good")]
            assert str(world.troubles[0]) == "Pod ns/bad: cannot be read: ZeroDivisionError: an unforeseen error"

    run(main())


def test_an_unexpected_error_in_taking_news_in_is_told_and_following_goes_on() -> None:
    async def main() -> None:
        world = World()

        def breaks(change: Change[Any]) -> None:
            if change.key[1].startswith("bad"):
                raise ZeroDivisionError("an unforeseen error")

        world.informer.subscribe(breaks)
        world.server.put("pods", pod("bad-listed"))
        world.server.put("pods", pod("good-listed"))
        async with world:
            world.server.put("pods", pod("bad-watched"))
            world.server.put("pods", pod("good-watched"))
            await asyncio.sleep(5)
            assert world.agrees()
            assert [str(one) for one in world.troubles] == ["ZeroDivisionError: an unforeseen error"] * 2

    run(main())


def test_a_page_that_has_expired_is_listed_at_one_go() -> None:
    async def main() -> None:
        world = World()
        for number in range(1200):
            world.server.put("pods", pod(f"p{number}"))
        expired = [False]

        def fault(request: Request, when: str) -> Response | None:
            if "continue" in request.params and not expired[0]:
                expired[0] = True
                return status(410, "Expired")
            return None

        world.server.faults.append(fault)
        async with world:
            assert world.agrees()
            assert "limit" not in world.server.requests[2].params

    run(main())


@pytest.mark.parametrize("version", ["", "7"])
def test_pages_of_one_list_may_differ_in_version(version: str) -> None:
    async def main() -> None:
        world, told = World(), set[What]()
        for number in range(1200):
            world.server.put("pods", pod(f"p{number}"))
        world.server.list_versions = iter([str(world.server.version), version, version])
        world.informer.subscribe(lambda change: told.add(change.what))
        async with world:
            assert (world.agrees(), told) == (True, {What.added})

    run(main())


def test_what_goes_between_a_page_and_the_list_in_its_place_is_missed() -> None:
    """The first page of the list that has expired shows it."""

    async def main() -> None:
        world, expires = World(), [False]
        for number in range(1200):
            world.server.put("pods", pod(f"p{number}"))

        def fault(request: Request, when: str) -> Response | None:
            if "continue" in request.params and expires[0]:
                expires[0] = False
                world.server.drop("pods", "p0", "ns")
                return status(410, "Expired")
            return None

        world.server.faults.append(fault)
        async with world:
            expires[0] = True
            world.informer.refresh()
            await asyncio.sleep(5)
            assert not expires[0]
            assert ("ns", "p0") not in world.informer.store
            assert world.agrees()

    run(main())


def test_a_server_that_is_gone_is_found_again() -> None:
    async def main() -> None:
        world = World()
        async with world:
            gone = [True]

            def fault(_request: Request, _when: str) -> Response | None:
                if gone[0]:
                    raise Unreachable("refused")
                return None

            world.server.faults.append(fault)
            world.server.cut(Unreachable("reset"))
            world.server.put("pods", pod("a"))
            await asyncio.sleep(30)
            gone[0] = False
            await asyncio.sleep(6)
            assert world.agrees()
            assert world.informer.relists == 1
            assert len(world.troubles) < 20

    run(main())


def test_a_kind_that_the_server_does_not_know_holds_nothing_up() -> None:
    async def main() -> None:
        world = World()
        world.server.put("pods", pod("a"))
        unknown = [True]
        world.server.faults.append(lambda _request, _when: status(404, "NotFound") if unknown[0] else None)
        async with world:
            assert (world.told, len(world.troubles)) == ([], 1)
            unknown[0] = False
            await asyncio.sleep(11)
            assert world.told == [("added", "a")]

    run(main())

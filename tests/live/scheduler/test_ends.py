"""How a scheduler begins and ends where the server or the disk does not play along."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.errors import ApiError
from stromboli.kube.client import Client
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler.scheduler import QUEUE_TRIES, create_queues
from stromboli.live.up.shown_configuration import _Copy
from tests.support.live_world import LiveWorld
from tests.support.memory_server import MemoryServer, status
from tests.support.virtual import run


def refusing(server: MemoryServer, code: int, reason: str, times: int) -> list[str]:
    """Let the first requests that create something be refused; their paths."""
    seen = list[str]()

    def fault(request: Request, when: str) -> Response | None:
        if request.method != "POST" or when != "before":
            return None
        seen.append(request.path)
        return status(code, reason) if len(seen) <= times else None

    server.faults.append(fault)
    return seen


@pytest.mark.parametrize(
    ("code", "reason", "times", "tries", "made"),
    [
        (500, "InternalError", 0, 2, ["root", "mine"]),
        (500, "InternalError", QUEUE_TRIES - 1, QUEUE_TRIES + 1, ["root", "mine"]),
        (500, "InternalError", QUEUE_TRIES, QUEUE_TRIES, None),
        (409, "AlreadyExists", 1, 2, ["mine"]),
    ],
)
def test_queues_are_made_in_so_many_tries(
    code: int, reason: str, times: int, tries: int, made: list[str] | None
) -> None:
    server = MemoryServer()
    seen = refusing(server, code, reason, times)

    async def story() -> list[str]:
        return [queue.metadata.name for queue in await create_queues(Client(server), "mine")]

    if made is None:
        with pytest.raises(ApiError):
            run(story())
    else:
        assert run(story()) == made
        assert server.get("queues", "mine")["status"]["state"] == "Open"
        assert server.get("queues", "mine")["spec"] == {"weight": 1, "reclaimable": True}
    assert len(seen) == tries


def test_a_scheduler_ends_though_writes_do_not_and_says_so() -> None:
    async def story() -> None:
        world = LiveWorld()
        scheduler = world.scheduler(stop_timeout=3.0)

        async def never() -> None:
            await asyncio.Event().wait()

        for name in ("quiet",):
            setattr(scheduler.executor, name, never)
        began = asyncio.get_running_loop().time()
        await scheduler._wind_down()
        assert asyncio.get_running_loop().time() - began == pytest.approx(3.0)
        [told] = world.told.of("write_failed")
        assert (told["what"], told["error"]) == ("the last decisions", "the time to stop is over")
        assert world.told.counts["stopped"] == 1

    run(story())


def test_each_cycle_asks_again_what_is_to_be_told() -> None:
    """As a log does whose level is raised."""

    async def story() -> None:
        world = LiveWorld()
        scheduler = world.scheduler()
        world.told.keys = frozenset()
        world.start(scheduler)
        await scheduler.ready.wait()
        scheduler.tell("stopped")
        world.told.keys = frozenset({"stopped"})
        scheduler.tell("stopped")
        assert world.told.counts["stopped"] == 0
        await asyncio.sleep(3)
        scheduler.tell("stopped")
        assert world.told.counts["stopped"] == 1
        await world.end()

    run(story())


def test_what_cannot_be_handed_over_is_told() -> None:
    async def story() -> None:
        world = LiveWorld()
        world.scheduler()._not_handed_over(ApiError(400, "BadRequest", "no"))
        [told] = world.told.of("decision_failed")
        assert (told["what"], "no" in str(told["error"])) == ("some pods", True)

    run(story())


def test_a_configuration_that_cannot_be_written_is_told_and_leaves_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "conf"
    copy = _Copy(file)
    copy.take("first")
    assert file.read_text() == "first"
    file.with_suffix(".new").mkdir()
    copy.take("second")
    copy.take(None)
    assert file.read_text() == "first"
    levels = [record.levelname for record in caplog.records if "ConfigMap" in record.getMessage()]
    assert levels == ["ERROR", "WARNING"]
    assert "cannot be followed" in caplog.text

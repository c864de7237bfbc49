"""Objects whose controllers are not offered are told so, once each."""

from __future__ import annotations

import asyncio

import pytest

from stromboli.controllers.selection import looks_of
from stromboli.kube.recorder import REPEAT
from stromboli.kube.transport import Request, Response
from tests.support.controller_world import ControllerWorld
from tests.support.memory_server import status
from tests.support.virtual import run

KINDS = {"jobflows": "JobFlow", "jobtemplates": "JobTemplate"}


def told(world: ControllerWorld) -> dict[str, str]:
    """By kind, what events on objects named ``it`` say."""
    events = [one for one in world.server.all("events") if one["reason"] == "NotSupported"]
    found = {one["involvedObject"]["kind"]: one["message"] for one in events}
    assert [one["count"] for one in events] == [1] * len(found), "told twice"
    assert {(one["type"], one["involvedObject"]["name"]) for one in events} <= {("Warning", "it")}
    return found


@pytest.mark.parametrize(
    ("terms", "kinds"),
    [
        ([], {"JobFlow", "JobTemplate"}),
        (["*", "-jobflow-controller"], {"JobTemplate"}),
        (["job-controller"], set()),
    ],
)
def test_objects_that_no_controller_looks_after_say_so_once(terms: list[str], kinds: set[str]) -> None:
    async def main() -> None:
        world = ControllerWorld()
        world.controllers = world.controlling(looks=looks_of(terms))
        for collection in KINDS:
            world.server.put(collection, {"metadata": {"name": "it", "namespace": "ns"}})
        await world.go(scheduling=False)
        await asyncio.sleep(REPEAT + 1)
        for collection in KINDS:
            world.server.put(collection, {"metadata": {"name": "it", "namespace": "ns", "labels": {"a": "b"}}})
        await asyncio.sleep(10)
        found = told(world)
        assert set(found) == kinds
        for kind, text in found.items():
            assert text.startswith(f"{kind.lower()}-controller is not run here, as Stromboli does not offer it yet")
        await world.end()

    run(main())


def test_controllers_begin_where_they_may_not_look_at_such_objects() -> None:
    async def main() -> None:
        world = ControllerWorld()

        def forbidden(request: Request, when: str) -> Response | None:
            return status(403, "Forbidden", "no") if "/cronjobs" in request.path else None

        world.server.faults.append(forbidden)
        world.server.put("jobflows", {"metadata": {"name": "it", "namespace": "ns"}})
        await world.go(scheduling=False)
        await asyncio.sleep(10)
        assert world.controllers.ready.is_set()
        assert set(told(world)) == {"JobFlow"}
        await world.end()

    run(main())

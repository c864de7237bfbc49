"""Locks of nodes whose pods get cards: what is written, when it is refused, and what is given back."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stromboli.cluster.objects import from_value
from stromboli.errors import ApiError
from stromboli.framework.books.plan import Bind
from stromboli.live.scheduler.context import Context
from stromboli.live.writing.locks import NodeLocks
from stromboli.model.values.times import stamp

NOW, LOCK = 1_000_000.0, "volcano.sh/mutex.lock"


class Server:
    """Nodes by name with their annotations, and what is written of them; ``problem`` is its next answer."""

    def __init__(self, **nodes: dict[str, str]) -> None:
        self.nodes = nodes
        self.problem: ApiError | None = None
        self.written: list[tuple[str, dict[str, str | None]]] = []
        context = SimpleNamespace(
            client=self, clock=lambda: NOW, feed=SimpleNamespace(answer=lambda _: None), until_known=self.undone
        )
        self.locks = NodeLocks(cast(Context, context))

    async def get(self, _resource: Any, name: str) -> Any:
        if self.problem is not None:
            raise self.problem
        if name not in self.nodes:
            raise ApiError(404, "NotFound", "not found")
        return from_value("Node", {"metadata": {"name": name, "uid": name, "annotations": dict(self.nodes[name])}})

    async def patch(self, _resource: Any, name: str, _namespace: str, body: Any) -> None:
        notes = body["metadata"]["annotations"]
        self.written.append((name, notes))
        left = {**self.nodes[name], **notes}
        self.nodes[name] = {key: value for key, value in left.items() if value is not None}

    async def undone(self, undo: Any, _bind: Bind) -> None:
        await undo()

    def take(self, bind: Bind) -> None:
        asyncio.run(self.locks.take(bind))

    def give_back(self, bind: Bind) -> None:
        asyncio.run(self.locks.give_back(bind))


def bind(node: str = "n", *locks: str) -> Bind:
    return Bind("p", "ns/p", "ns/g", node, locks=locks or (LOCK,))


def test_a_node_is_locked_once_and_unlocked_once() -> None:
    server = Server(n={"a": "b"})
    server.take(bind())
    server.take(bind())
    assert server.written == [("n", {LOCK: stamp(NOW)})]
    server.give_back(bind())
    server.give_back(bind())
    assert server.written[1:] == [("n", {LOCK: None})]
    assert server.nodes == {"n": {"a": "b"}}


def test_a_pod_that_goes_to_another_node_gives_the_first_one_back() -> None:
    server = Server(n={}, m={})
    server.take(bind("n"))
    server.take(bind("m"))
    assert server.nodes == {"n": {}, "m": {LOCK: stamp(NOW)}}


@pytest.mark.parametrize(("age", "free"), [(0.0, False), (299.0, False), (301.0, True)])
def test_a_lock_of_others_holds_for_five_minutes(age: float, free: bool) -> None:
    server = Server(n={LOCK: stamp(NOW - age)})
    if free:
        server.take(bind())
        return
    with pytest.raises(ApiError) as caught:
        server.take(bind())
    assert (caught.value.code, caught.value.reason) == (422, "Locked")
    assert server.written == []


def test_what_others_have_renewed_and_what_is_kept_stays() -> None:
    server = Server(n={})
    server.take(bind())
    server.nodes["n"][LOCK] = "renewed"
    server.give_back(bind())
    assert server.nodes == {"n": {LOCK: "renewed"}}
    server.nodes["n"] = {}
    server.take(bind())
    server.locks.keep(bind())
    server.give_back(bind())
    assert server.nodes == {"n": {LOCK: stamp(NOW)}}


def test_a_node_that_is_gone_refuses_and_keeps_nothing_and_other_troubles_are_told() -> None:
    server = Server(n={})
    with pytest.raises(ApiError, match="node gone is gone"):
        server.take(bind("gone"))
    server.take(bind())
    del server.nodes["n"]
    server.give_back(bind())
    server.problem = ApiError(503, "Unavailable", "try later")
    with pytest.raises(ApiError, match="try later"):
        server.take(bind())


def test_a_pod_without_cards_locks_nothing() -> None:
    server = Server(n={})
    server.take(Bind("p", "ns/p", "ns/g", "n"))
    assert server.written == []

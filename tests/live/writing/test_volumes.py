"""What a claim of a pod that is about to be bound gets, and why it may not get it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stromboli.cluster.objects import from_value
from stromboli.errors import ApiError
from stromboli.framework.books.plan import Bind
from stromboli.live.scheduler.context import Context
from stromboli.live.writing.volumes import VolumeWriter
from stromboli.model.objects.storage import NODE, SELECTED_NODE, VOLUME

ON_NODE, ON_VOLUME = f"{NODE}n", f"{VOLUME}v"
Manifest = dict[str, Any]


def claim(*, volume: str = "", node: str = "") -> Manifest:
    bound = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    notes = {**bound, **({SELECTED_NODE: node} if node else {})}
    meta = {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "3", "annotations": notes}
    return {"metadata": meta, "spec": {"volumeName": volume}}


def volume(name: str = "", uid: str = "", *, leaving: bool = False) -> Manifest:
    """A volume that is kept for the claim of a name."""
    meta = {"name": "v", "uid": "w", "resourceVersion": "7"}
    reference = {"claimRef": {"namespace": "ns", "name": name, "uid": uid}} if name else {}
    return {
        "metadata": {**meta, **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if leaving else {})},
        "spec": reference,
    }


class World:
    """A claim as the scheduler knows it, a claim and a volume as the server has them, and what is written."""

    def __init__(self, known: Manifest | None, stored: Manifest | None = None, problem: ApiError | None = None) -> None:
        self.known, self.stored, self.problem = known, stored, problem
        self.written: list[tuple[str, Any]] = []
        self.given: list[Any] = []
        storage = SimpleNamespace(claim=lambda key: self.known and from_value("PersistentVolumeClaim", self.known))
        mirror = SimpleNamespace(state=SimpleNamespace(storage=storage), rim=SimpleNamespace(do=self.given.append))
        context = SimpleNamespace(
            mirror=mirror,
            client=self,
            ask=self.ask,
            feed=SimpleNamespace(answer=lambda _: None),
            until_known=self.undone,
        )
        self.writer = VolumeWriter(cast(Context, context))

    async def ask(self, kind: str, key: str) -> Any:
        if self.problem is not None:
            raise self.problem
        return self.stored and from_value(kind, self.stored)

    async def patch(self, _resource: Any, name: str, _namespace: str, body: Any) -> None:
        self.written.append((name, body))

    async def undone(self, undo: Any, bind: Bind) -> None:
        await undo()

    def ready(self, bind: Bind) -> bool:
        return asyncio.run(self.writer.ready(bind))


def bind_of(what: str, seconds: int = 60) -> Bind:
    return Bind("p", "ns/p", "ns/g", "n", volumes={"ns/c": what}, volume_seconds=seconds)


@pytest.mark.parametrize(
    ("known", "stored", "what", "message"),
    [
        (None, None, ON_VOLUME, "persistentvolumeclaim ns/c is gone"),
        (claim(volume="w"), None, ON_VOLUME, "claim ns/c is bound to w instead"),
        (claim(), None, ON_VOLUME, "persistentvolume v is gone"),
        (claim(), volume(leaving=True), ON_VOLUME, "persistentvolume v is gone"),
        (claim(), volume("other"), ON_VOLUME, "persistentvolume v is claimed by ns/other in the meantime"),
        (claim(), volume("c", "before"), ON_VOLUME, "persistentvolume v is claimed by an earlier claim ns/c"),
    ],
)
def test_a_claim_that_cannot_get_its_volume_says_why(
    known: Manifest | None, stored: Manifest | None, what: str, message: str
) -> None:
    world = World(known, stored)
    with pytest.raises(ApiError, match=message):
        world.ready(bind_of(what))
    assert world.written == []


@pytest.mark.parametrize(("code", "name"), [(404, "is gone"), (503, "try later")])
def test_a_volume_that_is_not_found_is_gone_and_other_troubles_stay_what_they_are(code: int, name: str) -> None:
    world = World(claim(), problem=ApiError(code, "NotFound" if code == 404 else "Unavailable", "try later"))
    with pytest.raises(ApiError, match=name):
        world.ready(bind_of(ON_VOLUME))


@pytest.mark.parametrize(
    ("known", "what"), [(claim(volume="v"), ON_VOLUME), (claim(volume="other"), ON_NODE)]
)  # fmt: skip
def test_a_bound_claim_is_ready_and_nothing_is_written(known: Manifest, what: str) -> None:
    world = World(known)
    assert world.ready(bind_of(what))
    assert world.written == []


CONTROLLER = "pv.kubernetes.io/bound-by-controller"
NAMED = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "c", "namespace": "ns", "uid": "u"}


@pytest.mark.parametrize(
    ("stored", "written", "undone"),
    [
        (
            volume(),
            {"metadata": {"annotations": {CONTROLLER: "yes"}, "resourceVersion": "7"}, "spec": {"claimRef": NAMED}},
            {"metadata": {"annotations": {CONTROLLER: None}, "resourceVersion": "7"}, "spec": {"claimRef": None}},
        ),
        (
            volume("c"),
            {"metadata": {"resourceVersion": "7"}, "spec": {"claimRef": NAMED}},
            {"metadata": {"resourceVersion": "7"}, "spec": {"claimRef": {"uid": None}}},
        ),
        (volume("c", "u"), None, None),
    ],
)
def test_a_volume_is_kept_for_the_claim_once_and_given_back_as_it_was(
    stored: Manifest, written: Any, undone: Any
) -> None:
    world, bind = World(claim(), stored), bind_of(ON_VOLUME)
    assert not world.ready(bind)
    assert not world.ready(bind)
    assert world.written == [("v", written)] * (written is not None)
    world.written.clear()
    world.stored = volume("c", "u")
    asyncio.run(world.writer.take_back(bind))
    assert world.written == [("v", undone)] * (undone is not None)
    asyncio.run(world.writer.take_back(bind))
    assert len(world.written) <= 1, "it is given back once"


@pytest.mark.parametrize(
    "stored", [None, volume(), volume("c", "later"), {**volume("c", "u"), "status": {"phase": "Bound"}}]
)
def test_a_volume_that_is_no_longer_kept_for_the_claim_is_left_alone(stored: Manifest | None) -> None:
    world, bind = World(claim(), volume()), bind_of(ON_VOLUME)
    world.ready(bind)
    world.written.clear()
    world.stored = stored
    asyncio.run(world.writer.take_back(bind))
    assert world.written == []


def test_a_claim_without_a_volume_is_told_its_node_and_told_that_no_more() -> None:
    world, bind = World(claim()), bind_of(ON_NODE)
    assert not world.ready(bind)
    assert world.written == [("c", {"metadata": {"annotations": {SELECTED_NODE: "n"}, "uid": "u"}})]
    world.known = claim(node="n")
    assert not world.ready(bind)
    assert len(world.written) == 1
    for found, told in ((claim(node="m"), "gets its volume for node m instead"), (claim(), "no volume could be made")):
        world.known = found
        with pytest.raises(ApiError, match=told):
            world.ready(bind)
    world.stored = claim(node="n")
    asyncio.run(world.writer.take_back(bind))
    assert world.written[1:] == [("c", {"metadata": {"annotations": {SELECTED_NODE: None}, "resourceVersion": "3"}})]


@pytest.mark.parametrize("stored", [None, claim(node="m"), claim(volume="v", node="n")])
def test_a_claim_that_is_no_longer_told_the_node_is_left_alone(stored: Manifest | None) -> None:
    world, bind = World(claim()), bind_of(ON_NODE)
    world.ready(bind)
    world.stored = stored
    asyncio.run(world.writer.take_back(bind))
    assert len(world.written) == 1


def test_a_claim_is_waited_for_so_long_and_a_bind_that_ended_begins_again() -> None:
    world, late = World(claim()), bind_of(ON_NODE, 0)
    for _ in range(2):
        with pytest.raises(ApiError, match="claim ns/c was not bound within 0 seconds"):
            world.ready(late)
        world.known = claim(node="n")
    assert len(world.written) == 1
    world.writer.forget(late)
    with pytest.raises(ApiError, match="was not bound"):
        world.ready(late)
    assert len(world.written) == 2


def test_later_cycles_see_what_claims_get_until_the_bind_ends() -> None:
    world = World(claim())
    world.writer.assume(bind_of(ON_NODE))
    world.writer.forget(bind_of(ON_NODE))
    none = Bind("q", "ns/q", "ns/g", "n")
    world.writer.assume(none)
    world.writer.forget(none)
    assert world.ready(none)
    assert [(one.uid, dict(one.volumes)) for one in world.given] == [("p", {"ns/c": ON_NODE}), ("p", {})]

"""Objects of volumes and devices as they are kept, and what decisions are laid over them."""

from __future__ import annotations

import re

import pytest

from stromboli.cluster.decoding.decode import task_of
from stromboli.cluster.decoding.stored import DEVICE_FIELDS, STORAGE_FIELDS, StoredDevices, StoredVolumes
from stromboli.cluster.decoding.templates import TemplateStore
from stromboli.cluster.objects import from_value
from stromboli.errors import ManifestError
from stromboli.model.claims import Allocation, Consumer, DeviceObjects, DeviceResult, DeviceResults
from stromboli.model.objects.storage import SELECTED_NODE, ClaimReference, Storage
from stromboli.model.resources.axes import Axes
from stromboli.testing.builders import Manifest
from tests.cluster.objects import pod
from tests.support.device_objects import device_claim, storage_class, volume, volume_claim

Kept = StoredVolumes | StoredDevices
NAMESPACED = ("PersistentVolumeClaim", "CSIStorageCapacity", "ResourceClaim")
VOLUMES, DEVICES = StoredVolumes, StoredDevices


def put(kept: Kept, *objects: Manifest, gone: bool = False) -> None:
    for each in objects:
        kept.handlers()[each["kind"]](from_value(each["kind"], each), not gone)


def with_uid(found: Manifest, uid: str = "made") -> Manifest:
    return {**found, "metadata": {**found["metadata"], "uid": uid}}


def of_kind(kind: str, name: str) -> Manifest:
    namespace = {"namespace": "default"} if kind in NAMESPACED else {}
    return {"kind": kind, "metadata": {"name": name, **namespace}}


@pytest.mark.parametrize(
    ("sort", "kind", "field"),
    [*((VOLUMES, *row) for row in STORAGE_FIELDS.items()), *((DEVICES, *row) for row in DEVICE_FIELDS.items())],
)
def test_objects_are_kept_by_name_in_order_and_let_go(sort: type[Kept], kind: str, field: str) -> None:
    kept = sort()
    put(kept, of_kind(kind, "b"), of_kind(kind, "a"), with_uid(of_kind(kind, "a"), "second"))
    before = getattr(kept.shown(), field)
    assert [key.rpartition("/")[2] for key in before] == ["a", "b"]
    assert before == getattr(kept.plain(), field)
    assert [found.metadata.uid for found in before.values()] == ["second", ""]
    assert kept.shown() is kept.shown()
    assert [(one, found.metadata.name) for one, found in kept.written()] == [(kind, "b"), (kind, "a")]
    put(kept, of_kind(kind, "a"), gone=True)
    assert [found.metadata.name for found in getattr(kept.shown(), field).values()] == ["b"]
    assert len(before) == 2, "what was shown before stays as it was"
    put(kept, of_kind(kind, "a"), gone=True)


def test_what_cannot_be_used_changes_nothing() -> None:
    kept = StoredVolumes()
    put(kept, volume("v", size="1Gi"))
    with pytest.raises(ManifestError, match=re.escape("spec.capacity")):
        put(kept, volume("v", size="-1"))
    assert kept.shown().volumes["v"].spec.capacity == {"storage": "1Gi"}
    put(kept, volume("v", size="-1"), gone=True)
    assert kept.shown().volumes == {}


def test_what_is_restored_is_what_was_told_and_set_and_not_what_was_decided() -> None:
    kept = StoredVolumes()
    put(kept, volume("v"), volume_claim("c"), storage_class("local"))
    kept.configure(False, frozenset({"ignored"}), None)
    kept.give("u", {"default/c": "pv:v"})
    again = StoredVolumes()
    again.restore(kept.plain())
    assert again.shown() == again.plain() == kept.plain() != kept.shown()
    assert (again.shown().looks_at_capacity, again.shown().ignored) == (False, frozenset({"ignored"}))
    assert StoredVolumes().shown() == Storage()
    assert StoredDevices().shown() == DeviceObjects()


BOUND = volume_claim("bound", bound="w")
TAKEN = volume("taken", claim="other")


def reference(name: str, uid: str = "") -> ClaimReference:
    return ClaimReference("default", name, uid)


@pytest.mark.parametrize(
    ("given", "references", "nodes"),
    [
        ({}, {}, {}),
        ({"default/c": "pv:v"}, {"v": reference("c", "u-c")}, {}),
        ({"default/c": "node:n1"}, {}, {"default/c": "n1"}),
        ({"default/gone": "pv:v", "default/c": "pv:w"}, {"w": reference("c", "u-c")}, {}),
        ({"default/bound": "pv:v", "default/c": "node:n1"}, {}, {"default/c": "n1"}),
        ({"default/bound": "node:n1"}, {}, {}),
        ({"default/c": "pv:gone"}, {}, {}),
        ({"default/c": "pv:taken"}, {}, {}),
    ],
)
def test_claims_show_what_they_are_about_to_get(
    given: dict[str, str], references: dict[str, ClaimReference], nodes: dict[str, str]
) -> None:
    kept = StoredVolumes()
    claim = with_uid(volume_claim("c"), "u-c")
    claim["metadata"]["annotations"] = {"mine": "1"}
    put(kept, volume("v"), volume("w"), TAKEN, claim, BOUND)
    plain = kept.plain()
    assert kept.shown() == plain
    kept.give("u", given)
    shown, stated = kept.shown(), {"taken": reference("other")}
    found = {name: one.spec.claim_ref for name, one in shown.volumes.items() if one.spec.claim_ref}
    assert found == {**stated, **references}
    notes = {key: one.metadata.annotations for key, one in shown.claims.items()}
    assert {key: note[SELECTED_NODE] for key, note in notes.items() if SELECTED_NODE in note} == nodes
    assert notes["default/c"]["mine"] == "1"
    assert kept.plain() == plain
    assert (kept.claim("default/c"), kept.volume("v")) == (plain.claims["default/c"], plain.volumes["v"])
    assert (kept.claim("default/gone"), kept.volume("gone")) == (None, None)
    kept.give("u", {})
    assert kept.shown() == plain


def test_decisions_for_pods_that_are_gone_are_forgotten() -> None:
    kept = StoredVolumes()
    for uid in "abc":
        kept.give(uid, {f"default/{uid}": "pv:v"})
        kept.devices.give(uid, f"default/{uid}", {f"default/{uid}": Allocation()})
    kept.keep({"b", "d"})
    assert kept.given == {"b": {"default/b": "pv:v"}}
    assert kept.devices.given == {"b": ("default/b", {"default/b": Allocation()})}
    other = StoredVolumes()
    kept.configure(False, frozenset({"x"}), None)
    kept.devices.required = True
    other.take_over(kept, None)
    assert (other.given, other.devices.given, other.devices.required) == (kept.given, kept.devices.given, True)
    assert other.shown() == Storage(looks_at_capacity=False, ignored=frozenset({"x"}))


ALLOCATED = Allocation(DeviceResults((DeviceResult("r0", "d", "n1", "gpu-0"),)))
USER = Consumer(resource="pods", name="p", uid="u")


def reserved(*users: tuple[str, str]) -> Manifest:
    """A claim that has its device, reserved for pods of these names and uids."""
    rows = [{"resource": "pods", "name": name, "uid": uid} for name, uid in users]
    conditions = [{"driver": "d", "pool": "n1", "device": "gpu-0", "conditions": [{"type": "Ready", "status": "True"}]}]
    status = {"allocation": {"devices": {"results": []}}, "reservedFor": rows, "devices": conditions}
    return {**device_claim("c"), "status": status}


@pytest.mark.parametrize(
    ("claim", "users"),
    [
        (device_claim("c"), ["u"]),
        (reserved(), ["u"]),
        (reserved(("q", "v")), ["v", "u"]),
        (reserved(("p", "u")), ["u"]),
        (reserved(("q", "v"), ("p", "u")), ["v", "u"]),
    ],
)
def test_claims_show_the_devices_and_the_user_that_they_are_about_to_have(claim: Manifest, users: list[str]) -> None:
    kept = StoredDevices()
    put(kept, claim, device_claim("d"))
    kept.give("u", "default/p", {"default/gone": Allocation(), "default/c": ALLOCATED})
    told, status = kept.plain().claims["default/c"].status, kept.shown().claims["default/c"].status
    assert status.allocation == (told.allocation or ALLOCATED)
    assert [one.uid for one in status.reserved_for] == users
    assert USER in status.reserved_for
    assert status.devices == told.devices
    assert kept.shown().claims["default/d"] == kept.plain().claims["default/d"]
    kept.give("u", "default/p", {})
    assert kept.shown() == kept.plain()


def test_a_pod_is_left_out_where_its_claims_are_required_and_one_is_not_there() -> None:
    kept = StoredDevices()
    spec = {"resourceClaims": [{"name": "r", "resourceClaimName": "c"}, {"name": "s", "resourceClaimName": "d"}]}
    task = task_of(pod("p", namespace="default", spec=spec), TemplateStore(Axes()))
    put(kept, device_claim("c"))
    assert not kept.lacks(task)
    kept.required = True
    assert kept.lacks(task)
    put(kept, device_claim("d"))
    assert not kept.lacks(task)
    assert kept.claim("default/d") == kept.plain().claims["default/d"]
    put(kept, device_claim("d"), gone=True)
    assert (kept.lacks(task), kept.claim("default/d"), list(kept.demands)) == (True, None, ["default/c"])

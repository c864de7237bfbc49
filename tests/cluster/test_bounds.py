"""Numbers and amounts of objects that cannot be used: each is refused where it stands, and its neighbour is taken."""

from __future__ import annotations

import copy
import re
from typing import Any, Final

import pytest

from stromboli.cluster.decoding.decode import node_of, offer_of
from stromboli.cluster.events import Added
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError
from stromboli.testing.builders import Manifest

INT32: Final = (-(2**31), 2**31 - 1)
COUNT: Final = (0, 2**31 - 1)
AFFINITY: Final = "preferredDuringSchedulingIgnoredDuringExecution[0].weight"
POD: Final[Manifest] = {"containers": [{"name": "c"}]}
NEEDED: Final[dict[str, Manifest]] = {
    "Pod": {"spec": POD},
    "Queue": {"spec": {"weight": 1}},
    "HyperNode": {"spec": {"tier": 1, "members": []}},
    "PodGroup scheduling.k8s.io/v1alpha2": {"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}},
    "ResourceClaim": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}},
    "PersistentVolumeClaim": {"spec": {"accessModes": ["ReadWriteOnce"]}},
    "CSIStorageCapacity": {"storageClassName": "s"},
    "ResourceSlice": {"spec": {"driver": "d", "pool": {"name": "p"}, "devices": [{"name": "d0"}]}},
}
"""What objects of a kind state besides."""
NUMBERS: Final = [
    ("Pod", "spec.priority", INT32),
    ("Pod", "spec.containers[0].ports[0].hostPort", (0, 65535)),
    ("Pod", "spec.initContainers[0].ports[0].hostPort", (0, 65535)),
    ("Pod", f"spec.affinity.nodeAffinity.{AFFINITY}", INT32),
    ("Pod", f"spec.affinity.podAffinity.{AFFINITY}", INT32),
    ("Pod", f"spec.affinity.podAntiAffinity.{AFFINITY}", INT32),
    ("Pod", "spec.topologySpreadConstraints[0].maxSkew", INT32),
    ("Pod", "spec.topologySpreadConstraints[0].minDomains", INT32),
    ("PodGroup", "spec.minMember", COUNT),
    ("PodGroup", "spec.minTaskMember.worker", COUNT),
    ("PodGroup", "spec.subGroupPolicy[0].subGroupSize", COUNT),
    ("PodGroup", "spec.subGroupPolicy[0].minSubGroups", COUNT),
    ("PodGroup scheduling.k8s.io/v1alpha2", "spec.schedulingPolicy.gang.minCount", COUNT),
    ("PodGroup scheduling.k8s.io/v1alpha2", "spec.priority", INT32),
    ("Queue", "spec.weight", COUNT),
    ("Queue", "spec.priority", INT32),
    ("PriorityClass", "value", INT32),
    ("ResourceClaim", "spec.devices.requests[0].exactly.count", COUNT),
    ("PodDisruptionBudget", "status.disruptionsAllowed", INT32),
    ("HyperNode", "spec.tier", COUNT),
]
AMOUNTS: Final = [
    ("Pod", "spec.overhead.memory", 56),
    ("Pod", "spec.resources.requests.memory", 56),
    ("Pod", "spec.resources.limits.memory", 56),
    ("Pod", "spec.containers[0].resources.requests.memory", 56),
    ("Pod", "spec.containers[0].resources.limits.memory", 56),
    ("Pod", "spec.initContainers[0].resources.requests.memory", 56),
    ("Pod", "spec.initContainers[0].resources.limits.memory", 56),
    ("Node", "status.allocatable.memory", 55),
    ("Node", "status.allocatable.pods", 60),
    ("Node", "status.capacity.memory", 55),
    ("Node", "status.capacity.pods", 60),
    ("PodGroup", "spec.minResources.memory", 0),
    ("Queue", "spec.capability.memory", 0),
    ("Queue", "spec.deserved.memory", 0),
    ("Queue", "spec.guarantee.resource.memory", 0),
    ("Queue", "status.allocated.memory", 0),
    ("ResourceQuota", "status.hard.memory", 0),
    ("ResourceQuota", "status.used.memory", 0),
    ("ResourceClaim", "spec.devices.requests[0].exactly.capacity.requests.memory", 0),
    ("PersistentVolume", "spec.capacity.storage", 0),
    ("PersistentVolumeClaim", "spec.resources.requests.storage", 0),
    ("CSIStorageCapacity", "capacity", 0),
    ("CSIStorageCapacity", "maximumVolumeSize", 0),
    ("ResourceSlice", "spec.devices[0].capacity.memory.value", 0),
]
"""With the exponent of the largest amount, 0 where there is none."""


def put(where: Any, path: list[str], value: object) -> Any:
    """What stands there, with the value at the path; made where nothing stands."""
    if not path:
        return value
    if path[0].isdigit():
        rows = where or [{}]
        return [put(rows[0], path[1:], value), *rows[1:]]
    return {**(where or {}), path[0]: put((where or {}).get(path[0]), path[1:], value)}


def taken(kind: str, path: str, value: object) -> str:
    """What a state says of an object with the value at the path: where it refuses it, empty if it takes it."""
    plain, _, version = kind.partition(" ")
    found: Any = {
        "kind": plain,
        "metadata": {"name": "x", "namespace": "default"},
        **copy.deepcopy(NEEDED.get(kind, {})),
    }
    found = put(found, re.findall(r"[\w/-]+", path), value)
    if "initContainers" in path:
        found["spec"]["initContainers"][0]["name"] = "i"
    if version:
        found["apiVersion"] = version
    name = "UpstreamPodGroup" if version else plain
    try:
        ClusterState().apply(Added(name, from_value(name, found)))
    except ManifestError as error:
        return error.path if error.object in (f"{plain} x", f"{plain} default/x") else error.object
    return ""


@pytest.mark.parametrize(("kind", "path", "bounds"), NUMBERS)
def test_numbers_that_their_field_cannot_hold_are_refused(kind: str, path: str, bounds: tuple[int, int]) -> None:
    least, most = bounds
    answers = [taken(kind, path, number) for number in (least, most, least - 1, most + 1)]
    assert answers == ["", "", path, path]


@pytest.mark.parametrize(("kind", "path", "exponent"), AMOUNTS)
def test_amounts_that_cannot_be_reckoned_with_are_refused(kind: str, path: str, exponent: int) -> None:
    where = path.removesuffix(".value")
    assert taken(kind, path, "1Ki") == ""
    assert [taken(kind, path, amount) for amount in ("-1", "1 Gi")] == [where, where]
    most = 2**exponent
    if exponent:
        assert (taken(kind, path, str(most)), taken(kind, path, str(most + 1))) == ("", path)
    else:
        assert taken(kind, path, str(2**62)) == ""


@pytest.mark.parametrize("kind", ["Pod", "Node", "PodGroup", "Queue", "PodGroup scheduling.k8s.io/v1alpha2"])
def test_what_is_no_time_is_refused(kind: str) -> None:
    path = "metadata.creationTimestamp"
    assert (taken(kind, path, "2024-05-01T12:00:00Z"), taken(kind, path, "yesterday")) == ("", path)


OVER = "volcano.sh/oversubscription-"


@pytest.mark.parametrize("key", [f"{OVER}cpu", f"{OVER}memory"])
@pytest.mark.parametrize(
    ("text", "is_taken"), [("0", True), ("-1", False), (str(2**55), True), (str(2**55 + 1), False), (str(2**63), True)]
)
def test_oversubscription_is_within_what_can_be_scored(key: str, text: str, is_taken: bool) -> None:
    """What does not fit into 64 bits cannot be read, and counts as nothing."""
    found: Any = from_value("Node", {"metadata": {"name": "x", "annotations": {key: text}}, "status": {}})
    if not is_taken:
        with pytest.raises(ManifestError) as caught:
            node_of(found)
        assert (caught.value.problem, caught.value.path) == (
            f"{text} must be from 0 to 2^55",
            f"metadata.annotations.{key}",
        )
        return
    offer = offer_of(node_of(found))
    assert offer.milli_cpu + offer.memory == (int(text) if int(text) < 2**63 else 0)

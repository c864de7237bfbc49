"""Requests of pods by Kubernetes' rules, with the acceptance rows S1-27 and S1-28."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.errors import ManifestError, QuantityError
from stromboli.model.resources.request import (
    NONZERO_MEMORY,
    NONZERO_MILLI_CPU,
    RequestGates,
    limit,
    nonzero_request,
    pod_request,
    request_without_init,
)
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import PodSpec
from stromboli.testing.builders import resources_of

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
MI = 2**20


def container(cpu: str | int | None = None, memory: str | int | None = None, name: str = "c", **more: Any) -> Json:
    requests = {key: value for key, value in [("cpu", cpu), ("memory", memory)] if value is not None}
    return {"name": name, "resources": resources_of(requests | more.pop("requests", {})), **more}


def sidecar(cpu: str | int | None = None, memory: str | int | None = None, name: str = "s") -> Json:
    return container(cpu, memory, name, restartPolicy="Always")


def pod(*containers: Json, init: tuple[Json, ...] = (), **more: Any) -> Json:
    return {"containers": list(containers), "initContainers": list(init), **more}


TWO_AND_TWO = pod(
    container("500m", "1Gi"), container("300m", "512Mi"), init=(container(1, "512Mi"), container("200m", "2Gi"))
)

ROWS = [
    ("S1-27", TWO_AND_TWO, (1000, 2048 * MI)),
    ("S1-27-no-init", pod(container("500m", "1Gi"), container("300m", "512Mi")), (800, 1536 * MI)),
    ("S1-28-sidecar", pod(container("500m"), init=(sidecar("200m"),)), (700, 0)),
    ("S1-28-init-after-sidecar", pod(container("500m"), init=(sidecar("200m"), container("600m"))), (800, 0)),
    ("S1-28-init-before-sidecar", pod(container("500m"), init=(container("750m"), sidecar("200m"))), (750, 0)),
    (
        "S1-28-sidecars-add-up",
        pod(container("100m"), init=(sidecar("200m"), container("1"), sidecar("300m"))),
        (1200, 0),
    ),
    ("S1-28-overhead", pod(container("500m"), overhead={"cpu": "250m", "memory": "64Mi"}), (750, 64 * MI)),
    ("S1-28-pod-level", pod(container("500m", "1Gi"), resources={"requests": {"cpu": 2}}), (2000, 1024 * MI)),
    (
        "S1-28-pod-level-and-overhead",
        pod(container(3), overhead={"cpu": "250m"}, resources={"requests": {"cpu": 2, GPU: 1}}),
        (2250, 0),
    ),
    ("no-containers", {}, (0, 0)),
]


@pytest.mark.parametrize(("spec", "expected"), [pytest.param(*row[1:], id=row[0]) for row in ROWS])
def test_request(spec: Json, expected: tuple[float, float]) -> None:
    assert pod_request(spec) == Resource(*expected, {"pods": 1.0})
    assert pod_request(msgspec.convert(spec, PodSpec)) == pod_request(spec)


def resized(requests: Json, allocated: Json | None = None, **more: Any) -> Json:
    state = {
        "name": "c",
        "resources": {"requests": requests, "limits": {"cpu": 9}},
        "allocatedResources": allocated or {},
    }
    return {"containerStatuses": [state], **more}


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


@pytest.mark.parametrize(
    ("status", "gates", "cpu"),
    [
        pytest.param(None, RequestGates(), 1000, id="S1-28-no-status"),
        pytest.param(resized({"cpu": 3}), RequestGates(), 3000, id="S1-28-resized-in-force"),
        pytest.param(resized({"cpu": "100m"}), RequestGates(), 1000, id="S1-28-resized-wanted"),
        pytest.param(resized({"cpu": "100m"}, {"cpu": 2}), RequestGates(), 2000, id="S1-28-resized-set-aside"),
        pytest.param(resized({"cpu": "100m"}, conditions=INFEASIBLE), RequestGates(), 100, id="infeasible"),
        pytest.param(
            resized({"cpu": "100m"}, {"cpu": "200m"}, conditions=INFEASIBLE),
            RequestGates(),
            200,
            id="infeasible-set-aside",
        ),
        pytest.param(resized({"cpu": "100m"}, conditions=DEFERRED), RequestGates(), 1000, id="deferred"),
        pytest.param(resized({"cpu": 3}), RequestGates(in_place_resize=False), 1000, id="gate-off"),
        pytest.param({"containerStatuses": [{"name": "c"}]}, RequestGates(), 1000, id="state-without-resources"),
        pytest.param(
            {"containerStatuses": [{"name": "x", "resources": {"requests": {"cpu": 7}}}]},
            RequestGates(),
            1000,
            id="other",
        ),
    ],
)
def test_resize(status: Mapping[str, object] | None, gates: RequestGates, cpu: float) -> None:
    assert pod_request(pod(container(1)), status, gates=gates).milli_cpu == cpu


def test_of_init_containers_only_sidecars_are_resized() -> None:
    spec = pod(container("100m"), init=(sidecar("200m", name="s"), container("300m", name="i")))
    grown = {"resources": {"requests": {"cpu": 1}}}
    assert pod_request(spec, {"initContainerStatuses": [{"name": "i"} | grown]}).milli_cpu == 500
    assert pod_request(spec, {"initContainerStatuses": [{"name": "s"} | grown]}).milli_cpu == 1300


def test_pod_level_needs_its_gate_and_a_supported_name() -> None:
    level = {"requests": {"cpu": 2, "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi", GPU: 4}}
    spec = pod(container(1, requests={GPU: 1}), resources=level)
    assert pod_request(spec) == Resource(2000.0, 0, {GPU: 1000.0, "pods": 1.0, "hugepages-2Mi": 4 * MI * 1000.0})
    assert pod_request(spec, gates=RequestGates(pod_level_resources=False)) == Resource(
        1000.0, 0, {GPU: 1000.0, "pods": 1.0}
    )


def test_limits_do_not_stand_in_for_missing_requests() -> None:
    spec = pod({"name": "c", "resources": {"limits": {"cpu": 4, "memory": "1Gi"}}})
    assert pod_request(spec).is_empty()


def test_scalars_and_ignored_devices() -> None:
    spec = pod(container(requests={GPU: 1}), container(requests={GPU: 2}), init=(container(requests={"a.b/c": 5}),))
    assert pod_request(spec).scalars == {GPU: 3000.0, "a.b/c": 5000.0, "pods": 1.0}
    assert pod_request(spec, ignored=[GPU]).scalars == {"a.b/c": 5000.0, "pods": 1.0}


def test_request_without_init() -> None:
    spec = {**TWO_AND_TWO, "overhead": {"cpu": "50m"}}
    assert request_without_init(spec) == Resource(850.0, 1536.0 * MI)


def test_limit_adds_overhead_only_where_there_is_a_limit() -> None:
    limited = {"name": "c", "resources": {"limits": {"cpu": 1}, "requests": {"memory": "1Gi"}}}
    first = {"name": "i", "resources": {"limits": {"cpu": 2}}}
    overhead = {"cpu": "100m", "memory": "1Gi"}
    assert limit(pod(limited, init=(first,), overhead=overhead)) == Resource(2100.0)
    assert limit(pod(limited), resized({})).milli_cpu == 9000
    assert limit(pod(limited, resources={"limits": {"memory": "1Gi"}})) == Resource(1000.0, 1024.0 * MI)


STANDINS = (NONZERO_MILLI_CPU, NONZERO_MEMORY)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(pod(container()), STANDINS, id="nothing-named"),
        pytest.param(pod(container(), container(1)), (1100, 2 * NONZERO_MEMORY), id="per-container"),
        pytest.param(pod(container(0, 0)), (0, 0), id="written-zero-stays"),
        pytest.param(pod(container(1, "1Gi"), init=(sidecar(),)), (1100, 1024 * MI + NONZERO_MEMORY), id="sidecar"),
        pytest.param(pod(container("50m", "1Mi"), init=(container(),)), STANDINS, id="init"),
        pytest.param(pod(container(1), overhead={"memory": "50Mi"}), (1000, NONZERO_MEMORY + 50 * MI), id="overhead"),
        pytest.param(pod(container(), resources={"requests": {"cpu": 2}}), (2000, NONZERO_MEMORY), id="pod-level-cpu"),
        pytest.param(
            pod(container(memory="1Gi"), container(), resources={"requests": {"cpu": 2}}),
            (2000, 1024 * MI),
            id="named-by-one",
        ),
        pytest.param(pod(container(), resources={"requests": {GPU: 2}}), STANDINS, id="pod-level-unsupported"),
    ],
)
def test_nonzero_request(spec: Json, expected: tuple[int, int]) -> None:
    assert nonzero_request(spec) == expected


def test_bad_input_is_refused() -> None:
    with pytest.raises(ManifestError, match="spec"):
        pod_request({"containers": 5})
    with pytest.raises(ManifestError, match="status"):
        pod_request({}, {"containerStatuses": "x"})
    with pytest.raises(QuantityError, match="1Zi"):
        pod_request(pod(container(memory="1Zi")))


cores = st.integers(0, 64)


@given(st.lists(cores, min_size=1), st.lists(cores))
def test_without_sidecars_it_is_the_larger_of_sum_and_largest_init(regular: list[int], init: list[int]) -> None:
    spec = pod(*(container(cpu) for cpu in regular), init=tuple(container(cpu) for cpu in init))
    assert pod_request(spec).milli_cpu == 1000 * max([sum(regular), *init])


@given(st.lists(cores, min_size=1), st.lists(st.tuples(st.booleans(), cores)))
def test_the_walk_covers_every_moment_of_a_pods_life(regular: list[int], init: list[tuple[bool, int]]) -> None:
    spec = pod(
        *(container(cpu) for cpu in regular),
        init=tuple(sidecar(cpu) if keeps else container(cpu) for keeps, cpu in init),
    )
    moments = [sum(cpu for keeps, cpu in init if keeps) + sum(regular)]
    for position, (_, cpu) in enumerate(init):
        moments.append(sum(earlier for keeps, earlier in init[:position] if keeps) + cpu)
    assert pod_request(spec).milli_cpu == 1000 * max(moments)

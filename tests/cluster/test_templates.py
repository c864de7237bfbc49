"""Which pods share a template, and what it asks for."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cluster.decoding.decode import task_of
from stromboli.cluster.decoding.templates import TemplateStore
from stromboli.cluster.objects import from_value
from stromboli.errors import ManifestError
from stromboli.model.resources.axes import Axes
from stromboli.model.spec import PodSpec
from stromboli.model.task import PodTemplate
from stromboli.testing.builders import Manifest
from tests.cluster.objects import pod

GPU = "example.com/gpu"
HALF = 2**55
MOUNT = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
SCRATCH = {"name": "v", "ephemeral": {}}
CLAIM = {"name": "r", "resourceClaimName": "c"}


def template(
    store: TemplateStore, spec: Manifest | None = None, status: Manifest | None = None, **requests: int | str
) -> PodTemplate:
    named = {{"gpu": GPU, "other": "example.com/other"}.get(name, name): amount for name, amount in requests.items()}
    return task_of(pod(spec=spec, status=status, requests=named), store).template


@pytest.mark.parametrize(
    ("spec", "other", "is_shared"),
    [
        ({}, {"nodeName": "n"}, True),
        ({}, {"terminationGracePeriodSeconds": 5}, True),
        ({}, {"terminationGracePeriodSeconds": 0}, True),
        ({}, {"volumes": [{"name": "e", "emptyDir": {}}]}, True),
        ({}, {"volumes": [MOUNT]}, False),
        ({}, {"volumes": [SCRATCH]}, False),
        ({"volumes": [MOUNT]}, {"volumes": [SCRATCH, {"name": "e"}]}, True),
        ({}, {"resourceClaims": [CLAIM]}, False),
        ({"resourceClaims": [CLAIM]}, {"resourceClaims": [{**CLAIM, "resourceClaimName": "d"}]}, True),
        ({"resourceClaims": [CLAIM]}, {"volumes": [MOUNT]}, False),
        ({}, {"nodeSelector": {"a": "b"}}, False),
    ],
)
def test_what_pods_of_one_template_may_differ_in(spec: Manifest, other: Manifest, is_shared: bool) -> None:
    store = TemplateStore(Axes())
    first, second = template(store, spec), template(store, other)
    assert (first is second, len(store)) == (is_shared, 2 - is_shared)
    for found in (first, second):
        left = found.spec.node_name, found.spec.termination_grace_period_seconds
        assert left == ("", None)


def test_what_is_added_to_a_request_makes_a_template_of_its_own() -> None:
    store = TemplateStore(Axes())
    plain = template(store, gpu=1, cpu=1)
    other = store.template(plain.spec, more=(("volumes", 2),))
    assert store.template(plain.spec, more=(("volumes", 2),)) is other is not plain
    assert store.template(plain.spec) is plain
    assert (plain.request.scalars, other.request.scalars) == (
        {"pods": 1, GPU: 1000},
        {"pods": 1, GPU: 1000, "volumes": 2},
    )
    bare = template(store)
    assert store.template(bare.spec, more=(("volumes", 1),)).request.scalars == {"pods": 1, "volumes": 1}
    assert bare.request.scalars == {"pods": 1}


def test_templates_that_ask_for_a_name_are_made_again_once_it_has_a_column() -> None:
    axes = Axes()
    store = TemplateStore(axes)
    asking, plain = template(store, gpu=1), template(store, cpu=1)
    other = template(store, other=1)
    found = store.learn(frozenset({GPU}))
    assert list(found) == [asking.number]
    again = found[asking.number]
    assert (again.number, again.spec, again.request) == (3, asking.spec, asking.request)
    assert template(store, gpu=1) is again
    assert (template(store, cpu=1), template(store, other=1)) == (plain, other)


@pytest.mark.parametrize(
    ("name", "containers", "problem"),
    [
        ("memory", [HALF, HALF], ""),
        ("memory", [HALF, HALF + 1], "all its containers together ask for too much"),
        (GPU, [HALF // 1000, HALF // 1000], ""),
        (GPU, [HALF // 1000 + 1, HALF // 1000 + 1], "all its containers together ask for too much"),
    ],
)
def test_all_containers_together_are_bounded(name: str, containers: list[int], problem: str) -> None:
    rows = [{"name": f"c{at}", "resources": {"requests": {name: each}}} for at, each in enumerate(containers)]
    found: Any = from_value("Pod", {"metadata": {"name": "p"}, "spec": {"containers": rows}})
    store = TemplateStore(Axes())
    if problem:
        with pytest.raises(ManifestError, match=problem):
            task_of(found, store)
    else:
        task_of(found, store)


def test_a_number_of_more_than_64_bits_is_refused() -> None:
    with pytest.raises(ManifestError) as caught:
        TemplateStore(Axes()).template(PodSpec(priority=2**65))
    assert (caught.value.problem, caught.value.path) == ("holds a number of more than 64 bits", "spec")


def resized(name: str, cpu: str | None) -> Manifest:
    """The status of a container that has so much."""
    return {"name": name, **({"resources": {"requests": {"cpu": cpu}}} if cpu else {})}


@pytest.mark.parametrize(
    ("statuses", "cpu"),
    [
        ({}, 2000),
        ({"containerStatuses": [resized("c", "2")]}, 3000),
        ({"containerStatuses": [resized("gone", "9"), resized("c", None)]}, 2000),
        ({"containerStatuses": [resized("gone", None), resized("gone", "9"), resized("c", "2")]}, 3000),
        ({"initContainerStatuses": [resized("i", "3")]}, 4000),
        ({"initContainerStatuses": [resized("gone", "3")]}, 2000),
    ],
)
def test_what_containers_have_counts_where_it_is_more(statuses: Manifest, cpu: int) -> None:
    spec = {"initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}]}
    assert template(TemplateStore(Axes()), spec, status=statuses, cpu="1").vector[0] == cpu

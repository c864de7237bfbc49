"""What pods are given of volumes and devices as they are placed, which the next one then lacks, and give back."""

from __future__ import annotations

import pytest

from stromboli.errors import PlacementError
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench, conf, task_of
from tests.support.device_objects import (
    device,
    device_claim,
    device_class,
    resource_slice,
    storage_class,
    volume,
    volume_claim,
)


def mounting(name: str, claim: str) -> Manifest:
    return pod(name, group=name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


def claiming(name: str, claim: str) -> Manifest:
    return pod(name, group=name, resourceClaims=[{"name": "c", "resourceClaimName": claim}])


VOLUMES = [storage_class("local"), volume("v", "n0"), *(volume_claim(name) for name in "cd"),
           mounting("p", "c"), mounting("q", "d")]  # fmt: skip
DEVICES = [device_class(), resource_slice("n0", device("gpu-0")), *(device_claim(name) for name in "cd"),
           claiming("p", "c"), claiming("q", "d")]  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "what"), [(VOLUMES, "volumes"), (DEVICES, "claims")], ids=["the only volume", "the only device"]
)
def test_of_two_pods_that_want_the_same_the_second_is_refused_until_the_first_is_removed(
    objects: list[Manifest], what: str
) -> None:
    text = conf("gang", "predicates")
    with Bench([node("n0"), *objects, pod_group("p"), pod_group("q")], text).open() as session:
        first, second, where = task_of(session, "p"), task_of(session, "q"), session.nodes["n0"]
        given = getattr(session.ledger, f"bind_{what}")
        with session.statement() as trial:
            trial.allocate(first, where)
            assert set(given) == {first.uid}
            with pytest.raises(PlacementError, match="allocation has been rolled back"):
                trial.allocate(second, where)
            assert set(given) == {first.uid}
        assert not given
        with session.statement() as trial:
            trial.allocate(second, where)
            assert set(given) == {second.uid}
        assert not given

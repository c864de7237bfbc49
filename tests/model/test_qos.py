from __future__ import annotations

import pytest

from stromboli.model.resources.qos import Qos, qos_of
from stromboli.model.spec import Container, PodSpec, Resources


def container(requests=None, limits=None):
    return Container(resources=Resources(requests=requests or {}, limits=limits or {}))


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "found"),
    [
        ([container()], Qos.BEST_EFFORT),
        ([container({"cpu": 0}, {"memory": "0"})], Qos.BEST_EFFORT),
        ([container({"nvidia.com/gpu": 1})], Qos.BEST_EFFORT),
        ([container({"cpu": "1"})], Qos.BURSTABLE),
        ([container(limits={"cpu": "1"})], Qos.BURSTABLE),
        ([container(BOTH, BOTH)], Qos.GUARANTEED),
        ([container(BOTH, {"cpu": "1000m", "memory": 2**30})], Qos.GUARANTEED),
        ([container(BOTH, {**BOTH, "cpu": 2})], Qos.BURSTABLE),
        ([container(BOTH, BOTH), container()], Qos.BURSTABLE),
        ([container({"cpu": 1}, {"cpu": 1})], Qos.BURSTABLE),
    ],
)
def test_the_class_follows_from_requests_and_limits(containers, found):
    assert qos_of(PodSpec(containers=tuple(containers))) is found
    assert qos_of(PodSpec(init_containers=tuple(containers), containers=tuple(containers))) is found

"""What some pods of a gang request at least, whichever they are."""

from __future__ import annotations

import pytest

from stromboli.framework.session.shortages import least_need
from stromboli.model.names import GPU
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench

OFFER = node("n1", resources={GPU: 4})


@pytest.mark.parametrize(("count", "gpus"), [(1, 0), (2, 1), (3, 3)])
def test_any_of_the_pods_request_at_least_so_many_gpus(count: int, gpus: int) -> None:
    """One pod of three requests none, and came before any node offered some: its request has no column of them."""
    wants = [{}, {GPU: 1}, {GPU: 2}]
    pods = [pod(f"p{number}", group="g", requests=want) for number, want in enumerate(wants)]
    bench = Bench([node("n1"), pod_group("g"), pods[0]])
    bench.tell(OFFER, *pods[1:])
    snapshot = bench.snapshot()
    found = least_need(list(snapshot.jobs["default/g"].tasks.values()), count)
    assert (snapshot.axes.resource(snapshot.axes.full(found)).scalars or {}).get(GPU, 0) == gpus * 1000
    assert found[0] == 1000 * count

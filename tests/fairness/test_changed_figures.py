"""A plugin that changes figures of a queue in place changes them for its own session, not for later ones."""

from __future__ import annotations

import pytest

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.model.resources.resource import Resource
from stromboli.plugin import Plugin
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, binds, conf

FIGURES = ("realCapability", "capability", "guarantee", "deserved")
CHANGES = [
    pytest.param(lambda figure: figure.add(figure.clone()), id="add"),
    pytest.param(lambda figure: figure.sub(Resource(1000)), id="sub"),
    pytest.param(lambda figure: figure.multi(2), id="multi"),
    pytest.param(lambda figure: figure.set_scalar("nvidia.com/gpu", 7), id="set_scalar"),
]


def gang(cycle: int) -> list[Manifest]:
    """A job of three pods of a core each."""
    return [
        pod_group(f"g{cycle}", min_member=1, queue="q"),
        *(pod(f"g{cycle}-{number}", group=f"g{cycle}", cpu=1) for number in range(3)),
    ]


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_ends_with_its_session(figure, change):
    seen: list[Resource] = []

    class Changer(Plugin):
        name = "changer"

        def on_session_open(self, session: ClusterView) -> None:
            found = session.queues["q"].figures[figure]
            assert isinstance(found, Resource)
            seen.append(found.clone())
            change(found)

    limited = queue("q", capability={"cpu": 4, "nvidia.com/gpu": 2}, guarantee={"cpu": 3})
    text = conf("gang priority", "predicates proportion", "changer", actions="enqueue, allocate")
    bench, bound = Bench([node("n", cpu=20), limited], text, Changer), 0
    for cycle in range(3):
        bench.tell(*gang(cycle))
        bound += len(binds(bench.cycle()))
    assert bound == 4
    if figure == "deserved":  # which follows what the queue asks for
        assert {each.milli_cpu for each in seen[1:]} == {4000}
    else:
        assert seen == seen[:1] * 3

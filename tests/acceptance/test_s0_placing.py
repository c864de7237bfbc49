"""Acceptance rows S0: placing without a statement, and where placed jobs lie."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.errors import PlacementError
from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.books.plan import HyperNodeUpdate
from stromboli.framework.session.reference import ReferenceView
from stromboli.plugin import Plugin, hyper_node_gradient_for_job
from stromboli.testing.builders import hyper_node, node, pod, pod_group
from tests.acceptance.bench import Bench, answering, binds, conf, task_of
from tests.acceptance.clusters import CLOSE, ONE_JOB, TREE


def test_S0_36_a_session_allocates_pipelines_and_evicts_for_good() -> None:
    objects = [node("n1"), pod_group("g", min_member=2), *(pod(name, group="g") for name in "pqr")]
    bench = Bench([*objects, pod_group("h"), pod("old", group="h", on="n1")], conf("gang", "predicates"))
    with bench.open() as session:
        home = session.nodes["n1"]
        ReferenceView(session).allocate(task_of(session, "p"), home)
        assert session.plan.binds == [], "a gang that is not ready is not bound"
        assert session.plan.allocated_not_bound == []
        ReferenceView(session).pipeline(task_of(session, "r"), "n1")
        ReferenceView(session).allocate(task_of(session, "q"), home)
        ReferenceView(session).evict(task_of(session, "old"), "drain")
        with pytest.raises(PlacementError, match="failed to find node elsewhere"):
            ReferenceView(session).pipeline(task_of(session, "r"), "elsewhere")
    plan = session.plan
    assert binds(plan) == {"p": "n1", "q": "n1"}
    assert [each.key for each in plan.reservations] == ["default/r"]
    assert [(each.key, each.reason) for each in plan.evictions] == [("default/old", "drain")]


def test_S0_36_an_objection_does_not_take_a_direct_allocation_back() -> None:
    def object_to(event: Any) -> None:
        event.err = "no"

    plugin = answering("objects", on_allocate=object_to)
    with Bench(ONE_JOB, conf("gang", "objects"), plugin).open() as session:
        ReferenceView(session).allocate(task_of(session, "p"), session.nodes["n1"])
    assert binds(session.plan) == {"p": "n1"}


class Wide(Plugin):
    """Offers the hypernode of tier 2 alone."""

    name = "wide"

    def on_session_open(self, session: ClusterView) -> None:
        self.session = session

    @hyper_node_gradient_for_job
    def for_job(self, _job: Any, _hyper_node: Any, _purpose: str) -> list[list[Any]]:
        return [[self.session.hyper_nodes["s2"]]]


def test_S0_44_the_next_session_knows_where_a_topology_job_lies() -> None:
    bench = Bench([*TREE, pod("p", group="g")], conf("gang wide", "predicates"), Wide)
    first = bench.cycle()
    assert binds(first) == {"p": "n0"}
    assert first.hyper_nodes == [HyperNodeUpdate("default/g", "s2", {"default/g": "s2"})]
    with bench.open() as session:  # found again from the node alone it would be s0
        job = session.jobs["default/g"]
        assert (job.hyper_nodes.allocated, session.pod_groups.moved) == ("s2", set())
        assert [part.allocated_hyper_node for part in session.sub_jobs(job).values()] == ["s2"]
    assert session.plan.hyper_nodes == []
    bench.tell(hyper_node("s2", 2), gone=True)
    with bench.open() as session:
        job = session.jobs["default/g"]
        assert job.hyper_nodes.allocated == "s0", "a domain that is gone is forgotten and looked for again"
        assert [part.allocated_hyper_node for part in session.sub_jobs(job).values()] == ["s0"]


def test_S0_44_what_is_not_committed_is_not_carried_over() -> None:
    short = pod_group("g", min_member=2, networkTopology=CLOSE)
    plan = Bench([*TREE, short, pod("p", group="g")], conf("gang wide", "predicates"), Wide).cycle()
    assert (plan.binds, plan.hyper_nodes) == ([], [])


def test_S0_44_only_jobs_that_may_lie_in_hypernodes_are_looked_at() -> None:
    bench = Bench([*TREE, pod_group("plain"), pod("p", group="g")], conf("gang wide", "predicates"), Wide)
    assert bench.snapshot().close_jobs == ["default/g"]
    bench.cycle()
    bench.tell(pod_group("g"))
    assert bench.snapshot().close_jobs == ["default/g"], "it still lies somewhere"
    bench.state.set_hyper_nodes("default/g", "", {})
    assert bench.snapshot().close_jobs == []

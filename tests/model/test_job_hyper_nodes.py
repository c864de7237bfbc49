"""The hypernodes of a job: each change leaves the rest, and the value that copies of the job share, as they were."""

from __future__ import annotations

from stromboli.model.job import Job
from stromboli.model.jobs.hyper_nodes import JobHyperNodes

LIES = JobHyperNodes("s0", {"a": "s1"}, {"b": "s2", "c": "s3"})


def test_one_place_changes_at_a_time():
    assert LIES.with_allocated("s9") == JobHyperNodes("s9", {"a": "s1"}, {"b": "s2", "c": "s3"})
    assert LIES.with_nominated([("b", "s9")]) == JobHyperNodes("s0", {"a": "s1"}, {"b": "s9", "c": "s3"})
    assert LIES.with_nominated([("b", "")]) == JobHyperNodes("s0", {"a": "s1"}, {"c": "s3"})
    assert LIES.with_nominated([("d", "")]) == LIES
    assert [*LIES.with_nominated([("b", "s9")]).nominated] == ["b", "c"], "in the order in which they were nominated"


def test_a_copy_that_moves_leaves_the_first():
    first = Job("default/g")
    first.hyper_nodes = LIES
    twin = first.copy()
    twin.hyper_nodes = twin.hyper_nodes.with_nominated([("b", "")]).with_allocated("")
    assert (first.hyper_nodes, twin.hyper_nodes.nominated) == (LIES, {"c": "s3"})

"""The builders make what they say."""

from __future__ import annotations

import pytest

from stromboli.errors import ManifestError
from stromboli.model.spec import Amount
from stromboli.model.status import TaskStatus
from stromboli.testing.builders import cluster, node, pod, pod_group, queue


def test_defaults() -> None:
    found = cluster(node("n1"), pod("p", group="g"))
    assert found.table.statics.specs[0].labels == {"kubernetes.io/hostname": "n1"}
    assert found.table.alloc[:3, 0].tolist() == [4000, 8 * 2**30, 110]
    (job,) = found.jobs.values()
    assert (job.uid, job.queue, job.min_available, job.phase) == ("default/g", "default", 1, "Inqueue")
    (task,) = job.tasks.values()
    assert (task.key, task.status) == ("default/p", TaskStatus.Pending)
    assert task.template.vector[:3] == (1000, 2**30, 1)
    assert found.namespace_labels == {"default": {"kubernetes.io/metadata.name": "default"}}


def test_everything_said() -> None:
    found = cluster(
        node("n2", cpu="500m", resources={"nvidia.com/gpu": 2}, images={"app:1": 5}, unschedulable=True),
        node("n10", labels={"zone": "a"}, taints=[{"key": "k", "effect": "NoSchedule"}]),
        queue("q", weight=3, reclaimable=False),
        pod_group("g", min_member=2, queue="q", phase="Pending", namespace="other", created=7),
        pod("a", group="g", namespace="other", cpu=0, memory=0, requests={"nvidia.com/gpu": 1}, role="worker"),
        pod("b", group="g", namespace="other", on="n2", deleting=True, nodeSelector={"zone": "a"}),
        pod("c", group="g", namespace="other", on="n2", phase="Pending", nominated="n10", created=9),
    )
    assert found.table.statics.names == ["n2", "n10"]
    two, ten = found.table.statics.specs
    assert two.unschedulable
    assert [image.names for image in two.images] == [("app:1",)]
    assert [taint.key for taint in ten.taints] == ["k"]
    job = found.jobs["other/g"]
    assert (job.created, job.min_available, job.queue, job.is_pending()) == (7, 2, "q", True)
    a, b, c = (job.tasks[f"other/{name}"] for name in "abc")
    assert (a.role, a.best_effort, a.request.get("nvidia.com/gpu")) == ("worker", False, 1000)
    assert (b.status, b.spec.node_selector) == (TaskStatus.Releasing, {"zone": "a"})
    assert (c.status, c.nominated_node, c.created) == (TaskStatus.Bound, "n10", 9)
    assert found.queues["q"].reclaimable is False


def test_only_what_is_given() -> None:
    assert not cluster(pod("p", group="g"), complete=False).queues


def test_objects_that_cannot_be_used_are_named() -> None:
    with pytest.raises(ManifestError, match="Pod default/p"):
        cluster(pod("p", cpu="a lot"))


def test_what_cannot_be_overcommitted_is_a_limit_too() -> None:
    asked: dict[str, Amount] = {"nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"}
    resources = pod("a", requests=asked)["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi"}
    assert resources["requests"] == {"cpu": 1, "memory": "1Gi", **asked}

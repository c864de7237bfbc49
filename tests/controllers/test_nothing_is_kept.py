"""Of what is gone the controllers keep nothing: in months of work that would be all that they hold."""

from __future__ import annotations

import gc
from types import FunctionType, ModuleType

import pytest

from stromboli.api.kinds import CRON_JOBS, HYPER_NODES, JOB_FLOWS, JOB_TEMPLATES, JOBS, POD_GROUPS, QUEUES
from stromboli.controllers.changes import Patch
from stromboli.controllers.jobs.kept import Kept, KeptObjects
from stromboli.controllers.work import About
from stromboli.job_plugins.plugin import config_map
from tests.controllers.cluster import Cluster, Manifest, job, queue, task

NAME = "gone-in-the-end"


def mentions(root: object, name: str) -> list[str]:
    """Texts with ``name`` in them that an object leads to, but for what modules, types and functions have in common."""
    seen, found, left = {id(root): root}, list[str](), [root]
    while left:
        one = left.pop()
        if isinstance(one, str | bytes):
            found += [str(one)] if name in str(one) else []
            continue
        fields = (getattr(one, field) for field in getattr(type(one), "__struct_fields__", ()))
        keys = one if isinstance(one, dict) else ()
        for each in (
            *gc.get_referents(one),
            *fields,
            *keys,
        ):  # the collector sees neither all structs nor texts as keys
            if id(each) not in seen and not isinstance(each, (ModuleType, type)):
                seen[id(each)] = each
                left.extend(each.__closure__ or () if isinstance(each, FunctionType) else (each,))
    return found


SPEC = {
    "plugins": {"svc": [], "env": [], "ssh": []},
    "policies": [{"event": "PodFailed", "action": "RestartJob", "timeout": "90s"}],
    "volumes": [{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}],
}


@pytest.mark.parametrize(
    "end", ["running", "waiting for a policy", "complete", "complete, not written", "not counted yet"]
)
def test_a_job_is_forgotten_with_all_that_was_made_for_it(end: str) -> None:
    cluster = Cluster()
    cluster.store(QUEUES, queue("default"))
    value = job(task(replicas=2), name=NAME, **SPEC)
    value["metadata"]["uid"] = f"{NAME}-uid"
    cluster.create(JOBS, value)
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.all_pods("Running")
    cluster.settle()
    if "complete" in end:
        cluster.all_pods("Succeeded")
    if end == "complete":
        cluster.settle()
    if end == "complete, not written":
        cluster.breaking[Patch] = 1
        cluster.run(next(work for work in cluster.manager.ready if work.about is About.job))
    if end == "not counted yet":
        cluster.pod_phase(f"{NAME}-t-0", "Succeeded")
        cluster.settle()
    if end == "waiting for a policy":
        cluster.pod_phase(f"{NAME}-t-0", "Failed", 1)
        cluster.settle()
    assert cluster.phase(NAME) == ("Completed" if end == "complete" else "Running")
    assert mentions(cluster.manager, NAME)
    cluster.remove(JOBS, NAME)
    cluster.settle()
    assert cluster.pods() == {}
    assert mentions(cluster.manager, NAME) == []


OTHERS: dict[str, Manifest] = {
    QUEUES: {"spec": {"weight": 1}},
    JOB_TEMPLATES: {"spec": {"tasks": [task()]}},
    JOB_FLOWS: {"spec": {"flows": [{"name": f"{NAME}-template"}]}},
    CRON_JOBS: {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"tasks": [task()]}}}},
    HYPER_NODES: {"spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": NAME}}}]}},
    POD_GROUPS: {"spec": {"minMember": 1, "queue": NAME}},
    "pods": {"spec": {"schedulerName": "volcano", "containers": [{"name": "main"}]}},
}


@pytest.mark.parametrize("resource", OTHERS)
def test_other_objects_are_forgotten_too(resource: str) -> None:
    cluster = Cluster()
    namespace = "" if resource in (QUEUES, HYPER_NODES) else "ns"
    cluster.store(resource, {"metadata": {"name": NAME, "namespace": namespace}, **OTHERS[resource]})
    cluster.wait(cluster.now + 100)
    assert mentions(cluster.manager, NAME)
    for other in [JOBS, POD_GROUPS]:
        for owner, name in list(cluster.objects.get(other, {}) if other != resource else ()):
            cluster.remove(other, name, owner)
    cluster.remove(resource, NAME, namespace)
    cluster.settle()
    assert mentions(cluster.manager, NAME) == []


def test_a_job_is_known_by_its_objects_until_the_last_is_dropped() -> None:
    kept = KeptObjects()
    for name in ("a", "b"):
        kept.note("u", Kept(config_map(name, {}), "uid", "1", 0.0))
    kept.drop("u", ("configmaps", "a"))
    assert list(kept.of("u")) == [("configmaps", "b")]
    kept.drop("u", ("configmaps", "b"))
    kept.drop("other", ("configmaps", "b"))
    assert kept._of == {}

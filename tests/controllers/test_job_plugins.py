"""Jobs with plugins: their objects are made before the pods, repaired, and deleted; failures are reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from stromboli.api.kinds import JOBS, QUEUES
from stromboli.controllers.changes import Create, Drop, Keep
from stromboli.controllers.jobs.kept import FRESH, RECHECK
from stromboli.controllers.manager import Settings
from stromboli.job_plugins.plugin import AddEnv, Edit, JobPlugin, Place, Wanted, config_map, service
from stromboli.job_plugins.registry import JobPlugins
from tests.controllers.cluster import Cluster, Manifest, job, queue, started, task

ALL: dict[str, list[str]] = {name: [] for name in ("svc", "ssh", "ray", "env", "hcclrank")}
HEAD = (task("head", 1), task("worker", 2))
OBJECTS = {
    ("configmaps", "j-svc"), ("services", "j"), ("networkpolicies", "j"), ("secrets", "j-ssh"),
    ("services", "j-head-svc"),
}  # fmt: skip
KINDS = ("configmaps", "services", "networkpolicies", "secrets")


def there(cluster: Cluster) -> set[tuple[str, str]]:
    """The objects of plugins."""
    return {(kind, name) for kind in KINDS for _, name in cluster.objects.get(kind, {})}


def marks(cluster: Cluster) -> dict[str, str]:
    found: dict[str, str] = cluster.job()["status"].get("controlledResources", {})
    return found


def waiting(*tasks: Manifest, known: JobPlugins | None = None, **spec: Any) -> Cluster:
    """A cluster with a job that has not been looked at."""
    cluster = Cluster(Settings(job_plugins=known or JobPlugins()))
    cluster.store(QUEUES, queue("default"))
    cluster.create(JOBS, job(*tasks, **spec))
    return cluster


def go_on(cluster: Cluster) -> None:
    cluster.settle()
    cluster.admit()
    cluster.settle()


def test_objects_come_first_and_belong_to_the_job() -> None:
    cluster = started(*HEAD, plugins=ALL)
    order = [type(one) for one in cluster.writes if isinstance(one, Keep) or one[0] == "pods"]
    assert order == [Keep] * 5 + [Create] * 3
    assert there(cluster) == OBJECTS
    for kind, name in OBJECTS:
        assert cluster.objects[kind]["ns", name]["metadata"]["ownerReferences"] == [{
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "uid-2",
            "controller": True, "blockOwnerDeletion": True,
        }]  # fmt: skip
    assert marks(cluster) == {f"plugin-{name}": name for name in ("svc", "ssh", "ray", "env")}, "hcclrank leaves none"
    cluster.remove(JOBS, "j")
    assert there(cluster) == set()


def test_plugins_that_others_need_are_there_without_webhooks() -> None:
    cluster = Cluster()
    cluster.store(QUEUES, queue("default"))
    cluster.store(JOBS, job(task("master", 1), task("worker", 2), plugins={"mpi": []}))
    go_on(cluster)
    assert set(marks(cluster)) == {"plugin-mpi", "plugin-svc", "plugin-ssh"}
    assert there(cluster) == {
        ("configmaps", "j-svc"),
        ("services", "j"),
        ("networkpolicies", "j"),
        ("secrets", "j-ssh"),
    }


def test_the_mark_is_written_before_the_objects_are_made() -> None:
    cluster = waiting(*HEAD, plugins=ALL)
    cluster.breaking[Keep] = 1
    cluster.run(next(iter(cluster.manager.ready)))
    cluster.run(next(iter(cluster.manager.ready)))
    assert set(marks(cluster)) >= {"plugin-svc"}


def test_a_killed_job_loses_its_objects_and_gets_them_again_when_it_restarts() -> None:
    cluster = started(*HEAD, plugins=ALL)
    cluster.command("AbortJob", "Job", "j")
    cluster.settle()
    assert there(cluster) == set()
    assert marks(cluster) == {}
    cluster.reap()
    cluster.settle()
    cluster.command("ResumeJob", "Job", "j")
    cluster.settle()
    go_on(cluster)
    assert (there(cluster), len(cluster.names())) == (OBJECTS, 3)
    assert set(marks(cluster)) >= {"plugin-svc", "plugin-ssh"}


def test_a_finished_job_drops_its_objects_once() -> None:
    cluster = started(*HEAD, plugins=ALL)
    cluster.all_pods("Succeeded")
    cluster.settle()
    assert cluster.phase() == "Completed"
    assert there(cluster) == set()
    before = len(cluster.writes)
    cluster.wait(cluster.now + RECHECK)
    assert not [one for one in cluster.writes[before:] if isinstance(one, Keep | Drop)]


def test_restarted_controllers_know_what_a_killed_job_has() -> None:
    cluster = started(*HEAD, plugins=ALL)
    cluster.manager.world.kept.forget("uid-2")
    cluster.command("AbortJob", "Job", "j")
    cluster.settle()
    assert there(cluster) == set()


def test_a_restarted_task_keeps_everything() -> None:
    cluster = started(
        task("head", 1), task("worker", 2, policies=[{"event": "PodFailed", "action": "RestartTask"}]), plugins=ALL
    )
    key = dict(cluster.objects["secrets"]["ns", "j-ssh"]["data"])
    cluster.pod_phase("j-worker-0", "Failed", 1)
    cluster.settle()
    assert cluster.phase() == "Restarting"
    assert there(cluster) == OBJECTS
    assert cluster.objects["secrets"]["ns", "j-ssh"]["data"] == key


@pytest.mark.parametrize(("kind", "name"), sorted(OBJECTS))
def test_an_object_that_goes_is_made_again(kind: str, name: str) -> None:
    cluster = started(*HEAD, plugins=ALL)
    cluster.remove(kind, name)
    cluster.wait(cluster.now + RECHECK)
    assert there(cluster) == OBJECTS


@pytest.mark.parametrize(("kind", "name"), sorted(OBJECTS))
def test_an_object_that_goes_is_there_again_before_another_pod_is(kind: str, name: str) -> None:
    cluster = waiting(*HEAD, plugins=ALL)
    cluster.settle()
    cluster.remove(kind, name)
    cluster.now += FRESH
    cluster.breaking[Keep] = 1
    cluster.admit()
    cluster.run(next(work for work in cluster.manager.ready if work.about == "job"))
    assert cluster.names() == [], "no pod without it"
    cluster.settle()
    assert (there(cluster), len(cluster.names())) == (OBJECTS, 3)


EDITS: dict[str, tuple[str, str, Manifest]] = {
    "hosts": ("configmaps", "j-svc", {"data": {"head.host": "elsewhere", "more": "x"}}),
    "selector": ("services", "j", {"spec": {"selector": {"volcano.sh/job-name": "other"}}}),
    "ports": ("services", "j-head-svc", {"spec": {"ports": []}}),
    "policy": ("networkpolicies", "j", {"spec": {"ingress": None}}),
    "config": ("secrets", "j-ssh", {"data": {"config": "eA=="}}),
    "no owner": ("services", "j", {"metadata": {"ownerReferences": None}}),
}


@pytest.mark.parametrize("row", EDITS)
def test_an_object_that_was_changed_is_put_right(row: str) -> None:
    kind, name, patch = EDITS[row]
    cluster = started(*HEAD, plugins=ALL)
    before = cluster.objects[kind]["ns", name]
    cluster.change(kind, name, patch)
    cluster.wait(cluster.now + RECHECK)
    after = cluster.objects[kind]["ns", name]
    assert [after.get(part) for part in ("spec", "data")] == [before.get(part) for part in ("spec", "data")]
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]


def test_scaling_shows_up_in_the_lists() -> None:
    cluster = started(*HEAD, plugins=ALL)
    cluster.change(JOBS, "j", {"spec": {"tasks": [task("head", 1), task("worker", 3)]}})
    cluster.settle()
    assert cluster.objects["configmaps"]["ns", "j-svc"]["data"]["VC_WORKER_NUM"] == "3"


def test_what_is_kept_is_known_from_its_first_time_on_or_by_the_mark_in_the_status() -> None:
    """What is known is read before it is written; what is not is made without a look."""
    cluster = started(*HEAD, plugins={"ssh": []})
    cluster.wait(cluster.now + FRESH + RECHECK)
    assert [one.known for one in cluster.writes if isinstance(one, Keep)][:2] == [False, True]
    again = Cluster()
    for resource in (QUEUES, JOBS):
        for found in cluster.objects[resource].values():
            again.store(resource, found)
    again.settle()
    assert [one.known for one in again.writes if isinstance(one, Keep)] == [True]


def test_a_killed_job_loses_what_a_plugin_made_that_it_names_no_longer_in_their_order() -> None:
    cluster = started(*HEAD, plugins=ALL)
    cluster.change(JOBS, "j", {"spec": {"plugins": {"ssh": None}}})
    cluster.command("AbortJob", "Job", "j")
    cluster.settle()
    dropped = [(one.resource, one.name) for one in cluster.writes if isinstance(one, Drop)]
    assert there(cluster) == set()
    assert ("secrets", "j-ssh") in dropped
    assert dropped[-4:] == sorted(dropped[-4:])


def test_objects_of_a_plugin_that_is_no_longer_named_go() -> None:
    cluster = started(*HEAD, plugins=ALL)
    cluster.change(JOBS, "j", {"spec": {"plugins": {"ssh": None}}})
    cluster.settle()
    assert there(cluster) == OBJECTS - {("secrets", "j-ssh")}


def test_the_plugin_env_tells_pods_their_number() -> None:
    cluster = started(task("a", 2), plugins={"env": []})
    assert cluster.pods()["j-a-1"]["spec"]["containers"][0]["env"] == [
        {"name": "VK_TASK_INDEX", "value": "1"}, {"name": "VC_TASK_INDEX", "value": "1"},
    ]  # fmt: skip
    assert marks(cluster) == {"plugin-env": "env"}


# ---------------------------------------------------------------------- objects of others


def other(kind: str, name: str, owner: Manifest | None = None, **parts: Any) -> Manifest:
    owners = {"ownerReferences": [owner]} if owner else {}
    return {"metadata": {"name": name, "namespace": "ns", **owners}, **parts}


def held(cluster: Cluster) -> str:
    """What the status says; there are no pods."""
    assert cluster.names() == []
    state = cluster.job()["status"]["state"]
    assert state["reason"] == "PluginError"
    return str(state["message"])


def test_an_object_of_another_owner_is_left_alone_and_the_job_waits_for_its_end() -> None:
    cluster = waiting(*HEAD, plugins=ALL)
    foreign = cluster.store("services", other("services", "j", spec={"selector": {"app": "web"}}))
    go_on(cluster)
    assert "Service ns/j is not the job's, and is not what plugin svc needs: delete or rename it" in held(cluster)
    assert cluster.objects["services"]["ns", "j"] == foreign
    cluster.remove("services", "j")
    cluster.wait(cluster.now + 2)
    go_on(cluster)
    assert (there(cluster), len(cluster.names())) == (OBJECTS, 3)
    assert "message" not in cluster.job()["status"]["state"]


def test_an_object_of_an_earlier_job_of_that_name_has_to_go_first() -> None:
    cluster = started(*HEAD, plugins=ALL)
    made = cluster.objects["services"]["ns", "j"]
    cluster = waiting(*HEAD, plugins=ALL)
    owner = {**made["metadata"]["ownerReferences"][0], "uid": "earlier"}
    cluster.store("services", other("services", "j", owner, spec=made["spec"]))
    go_on(cluster)
    assert "belongs to another job" in held(cluster)


def test_an_object_that_is_being_deleted_has_to_go_first() -> None:
    cluster = waiting(*HEAD, plugins=ALL)
    cluster.settle()
    cluster.change("configmaps", "j-svc", {"metadata": {"deletionTimestamp": "2023-11-14T22:13:21Z"}})
    cluster.now += FRESH
    go_on(cluster)
    assert "ConfigMap ns/j-svc is being deleted" in held(cluster)


def test_an_object_of_another_owner_that_has_what_is_needed_serves_and_stays() -> None:
    made = started(*HEAD, plugins=ALL).objects["services"]["ns", "j"]
    cluster = waiting(*HEAD, plugins=ALL)
    mine = {**made["spec"], "ports": [{"port": 80}]}
    cluster.store("services", other("services", "j", spec=mine))
    go_on(cluster)
    assert len(cluster.names()) == 3
    cluster.command("AbortJob", "Job", "j")
    cluster.settle()
    assert there(cluster) == {("services", "j")}
    assert cluster.objects["services"]["ns", "j"]["spec"] == mine


# ---------------------------------------------------------------------- plugins that fail


class Outsider(JobPlugin):
    """Fails where its flag says."""

    name = "outsider"
    fails = ""

    def __init__(self, found: Any, arguments: tuple[str, ...] = ()) -> None:
        super().__init__(found)
        self.where = arguments[0] if arguments else ""
        if self.where == "init":
            raise ValueError("no")

    def problem(self) -> str:
        return "not today" if self.where == "problem" else ""

    def objects(self) -> Iterable[Wanted]:
        if self.where == "objects":
            raise ValueError("no")
        if self.where == "clash":
            yield service("j", {})
        if self.where == "kind":
            yield Wanted("pods", "p", {})
        yield config_map("j-mine", {"a": "b"})

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterable[Edit]:
        if self.where == "pod" and place.index == 1:
            raise ValueError("no")
        yield AddEnv(({"name": "A", "value": "b"},))


FAILURES = {
    "init": "plugin outsider: ValueError: no",
    "problem": "plugin outsider: not today",
    "objects": "plugin outsider: ValueError: no",
    "clash": "plugin outsider: wants Service j as plugin svc does",
    "kind": "plugin outsider: wants one of pods; plugins may have configmaps, secrets, services, networkpolicies",
    "pod": "plugin outsider: ValueError: no",
}


@pytest.mark.parametrize("where", FAILURES)
def test_a_plugin_that_fails_keeps_all_pods_back_and_is_told(where: str) -> None:
    known = JobPlugins()
    known.add(Outsider)
    cluster = waiting(*HEAD, known=known, plugins={"svc": [], "outsider": [where]})
    go_on(cluster)
    text = f"Execute plugin when job add failed, err: {FAILURES[where]}"
    assert held(cluster) == text
    assert set(cluster.told("PluginError")) == {text}
    assert not cluster.errors, "waiting is no failure that ends the job"


def test_a_third_party_plugin_works_like_ours() -> None:
    known = JobPlugins()
    known.add(Outsider)
    cluster = waiting(*HEAD, known=known, plugins={"outsider": []})
    go_on(cluster)
    assert there(cluster) == {("configmaps", "j-mine")}
    assert cluster.pods()["j-head-0"]["spec"]["containers"][0]["env"] == [{"name": "A", "value": "b"}]
    assert marks(cluster) == {"plugin-outsider": "outsider"}


def test_a_bad_argument_is_an_event_and_the_job_goes_on() -> None:
    """An old manifest that names a flag which is gone runs, as with the reference."""
    cluster = waiting(*HEAD, plugins={"ssh": ["--no-root"]})
    go_on(cluster)
    assert set(cluster.told("PluginError")) == {
        "plugin ssh: flagset parse failed, err: flag provided but not defined: -no-root"
    }  # fmt: skip
    assert len(cluster.names()) == 3


def test_a_warning_is_an_event_and_keeps_nothing_back() -> None:
    cluster = waiting(*HEAD, plugins={"ssh": ["--ssh-port=0"]})
    go_on(cluster)
    assert list(cluster.told("PluginError")) == ["plugin ssh: invalid ssh port 0, falling back to default port 22"]
    assert len(cluster.names()) == 3


def test_variables_times_containers_that_no_server_takes_keep_the_pods_back() -> None:
    many = [{"name": f"c{number}", "image": "i"} for number in range(200)]
    tasks = [{**task(f"t{number:03}{'x' * 40}", 0), "minAvailable": 0} for number in range(150)]
    large = {**task("large", 1), "template": {"spec": {"containers": many}}}
    cluster = waiting(large, *tasks, minAvailable=1, plugins={"svc": []})
    go_on(cluster)
    assert "plugin svc: its variables make a pod of task large larger than 3145728 bytes" in held(cluster)


def test_a_job_gets_no_pods_while_a_plugin_that_it_names_is_not_there() -> None:
    cluster = started(task("a", 1), plugins={"env": [], "svcs": []})
    told = "Execute plugin when job add failed, err: plugin svcs: failed to get plugin svcs; did you mean svc?"
    assert set(cluster.told("PluginError")) == {told}
    assert (cluster.phase(), cluster.names(), cluster.groups()) == ("Pending", [], [])
    state = cluster.job()["status"]["state"]
    assert (state["reason"], state["message"]) == ("PluginError", told)
    (condition,) = cluster.job()["status"]["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("Pending", "PluginError", told)
    assert not cluster.errors, "waiting is no failure that ends the job"


def test_a_job_whose_plugin_goes_is_made_and_its_status_forgets_it() -> None:
    cluster = started(task("a", 1), plugins={"magic": []})
    cluster.change(JOBS, "j", {"spec": {"plugins": None}})
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert cluster.names() == ["j-a-0"]
    assert "message" not in cluster.job()["status"]["state"]
    assert "message" not in cluster.job()["status"]["conditions"][0]


def test_pods_that_were_made_before_are_counted_while_a_plugin_is_missing() -> None:
    cluster = started(task("a", 2))
    cluster.change(JOBS, "j", {"spec": {"plugins": {"magic": []}, "tasks": [task("a", 3)]}})
    cluster.all_pods("Succeeded")
    cluster.settle()
    assert cluster.names() == ["j-a-0", "j-a-1"]
    assert cluster.job()["status"]["succeeded"] == 2


# ---------------------------------------------------------------------- what takes long


def test_other_objects_are_made_after_a_key() -> None:
    cluster = waiting(*HEAD, plugins=ALL)
    work = next(work for work in cluster.manager.ready if work.about == "job")
    batches = cluster.run(work).batches
    kept = [{change.wanted.name for change in batch if isinstance(change, Keep)} for batch in batches]
    assert [names for names in kept if names] == [{"j-ssh"}, {name for _, name in OBJECTS} - {"j-ssh"}]

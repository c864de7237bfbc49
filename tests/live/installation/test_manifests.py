"""What an installation consists of, and that its permissions are those that are used."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.main import main as command
from stromboli.cluster.owners.kinds import TABLE
from stromboli.crds.admission.paths import ALL_PATHS, INSTALLED
from stromboli.crds.admission.resource_groups import parse_groups
from stromboli.job_plugins.wanted import SORTS
from stromboli.kube.resources import RESOURCES
from stromboli.live.controllers.options import CONFIG_MAP
from stromboli.live.installation.configurations import CONFIGURATION
from stromboli.live.installation.manifests import Parts, manifests
from stromboli.live.installation.parts import ADMISSION, CONTROLLERS, SCHEDULER, Part
from stromboli.live.process.control_flags import CONTROL_FLAGS
from stromboli.live.process.flags import FLAGS, parse
from stromboli.live.process.process import terms_of
from stromboli.live.proofs.keys import LOOK_EVERY, ROTATE_AFTER, SECRET
from stromboli.live.proofs.permissions import CONTROLLING, SCHEDULING
from stromboli.live.scheduler.feed import FOLLOWED
from stromboli.live.webhooks.flags import WEBHOOK_FLAGS
from stromboli.live.webhooks.process import bearer_of
from stromboli.model.names import NAMESPACE
from tests.support.access import Uses, granted, used
from tests.support.contested import GRACE, Contested
from tests.support.controller_world import ControllerWorld, job
from tests.support.memory_server import merged
from tests.support.virtual import run

PARTS = Parts("registry.example/stromboli:1")
UPSTREAM = "podgroups.scheduling.k8s.io"


def name_of(one: Part) -> str:
    """What its objects are called, and what it is called in the API server's logs."""
    return f"stromboli-{one.suffix}"


def objects(kind: str) -> list[Any]:
    return [found for found in manifests(PARTS) if found["kind"] == kind]


LEADING = {("coordination.k8s.io", "leases", verb) for verb in ("create", "update")}
"""Leader election has tests of its own; which Lease it is about is looked at below."""
MAKERS = (("batch.volcano.sh", "jobs"), ("batch.volcano.sh", "cronjobs"), ("flow.volcano.sh", "jobflows"))
"""What owns others so that these block its deletion: an admission plugin asks about that, nothing requests it."""
NOT_SEEN: dict[str, Uses] = {
    name_of(SCHEDULER): {
        *LEADING,
        ("", "pods", "delete"),  # here nothing is evicted; the next test has it
        ("", "nodes", "patch"),  # no pod has cards whose nodes are locked
        *(("", plural, "patch") for plural in ("persistentvolumes", "persistentvolumeclaims")),  # no pod has a claim
        *(("resource.k8s.io", f"resourceclaims{part}", "patch") for part in ("", "/status", "/binding")),
        *(("shard.volcano.sh", "nodeshards", verb) for verb in ("list", "watch")),  # only with a sharding mode
        ("shard.volcano.sh", "nodeshards/status", "patch"),
    },
    name_of(CONTROLLERS): {
        *LEADING,
        *((group, f"{plural}/finalizers", "update") for group, plural in MAKERS),
        ("", "events", "patch"),  # after five minutes
        *(("shard.volcano.sh", "nodeshards", verb) for verb in ("list", "watch", "create", "patch", "delete")),
    },
}


async def discover(world: ControllerWorld) -> None:
    """A rack is found by a node's label, moves to another value, and is gone with it."""
    types = {"t": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]}
    entry = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}}
    data = {"volcano-controller.conf": json.dumps({"networkTopologyDiscovery": [entry]})}
    world.server.put("configmaps", {"metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE}, "data": data})
    for racked in (("n0",), ("n0", "n1"), ()):
        for name in ("n0", "n1"):
            labels = {"rack": "r1"} if name in racked else {}
            world.server.put(
                "nodes", merged(world.server.get("nodes", name), {"metadata": {"labels": {"rack": None, **labels}}})
            )
        await asyncio.sleep(5)


def bind_claims(world: ControllerWorld) -> None:
    """What the controller of volumes does: every claim gets one."""
    for number, claim in enumerate(world.server.all("persistentvolumeclaims")):
        done = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"volumeName": f"v{number}"}, "status": {"phase": "Bound"}}  # fmt: skip
        world.server.put("persistentvolumes", {"metadata": {"name": f"v{number}"}, "spec": {}})
        world.server.put("persistentvolumeclaims", merged(claim, done))


def test_everything_that_each_requests_is_granted_and_what_is_granted_is_requested() -> None:
    async def story() -> dict[str, Uses]:
        world = ControllerWorld()
        world.server.drop("secrets", SECRET, NAMESPACE)
        for resource in ("hypernodes", "priorityclasses", UPSTREAM):
            world.server.objects[resource] = {}
        member = {"type": "Node", "selector": {"exactMatch": {"name": "n0"}}}
        await world.go()
        world.server.put("hypernodes", {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": [member]}})
        volumes = [{"mountPath": "/d", "volumeClaim": {"accessModes": []}}]
        plugins = {"svc": [], "ssh": ["--ssh-private-key=k"]}
        world.server.put("jobs", job("j", 2, volumes=volumes, ttlSecondsAfterFinished=1, plugins=plugins))
        container = {"name": "c", "image": "i"}
        spec = {"schedulerName": "volcano", "containers": [container]}
        forged = {"volcano.sh/pipelined-status": "true", "volcano.sh/pipelined-node": "n0"}
        world.server.put("pods", {"metadata": {"name": "p", "namespace": "ns", "annotations": forged}, "spec": spec,
                                  "status": {"phase": "Pending"}})  # fmt: skip
        world.server.put(UPSTREAM, {"metadata": {"name": "u", "namespace": "ns"}})
        grouped = {**spec, "schedulingGroup": {"podGroupName": "u"}}
        world.server.put("pods", {"metadata": {"name": "q", "namespace": "ns"}, "spec": grouped,
                                  "status": {"phase": "Pending"}})  # fmt: skip
        lacking = {**spec, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}
        world.server.put("pods", {"metadata": {"name": "w", "namespace": "ns"}, "spec": lacking,
                                  "status": {"phase": "Pending"}})  # fmt: skip
        await discover(world)
        bind_claims(world)
        await asyncio.sleep(10)
        template = {"spec": job("x", 1)["spec"]}
        old = {"name": "c", "namespace": "ns", "creationTimestamp": "2020-01-01T00:00:00Z"}
        world.server.put("cronjobs", {"metadata": old, "spec": {"schedule": "@hourly", "jobTemplate": template}})
        world.server.put("jobtemplates", {"metadata": {"name": "a", "namespace": "ns"}, **template})
        flows = {"flows": [{"name": "a"}]}
        world.server.put("jobflows", {"metadata": {"name": "f", "namespace": "ns"}, "spec": flows})
        world.server.put("queues", {"metadata": {"name": "fresh"}, "spec": {"weight": 1}})
        fewer = {"spec": {"minAvailable": 1}}
        world.server.put("jobs", merged(world.server.get("jobs", "j", "ns"), fewer))
        for kind, name in (("services", "j"), ("configmaps", "j-svc"), ("networkpolicies", "j"), ("secrets", "j-ssh")):
            spoilt = {"spec": {"policyTypes": None, "selector": None}, "data": None}
            world.server.put(kind, merged(world.server.get(kind, name, "ns"), spoilt))
        await asyncio.sleep(10)
        pod = next(one for one in world.server.all("pods") if one["metadata"]["name"].startswith("j-"))
        world.server.put("pods", merged(pod, {"metadata": {"labels": {"x": "y"}}}))
        await asyncio.sleep(5)
        world.command("RestartJob", "Job", "j")
        await asyncio.sleep(10)
        world.end_pods("j", "Succeeded")
        await asyncio.sleep(10)
        world.clock.jump = ROTATE_AFTER  # the key is replaced
        await asyncio.sleep(LOOK_EVERY)
        await world.end()
        return {name_of(one): used(world.server.requests, name_of(one)) for one in (SCHEDULER, CONTROLLERS)}

    requested = run(story())
    for one in (SCHEDULER, CONTROLLERS):
        assert requested[name_of(one)] - granted(one) == set()
        all_but_single_reads = {row for row in granted(one) if row[2] != "get"}
        assert all_but_single_reads - requested[name_of(one)] == NOT_SEEN[name_of(one)]


def test_a_scheduler_that_holds_reservations_needs_no_more_than_it_is_granted(tmp_path: Path) -> None:
    async def story() -> Uses:
        world = Contested(tmp_path / "conf")
        world.start(world.mortal())
        world.contend()
        await asyncio.sleep(GRACE + 5)
        assert "" not in world.high()
        await world.end()
        return used(world.server.requests)

    requested = run(story())
    assert requested - granted(SCHEDULER) == set()
    assert requested >= {("", "pods", "patch"), ("", "pods", "delete"), ("", "pods/status", "patch")}
    assert [verb for _, _, verb in requested if verb == "update"] == []


@pytest.mark.parametrize("one", [SCHEDULER, CONTROLLERS], ids=lambda one: one.key)
def test_what_may_be_done_in_the_own_namespace_is_what_is_done_there(one: Part) -> None:
    """Leases, Secrets, ConfigMaps: their names are those that the programs use as they are installed."""
    terms = terms_of(flags_of(one))
    assert terms.namespace == NAMESPACE
    named = {(grant.resource, grant.names): set(grant.verbs) for grant in one.own}
    wanted = {("leases", ()): {"create"}, ("leases", (terms.name,)): {"get", "update"}}
    if one is SCHEDULER:
        wanted |= {("secrets", ()): {"create"}, ("secrets", (SECRET,)): {"get", "update"}}
    else:
        wanted |= {("configmaps", ()): {"get", "list", "watch"}, ("secrets", ("ufm-credentials",)): {"get"}}
    assert named == wanted


def test_only_what_is_repaired_one_by_one_may_be_got() -> None:
    """The scheduler's audit asks for single objects of all kinds, the controllers for owners and objects of plugins."""
    got = {(grant.group, grant.resource) for grant in SCHEDULING if "get" in grant.verbs}
    served = [RESOURCES[kind] for kind in FOLLOWED]
    assert got == {(one.api_version.rpartition("/")[0], one.plural) for one in served}
    read = {(grant.group, grant.resource) for grant in CONTROLLING if "get" in grant.verbs}
    kept = {
        (sort.api_version.rpartition("/")[0] if "/" in sort.api_version else "", name) for name, sort in SORTS.items()
    }
    assert read == {(row.group, row.plural) for row in TABLE} | kept


def named(kind: str, one: Part) -> Any:
    """The object of that kind which belongs to a program."""
    suffix = {"Service": "-service", "ClusterRoleBinding": "-role", "RoleBinding": "-role"}.get(kind, "")
    (found,) = [found for found in objects(kind) if found["metadata"]["name"] == name_of(one) + suffix]
    return found


def flags_of(one: Part) -> Any:
    """What the arguments of its container say."""
    container = named("Deployment", one)["spec"]["template"]["spec"]["containers"][0]
    return parse(container["args"], FLAGS if one is SCHEDULER else CONTROL_FLAGS)


@pytest.mark.parametrize("one", [SCHEDULER, CONTROLLERS], ids=lambda one: one.key)
def test_roles_bind_the_account_of_one_program_and_no_other(one: Part) -> None:
    assert len(objects("ServiceAccount")) == 3
    assert named("Deployment", one)["spec"]["template"]["spec"]["serviceAccountName"] == name_of(one)
    for kind in ("ClusterRole", "Role"):
        role, binding = named(kind, one), named(f"{kind}Binding", one)
        assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name_of(one)}
        assert [subject["name"] for subject in binding["subjects"]] == [name_of(one)]
        assert all("*" not in (*rule["verbs"], *rule["resources"], *rule["apiGroups"]) for rule in role["rules"])
        names = [rule.get("resourceNames") for rule in role["rules"] if "secrets" in rule["resources"]]
        wanted: dict[tuple[str, Part], list[object]] = {
            ("Role", SCHEDULER): [None, [SECRET]],
            ("Role", CONTROLLERS): [["ufm-credentials"]],
            ("ClusterRole", CONTROLLERS): [None],
        }
        assert names == wanted.get((kind, one), [])


@pytest.mark.parametrize("one", [SCHEDULER, CONTROLLERS], ids=lambda one: one.key)
def test_each_deployment_runs_two_that_elect_a_leader_without_root(one: Part) -> None:
    deployment, flags = named("Deployment", one), flags_of(one)
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert deployment["spec"]["replicas"] == 2
    assert container["command"] == [one.program]
    assert (flags["leader_elect"], flags["enable_healthz"], flags["enable_metrics"]) == (True, True, True)
    assert flags["leader_elect_resource_namespace"] == "volcano-system"
    if one is SCHEDULER:
        assert flags["scheduler_conf"] == "/volcano.scheduler/volcano-scheduler.conf"
        assert flags["controllers"] == ()
    assert (container["image"], pod["securityContext"]["runAsNonRoot"]) == ("registry.example/stromboli:1", True)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    budget, service = named("PodDisruptionBudget", one)["spec"], named("Service", one)["spec"]
    assert {"app": one.app} == budget["selector"]["matchLabels"] == service["selector"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert budget["maxUnavailable"] == 1


@pytest.mark.parametrize(
    ("one", "memory", "port"),
    [(SCHEDULER, ("512Mi", "1536Mi"), 8080), (CONTROLLERS, ("256Mi", "1024Mi"), 8081)],
)
def test_where_each_is_reached_and_what_it_may_take(one: Part, memory: tuple[str, str], port: int) -> None:
    pod = named("Deployment", one)["spec"]["template"]["spec"]
    (container,), flags = pod["containers"], flags_of(one)
    assert (flags["listen_address"], flags["healthz_address"], flags["v"]) == (f":{port}", ":11251", 2)
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == {"metrics": port, "health": 11251}
    assert named("Service", one)["spec"]["ports"] == [{"name": "metrics", "port": port, "targetPort": "metrics"}]
    assert container["livenessProbe"]["initialDelaySeconds"] == 60
    resources = container["resources"]
    assert (resources["requests"]["memory"], resources["limits"]["memory"]) == memory
    assert pod["securityContext"]["runAsUser"] == 65532
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert [each["maxSkew"] for each in pod["topologySpreadConstraints"]] == [1]


@pytest.mark.parametrize(("one", "mounts"), [(SCHEDULER, True), (CONTROLLERS, False)])
def test_only_the_scheduler_reads_the_configuration(one: Part, mounts: bool) -> None:
    pod = named("Deployment", one)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volume = {"name": "scheduler-config", "configMap": {"name": "volcano-scheduler-configmap"}}
    mount = {"name": "scheduler-config", "mountPath": "/volcano.scheduler", "readOnly": True}
    assert (volume in pod["volumes"], mount in container["volumeMounts"]) == (mounts, mounts)
    assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]


def test_the_configuration_can_be_loaded(tmp_path: Path) -> None:
    config, admission = objects("ConfigMap")
    assert parse_groups(admission["data"]["volcano-admission.conf"]) == ()
    assert config["data"]["volcano-scheduler.conf"] == CONFIGURATION
    file = tmp_path / "volcano-scheduler.conf"
    file.write_text(CONFIGURATION)
    assert command(["lint", "--config", str(file)]) == 0


def test_the_command_prints_documents_that_can_be_applied(capsys: Any) -> None:
    import yaml

    assert command(["manifests", "--image", "here/it:2", "-n", "batch"]) == 0
    found = list(yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader))
    assert [one["kind"] for one in found].count("CustomResourceDefinition") == 10
    deployments = [one for one in found if one["kind"] == "Deployment"]
    assert [one["spec"]["template"]["spec"]["containers"][0]["image"] for one in deployments] == ["here/it:2"] * 3
    assert {one["metadata"]["namespace"] for one in found if "namespace" in one["metadata"]} == {"batch"}
    assert command(["manifests", "--no-crds"]) == 0
    assert "CustomResourceDefinition" not in capsys.readouterr().out


def test_the_webhook_server_is_what_configurations_lead_to() -> None:
    deployment, service = named("Deployment", ADMISSION)["spec"], named("Service", ADMISSION)["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    flags = parse(container["args"], WEBHOOK_FLAGS)
    assert (deployment["replicas"], deployment["strategy"]) == (2, {"type": "RollingUpdate"})
    assert (container["command"], container["ports"][0]["containerPort"]) == (["/vc-webhook-manager"], flags["port"])
    assert flags["drain_time"] + flags["graceful_shutdown_time"] < pod["terminationGracePeriodSeconds"]
    assert (flags["enabled_admission"], flags["idle"]) == (INSTALLED, [])
    host = f"{name_of(ADMISSION)}-service.volcano-system.svc"
    assert bearer_of(flags).names[0] == host
    ports = {port["port"]: port["targetPort"] for port in service["ports"]}
    registered = [*objects("MutatingWebhookConfiguration"), *objects("ValidatingWebhookConfiguration")]
    assert {one["metadata"]["name"] for one in registered} == {ALL_PATHS[path].configuration for path in INSTALLED}
    for one in registered:
        (hook,) = one["webhooks"]
        client = hook["clientConfig"]["service"]
        assert f"{client['name']}.{client['namespace']}.svc" == host
        assert (ports[client["port"]], hook["failurePolicy"]) == ("webhooks", "Fail")
    (secret,) = [rule for rule in named("Role", ADMISSION)["rules"] if "resourceNames" in rule]
    assert secret["resourceNames"] == [flags["certificate_secret"]]
    assert objects("ValidatingAdmissionPolicy") == [
        one for one in objects("ValidatingAdmissionPolicy") if one["metadata"]["name"] == "stromboli-reservations"
    ]


def test_pods_are_asked_about_when_gates_or_groups_want_it_and_created_without_an_answer() -> None:
    chosen = {"custom.enabled_admissions": "/pods/mutate,/pods/validate", "custom.vap_enable": True}
    written = [
        "resourceGroups: [{resourceGroup: a}]",
        '{"resourceGroups": [{"resourceGroup" : "a"}]}',
        "resourceGroups:\n- 'resourceGroup': a\n",
    ]
    for groups in ("", *written):
        found = manifests(PARTS._replace(settings={**chosen, "custom.admission_config_override": groups or None}))
        hooks = {one["webhooks"][0]["name"]: one["webhooks"][0] for one in found if "webhooks" in one}
        assert set(hooks) == {"mutatepod.volcano.sh", "validatepod.volcano.sh"}
        assert {hook["failurePolicy"] for hook in hooks.values()} == {"Ignore"}
        assert ("matchConditions" in hooks["mutatepod.volcano.sh"]) is (not groups)
        policies = [one["metadata"]["name"] for one in found if one["kind"] == "ValidatingAdmissionPolicy"]
        assert len(policies) == 8


def test_options_are_settings(capsys: Any) -> None:
    import yaml

    gates = "SchedulingGatesQueueAdmission=true"
    assert command(["manifests", "--no-crds", "--policies", "--feature-gates", gates]) == 0
    found = list(yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader))
    given = [one["spec"]["template"]["spec"]["containers"][0]["args"] for one in found if one["kind"] == "Deployment"]
    assert [f"--feature-gates={gates}" in args for args in given] == [True, False, True]
    assert [one for one in found if one["metadata"]["name"] == ALL_PATHS["/pods/mutate"].configuration]
    assert command(["manifests", "--no-crds", "--no-webhooks"]) == 0
    text = capsys.readouterr().out
    assert "admission-service" not in text
    assert "-validation-policy" not in text
    assert command(["manifests", "--feature-gates", "Nonsense=true"]) == 2

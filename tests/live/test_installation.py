"""What an installation consists of, and that its permissions are those that are used."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from stromboli.cli.main import main as command
from stromboli.live.flags import parse
from stromboli.live.installation import CONFIGURATION, Parts, manifests
from stromboli.live.permissions import CONTROLLING, LEADING, SCHEDULING, merged
from tests.live.test_controlling import World, job
from tests.support.contested import GRACE, Contested
from tests.support.live_world import LiveWorld
from tests.support.virtual import run

PARTS = Parts("registry.example/stromboli:1")
PATH = re.compile(r"/(?:api/v1|apis/([^/]+)/[^/]+)(?:/namespaces/[^/]+(?=/))?/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?")


def objects(kind: str) -> list[Any]:
    return [found for found in manifests(PARTS) if found["kind"] == kind]


def used(world: LiveWorld) -> set[tuple[str, str, str]]:
    """Group, resource and verb of every request."""
    found = set()
    for request in world.server.requests:
        match = PATH.fullmatch(request.path)
        assert match, request.path
        group, resource, name, below = match.groups()
        verb = {"GET": "get", "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}[request.method]
        if verb == "get" and not name:
            verb = "watch" if request.params.get("watch") else "list"
        found.add((group or "", f"{resource}/{below}" if below else resource, verb))
    return found


def granted() -> set[tuple[str, str, str]]:
    grants = [*merged(SCHEDULING, CONTROLLING), *LEADING]
    return {(grant.group, grant.resource, verb) for grant in grants for verb in grant.verbs}


NOT_SEEN = {
    ("batch.volcano.sh", "jobs/finalizers", "update"),  # asked about by an admission plugin, never requested
    ("coordination.k8s.io", "leases", "get"),  # leader election has tests of its own
    ("coordination.k8s.io", "leases", "create"),
    ("coordination.k8s.io", "leases", "update"),
    ("", "pods/status", "patch"),  # said once a pod waits; here none does
    ("", "events", "patch"),  # after five minutes
}


def test_everything_that_is_requested_is_granted_and_what_is_granted_is_requested() -> None:
    async def story() -> set[tuple[str, str, str]]:
        world = World()
        for resource in ("hypernodes", "priorityclasses"):
            world.server.objects[resource] = {}
        member = {"type": "Node", "selector": {"exactMatch": {"name": "n0"}}}
        await world.go()
        world.server.put("hypernodes", {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": [member]}})
        volumes = [{"mountPath": "/d", "volumeClaim": {"accessModes": []}}]
        world.server.put("jobs", job("j", 2, volumes=volumes, ttlSecondsAfterFinished=1))
        container = {"name": "c", "image": "i"}
        spec = {"schedulerName": "volcano", "containers": [container]}
        world.server.put("pods", {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec,
                                  "status": {"phase": "Pending"}})  # fmt: skip
        await asyncio.sleep(10)
        world.command("RestartJob", "Job", "j")
        await asyncio.sleep(10)
        world.end_pods("j", "Succeeded")
        await asyncio.sleep(10)
        await world.end()
        return used(world)

    requested = run(story())
    assert requested - granted() == set()
    writes = {row for row in granted() if row[2] not in ("get", "list", "watch")} - NOT_SEEN
    assert writes - requested == set()


def test_a_scheduler_that_holds_reservations_needs_no_more_than_it_is_granted(tmp_path: Path) -> None:
    async def story() -> set[tuple[str, str, str]]:
        world = Contested(tmp_path / "conf")
        world.start(world.mortal())
        world.contend()
        await asyncio.sleep(GRACE + 5)
        assert "" not in world.high()
        await world.end()
        return used(world)

    requested = run(story())
    own = {(grant.group, grant.resource, verb) for grant in (*SCHEDULING, *LEADING) for verb in grant.verbs}
    assert requested - own == set()
    assert ("", "pods", "patch") in requested
    assert [verb for _, _, verb in requested if verb == "update"] == []


def test_roles_bind_the_account_of_the_deployment() -> None:
    (account,) = objects("ServiceAccount")
    (deployment,) = objects("Deployment")
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == account["metadata"]["name"]
    for kind in ("ClusterRole", "Role"):
        (role,), (binding,) = objects(kind), objects(f"{kind}Binding")
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        assert binding["subjects"][0]["name"] == account["metadata"]["name"]
        assert all("*" not in (*rule["verbs"], *rule["resources"], *rule["apiGroups"]) for rule in role["rules"])
    assert "secrets" not in {resource for _, resource, _ in granted()}


def test_the_deployment_runs_two_that_elect_a_leader_as_nobody() -> None:
    (deployment,) = objects("Deployment")
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    flags = parse(container["args"][1:])
    assert deployment["spec"]["replicas"] == 2
    assert container["args"][0] == "serve"
    assert (flags["leader_elect"], flags["controllers"], flags["enable_healthz"]) == (True, ("*",), True)
    assert flags["leader_elect_resource_namespace"] == "volcano-system"
    assert flags["scheduler_conf"] == "/volcano.scheduler/volcano-scheduler.conf"
    assert (container["image"], pod["securityContext"]["runAsNonRoot"]) == ("registry.example/stromboli:1", True)
    (budget,), (service,) = objects("PodDisruptionBudget"), objects("Service")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == budget["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert budget["spec"]["minAvailable"] == 1


def test_the_configuration_can_be_loaded(tmp_path: Path) -> None:
    (config,) = objects("ConfigMap")
    assert config["data"]["volcano-scheduler.conf"] == CONFIGURATION
    file = tmp_path / "volcano-scheduler.conf"
    file.write_text(CONFIGURATION)
    assert command(["lint", "--config", str(file)]) == 0


def test_the_command_prints_documents_that_can_be_applied(capsys: Any) -> None:
    import yaml

    assert command(["manifests", "--image", "here/it:2", "-n", "batch"]) == 0
    found = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [one["kind"] for one in found].count("CustomResourceDefinition") == 10
    assert found[-3]["spec"]["template"]["spec"]["containers"][0]["image"] == "here/it:2"
    assert {one["metadata"]["namespace"] for one in found if "namespace" in one["metadata"]} == {"batch"}
    assert command(["manifests", "--no-crds"]) == 0
    assert "CustomResourceDefinition" not in capsys.readouterr().out

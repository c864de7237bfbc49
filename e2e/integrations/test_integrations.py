"""What operators of other projects write, as recorded, on each kind of server with real processes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import yaml

from e2e.clusters import MERGE, Json, Real, Refused
from e2e.conftest import place_of
from e2e.objects import namespace, pod_spec
from e2e.stage import ALREADY_THERE, GONE, GROUPS, Stage, collection_of, staged, until
from stromboli.framework.config.config import DEFAULT_CONFIG
from tests.support.recorded import definition, read, recordings
from tools.integrations import NOTED, digest

GATES = (
    "GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption",
    "DRAWorkloadResourceClaims",
)  # fmt: skip
UPSTREAM = (
    f"--feature-gates={','.join(f'{gate}=true' for gate in GATES)}",
    "--runtime-config=scheduling.k8s.io/v1alpha2=true",
)
"""What has a kube-apiserver of 1.36 serve PodGroups and Workloads of its own."""
UPSTREAM_GROUPS = "/apis/scheduling.k8s.io/{}/namespaces/{}/podgroups"
SETTLED = 2.0
"""Seconds, some ten cycles, after which what waits has been looked at."""


@pytest.fixture(scope="session")
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A kind of server with the nodes that recordings count on, and with Kubernetes' own PodGroups."""
    server, folder = place_of(request, tmp_path_factory)
    if isinstance(server, Real):
        server.flags = UPSTREAM
    with staged(server, folder, ("4x4cpu,32Gi",)) as found:
        yield found


@pytest.mark.parametrize("path", recordings("embedded"), ids=lambda path: path.stem)
@pytest.mark.parametrize("small", ["embedded"], indirect=True)
def test_a_recording_on_the_embedded_server(small: Stage, path: Path) -> None:
    play(small, path)


@pytest.mark.parametrize("path", recordings("real"), ids=lambda path: path.stem)
@pytest.mark.parametrize("small", ["real"], indirect=True)
def test_a_recording_on_a_kube_apiserver(small: Stage, path: Path) -> None:
    play(small, path)


def play(small: Stage, path: Path) -> None:
    """Play a recording to its end, and note that."""
    head, steps = read(path)
    space = f"r-{path.stem}"
    player = Player(small, space, sorted(node["metadata"]["name"] for node in small.items("/api/v1/nodes")))
    small.create(namespace(space))
    conf = DEFAULT_CONFIG + "".join(f"  - name: {name}\n" for name in head.get("plugins", ()))
    try:
        with small.scheduler(conf=conf), small.lawful():
            for step in steps:
                ((verb, given),) = player.placed(step).items()
                getattr(player, f"_{verb}")(given)
    finally:
        player.clear()
    NOTED.mkdir(parents=True, exist_ok=True)
    version = small.api.call("GET", "/version")["gitVersion"]
    (NOTED / f"{path.stem}.{small.kind}").write_text(f"{version} {digest(path)}\n", encoding="utf-8")


@dataclass
class Player:
    """The hand of an operator in the namespace ``space``; ``n0`` of a recording is the first of ``nodes``."""

    stage: Stage
    space: str
    nodes: list[str]
    made: list[str] = field(default_factory=list)
    """Paths of objects, in the order in which they were made."""

    def placed(self, step: Json) -> Json:
        """A step with this cluster's names."""
        text = re.sub(r"\bn([0-3])\b", lambda found: self.nodes[int(found[1])], yaml.safe_dump(step))
        text = re.sub(r"\bns/", f"{self.space}/", text)
        found: Json = yaml.safe_load(re.sub(r"namespace: ns\b", f"namespace: {self.space}", text))
        return found

    @property
    def groups(self) -> str:
        """The path of the PodGroups."""
        return GROUPS.format(self.space)

    # ------------------------------------------------------------------ the operator

    def _create(self, body: Json) -> None:
        self._serve(body["apiVersion"], body["kind"])
        owners = body["metadata"].get("ownerReferences") or ()
        body["metadata"]["ownerReferences"] = [{**one, "uid": self._uid(one)} for one in owners]
        lacking = body.pop("unchecked", False) and body["spec"]["queue"]
        if lacking:  # a queue that was there when the group was made
            self.stage.queue(lacking)
        self.stage.create(body)
        if body["kind"] == "Queue":
            self.stage.until_open(body["metadata"]["name"])
        self.made.append(f"{collection_of(body)}/{body['metadata']['name']}")
        if lacking:
            self.stage.delete(f"/apis/scheduling.volcano.sh/v1beta1/queues/{lacking}")

    def _pod(self, given: Json) -> None:
        spec = {**pod_spec(str(given["cpu"]), "serve"), "schedulerName": "volcano"}
        spec["nodeSelector"] = given.get("selector", {})
        spec["schedulingGates"] = [{"name": name} for name in given.get("gates", ())]
        spec |= {"schedulingGroup": {"podGroupName": given["upstream"]}} if "upstream" in given else {}
        spec["resourceClaims"] = given.get("claims", [])
        notes = {"scheduling.k8s.io/group-name": given.get("group"), "volcano.sh/task-spec": given.get("task")}
        metadata = {
            "name": given["name"], "namespace": self.space, "labels": given.get("labels", {}),
            "annotations": {key: text for key, text in notes.items() if text},
            "ownerReferences": [{**given["owner"], "controller": True}] if "owner" in given else [],
        }  # fmt: skip
        self._create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def _patch(self, given: Json) -> None:
        self.stage.api.call("PATCH", self._path(given), given["by"], MERGE)

    def _delete(self, given: Json) -> None:
        self.stage.delete(self._path(given), propagationPolicy="Background")

    def _path(self, given: Json) -> str:
        cluster_wide = given["kind"] in ("Queue", "HyperNode", "PriorityClass")
        metadata = {} if cluster_wide else {"namespace": self.space}
        return f"{collection_of({**given, 'metadata': metadata})}/{given['name']}"

    def _uid(self, owner: Json) -> str:
        uid: str = self.stage.api.call("GET", self._path(owner))["metadata"]["uid"]
        return uid

    def _serve(self, version: str, kind: str) -> None:
        """Define a kind that an operator brings, when it is first met."""
        if version.partition("/")[0] in OWN or "/" not in version:
            return
        body = definition(version, kind)
        try:
            self.stage.api.call("POST", collection_of({**body, "metadata": {}}), body)
        except Refused as error:
            if error.code != ALREADY_THERE:
                raise
        path = f"/apis/{version}/namespaces/{self.space}/{body['spec']['names']['plural']}"
        until(lambda: "items" in self.stage.api.call("GET", path), f"{kind} is served")

    # ------------------------------------------------------------------ what holds

    def _check(self, wanted: Json) -> None:
        if "running" in wanted:
            until(partial(self._runs, wanted["running"]), f"{wanted}")
        if wanted.get("waiting") or "running" not in wanted:
            time.sleep(SETTLED)
        assert self._stand("waiting") == wanted.get("waiting", []) or not {"waiting", "running"} & set(wanted)
        nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in self._pods()}
        assert {name: nodes[name] for name in wanted.get("nodes", {})} == wanted.get("nodes", {})
        assert len({nodes[name] for name in wanted.get("alike", ())}) <= 1
        for name, group in wanted.get("group", {}).items():
            if "@" in name:  # what such a group's job is like is not written anywhere
                continue
            shown = {key: text for key, text in group.items() if key != "priority"}
            until(partial(self._is_group, name, shown), f"{name}: {shown}")
        for name, text in wanted.get("told", {}).items():
            until(partial(self._is_told, name, text), f"{name} is told {text}")
        for name, users in wanted.get("reserved", {}).items():
            until(partial(self._is_reserved, name, users), f"{name} is reserved for {users}")
        if wanted.get("nothing"):
            until(self._is_empty, "nothing is left")

    def _pods(self) -> list[Json]:
        return self.stage.pods(self.space)

    def _groups(self) -> list[Json]:
        return self.stage.items(self.groups)

    def _upstream(self) -> list[Json]:
        version = "v1alpha2" if self.stage.kind == "real" else "v1beta1"
        return self.stage.items(UPSTREAM_GROUPS.format(version, self.space))

    def _stand(self, how: str) -> list[str]:
        placed = how == "running"
        return sorted(one["metadata"]["name"] for one in self._pods() if bool(one["spec"].get("nodeName")) is placed)

    def _is_group(self, name: str, shown: Json) -> bool:
        body = next(one for one in self._groups() if one["metadata"]["name"] == name)
        found = {"queue": body["spec"].get("queue") or "default", "phase": (body.get("status") or {}).get("phase")}
        return shown.items() <= found.items()

    def _is_reserved(self, claim: str, users: list[str]) -> bool:
        path = f"/apis/resource.k8s.io/v1/namespaces/{self.space}/resourceclaims/{claim}"
        found = self.stage.api.call("GET", path).get("status", {}).get("reservedFor", ())
        return sorted(f"{one['resource']}/{one['name']}" for one in found) == users

    def _runs(self, names: list[str]) -> bool:
        self._is_empty()
        return self._stand("running") == names

    def _is_told(self, name: str, text: str) -> bool:
        return any(text in one for one in self._told(name))

    def _told(self, name: str) -> Iterator[str]:
        for event in self.stage.items(f"/api/v1/namespaces/{self.space}/events"):
            if event["involvedObject"]["name"] == name:
                yield event["message"]
        for body in (*self._pods(), *self._groups(), *self._upstream()):
            if body["metadata"]["name"] == name:
                yield from (one.get("message", "") for one in (body.get("status") or {}).get("conditions") or ())

    def _is_empty(self) -> bool:
        """Whether nothing is left, once what belongs to nothing is deleted: a bare API server has no collector."""
        pods = f"/api/v1/namespaces/{self.space}/pods"
        listed = [f"{path}/{one['metadata']['name']}" for path in (pods, self.groups) for one in self.stage.items(path)]
        found = {path: body["metadata"] for path in {*self.made, *listed} if (body := self._read(path))}
        uids = {metadata["uid"] for metadata in found.values()}
        for path, metadata in found.items():
            owners = {one["uid"] for one in metadata.get("ownerReferences") or ()}
            if owners and not owners & uids:
                self.stage.delete(path, propagationPolicy="Background")
        return not listed

    def _read(self, path: str) -> Json | None:
        try:
            return self.stage.api.call("GET", path)
        except Refused as error:
            if error.code != GONE:
                raise
            return None

    def clear(self) -> None:
        """Delete everything that was made, the latest first."""
        for path in reversed(self.made):
            self.stage.delete(path, propagationPolicy="Background")
        self.stage.clear(self.space)


OWN = {"scheduling.volcano.sh", "topology.volcano.sh", "scheduling.k8s.io", "resource.k8s.io", "batch", "apps"}

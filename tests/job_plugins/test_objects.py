"""The objects that job plugins want, whole, and what is wrong with jobs that they cannot serve."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from stromboli.errors import PluginError
from stromboli.job_plugins.wanted import SORTS
from tests.job_plugins.jobs import Json, job, objects_of, plugins_of, task

LABELS = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns"}
TWO = (task("my-task", 2), task("b", 3, hostname="h", subdomain="s"), task("c", 0))
HOSTS = {
    "my_task.host": "j-my-task-0.j\nj-my-task-1.j", "VC_MY_TASK_HOSTS": "j-my-task-0.j,j-my-task-1.j",
    "VC_MY_TASK_NUM": "2", "b.host": "h.s", "VC_B_HOSTS": "h.s", "VC_B_NUM": "1", "c.host": "", "VC_C_HOSTS": "",
    "VC_C_NUM": "0",
}  # fmt: skip
CONFIG = """\
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
Host j-my-task-0
  HostName j-my-task-0.j
  Port {port}
Host j-my-task-1
  HostName j-my-task-1.j
  Port {port}
Host h
  HostName h.s
  Port {port}
"""


def svc(*, ready: bool = False, policy: bool = True) -> dict[str, Json]:
    selector = {"matchLabels": LABELS}
    rules = {"ingress": [{"from": [{"podSelector": selector}]}], "policyTypes": ["Ingress"]}
    found: dict[str, Json] = {
        "ConfigMap j-svc": {"apiVersion": "v1", "data": HOSTS},
        "Service j": {"apiVersion": "v1", "spec": {
            "clusterIP": "None", "publishNotReadyAddresses": ready, "selector": LABELS}},
    }  # fmt: skip
    closed = {"apiVersion": "networking.k8s.io/v1", "spec": {"podSelector": selector, **rules}}
    return found | ({"NetworkPolicy j": closed} if policy else {})


def ssh(port: int = 22, keys: dict[str, str] | None = None) -> dict[str, Json]:
    texts = {**(keys or {}), "config": CONFIG.format(port=port)}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    return {"Secret j-ssh": {"apiVersion": "v1", "data": data}}


def ray(head: str = "head", *ports: int) -> dict[str, Json]:
    names = zip(("gcs", "dashboard", "client-server"), ports or (6379, 8265, 10001), strict=True)
    rows = [{"name": name, "port": port, "targetPort": name, "protocol": "TCP"} for name, port in names]
    return {"Service j-head-svc": {"apiVersion": "v1", "spec": {
        "selector": {**LABELS, "volcano.sh/task-spec": head}, "ports": rows}}}  # fmt: skip


GIVEN = ["--ssh-private-key=secret", "--ssh-public-key", "public"]
ROWS: dict[str, tuple[dict[str, list[str]], tuple[Json, ...], dict[str, Json]]] = {
    "svc": ({"svc": []}, TWO, svc()),
    "svc, addresses of pods that are not ready": ({"svc": ["-publish-not-ready-addresses"]}, TWO, svc(ready=True)),
    "svc, open": ({"svc": ["--disable-network-policy=T"]}, TWO, svc(policy=False)),
    "ssh": ({"ssh": []}, TWO, ssh()),
    "ssh, port": ({"ssh": ["--ssh-port=0o17"]}, TWO, ssh(15)),
    "ssh, no port": ({"ssh": ["--ssh-port=65536"]}, TWO, ssh(22)),
    "ssh, given keys": ({"ssh": GIVEN}, TWO, ssh(keys={
        "id_rsa": "secret", "id_rsa.pub": "public", "authorized_keys": "public"})),
    "ray": ({"ray": []}, (task("head"),), ray()),
    "ray, flags": (
        {"ray": ["--head=h", "--port=1", "--dashboardPort=2", "--clientPort=3"]}, (task("h"),), ray("h", 1, 2, 3),
    ),
    "others": ({name: [] for name in ("env", "tensorflow", "mpi", "pytorch", "hcclrank")}, TWO, {}),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_objects_are_those_of_the_plugin(row: str) -> None:
    plugins, tasks, expected = ROWS[row]
    assert objects_of(job(*tasks, plugins=plugins)) == expected


def test_a_port_that_there_is_not_is_told() -> None:
    [plugin] = plugins_of(job(*TWO, plugins={"ssh": ["--ssh-port=0"]}))
    assert list(plugin.warnings()) == ["invalid ssh port 0, falling back to default port 22"]


def test_hosts_that_no_process_can_be_given_are_told() -> None:
    long = [task("a", 5000, init=False, subdomain="s" * 30)]
    [plugin] = plugins_of(job(*long, plugins={"svc": []}))
    assert "--inject-hosts-env=false leaves it out" in next(iter(plugin.warnings()))
    [plugin] = plugins_of(job(*long, plugins={"svc": ["--inject-hosts-env=false"]}))
    assert not list(plugin.warnings())


TOO_MANY = {
    "svc": (40_000, "a ConfigMap"), "ssh": (40_000, "a Secret"), "tensorflow": (10_000, "a variable"),
    "mpi": (20_000, "a variable"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_MANY)
def test_names_are_counted_before_they_cost(name: str) -> None:
    replicas, what = TOO_MANY[name]
    found = job(task("worker", replicas), plugins={name: []})
    [plugin] = plugins_of(found)
    with pytest.raises(PluginError, match=what):
        plugin.problem()
    [plugin] = plugins_of(job(task("worker", 100), plugins={name: []}))
    assert plugin.problem() == ""


def test_ray_needs_a_head() -> None:
    [plugin] = plugins_of(job(task("a"), plugins={"ray": []}))
    assert plugin.problem() == "job j doesn't have head task head"


def _filled(resource: str, part: Any) -> Any:
    """A part as an API server stores it."""
    if resource != "services":
        return part
    ports = [{**row, "nodePort": 0} for row in part.get("ports", ())]
    return {**part, "clusterIPs": ["None"], "sessionAffinity": "None", "ipFamilies": ["IPv4"]} | (
        {"ports": ports} if ports else {}
    )


EVERYTHING: dict[str, list[str]] = {"svc": [], "ssh": [], "ray": []}


def test_what_says_what_is_wanted_is_left_alone_however_the_server_fills_it_in() -> None:
    for plugin in plugins_of(job(task("head", 2), plugins=EVERYTHING)):
        for wanted in plugin.objects():
            found = wanted.manifest("ns", {"uid": "u"}, {})
            found[wanted.sort.part] = _filled(wanted.resource, found[wanted.sort.part])
            assert wanted.difference(found, {}) == {}


CHANGES: dict[str, tuple[str, str, Json, Json]] = {
    "a text": ("configmaps", "data", {"head.host": "x"}, {"head.host": "j-head-0.j"}),
    "a text too many": ("configmaps", "data", {"more": "x"}, {"more": None}),
    "a label too many": (
        "services", "spec", {"selector": {**LABELS, "x": "y"}}, {"selector": {"x": None}},
    ),
    "an address": ("services", "spec", {"publishNotReadyAddresses": True}, {"publishNotReadyAddresses": False}),
    "a rule": ("networkpolicies", "spec", {"ingress": [{}]}, {"ingress": [
        {"from": [{"podSelector": {"matchLabels": LABELS}}]}]}),
    "more rules": ("networkpolicies", "spec", {"egress": []}, {"egress": None}),
    "a rule with less in it": (
        "networkpolicies", "spec",
        {"ingress": [{"from": [{"podSelector": {"matchLabels": LABELS}}], "ports": [{"port": 1}]}]},
        {"ingress": [{"from": [{"podSelector": {"matchLabels": LABELS}}]}]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", CHANGES)
def test_what_was_changed_by_hand_is_put_back(row: str) -> None:
    resource, part, change, patch = CHANGES[row]
    [plugin] = plugins_of(job(task("head"), plugins={"svc": []}))
    [wanted] = [one for one in plugin.objects() if one.resource == resource]
    found = wanted.manifest("ns", {"uid": "u"}, {})
    found[part] = {**found[part], **change}
    assert wanted.difference(found, {}) == {part: patch}


def test_every_sort_has_an_object_among_these() -> None:
    wanted = [one for plugin in plugins_of(job(task("head"), plugins=EVERYTHING)) for one in plugin.objects()]
    assert {one.resource for one in wanted} == set(SORTS)

"""What real pods are given and how their statuses follow; that they run is a story of `e2e/test_up.py`."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest

from stromboli.errors import ShapeError
from stromboli.server.kubelet.real import contents, hosts
from stromboli.server.kubelet.real.container import MOST_LOG, Container
from stromboli.server.kubelet.real.layout import Command, Mount, script
from stromboli.server.kubelet.real.pods import RealPod
from tests.server.browser import pod

SOURCES = {
    ("configmaps", "c"): {"data": {"a": "1", "b": "2"}},
    ("secrets", "s"): {"data": {"key": base64.b64encode(b"word").decode()}},
}
POD = pod("p", metadata={"labels": {"x/y": "z"}, "namespace": "default"})
POD["spec"]["nodeName"] = "n"
POD["status"] = {"podIP": "127.1.0.2", "podIPs": [{"ip": "127.1.0.2"}]}


async def find(kind, name):
    return SOURCES.get((kind, name))


def _env(**source):
    return {"env": [{"name": "A", "value": "x"}, {"name": "B", **source}]}


def _from(kind, **stated):
    return _env(valueFrom={kind: stated})


VARIABLES = [
    (_env(value="$(A) $$(A) $(NONE)"), "x $(A) $(NONE)"),
    (_from("configMapKeyRef", name="c", key="b"), "2"),
    (_from("configMapKeyRef", name="c", key="no", optional=True), None),
    (_from("secretKeyRef", name="s", key="key"), "word"),
    (_from("secretKeyRef", name="none", key="key", optional=True), None),
    (_from("fieldRef", fieldPath="metadata.labels['x/y']"), "z"),
    (_from("fieldRef", fieldPath="status.podIP"), "127.1.0.2"),
    (_from("fieldRef", fieldPath="spec.nodeName"), "n"),
    ({**_from("resourceFieldRef", resource="limits.memory", divisor="1Mi"),
      "resources": {"limits": {"memory": "1500Ki"}}}, "2"),
    ({"envFrom": [{"prefix": "B", "configMapRef": {"name": "c"}}], "env": [{"name": "B", "value": "$(Ba)"}]}, "1"),
]  # fmt: skip


@pytest.mark.parametrize(("container", "value"), VARIABLES)
def test_variables_are_resolved(container, value):
    assert asyncio.run(contents.variables(POD, container, find)).get("B") == value


@pytest.mark.parametrize(
    ("container", "problem"),
    [
        (_from("configMapKeyRef", name="c", key="no"), "couldn't find key no in configMap c"),
        (_from("secretKeyRef", name="none", key="k"), "secret 'none' not found"),
        (_from("fieldRef", fieldPath="spec.containers"), "fieldPath spec.containers is not supported"),
    ],
)
def test_what_variables_lack_is_told(container, problem):
    with pytest.raises(ShapeError, match=problem):
        asyncio.run(contents.variables(POD, container, find))


def _filled(folder, **volume):
    asyncio.run(contents.fill(POD, {"name": "v", **volume}, folder, find))
    return {
        str(path.relative_to(folder)): (path.read_text(), path.stat().st_mode & 0o777)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


VOLUMES = [
    ({"configMap": {"name": "c"}}, {"a": ("1", 0o644), "b": ("2", 0o644)}),
    ({"secret": {"secretName": "s", "defaultMode": 0o600, "items": [{"key": "key", "path": ".ssh/k"}]}},
     {".ssh/k": ("word", 0o600)}),
    ({"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
     {"l": ('x/y="z"', 0o644)}),
    ({"projected": {"sources": [{"configMap": {"name": "c", "items": [{"key": "a", "path": "q", "mode": 0o400}]}},
                                {"secret": {"name": "s"}}]}}, {"key": ("word", 0o644), "q": ("1", 0o400)}),
    ({"emptyDir": {}}, {}),
    ({}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("volume", "files"), VOLUMES)
def test_volumes_are_filled(volume, files, tmp_path):
    assert _filled(tmp_path, **volume) == files


@pytest.mark.parametrize(
    ("volume", "problem"),
    [
        ({"configMap": {"name": "c", "items": [{"key": "a", "path": "../a"}]}}, "leads out of its volume"),
        ({"configMap": {"name": "c", "items": [{"key": "z", "path": "a"}]}}, "references non-existent configmap key"),
        ({"hostPath": {"path": "/"}}, "hostPath is not there with --pods real"),
    ],
)
def test_volumes_that_cannot_be_had_are_told(volume, problem, tmp_path):
    with pytest.raises(ShapeError, match=problem):
        _filled(tmp_path, **volume)


def test_names_of_pods_and_services(tmp_path):
    file, service = tmp_path / "hosts", {"metadata": {"name": "j", "namespace": "default"}}
    named = {**POD, "spec": {"hostname": "h", "subdomain": "j"}}
    hosts.write(file, [(named, "127.1.0.1")] * 3, [])
    hosts.write(file, [(named, "127.1.0.2")], [service, {**service, "spec": {"selector": {"x/y": "z"}}}])
    assert file.read_text().splitlines() == [
        "127.0.0.1\tlocalhost",
        "127.1.0.2\th.j.default.svc.cluster.local h.j.default.svc h.j.default h.j h",
        "127.1.0.2\tj.default.svc.cluster.local j.default.svc j.default j",
    ]


def test_words_of_a_command_stay_words(tmp_path):
    command = Command(["echo", "it's; rm $(x)"], {"A": "b c"}, "/w d", "n", 7)
    *_, last = script(tmp_path, [Mount(tmp_path, "/new/place")], command).splitlines()
    assert "--data=7" in last
    assert last.endswith(f"""chroot {tmp_path} /usr/bin/env -i 'A=b c' sh -c 'cd "$0" && exec "$@"' '/w d' echo """
                         """'it'"'"'s; rm $(x)'""")  # fmt: skip


def _at(code):
    one = Container("c", "", Path("/none"))
    if code == "runs":
        one.state = {"running": {}}
    elif code is not None:
        one.ended(code, "2026-01-01T00:00:00Z")
    return one


@pytest.mark.parametrize(
    ("policy", "inits", "codes", "phase"),
    [
        ("Never", [], [None], "Pending"),
        ("Never", ["runs"], [None], "Pending"),
        ("Never", [1], [None], "Failed"),
        ("OnFailure", [1], [None], "Pending"),
        ("Never", [0], ["runs", None], "Running"),
        ("Never", [], [0, "runs"], "Running"),
        ("Never", [], [0, 0], "Succeeded"),
        ("Never", [], [0, 3], "Failed"),
    ],
)
def test_the_phase_follows_the_containers(policy, inits, codes, phase):
    body = {"spec": {"restartPolicy": policy}}
    assert RealPod(body, Path(), "", [*map(_at, inits)], [*map(_at, codes)]).phase == phase


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Always", 0, True), ("OnFailure", 0, False), ("OnFailure", 2, True), ("Never", 2, False)],
)
def test_restarts_follow_the_policy(policy, code, again):
    one = _at(code)
    assert RealPod({"spec": {"restartPolicy": policy}}, Path(), "", [], [one]).again(one) is again


def test_a_log_is_bounded_and_an_exit_code_is_that_of_the_process(tmp_path):
    async def story():
        code = f"echo 1; head -c {MOST_LOG + 99} /dev/zero; kill -9 $$"
        process = await asyncio.create_subprocess_exec("sh", "-c", code, stdout=asyncio.subprocess.PIPE)
        return await Container("c", "", tmp_path).follow(process)

    assert asyncio.run(story()) == 137
    log = (tmp_path / "log").read_bytes()
    assert log[:MOST_LOG].count(b"\0") == MOST_LOG
    assert b"the rest is left out" in log[MOST_LOG:]

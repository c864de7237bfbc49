"""Every command on the operator's pages, as it stands there, from top to bottom, on each kind of server.

A page is read in a folder of its own that holds the examples and a configuration, with ``stromboli`` and ``kubectl`` on
the path.  Before the first command the cluster has another scheduler: its Deployment, and the Lease that it holds.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from e2e.clusters import STROMBOLI, Json
from e2e.conftest import place_of
from e2e.real import ended
from e2e.stage import NAMESPACE, Stage, begun, until
from stromboli.live.installation.configurations import CONFIGURATION

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ROOT / "docs" / "operators"
SECONDS: Final = 120.0
"""No command that ends by itself takes longer."""

HOLDER: Final = "volcano-scheduler-7c9d_0b6f"
QUEUE: Final[Json] = {
    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
    "metadata": {"name": "research"}, "spec": {"weight": 2},
}  # fmt: skip
_BLOCK: Final = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE: Final = re.compile(r"`(kubectl [^`]+)`")
_STAYS: Final = re.compile(r"^stromboli serve\b")
"""Commands that go on until they are told to end."""


class Page(NamedTuple):
    """A page of the operator's guide, and what its commands print."""

    name: str
    words: dict[str, tuple[str, ...]]
    """Texts that a command's output must have, by the command's beginning."""


READ: Final = (
    Page(
        "running.md",
        {
            "kubectl apply": ("serverside-applied",),
            "stromboli plan": ("pods bound",),
            "kubectl -n volcano-system get configmap": ("volcano-scheduler.conf", "actions:"),
            "kubectl get queues": ("kind: Queue",),
        },
    ),
    Page(
        "migration.md",
        {
            "stromboli migrate check --output": (),
            "stromboli migrate check examples": ("in use: 2 Queue, 3 Job",),
            "stromboli migrate check": ("Deployment volcano-system/volcano-scheduler", "Lease volcano-system/volcano"),
            "kubectl -n volcano-system get lease": (HOLDER,),
            "stromboli manifests": ("customresourcedefinition", "deployment.apps/stromboli-scheduler"),
            "kubectl -n volcano-system scale deployment volcano-scheduler": ("scaled",),
            "kubectl -n volcano-system scale deployment stromboli-scheduler": ("scaled",),
        },
    ),
    Page("alerts.md", {"kubectl -n volcano-system get lease": (HOLDER,)}),
    Page("troubleshooting.md", {"stromboli conf show": ("actions",)}),
)


def commands_of(name: str) -> list[str]:
    """The commands of a page: lines of its shell blocks, then those of kubectl within sentences."""
    text = (PAGES / name).read_text(encoding="utf-8")
    blocks = [
        line for block in _BLOCK.findall(text) for line in block.splitlines() if line and not line.startswith("#")
    ]
    return blocks + _INLINE.findall(_BLOCK.sub("", text))


def deployment() -> Json:
    """The other scheduler as its users have it."""
    arguments = ["--logtostderr", "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf", "--leader-elect=true"]
    container = {"name": "volcano-scheduler", "image": "docker.io/volcanosh/vc-scheduler:v1.12.1", "args": arguments}
    labels = {"app": "volcano-scheduler"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "volcano-scheduler", "namespace": NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }  # fmt: skip


def lease() -> Json:
    """The Lease as the other scheduler holds it."""
    return {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "volcano", "namespace": NAMESPACE},
        "spec": {"holderIdentity": HOLDER, "leaseDurationSeconds": 15},
    }  # fmt: skip


@pytest.fixture(scope="module", params=["embedded", "real"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with the kinds and the other scheduler, and without webhooks, as no webhook server runs."""
    with begun(*place_of(request, tmp_path_factory)) as stage:
        stage.install()
        stage.create(deployment(), lease(), QUEUE)
        yield stage


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder as the pages expect it."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "volcano-scheduler.conf").write_text(CONFIGURATION)
    program = tmp_path / "bin" / "stromboli"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(STROMBOLI)} "$@"\n')
    program.chmod(0o755)
    return tmp_path


class Shell(NamedTuple):
    """Where commands are typed."""

    folder: Path
    kubeconfig: Path

    def environment(self) -> dict[str, str]:
        """What the commands see; the servers are real ones, so that only the path and the access are set."""
        path = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        where = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder)}
        return {**os.environ, "PATH": path, "COLUMNS": "160", **where}

    def run(self, command: str) -> str:
        """Run a command to its end; what it printed.  It must end well, each part of a pipe as well."""
        words = ["bash", "-o", "pipefail", "-c", command]
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def begin(self, command: str, sign: str) -> None:
        """Run a command that stays until it has logged a sign, then end it, which must go well."""
        log = self.folder / "log"
        with log.open("wb") as stream:
            words = ["bash", "-c", f"exec {command} --listen-address=127.0.0.1:0"]  # the page's port may be taken
            process = subprocess.Popen(words, cwd=self.folder, env=self.environment(), stdout=stream, stderr=stream)
        try:
            until(lambda: sign in log.read_text() or process.poll() is not None, f"{command}: {sign}")
            assert process.poll() is None, log.read_text()
        finally:
            ended(process)


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_every_command_of_a_page_works(cluster: Stage, desk: Path, page: Page) -> None:
    shell = Shell(desk, cluster.server.kubeconfig)
    commands = commands_of(page.name)
    assert commands
    for command in commands:
        if _STAYS.match(command):
            shell.begin(command, "shadow")
            continue
        printed = shell.run(command)
        begun_with = next((start for start in page.words if command.startswith(start)), "")
        for word in page.words.get(begun_with, ()):
            assert word in printed, f"$ {command}\n{printed}"
        if command.endswith(("-f -", ".yaml")):
            _forget_webhooks(cluster)
    assert not [start for start in page.words if not any(one.startswith(start) for one in commands)]


def _forget_webhooks(cluster: Stage) -> None:
    """No pods run here that would answer the webhooks that the page installs."""
    for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        path = f"/apis/admissionregistration.k8s.io/v1/{kind}"
        for one in cluster.items(path):
            cluster.delete(f"{path}/{one['metadata']['name']}")


def test_every_page_with_commands_is_read() -> None:
    with_commands = {path.name for path in PAGES.glob("*.md") if commands_of(path.name)}
    assert with_commands == {page.name for page in READ}


def test_the_check_is_json(cluster: Stage, desk: Path) -> None:
    """What the page writes into a file can be read again, and names the Deployment."""
    shell = Shell(desk, cluster.server.kubeconfig)
    shell.run("stromboli migrate check --output json > before.json")
    told = json.loads((desk / "before.json").read_text())
    assert any("volcano-scheduler" in str(one.get("object")) for one in told["findings"])

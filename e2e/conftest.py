"""Servers for stories: the embedded one and a real kube-apiserver."""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from e2e import real
from e2e.clusters import SERVERS, Server
from e2e.objects import namespace
from e2e.stage import Stage, staged

pytest_plugins = ["tests.support.skips"]

CUT_SHORT = (
    r"ignore:unclosed <socket\.socket [^>]*raddr=\('127\.0\.0\.1':ResourceWarning",
    r"ignore:unclosed transport <:ResourceWarning",
)
"""Connections of the proxy of faults whose client goes while they are made: aiohttp leaves them to the collector, which
may meet them in a later story, the socket first or the transport.  The programs of the stories run in processes of
their own.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of several processes one plays the stories on each kind of stage; of the other stories a file stays together."""
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        group = f"stage-{params['stage']}" if "stage" in params else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
        item.add_marker(pytest.mark.filterwarnings(*CUT_SHORT))


@pytest.fixture(scope="session")
def kube_apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.RealServer]:
    """A real kube-apiserver for the whole session; skips where it cannot be had."""
    if reason := real.missing():
        pytest.skip(reason)
    with real.real_server(tmp_path_factory.mktemp("kapi")) as server:
        yield server


@pytest.fixture(scope="session", params=["embedded", "real"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Each kind of server in turn, with our manifests, nodes and controllers."""
    with staged(*place_of(request, tmp_path_factory)) as found:
        yield found


@pytest.fixture
def space(stage: Stage, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the story's own, in which the laws hold; what is in it goes with the story."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:63].strip("-")  # no name is longer
    stage.create(namespace(name))
    try:
        with stage.lawful():
            yield name
    finally:
        stage.clear(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A story that fails shows how everything stood."""
    report = yield
    stage, space = item.funcargs.get("stage"), item.funcargs.get("space")
    if report.failed and call.when == "call" and isinstance(stage, Stage) and isinstance(space, str):
        report.sections.append(("How everything stood", "\n".join(stage.scene(space))))
    return report


def place_of(request: pytest.FixtureRequest, factory: pytest.TempPathFactory) -> tuple[Server, Path]:
    """The kind of server that a fixture is asked for, not started, and the folder of its stage; skips where missing."""
    if reason := missing(request.param):
        pytest.skip(reason)
    folder = factory.mktemp(request.param)
    return SERVERS[request.param](folder / "server"), folder


def missing(kind: str) -> str:
    """Why a kind of server cannot be had on this machine; empty when it can."""
    if shutil.which("kubectl") is None:
        return "kubectl is not on this machine"
    return real.missing() if kind == "real" else ""

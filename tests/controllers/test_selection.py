"""Which controllers run: the words of ``--controllers``, and that what is not chosen is left to others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.cli.main import main
from stromboli.controllers.selection import CONTROLLERS, looks_of
from stromboli.controllers.work import About
from stromboli.errors import ConfigError
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.process.control_flags import CONTROL_FLAGS
from stromboli.live.process.control_process import ControlProcess
from stromboli.live.process.flags import parse
from stromboli.live.process.process import Process
from tests.support.controller_world import ControllerWorld, job
from tests.support.live_world import pod, queue
from tests.support.virtual import run

EVERY = frozenset(About) - {About.command}
ALL = EVERY - {About.sharding}


@pytest.mark.parametrize(
    ("terms", "looks"),
    [
        ([], ALL),
        (["*"], EVERY),
        (["*", "-sharding-controller"], ALL),
        (["*", "-gc-controller"], EVERY - {About.garbage}),
        (["-gc-controller", "-pg-controller"], ALL - {About.garbage, About.pod, About.idle_group}),
        (["job-controller"], {About.job}),
        (["+job-controller", "+queue-controller"], {About.job, About.queue}),
        (["job-controller", "-queue-controller"], {About.job}),
        (
            ["*", "-jobflow-controller", "-hyperNode-controller"],
            EVERY - {About.hyper_node, About.discovery, About.job_flow},
        ),
        ([f"-{name}" for name in CONTROLLERS], set()),
    ],
)
def test_controllers_are_chosen_in_the_references_words(terms: list[str], looks: set[About]) -> None:
    assert looks_of(terms) == looks


@pytest.mark.parametrize(
    ("term", "why"),
    [
        (
            "job-controler",
            "there is no job-controler; there are job-controller, pg-.*did you mean 'job-contr",
        ),
        ("-everything", "there is no everything"),
        ("colocation-config-controller", "colocation-config-controller is not offered yet"),
        ("gc-controller,-gc-controller", "gc-controller cannot have both '-' and '[+]' prefixes"),
    ],
)
def test_what_cannot_be_chosen_is_refused_by_name(term: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=why):
        looks_of(term.split(","))
    assert main(["controllers", "--master=http://127.0.0.1:1", f"--controllers={term}"]) == 2
    assert "--controllers: " in capsys.readouterr().err


HERE = ["--master=http://127.0.0.1:1", "--leader-elect=false"]


def test_schedulers_that_cannot_be_read_are_refused_by_their_flag() -> None:
    with pytest.raises(ConfigError, match="--scheduler-configs: invalid scheduler config format: a:b"):
        ControlProcess(parse([*HERE, "--scheduler-configs=a:b"], CONTROL_FLAGS))


def test_the_flag_reaches_the_controllers() -> None:
    async def story() -> frozenset[About]:
        flags = parse([*HERE, "--controllers=*,-job-controller,-sharding-controller"], CONTROL_FLAGS)
        return ControlProcess(flags).controllers.options.looks

    assert asyncio.run(story()) == ALL - {About.job}


@pytest.mark.parametrize(
    ("flags", "looks"),
    [
        ([], None),
        (["--controllers=false"], None),
        (["--controllers"], ALL),
        (["--controllers=true", "--enable-metrics"], ALL),
        (["--controllers=*,-gc-controller"], EVERY - {About.garbage}),
        (["--controllers=*"], ALL),
        (["--controllers=job-controller"], {About.job}),
    ],
)
def test_a_scheduler_takes_them_along_as_its_flag_says(flags: list[str], looks: set[About] | None) -> None:
    async def story() -> list[frozenset[About]]:
        parts = Process(parse([*HERE, *flags])).parts
        return [part.options.looks for part in parts if isinstance(part, Controllers)]

    assert asyncio.run(story()) == ([] if looks is None else [looks])


def test_a_scheduler_that_is_to_take_unknown_ones_along_is_refused() -> None:
    assert main(["serve", *HERE, "--controllers=jobs"]) == 2


def fill(server: Any) -> None:
    """Something to do for each controller, and a command for each that takes some."""
    server.put("queues", {**queue("fresh"), "status": {}})
    server.put("pods", pod("plain"))
    server.put("jobs", job("new", 1))
    state = {"phase": "Completed", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    server.put("jobs", {**job("done", 1, ttlSecondsAfterFinished=0), "status": {"state": state}})
    members = [{"type": "Node", "selector": {"exactMatch": {"name": "n0"}}}]
    server.put("hypernodes", {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": members}})
    spec = {"schedule": "@hourly", "jobTemplate": {"spec": job("x", 1)["spec"]}}
    cron = {"name": "cron", "namespace": "ns", "creationTimestamp": "2020-01-01T00:00:00Z"}
    server.put("cronjobs", {"metadata": cron, "spec": spec})
    server.put("jobtemplates", {"metadata": {"name": "new", "namespace": "ns"}, "spec": job("x", 1)["spec"]})
    server.put("jobflows", {"metadata": {"name": "flow", "namespace": "ns"}, "spec": {"flows": [{"name": "new"}]}})
    made = {"volcano.sh/createdByJobTemplate": "ns.new"}
    server.put("jobs", {**job("old", 1), "metadata": {"name": "old", "namespace": "ns", "labels": made}})
    for action, kind, name in (("AbortJob", "Job", "new"), ("CloseQueue", "Queue", "default")):
        metadata = {"name": f"c-{name}", "namespace": "ns"}
        server.put("commands", {"metadata": metadata, "action": action, "target": {"kind": kind, "name": name}})


FOLLOWED = {
    "job-controller": "batch.volcano.sh/jobs queues podgroups pods commands priorityclasses persistentvolumeclaims",
    "pg-controller": "podgroups pods replicasets statefulsets daemonsets batch/jobs",
    "queue-controller": "queues podgroups commands",
    "gc-controller": "batch.volcano.sh/jobs",
    "hyperNode-controller": "hypernodes nodes configmaps",
    "sharding-controller": "nodeshards nodes pods configmaps",
    "cronjob-controller": "cronjobs batch.volcano.sh/jobs",
    "jobflow-controller": "jobflows jobtemplates batch.volcano.sh/jobs pods",
    "jobtemplate-controller": "jobtemplates batch.volcano.sh/jobs",
}


def watched(server: Any) -> set[str]:
    """What is watched, as in :data:`FOLLOWED`."""
    paths = [request.path.split("/") for request in server.requests if "watch" in request.params]
    return {f"{path[2]}/{path[-1]}" if path[-1] == "jobs" else path[-1] for path in paths}


@pytest.mark.parametrize("name", ["*", *CONTROLLERS])
def test_what_is_not_chosen_is_left_as_it_is(name: str) -> None:
    """Each controller alone does what is its own, and nothing of the others'."""

    async def story() -> None:
        world = ControllerWorld()
        world.controllers = world.controlling(looks=looks_of([name]))
        server = world.server
        fill(server)
        await world.go(scheduling=False)
        await asyncio.sleep(10)
        did = {
            "queue-controller": server.get("queues", "fresh")["status"].get("state"),
            "pg-controller": any(one["metadata"]["name"].startswith("podgroup-") for one in server.all("podgroups")),
            "job-controller": world.phase("new"),
            "gc-controller": all(one["metadata"]["name"] != "done" for one in server.all("jobs")),
            "sharding-controller": server.all("nodeshards"),
            "hyperNode-controller": server.get("hypernodes", "h").get("status"),
            "cronjob-controller": any(one["metadata"]["name"].startswith("cron-") for one in server.all("jobs")),
            "jobflow-controller": any(one["metadata"]["name"] == "flow-new" for one in server.all("jobs")),
            "jobtemplate-controller": "old" in str(server.get("jobtemplates", "new", "ns")),
        }
        chosen = {*CONTROLLERS} if name == "*" else {name}
        assert {one for one, what in did.items() if what} == chosen
        orders = {"job-controller": "c-new", "queue-controller": "c-default"}
        left = {one["metadata"]["name"] for one in server.all("commands")}
        assert left == {command for one, command in orders.items() if one not in chosen}
        manager = world.controllers.manager
        kept = (manager._requests, manager._actions, manager._in_hand, manager._acting, manager.ready)
        assert not any(kept), "what has been done is not remembered"
        assert watched(server) == {one for each in chosen for one in FOLLOWED[each].split()}
        await world.end()

    run(story())

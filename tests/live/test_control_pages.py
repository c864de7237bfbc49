"""What ``stromboli controllers`` shows of itself: its flags, and metrics under the reference's names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from stromboli.errors import AccessError, Unreachable
from stromboli.kube.transport import Request, Response
from stromboli.live.controllers.options import Options
from stromboli.live.process.control_flags import CONTROL_FLAGS
from stromboli.live.process.control_gauges import ControlGauges
from stromboli.live.process.control_process import ControlProcess
from stromboli.live.process.flags import FLAGS, parse
from stromboli.live.process.process import Process
from stromboli.live.process.web import Pages, server_tls
from stromboli.metrics.descriptions import CONTROLLERS
from stromboli.metrics.prometheus import generate_page
from tests.support.controller_world import ControllerWorld, job
from tests.support.live_world import fetched, group, queue
from tests.support.memory_server import status
from tests.support.virtual import run

DEFAULTS = {
    "enable_healthz": False, "healthz_address": ":11251", "enable_metrics": False, "listen_address": ":8081",
    "worker_threads": 3, "worker_threads_for_podgroup": 5, "worker_threads_for_queue": 5, "worker_threads_for_gc": 1,
    "max_requeue_num": 15, "inherit_owner_annotations": True, "leader_elect_resource_name": "vc-controller-manager",
    "ca_cert_file": "", "tls_cert_file": "", "tls_private_key_file": "",
}  # fmt: skip

REFERENCE = {
    **{f"queue_pod_group_{phase}_count": ("gauge", ("queue_name",))
       for phase in ("inqueue", "pending", "running", "unknown", "completed")},
    **{f"job_{phase}_phase_count": ("counter", ("job_name", "queue_name")) for phase in ("completed", "failed")},
    **{f"jobflow_{phase}_phase_count": ("counter", ("jobflow_namespace",)) for phase in ("succeed", "failed")},
}  # fmt: skip


def test_flags_have_the_references_defaults() -> None:
    found = parse([], CONTROL_FLAGS)
    assert {name: found[name] for name in DEFAULTS} == DEFAULTS


def test_metrics_bear_the_references_names_and_labels() -> None:
    assert {row.name: (row.kind, row.labels) for row in CONTROLLERS} == REFERENCE
    assert all(f"| `volcano_{name}` |" in generate_page() for name in REFERENCE)


def test_pages_are_served_as_flags_say() -> None:
    async def main() -> None:
        local = "127.0.0.1:0"
        flags = ["--master=http://127.0.0.1:1", "--enable-metrics", f"--listen-address={local}"]
        flags += ["--enable-healthz", f"--healthz-address={local}"]
        metrics, health = ControlProcess(parse(flags, CONTROL_FLAGS)).pages
        for pages in (metrics, health):
            await pages.start()
        assert "# TYPE volcano_queue_pod_group_inqueue_count gauge" in (await fetched(metrics.port, "/metrics"))[1]
        assert await fetched(health.port, "/healthz") == (200, "ok")
        assert await fetched(health.port, "/readyz") == (500, "not all objects have been read")
        for pages in (metrics, health):
            await pages.stop()
        assert ControlProcess(parse(flags[:1], CONTROL_FLAGS)).pages == []

    asyncio.run(main())


def test_flags_reach_the_controllers_and_without_them_they_have_their_defaults() -> None:
    flags: list[tuple[list[str], dict[str, Any]]] = [
        ([], {}),
        (["--max-requeue-num=3"], {"max_requeue": 3}),
        (["--inherit-owner-annotations=false"], {"inherit_owner_annotations": False}),
        (["--group-by-owner-kinds=ReplicaSet"], {"group_by": frozenset({"ReplicaSet"})}),
        (["--scheduler-name=a"], {"scheduler_names": ("a",)}),
        (["--sharding-configmap=a"], {"sharding_config_map": "a"}),
        (["--sharding-configmap-namespace=a"], {"sharding_namespace": "a"}),
    ]
    for given, changed in flags:
        process = ControlProcess(parse(["--master=http://127.0.0.1:1", *given], CONTROL_FLAGS))
        found = process.controllers.options
        usual = Options(looks=found.looks, job_plugins=found.job_plugins, sharding=found.sharding)
        assert found == usual._replace(**changed)


def read(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    """A metric's series by the values of their labels."""
    samples: list[Sample] = [one for family in registry.collect() for one in family.samples]
    return {tuple(one.labels.values()): one.value for one in samples if one.name == f"volcano_{name}"}


def test_pod_groups_are_counted_by_queue_and_phase() -> None:
    async def main() -> None:
        world, registry = ControllerWorld(), CollectorRegistry()
        ControlGauges(registry, world.controllers.manager)
        world.server.put("queues", queue("other"))
        await world.go(scheduling=False)
        for number, phase in enumerate(("Inqueue", "Running", "Running", "Completed", "Pending", "Unknown")):
            world.server.put("podgroups", {**group(f"g{number}", 1), "status": {"phase": phase}})
        world.server.put("podgroups", group("elsewhere", 1, queue="other"))
        await asyncio.sleep(3)

        def counts(phase: str) -> tuple[float, ...]:
            found = read(registry, f"queue_pod_group_{phase}_count")
            assert found.keys() == {("root",), ("default",), ("other",)}
            return found["root",], found["default",], found["other",]

        phases = ("inqueue", "pending", "running", "unknown", "completed")
        assert [counts(phase) for phase in phases] == [(0, 1, 1), (0, 1, 0), (0, 2, 0), (0, 1, 0), (0, 1, 0)]
        world.server.drop("podgroups", "g1", "ns")
        world.server.drop("queues", "other")
        await asyncio.sleep(3)
        assert read(registry, "queue_pod_group_running_count") == {("root",): 0, ("default",): 1}
        await world.end()

    run(main())


def test_jobs_that_end_are_counted_once_until_they_are_deleted() -> None:
    async def main() -> None:
        world, registry = ControllerWorld(), CollectorRegistry()
        ControlGauges(registry, world.controllers.manager)
        standby, other = world.controlling(), CollectorRegistry()
        standby._may_write = lambda: False
        ControlGauges(other, standby.manager)
        world.tasks.append(asyncio.create_task(standby.run()))
        await world.go()
        for name, phase in (("good", "Succeeded"), ("bad", "Failed"), ("stays", "Running")):
            world.server.put("jobs", job(name, 2))
            await asyncio.sleep(8)
            world.end_pods(name, phase)
        await asyncio.sleep(8)
        assert [world.phase(name) for name in ("good", "bad", "stays")] == ["Completed", "Failed", "Running"]
        assert read(registry, "job_completed_phase_count") == {("ns/good", "default"): 1}
        assert read(registry, "job_failed_phase_count") == {("ns/bad", "default"): 1}
        assert read(other, "job_completed_phase_count") == {}
        world.server.drop("jobs", "good", "ns")
        await asyncio.sleep(3)
        assert read(registry, "job_completed_phase_count") == {}
        await world.end()

    run(main())


@pytest.mark.parametrize("strikes", [1, 20])
@pytest.mark.parametrize("lost", [Unreachable("no answer"), None])
def test_a_job_whose_end_was_written_but_not_answered_counts_once(lost: Unreachable | None, strikes: int) -> None:
    """The look is repeated, and finds nothing left to write; or the write is, and finds another version."""
    left = [strikes]

    def fails(request: Request, when: str) -> Response | None:
        if when == "after" and request.path.endswith("/jobs/gang/status") and b"Completed" in (request.body or b""):
            left[0] -= 1
            if left[0] >= 0 and lost is not None:
                raise lost
            return status(500, "InternalError") if left[0] >= 0 else None
        return None

    async def main() -> None:
        world, registry = ControllerWorld(), CollectorRegistry()
        ControlGauges(registry, world.controllers.manager)
        world.server.faults.append(fails)
        await world.go()
        world.server.put("jobs", job("gang", 2))
        await asyncio.sleep(8)
        world.end_pods("gang", "Succeeded")
        await asyncio.sleep(60)
        assert left[0] < strikes
        assert world.phase("gang") == "Completed"
        assert read(registry, "job_completed_phase_count") == {("ns/gang", "default"): 1}
        await world.end()

    run(main())


@pytest.mark.parametrize(("process", "flags"), [(ControlProcess, CONTROL_FLAGS), (Process, FLAGS)])
def test_what_ends_leading_unforeseen_is_told(process: Any, flags: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost Lease is an answer; an unforeseen error must not look like one."""

    async def main() -> None:
        one = process(parse(["--master=http://127.0.0.1:1", "--leader-elect=false"], flags))

        async def fails() -> None:
            raise TypeError("an unforeseen error")

        monkeypatch.setattr(one.leadership, "lead", fails)
        with pytest.raises(TypeError, match="an unforeseen error"):
            await one.run()

    asyncio.run(main())


def test_flows_are_counted_by_namespace_once_they_have_ended() -> None:
    async def main() -> None:
        world, registry = ControllerWorld(), CollectorRegistry()
        ControlGauges(registry, world.controllers.manager)
        await world.go(scheduling=False)
        world.server.put("jobtemplates", {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"tasks": []}})
        world.server.put("jobflows", {"metadata": {"name": "f", "namespace": "ns"}, "spec": {"flows": [{"name": "a"}]}})
        await asyncio.sleep(3)
        made = world.server.get("jobs", "f-a", "ns")
        world.server.put("jobs", {**made, "status": {"state": {"phase": "Failed"}}})
        await asyncio.sleep(3)
        assert read(registry, "jobflow_failed_phase_count") == {("ns",): 1}
        assert read(registry, "jobflow_succeed_phase_count") == {}
        await world.end()

    run(main())


@pytest.mark.parametrize("address", ["", "host", "host:", ":http", "host:-1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(AccessError, match="is no address; write host:port or :port"):
        Pages(address)


def test_tls_takes_all_three_files_and_says_which_cannot_be_used(tmp_path: Path) -> None:
    missing = str(tmp_path / "tls.crt")
    assert (
        server_tls("", missing, missing) is server_tls(missing, "", missing) is server_tls(missing, missing, "") is None
    )
    with pytest.raises(AccessError, match="cannot be used for TLS"):
        server_tls(missing, missing, missing)

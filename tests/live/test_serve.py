"""The process of ``stromboli serve``: flags, configuration, pages, dumps."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from stromboli.api.scheduling import PodGroupStatus
from stromboli.cli.main import main
from stromboli.cluster.events import Added
from stromboli.cluster.files.written import manifests
from stromboli.cluster.objects import from_json
from stromboli.cluster.state import ClusterState
from stromboli.errors import ConfigError, PluginError, Unreachable
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import DEFAULT_CONFIG
from stromboli.kube.client import Client
from stromboli.kube.transport import Request
from stromboli.live.process.control_flags import CONTROL_FLAGS
from stromboli.live.process.events import Telling
from stromboli.live.process.flags import FLAGS, help_text, parse
from stromboli.live.process.gauges import LiveGauges
from stromboli.live.process.process import Process, options_of
from stromboli.live.process.web import Pages, health_pages, metrics_page, stacks_page
from stromboli.live.scheduler.configuration import Configuration, Source
from stromboli.live.scheduler.dump import summary, write_dump
from stromboli.live.scheduler.options import Options
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.model.claims import Devices
from stromboli.narration.observe import Counting, Silent
from tests.support.live_world import LiveWorld, fetched, gang, group, node, picture, pod, queue
from tests.support.virtual import run

# ---------------------------------------------------------------------- flags

DEFAULTS = {
    "master": "", "kubeconfig": "", "kube_api_qps": 2000.0, "kube_api_burst": 2000, "ca_cert_file": "",
    "tls_cert_file": "", "tls_private_key_file": "", "scheduler_name": ("volcano",), "scheduler_conf": "",
    "schedule_period": 1.0, "resync_period": 0.0, "default_queue": "default", "listen_address": ":8080",
    "healthz_address": ":11251", "enable_healthz": False, "enable_metrics": False, "enable_pprof": False,
    "priority_class": True, "minimum_feasible_nodes": 100, "minimum_percentage_nodes_to_find": 5,
    "percentage_nodes_to_find": 0, "plugins_dir": "", "csi_storage": True, "node_selector": (),
    "cache_dumper": True, "cache_dump_dir": "/tmp", "node_worker_threads": 20, "gate_removal_worker_num": 5,
    "ignored_provisioners": (), "resource_sync_timeout": 60.0, "disable_default_scheduler_config": False,
    "scheduler_sharding_mode": "none", "scheduler_sharding_name": "volcano", "version": False,
    "lock_object_namespace": "", "leader_elect": True, "leader_elect_lease_duration": 15.0,
    "leader_elect_renew_deadline": 10.0, "leader_elect_retry_period": 2.0, "leader_elect_resource_lock": "leases",
    "leader_elect_resource_name": "volcano", "leader_elect_resource_namespace": "volcano-system", "v": 0,
    "log_flush_frequency": 5.0,
}  # fmt: skip
"""The reference's flags and their defaults, as its documentation of the process lists them."""


def test_the_references_flags_have_its_defaults() -> None:
    found = parse([])
    assert {name: found[name] for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--schedule-period=500ms"], "schedule_period", 0.5),
        (["--schedule-period", "1m30s"], "schedule_period", 90.0),
        (["--leader-elect=false"], "leader_elect", False),
        (["--enable-healthz"], "enable_healthz", True),
        (["--enable-healthz=true", "--enable-healthz=false"], "enable_healthz", False),
        (["--scheduler-name=a", "--scheduler-name=b,c"], "scheduler_name", ("a", "b", "c")),
        (["--node-selector", "a:b"], "node_selector", ("a:b",)),
        (["-v=3"], "v", 3),
        (["-v", "4"], "v", 4),
        (["--kube-api-qps=50.5"], "kube_api_qps", 50.5),
        (["--logtostderr"], "logtostderr", True),
    ],
)
def test_flags_are_written_as_the_references(arguments: list[str], name: str, value: object) -> None:
    assert parse(arguments)[name] == value


COPIED = [
    "--logtostderr", "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf", "--enable-healthz=true",
    "--enable-metrics=true", "--leader-elect=false", "--leader-elect-resource-namespace=volcano-system",
    "--kube-api-qps=2000", "--kube-api-burst=2000", "--schedule-period=1s", "--node-worker-threads=20",
    "--alsologtostderr", "--stderrthreshold=2", "--log_dir=/tmp", "-v=3", "2>&1",
]  # fmt: skip
"""The arguments of the scheduler in the reference's manifests, its logging library's among them."""
COPIED_CONTROLLERS = [
    "--logtostderr", "--enable-healthz=true", "--enable-metrics=true", "--leader-elect=false", "--kube-api-qps=50",
    "--kube-api-burst=100", "--worker-threads=3", "--worker-threads-for-gc=5", "--worker-threads-for-podgroup=5",
    "--worker-threads-for-queue=5", "--worker-threads-for-cronjob=3", "--sharding-configmap=a",
    "--sharding-configmap-namespace=b", "--feature-gates=X=true", "-v=4", "2>&1",
]  # fmt: skip


def test_arguments_of_copied_manifests_are_taken() -> None:
    found = parse(COPIED)
    assert (found["scheduler_conf"], found["v"]) == ("/volcano.scheduler/volcano-scheduler.conf", 3)
    assert parse(COPIED_CONTROLLERS, CONTROL_FLAGS)["v"] == 4
    with pytest.raises(ConfigError, match="unknown flag 3>&1"):
        parse(["3>&1"])


def test_flags_and_gates_without_effect_are_told_when_the_process_begins(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--csi-storage=true", "--logtostderr", "--node-worker-threads=9", "--percentage-nodes-to-find=5",
                 "--feature-gates=CSIStorage=true,PriorityClass=false,ResourceTopology=false"]  # fmt: skip
    told = [
        "--node-worker-threads does nothing: nodes need no workers.",
        "--feature-gates: CSIStorage makes no difference to what is decided",
        "--feature-gates: ResourceTopology makes no difference to what is decided",
    ]
    assert parse(arguments)["idle"] == told
    assert parse([])["idle"] == []
    assert parse(["--logtostderr=false"])["idle"] == [
        "--logtostderr does nothing: logs go to standard error, whatever this says."
    ]

    async def main() -> None:
        Process(parse([*arguments, "--master=http://127.0.0.1:1", "--leader-elect=false"])).log.flush()

    asyncio.run(main())
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("] ")[2] for line in lines if line.startswith("W")] == told


def test_help_says_which_flags_do_nothing() -> None:
    lines = help_text().splitlines()
    idle = {line.split("=")[0].strip(" -") for line in lines if "Does nothing. " in line}
    assert idle == {flag.name for flag in FLAGS if flag.idle} > {"node-worker-threads"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--leader-elct=false"], ["--leader-elct", "did you mean 'leader-elect'?"]),
        (["serve"], ["unknown flag serve"]),
        (["--schedule-period=soon"], ["--schedule-period", "soon"]),
        (["--schedule-period"], ["needs a value"]),
        (["--enable-metrics=maybe"], ["neither true nor false"]),
        (["--feature-gates=PriorityClas=true"], ["PriorityClas", "PriorityClass"]),
    ],
)
def test_what_is_unknown_or_wrong_is_refused(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(arguments)
    assert all(word in str(refused.value) for word in words)
    assert main(["serve", *arguments]) == 2
    assert words[0] in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == main(["serve", "--version"]) == 0
    told = capsys.readouterr().out
    assert all(f"--{flag.name}=" in told for flag in FLAGS)
    assert help_text() in told


@pytest.mark.parametrize("flag", ["--scheduler-sharding-mode=firm", "--leader-elect-resource-lock=configmaps"])
def test_what_is_not_offered_is_refused(flag: str) -> None:
    with pytest.raises(ConfigError, match=flag.partition("=")[0]):
        options_of(parse([flag]))


@pytest.mark.parametrize(
    ("flags", "changed"),
    [
        ([], {}),
        (["--scheduler-name=a", "--scheduler-name=b"], {"scheduler_names": ("a", "b")}),
        (["--scheduler-sharding-mode=hard"], {"sharding_mode": "hard"}),
        (["--default-queue=a"], {"default_queue": "a"}),
        (["--schedule-period=500ms"], {"schedule_period": 0.5}),
        (["--resource-sync-timeout=2m"], {"resource_sync_timeout": 120.0}),
        (["--resync-period=3s"], {"resync_period": 3.0}),
        (["--audit-period=0"], {"audit_period": 0.0}),
        (["--node-selector=a:b"], {"node_selector": ("a:b",)}),
        (["--leader-elect-resource-namespace=a"], {"namespace": "a"}),
        (["--lock-object-namespace=a", "--leader-elect-resource-namespace=b"], {"namespace": "a"}),
        (["--priority-class=false"], {"priority_class": False}),
        (["--feature-gates=PriorityClass=false"], {"priority_class": False}),
        (["--feature-gates=PodDisruptionBudgetsSupport=false"], {"disruption_budgets": False}),
        (["--feature-gates=WorkLoadSupport=false"], {"workloads": False}),
    ],
)
def test_flags_reach_the_scheduler_and_without_them_it_has_their_defaults(
    flags: list[str], changed: dict[str, Any]
) -> None:
    assert options_of(parse(flags)) == msgspec.structs.replace(Options(), **changed)


def test_cycles_run_beside_the_event_loop_unless_told_otherwise() -> None:
    threads: list[int] = []

    class Noting(Silent):
        def wants(self, key: str) -> bool:
            return key == "session_opened"

        def tell(self, key: str, fields: Mapping[str, object]) -> None:
            threads.append(threading.get_ident())

    async def story() -> list[bool]:
        for options in (Options(), Options(in_thread=False)):
            scheduler = LiveScheduler(Client(LiveWorld().server), options, observer=Noting())
            assert await scheduler.cycle() is not None
            if scheduler._thread is not None:
                scheduler._thread.shutdown()
        return [thread == threading.get_ident() for thread in threads]

    assert asyncio.run(story()) == [False, True]


def test_a_scheduler_begins_with_the_same_dice_and_ends_before_its_pod_is_killed() -> None:
    """The manifests leave its pod what Kubernetes does: 30 s from the signal on."""
    assert Options().seed == 0
    assert Options().stop_timeout == 20.0


@pytest.mark.parametrize(
    ("switch", "kinds"),
    [
        ("priority_class", {"PriorityClass"}),
        ("disruption_budgets", {"PodDisruptionBudget"}),
        ("workloads", {"ReplicationController", "ReplicaSet", "StatefulSet"}),
    ],
)
def test_what_is_switched_off_is_not_watched(switch: str, kinds: set[str]) -> None:
    assert (Options(sharding_mode="soft").unwatched, Options().unwatched) == ((), ("NodeShard",))
    assert {*msgspec.structs.replace(Options(), **{switch: False}).unwatched} == {"NodeShard", *kinds}


# ---------------------------------------------------------------------- configuration


def configured(path: Path, text: str = DEFAULT_CONFIG) -> tuple[Configuration, Counting]:
    path.write_text(text)
    told = Counting()
    return Configuration(Source(str(path)), Telling(told)), told


def rewrite(path: Path, text: str) -> None:
    """As mounted configuration is replaced: another file of that name."""
    other = path.with_suffix(".new")
    other.write_text(text)
    other.rename(path)


ONE = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'


def test_a_changed_file_counts_and_a_bad_one_does_not(tmp_path: Path) -> None:
    path = tmp_path / "volcano-scheduler.conf"
    found, told = configured(path)
    assert not found.refresh()
    rewrite(path, ONE)
    assert found.refresh()
    assert found.current.actions == ("allocate",)
    good = found.current
    for bad in ("actions: bakfill\n", "a: [", ONE + "  - name: gagn\n"):
        rewrite(path, bad)
        assert not found.refresh()
        assert found.current is good
    path.unlink()
    assert not found.refresh()
    rewrite(path, DEFAULT_CONFIG)
    assert found.refresh()
    results = [fields["result"] for fields in told.of("metric.config_reload")]
    assert results == ["ok", "refused", "refused", "refused", "ok"]
    assert len(told.of("config_invalid")) == 3


@pytest.mark.parametrize("text", ["actions: bakfill\n", "a: ["])
def test_a_bad_file_at_the_start_ends_the_process(tmp_path: Path, text: str) -> None:
    with pytest.raises((ConfigError, PluginError)):
        configured(tmp_path / "conf", text)


def test_without_the_built_in_configuration_a_file_is_needed() -> None:
    with pytest.raises(ConfigError, match="no configuration file"):
        Configuration(Source(strict=True), Telling(Counting()))


def test_a_reload_counts_from_the_next_cycle_on(tmp_path: Path) -> None:
    async def story() -> None:
        world = LiveWorld()
        path = tmp_path / "conf"
        path.write_text('actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n')
        scheduler = world.scheduler(str(path))
        world.start(scheduler)
        gang(world.server, "job", 3)
        await asyncio.sleep(3)
        assert len(world.waiting()) == 3
        rewrite(path, DEFAULT_CONFIG)
        await asyncio.sleep(3)
        assert world.waiting() == []
        await world.end()

    run(story())


# ---------------------------------------------------------------------- pages


def test_pages() -> None:
    async def story() -> None:
        pages = Pages("127.0.0.1:0")
        problem = [""]
        health_pages(pages, lambda: problem[0], lambda: "not yet")
        metrics_page(pages, CollectorRegistry())
        stacks_page(pages)
        await pages.start()
        assert await fetched(pages.port, "/healthz") == (200, "ok")
        assert await fetched(pages.port, "/readyz") == (500, "not yet")
        problem[0] = "stuck"
        assert await fetched(pages.port, "/healthz") == (500, "stuck")
        assert (await fetched(pages.port, "/metrics"))[0] == 200
        assert "test_pages" in (await fetched(pages.port, "/debug/pprof/goroutine"))[1]
        await pages.stop()

    asyncio.run(story())


def test_a_page_that_takes_long_holds_nothing_up() -> None:
    async def story() -> None:
        gone_on = threading.Event()
        pages = Pages("127.0.0.1:0")
        pages.add_slow("/slow", lambda: web.Response(text=str(gone_on.wait(10))))
        await pages.start()
        answer = asyncio.create_task(fetched(pages.port, "/slow"))
        await asyncio.sleep(0.1)
        gone_on.set()
        assert await answer == (200, "True")
        await pages.stop()

    asyncio.run(story())


def test_a_schedulers_own_figures() -> None:
    async def story() -> None:
        world = LiveWorld()
        scheduler = world.scheduler()
        registry = CollectorRegistry()
        LiveGauges(registry, scheduler)
        world.start(scheduler)
        gang(world.server, "job", 3)
        await asyncio.sleep(3)
        text = generate_latest(registry).decode()
        assert "stromboli_binds_total 3.0" in text
        assert "stromboli_assumed_pods 0.0" in text
        assert 'stromboli_relists_total{kind="Pod"} 1.0' in text
        await world.end()

    run(story())


# ---------------------------------------------------------------------- dumps


def filled() -> ClusterState:
    world = LiveWorld(nodes=3)
    world.server.put("namespaces", {"metadata": {"name": "ns", "labels": {"a": "b"}}})
    world.server.put("queues", queue("gold", weight=3, capability={"cpu": "7"}))
    world.server.put("priorityclasses", {"metadata": {"name": "high"}, "value": 9})
    world.server.put("podgroups", group("job", 2, queue="gold", priorityClassName="high"))
    world.server.put("pods", pod("job-0", "job", nodeName="n1"))
    world.server.put("pods", pod("job-1", "job", tolerations=[{"key": "x", "operator": "Exists"}]))
    world.server.put("nodes", node("n9", 8, zone="z"))
    world.server.put("services", {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"selector": {"a": "b"}}})
    labels = {"selector": {"matchLabels": {"a": "b"}}}
    world.server.put("replicasets", {"metadata": {"name": "r", "namespace": "ns"}, "spec": labels})
    allowed = {"disruptionsAllowed": 2}
    budget = {"metadata": {"name": "b", "namespace": "ns"}, "spec": labels, "status": allowed}
    world.server.put("poddisruptionbudgets", budget)
    asked = [
        {"deviceClassName": "gpu", "count": 3, "capacity": {"requests": {"memory": "1500m"}}},
        {"deviceClassName": "x"},
    ]
    requests = [{"name": f"r{number}", "exactly": exactly} for number, exactly in enumerate(asked)]
    claim = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"devices": {"requests": requests}}}
    world.server.put("resourceclaims", claim)
    user = pod("user", "job", resourceClaims=[{"name": "a", "resourceClaimTemplateName": "t"}])
    made = [{"name": "a", "resourceClaimName": "c"}]
    world.server.put("pods", {**user, "status": {"phase": "Pending", "resourceClaimStatuses": made}})
    return world.fresh()


def test_a_dump_is_read_by_plan_and_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = filled()
    path = write_dump(manifests(state, 1_800_000_000.0), str(tmp_path), 1_800_000_000.0)
    assert path.name == "snapshot-1800000000.json"
    assert path.stat().st_mode & 0o77 == 0
    again = ClusterState()
    for item in json.loads(path.read_text())["items"]:
        again.apply(Added(item["kind"], from_json(item["kind"], json.dumps(item).encode())))
    assert picture(again) == picture(state)
    assert (again.services, again.budgets) == (state.services, state.budgets)
    assert again.tasks["ns/user"].claims == state.tasks["ns/user"].claims == ("ns/c",)
    assert again.storage.devices.demands["ns/c"] == {"gpu": Devices(3, {"memory": 4500}), "x": Devices(1)}
    assert len(again.services["ns"]) == 2
    assert {uid: job.priority for uid, job in again.snapshot().jobs.items()} == {"ns/job": 9}
    assert main(["plan", str(path), "-o", "json"]) == 0
    assert "ns/job-1" in capsys.readouterr().out


def test_a_dump_keeps_no_copies_of_what_was_applied_and_no_secrets(tmp_path: Path) -> None:
    """Copies hold whole specs, environment variables with passwords among them; everything else stays."""
    world = LiveWorld(nodes=1)
    secret = {"spec": {"containers": [{"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}]}}
    kept = {
        "volcano.sh/preemptable": "true",
        "example.com/plain": "{}",
        "example.com/topology": '{"spec": {"zone": "a"}}',
    }
    notes = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps(secret),
        "kapp.k14s.io/original": "hunter2", "objectset.rio.cattle.io/applied": "hunter2",
        "example.com/copy": json.dumps({"apiVersion": "v1", **secret}), **kept,
    }  # fmt: skip
    container = {"name": "main", **secret["spec"]["containers"][0]}
    spec = {**pod("p", "g")["spec"], "containers": [container]}
    for kind, body in (("pods", {**pod("p", "g"), "spec": spec}), ("podgroups", group("g", 1)),
                       ("queues", queue("gold")), ("nodes", node("n9", 8))):  # fmt: skip
        meta = body["metadata"]
        world.server.put(kind, {**body, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), **notes}}})
    path = write_dump(manifests(world.fresh(), 1_800_000_000.0), str(tmp_path), 1_800_000_000.0)
    assert "hunter2" not in path.read_text()
    items = {(item["kind"], item["metadata"]["name"]): item for item in json.loads(path.read_text())["items"]}
    for key in (("Pod", "p"), ("PodGroup", "g"), ("Queue", "gold"), ("Node", "n9")):
        assert kept.items() <= items[key]["metadata"]["annotations"].items()


def test_a_dump_is_not_written_through_what_others_put_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual folder is one that every user may write to, and the name can be guessed."""
    target, unlink = tmp_path / "target", Path.unlink
    target.write_text("mine")

    def overtaken(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok)
        path.symlink_to(target)

    monkeypatch.setattr(Path, "unlink", overtaken)
    with pytest.raises(FileExistsError):
        write_dump([], str(tmp_path), 1_800_000_000.0)
    assert target.read_text() == "mine"


def test_of_a_dump_that_breaks_nothing_is_left(tmp_path: Path) -> None:
    def breaks() -> Iterator[dict[str, Any]]:
        yield {"kind": "Node"}
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write_dump(breaks(), str(tmp_path), 1_800_000_000.0)
    assert list(tmp_path.iterdir()) == []


def test_a_dump_says_how_it_was_while_the_state_goes_on(tmp_path: Path) -> None:
    state, undisturbed = filled(), filled()
    found = manifests(state, 0.0)
    for task in list(state.tasks.values()):
        state.remove_task(task)
    state.apply(Added("Queue", from_json("Queue", b'{"metadata": {"name": "late"}}')))
    state.set_status("ns/job", PodGroupStatus(phase="Running"))
    assert list(found) == list(manifests(undisturbed, 0.0))


def test_a_summary_names_nodes_queues_and_jobs() -> None:
    lines = "\n".join(summary(filled()))
    assert all(word in lines for word in ("node n9: 0 pods", "queue gold: Open", "job ns/job: Inqueue", "3 pods"))


# ---------------------------------------------------------------------- stopping


def test_a_stop_finishes_what_is_sent_and_hands_the_rest_back() -> None:
    async def story() -> None:
        world = LiveWorld(nodes=20, kubelet=False)
        world.server.latency = 0.5
        plans: list[Plan] = []
        scheduler = world.scheduler(when_planned=plans.append)
        running = world.start(scheduler)
        gang(world.server, "job", 70)
        while not any(plan.binds for plan in plans):
            await asyncio.sleep(0.05)
        scheduler.stop()
        await running
        bound = len(world.server.bindings)
        assert 0 < bound < 70
        assert scheduler.mirror.assumed == {} or all(a.until for a in scheduler.mirror.assumed.values())
        second = world.scheduler()
        world.start(second)
        await world.settled(second)
        world.check(second)
        await world.end()

    run(story())


@pytest.mark.parametrize("unreachable", ["GET", "POST"])
def test_a_stop_waits_for_no_server_that_is_not_there(unreachable: str) -> None:
    """Neither the first lists nor the first queues keep a scheduler from ending."""

    async def story() -> None:
        world = LiveWorld()

        def fails(request: Request, when: str) -> None:
            if request.method == unreachable:
                raise Unreachable("connection refused", request=str(request))

        world.server.faults.append(fails)
        scheduler = world.scheduler(resource_sync_timeout=60.0)
        running = world.start(scheduler)
        await asyncio.sleep(3)
        assert not running.done()
        scheduler.stop()
        async with asyncio.timeout(1):
            await running
        assert (scheduler.cycles, len(world.told.of("stopped"))) == (0, 1)

    run(story())


def test_garbage_is_looked_for_however_busy_a_scheduler_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else looks at the oldest: without a pause between cycles it would pile up for ever."""
    looks: list[int] = []
    monkeypatch.setattr("stromboli.live.scheduler.scheduler.tidy", lambda: looks.append(1))

    async def story() -> None:
        world = LiveWorld()
        scheduler = world.scheduler(schedule_period=0.0, in_thread=True)
        scheduler.clock = time.time  # the world's own is of the event loop's thread
        running = world.start(scheduler)
        while scheduler.cycles < 5 and not running.done():
            await asyncio.sleep(0.01)
        scheduler.stop()
        await running
        assert len(looks) >= scheduler.cycles - 1

    asyncio.run(story())


def test_a_process_without_a_cluster_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", f"--kubeconfig={tmp_path / 'none'}"]) == 2
    assert "none: No such file" in capsys.readouterr().err
    assert Process.__doc__


def test_what_a_lenient_reading_skips_is_told_once_when_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.conf"
    file.write_text("actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: gagn}]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"scheduler\.conf:3: unknown plugin gagn; did you mean 'gang'"):
        Source(str(file)).load()

    async def main() -> None:
        world = LiveWorld()
        gang(world.server, "job", 2)
        client = Client(world.server, dice=random.Random(3))
        options = Options(in_thread=False)
        scheduler = LiveScheduler(
            client, options, Source(str(file), lenient=True), observer=world.told, clock=world.clock
        )
        world.start(scheduler)
        await asyncio.sleep(5)
        assert scheduler.cycles > 3
        told = [fields["text"] for key, fields in world.told.told if key == "complaint"]
        assert told == [f"{file}:3: unknown plugin gagn; did you mean 'gang'?"]
        assert "plugin_missing" not in {key for key, _ in world.told.told}
        await world.end()

    run(main())

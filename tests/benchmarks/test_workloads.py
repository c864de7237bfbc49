"""The measured clusters against their formulas, written out here by hand, and the checks that hold answers to them."""

from __future__ import annotations

import asyncio
import io
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.__main__ import judged, main
from benchmarks.cases import CASES, Case, case_named
from benchmarks.checks import keys, wrong
from benchmarks.child import Profile, Spans
from benchmarks.device_workloads import KINDS as DEVICE_KINDS
from benchmarks.flush import Bench
from benchmarks.growth import steps
from benchmarks.measure import Measured, last_cycle, measure
from benchmarks.workloads import KINDS, Workload
from stromboli.narration.observe import Several
from stromboli.sim.runner import run_scenario

SMALL = {
    "default": Workload("default", 80, 800, gang=20),
    "topology": Workload("topology", 80, 800, gang=20, rack=4),
    "numa": Workload("numa", 80, 800, gang=20),
    "roles": Workload("roles", 80, 800, gang=20),
    "strategy": Workload("strategy", 80, 800, gang=20),
    "binpack": Workload("binpack", 80, 800, gang=20),
    "hetero": Workload("hetero", 160, 1000),
    "preempt": Workload("preempt", 10, 100, gang=20, waiting=40),
    "reclaim": Workload("reclaim", 10, 100, gang=20, waiting=40),
    "running": Workload("running", 80, 800, gang=20),
    "written": Workload("written", 80, 800, gang=20),
    "full": Workload("full", 10, 100, gang=5, waiting=30),
    "names": Workload("names", 10, 30, gang=1),
}


def scenario(workload):
    file = io.BytesIO()
    workload.write(file)
    assert file.getvalue().endswith(b"\n")
    assert file.getvalue().count(b"\n") == 1
    return json.loads(file.getvalue())


def requests(pod):
    [container] = pod["spec"]["containers"]
    return container["resources"]["requests"]


def test_all_kinds_are_looked_at_here():
    assert (*SMALL, *DEVICE_KINDS) == KINDS
    assert {case.workload.kind for case in CASES} == set(KINDS)


@pytest.mark.parametrize(
    ("i", "zone", "pool"),
    [(0, "zone-0", "pool-0"), (9, "zone-9", "pool-0"), (38, "zone-8", "pool-3"), (47, "zone-7", "pool-0")],
)
def test_a_node(i, zone, pool):
    node = scenario(SMALL["default"])["nodes"][i]
    name = f"node-000{i:02d}"
    assert node["metadata"]["name"] == name
    assert node["metadata"]["labels"] == {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": zone,
        "pool": pool,
    }
    assert node["status"]["allocatable"] == {"cpu": "64", "memory": "256Gi", "pods": "110"}
    assert node["status"]["conditions"] == [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize("kind", ["preempt", "reclaim", "full"])
def test_a_full_cluster_has_smaller_nodes_that_ten_pods_fill(kind):
    found = scenario(SMALL[kind])
    assert found["nodes"][7]["status"]["allocatable"] == {"cpu": "40", "memory": "160Gi", "pods": "110"}
    running = [pod for pod in found["pods"] if pod["status"]["phase"] == "Running"]
    assert {requests(pod)["cpu"] for pod in running} == {"4"}
    assert set(Counter(pod["spec"]["nodeName"] for pod in running).values()) == {10}
    assert running[13]["spec"]["nodeName"] == "node-00003"


@pytest.mark.parametrize(
    ("r", "j", "name", "cpu", "memory", "created"),
    [
        (0, 0, "job-000000-00000", "1", "4Gi", "2025-01-01T00:00:00Z"),
        (39, 1, "job-000001-00019", "2", "8Gi", "2025-01-01T00:00:01Z"),
        (399, 19, "job-000019-00019", "4", "16Gi", "2025-01-01T00:00:19Z"),
    ],
)
def test_a_pod_of_an_everyday_job(r, j, name, cpu, memory, created):
    pod = scenario(SMALL["default"])["pods"][r]
    assert pod["metadata"] == {
        "name": name,
        "namespace": "default",
        "uid": f"default-{name}",
        "creationTimestamp": created,
        "annotations": {"scheduling.k8s.io/group-name": f"job-{j:06d}"},
    }
    assert requests(pod) == {"cpu": cpu, "memory": memory}
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["status"] == {"phase": "Pending"}


@pytest.mark.parametrize(
    ("j", "queue", "cpu", "memory"), [(0, "q0", "20", "80Gi"), (7, "q1", "80", "320Gi"), (18, "q0", "60", "240Gi")]
)
def test_a_pod_group_of_an_everyday_job(j, queue, cpu, memory):
    group = scenario(SMALL["default"])["podGroups"][j]
    assert group["metadata"]["name"] == f"job-{j:06d}"
    assert group["metadata"]["uid"] == f"pg-job-{j:06d}"
    assert group["spec"] == {"minMember": 20, "queue": queue, "minResources": {"cpu": cpu, "memory": memory}}
    assert group["status"] == {"phase": "Pending"}


def test_all_pods_of_the_default_kind_fit_with_room_to_spare():
    found = scenario(Workload("default", 100, 1000, gang=10))
    used = sum(int(requests(pod)["cpu"]) for pod in found["pods"])
    assert used / (100 * 64) == pytest.approx(0.39, abs=0.005)


@pytest.mark.parametrize(
    ("kind", "queues", "last", "plugins"),
    [
        ("default", 4, "backfill", 8),
        ("binpack", 4, "backfill", 9),
        ("hetero", 4, "backfill", 8),
        ("preempt", 1, "preempt", 8),
        ("reclaim", 2, "reclaim", 8),
        ("running", 4, "backfill", 8),
        ("full", 4, "backfill", 8),
    ],
)
def test_queues_and_configuration(kind, queues, last, plugins):
    found = scenario(SMALL[kind])
    assert [queue["metadata"]["name"] for queue in found["queues"]] == [f"q{k}" for k in range(queues)]
    assert {queue["spec"]["weight"] for queue in found["queues"]} == {1}
    assert found["conf"].startswith(f'actions: "enqueue, allocate, {last}"\n')
    assert found["conf"].count("- name:") == plugins
    assert found["conf"].rstrip().endswith("binpack" if kind == "binpack" else "nodeorder")
    assert found["cycles"] == {"running": 3, "full": 2}.get(kind, 1)


TOLERATIONS = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("app", "part", "expected"),
    [
        (0, "nodeSelector", {"pool": "pool-0"}),
        (5, "nodeSelector", {"pool": "pool-1"}),
        (5, "tolerations", TOLERATIONS),
        (6, "tolerations", TOLERATIONS),
    ],
)
def test_the_ways_of_a_mixed_cluster_that_ask_for_nodes(app, part, expected):
    pod = scenario(SMALL["hetero"])["pods"][100 * app + 17]
    assert pod["metadata"]["labels"] == {"app": f"app-{app:05d}"}
    assert pod["spec"][part] == expected
    assert "affinity" not in pod["spec"]


def test_the_ways_of_a_mixed_cluster_that_look_at_other_pods_or_prefer_a_zone():
    apart, spread, near = (scenario(SMALL["hetero"])["pods"][100 * app]["spec"] for app in (7, 8, 9))
    [term] = apart["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {"labelSelector": {"matchLabels": {"app": "app-00007"}}, "topologyKey": "kubernetes.io/hostname"}
    assert spread["topologySpreadConstraints"] == [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "app-00008"}},
        }
    ]
    [wish] = near["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    [expression] = wish["preference"]["matchExpressions"]
    assert wish["weight"] == 10
    assert expression == {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-1"]}


def test_a_mixed_cluster_taints_its_last_pool_and_no_other_kind_does():
    tainted = [k for k, node in enumerate(scenario(SMALL["hetero"])["nodes"]) if "spec" in node]
    assert tainted == [*range(30, 40), *range(70, 80), *range(110, 120), *range(150, 160)]
    assert not any("spec" in node for node in scenario(SMALL["default"])["nodes"])


@pytest.mark.parametrize(("kind", "queue", "importance"), [("preempt", "q0", "high"), ("reclaim", "q1", "low")])
def test_gangs_that_arrive_at_a_full_cluster(kind, queue, importance):
    found = scenario(SMALL[kind])
    running, *_, arrived = found["podGroups"]
    assert running["metadata"]["name"] == "run-00000"
    assert running["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
    assert running["spec"] == {
        "minMember": 1,
        "queue": "q0",
        "minResources": {"cpu": "4", "memory": "16Gi"},
        "priorityClassName": "low",
    }
    assert running["status"] == {"phase": "Running"}
    assert arrived["metadata"]["name"] == "new-00001"
    assert arrived["metadata"]["creationTimestamp"] == "2025-01-02T03:46:41Z"
    assert (arrived["spec"]["queue"], arrived["spec"]["priorityClassName"]) == (queue, importance)
    assert arrived["spec"]["minMember"] == 20
    assert {group["metadata"]["name"]: group["value"] for group in found["priorityClasses"]} == {
        "low": 10,
        "high": 1000,
    }
    assert found["pods"][0]["metadata"]["annotations"]["volcano.sh/preemptable"] == "true"
    assert "volcano.sh/preemptable" not in found["pods"][-1]["metadata"]["annotations"]


def test_a_running_cluster_is_the_default_one_with_each_pod_on_a_node():
    found = scenario(SMALL["running"])
    assert [pod["spec"].pop("nodeName") for pod in found["pods"]] == [f"node-{r % 80:05d}" for r in range(800)]
    assert {pod["status"].pop("phase") for pod in found["pods"]} == {"Running"}
    plain = scenario(SMALL["default"])["pods"]
    assert [pod["spec"] for pod in found["pods"]] == [pod["spec"] for pod in plain]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_running_pod_lies_on_a_node_without_room(case):
    workload = replace(case.workload, nodes=case.workload.nodes // 10, pods=case.workload.pods // 10)
    for batch in workload.batches():
        used: Counter[int] = Counter()
        for r in range(batch.pods if batch.node else 0):
            used[batch.node(r)] += batch.cores(r // batch.size)
        assert max(used.values(), default=0) <= workload.node_cores


def test_the_number_of_jobs():
    assert case_named("gangs-5k").workload.jobs == 500
    assert case_named("single-5k").workload.jobs == 50_000
    assert case_named("full-5k").workload.jobs == 500 + 1000
    assert Workload("default", 10, 101, gang=100).jobs == 2


# --------------------------------------------------------------------------------------------- what is held right


@pytest.mark.parametrize("kind", ["default", "binpack", "hetero", "running", "full"])
def test_the_scheduler_does_what_is_expected_of_it(kind):
    answer = run_scenario(json.dumps(scenario(SMALL[kind])))
    assert wrong(SMALL[kind], answer) == []
    assert last_cycle(answer) > 0


def test_pods_that_end_before_the_last_cycle_are_counted():
    workload = Workload("running", 80, 800, gang=20, changed=8)
    found = scenario(workload)
    answer = run_scenario(json.dumps(found))
    assert wrong(workload, answer) == []
    ended = [f"default/job-{j:06d}-00000" for j in range(0, 40, 5)]
    assert found["events"] == [{"beforeCycle": 3, "succeedPods": ended}]
    assert wrong(SMALL["running"], answer) == ["PodGroups say that 8 pods have succeeded, but 0 have"]


def placed(workload, place):
    return {"outcome": {"binds": {key: f"node-{place(r):05d}" for r, key in enumerate(keys(workload.batches()[0]))}}}


@pytest.mark.parametrize(
    ("kind", "place", "said"),
    [
        ("default", lambda r: r % 80, None),
        ("default", lambda r: r % 8, "8 nodes hold more than they have, such as node-00000"),
        ("default", lambda r: r % 81, "791 of 800 pods are bound to a node that exists, in 800 binds"),
        ("hetero", lambda r: r % 100, "260 pods are on a node of a pool that is not for them, such as pod 10"),
        ("hetero", lambda r: r % 10, "pods that keep apart share a node"),
        (
            "hetero",
            lambda r: 10 * (r % 16),
            "app 3 is spread unevenly over the zones: [100, 0, 0, 0, 0, 0, 0, 0, 0, 0]",
        ),
    ],
)
def test_wrong_places_are_found(kind, place, said):
    found = wrong(SMALL[kind], placed(SMALL[kind], place))
    assert said in found if said else found == []


def test_what_an_answer_complains_of_is_wrong():
    answer = placed(SMALL["default"], lambda r: r % 80)
    answer["outcome"]["errors"] = ["action allocate failed"]
    answer["problems"] = ["Pod x: no"]
    assert wrong(SMALL["default"], answer) == ["error: action allocate failed", "problem: Pod x: no"]


def test_a_full_cluster_must_say_why_its_jobs_wait():
    silent: dict[str, Any] = {"outcome": {"binds": {}, "podGroups": {f"default/wait-{j:05d}": {} for j in range(6)}}}
    assert wrong(SMALL["full"], silent) == ["wait-00000 has no reason why it waits"]
    bound = {"outcome": {**placed(SMALL["full"], lambda r: 0)["outcome"], "podGroups": silent["outcome"]["podGroups"]}}
    assert wrong(SMALL["full"], bound)[0] == "100 pods were bound, though nothing can be"


@pytest.mark.parametrize(
    ("evicted", "held", "said"),
    [(40, 40, []), (39, 40, ["39 pods were evicted and 40 places are held, for 40 pods"])],
)
def test_arriving_gangs_take_the_place_of_as_many_pods(evicted, held, said):
    outcome = {
        "binds": {},
        "evictions": [f"p{k}" for k in range(evicted)],
        "pipelined": {f"n{k}": "" for k in range(held)},
    }
    assert wrong(SMALL["preempt"], {"outcome": outcome}) == said


# ------------------------------------------------------------------------------------------------ how it is measured


def test_a_fresh_process_answers_and_is_measured():
    found = measure(SMALL["default"], repeat=2)
    assert found.wrong == ()
    assert found.binds == 800
    assert min(found.cycle, found.load, found.process, found.peak) > 0
    assert found.process > found.cycle + found.load


def test_a_process_that_fails_is_told_with_its_last_words():
    [said] = measure(SMALL["default"], options=["--no-such-option"]).wrong
    assert "--no-such-option" in said


def test_a_process_that_takes_too_long_is_ended():
    assert measure(SMALL["default"], limit=0.001).wrong == ("did not end within 0.001 s",)


@pytest.mark.parametrize(
    ("measured", "quick", "verdict"),
    [
        (Measured(cycle=2.5, load=5.0, peak=1228), False, "ok"),
        (Measured(cycle=2.6, load=5.1, peak=1229), False, "over: CPU, load, memory"),
        (Measured(cycle=2.6, load=5.1, peak=1229), True, "-"),
        (Measured(wrong=("no",)), True, "wrong: no"),
    ],
)
def test_a_verdict(measured, quick, verdict):
    assert judged(case_named("gangs-5k"), measured, quick) == verdict


def test_parts_and_functions_of_the_last_cycle():
    spans, profile = Spans(), Profile()
    run_scenario(json.dumps(scenario(SMALL["running"])), observer=Several([spans, profile]))
    assert {"cycle ", "open_session ", "plugin_open drf", "action allocate", "plugin_close gang"} <= set(spans.seconds)
    assert spans.seconds["cycle "] >= spans.seconds["open_session "] >= spans.seconds["plugin_open drf"]
    assert "(open_plugins)" in profile.text()


@pytest.mark.parametrize("quick", [False, True])
def test_each_step_of_growth_doubles_one_thing(quick):
    for step in steps(quick):
        before, after = step.smaller, step.larger
        doubled = {"pods": ["pods"], "nodes": ["nodes"], "arriving": ["waiting"], "cluster": ["nodes", "pods"]}[
            step.what
        ]
        assert after == replace(before, **{field: 2 * getattr(before, field) for field in doubled})
        assert before.pods % before.gang == before.waiting % before.gang == 0
        assert after.pods <= 10 * after.nodes
        assert after.pods == 10 * after.nodes or not after.waiting
        assert all(5 * size.waiting <= size.pods for size in (before, after)), "more than overcommit lets in"
        assert step.limit == (1.6 if step.what == "nodes" else pytest.approx(2.2))


def test_the_table(capsys):
    assert main(["--quick", "gangs-5k", "full-5k"]) == 0
    *_, gangs, full = capsys.readouterr().out.strip().split("\n")
    assert gangs.startswith("| gangs-5k (quick) | 200 × 2,000 | 20 |")
    assert gangs.endswith("| 2,000 | - |")
    assert full.startswith("| full-5k (quick) | 200 × 2,000 + 200 | 40 |")


def test_the_parts_of_one_workload_are_printed(capsys):
    assert main(["--quick", "--profile", "running-gangs-5k", "--functions"]) == 0
    printed = capsys.readouterr().out
    assert "| open_session |" in printed
    assert "| snapshot and the rest of the close |" in printed
    assert "cumulative" in printed


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "'nonsense'" in capsys.readouterr().err


def test_names_of_cases_differ_and_quick_ones_ask_nothing():
    assert len({case.name for case in CASES}) == len(CASES)
    assert case_named("gangs-5k").quick() == Case("gangs-5k (quick)", Workload("default", 200, 2000))


def test_a_flush_writes_what_changes_and_nothing_else():
    bench = Bench(100, period=0.01)
    found = asyncio.run(bench.measured(10, 2))
    assert [flush.patches for flush in found] == [10, 10]
    assert bench.server.patches == 2 * (100 + 10 + 10)  # each time once more, to see whether a cycle is late
    assert {task.status.name for task in bench.state.tasks.values()} == {"Pipelined"}

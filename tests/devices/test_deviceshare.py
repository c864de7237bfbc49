"""deviceshare: cards shared by memory, given whole, and vGPUs; what pods get as annotations, and what is given back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from stromboli.metrics.prometheus import MetricsObserver
from stromboli.model.spec import NodeSpec
from stromboli.plugins.deviceshare import DeviceShare
from stromboli.plugins.deviceshare.gpushare import Demand, GpuPool
from stromboli.plugins.deviceshare.kind import KNOWN, remember
from stromboli.plugins.deviceshare.vgpu import REFUSED, Share, VGpu
from stromboli.plugins.deviceshare.vgpu import Demand as VGpuDemand
from stromboli.testing.builders import Manifest, node, pod, pod_group
from stromboli.testing.check_plugin import check_plugin
from tests.acceptance.bench import NOW, Bench, binds, messages

MEMORY, NUMBER, INDEX = "volcano.sh/gpu-memory", "volcano.sh/gpu-number", "volcano.sh/gpu-index"
IDS, REGISTER = "volcano.sh/vgpu-ids-new", "volcano.sh/node-vgpu-register"
V = "volcano.sh/vgpu-"


def conf(**arguments: object) -> str:
    lines = "".join(f"      deviceshare.{key}: {value}\n" for key, value in arguments.items())
    plugins = "  - name: gang\n  - name: predicates\n  - name: deviceshare\n    arguments:\n"
    return f'actions: "allocate, backfill, preempt"\ntiers:\n- plugins:\n{plugins}{lines}'


SHARED, WHOLE, VGPU = conf(GPUSharingEnable="true"), conf(GPUNumberEnable="true"), conf(VGPUEnable="true")


def cards(name: str, memory: int, number: int, **annotations: str) -> Manifest:
    return node(name, cpu=64, memory="64Gi", resources={MEMORY: memory, NUMBER: number}, annotations=annotations)


def asking(name: str, on: str = "", index: str = "", *, group: str = "", **amounts: int) -> Manifest:
    """A pod with limits as the API server stores them, the requests equal to them."""
    requests = {f"volcano.sh/{key.replace('_', '-')}": str(value) for key, value in amounts.items()}
    return pod(name, group=group or name, on=on, requests=requests, annotations={INDEX: index} if index else {})


def vgpus(name: str, *cards: str) -> Manifest:
    offer = {f"{V}number": 20, f"{V}memory": 100_000, f"{V}cores": 1000}
    return node(name, cpu=64, memory="64Gi", resources=offer, annotations={REGISTER: ":".join(cards) + ":"})


def given(bench: Bench, key: str) -> dict[str, str]:
    """One annotation of each bind."""
    return {bind.key.partition("/")[2]: bind.annotations[key] for bind in bench.plan.binds if key in bind.annotations}


# ---------------------------------------------------------------------- memory and whole cards


@pytest.mark.parametrize("text", ["9" * 5000, "\N{SUPERSCRIPT TWO}", "-1"])
def test_what_a_pod_states_of_its_cards_is_no_number(text: str) -> None:
    """Tenants write annotations: what is no number there means no card, and ends no cycle."""
    shared = GpuPool("n", 8000, [0, 1])
    shared.restore(task("a", **{INDEX: f"{text},1"}))
    assert [len(pods) for pods in shared.held.values()] == [0, 1]
    virtual = pool()
    virtual.restore(task("a", **{IDS: f"GPU-0,NVIDIA,{text},0:GPU-1,NVIDIA,10,{text}:"}))
    assert [card.used for card in virtual.cards()] == [0, 0]


def test_memory_is_taken_from_one_card_and_the_annotations_say_which() -> None:
    bench = Bench([cards("n", 16000, 2), *(asking(name, gpu_memory=5000) for name in "abc")], SHARED)
    plan = bench.cycle()
    assert given(bench, INDEX) == {"a": "0", "b": "1"}, "3000 MB are left on each, 6000 together"
    assert plan.binds[0].annotations["volcano.sh/predicate-time"] == str(int(NOW * 1e9))
    assert "0/1 nodes are unavailable: 1 GpuShare no enough gpu memory on node n." in messages(plan, "default/c")


def test_cards_give_a_node_no_points() -> None:
    """A node that does not say how many cards it has takes pods by its memory alone, and is as good as others."""
    nodes = [node("n0", cpu=64, memory="64Gi", resources={MEMORY: 8000}), cards("n1", 8000, 1)]
    bench = Bench([*nodes, asking("p", gpu_memory=1000)], conf(GPUSharingEnable="true", ScheduleWeight=10))
    assert binds(bench.cycle()) == {"p": "n0"}


@pytest.mark.parametrize(
    ("running", "unhealthy", "given_to"),
    [
        ((), "", "0,1"),
        ((("0", 1),), "", "1,2"),
        ((), "0,2", None),
        ((("0", 1), ("1", 1)), "", None),
    ],
)
def test_whole_cards_go_to_one_pod_each(
    running: tuple[tuple[str, int], ...], unhealthy: str, given_to: str | None
) -> None:
    there = [asking(f"r{i}", "n", index, gpu_number=count) for i, (index, count) in enumerate(running)]
    annotations = {"volcano.sh/gpu-unhealthy-ids": unhealthy} if unhealthy else {}
    bench = Bench([cards("n", 24000, 3, **annotations), *there, asking("p", gpu_number=2)], WHOLE)
    bench.cycle()
    assert given(bench, INDEX) == ({"p": given_to} if given_to else {})


def test_the_next_cycle_knows_what_pods_hold() -> None:
    bench = Bench([cards("n", 16000, 2), asking("a", gpu_memory=8000)], SHARED)
    bench.cycle()
    for name, memory in (("b", 8000), ("c", 1000)):
        bench.tell(pod_group(name), asking(name, gpu_memory=memory))
    bench.cycle()
    assert given(bench, INDEX) == {"b": "1"}


def test_a_gang_that_does_not_start_gives_its_cards_back() -> None:
    gang = [pod_group("g", min_member=3), *(asking(f"g{i}", group="g", gpu_memory=8000) for i in range(3))]
    bench = Bench([cards("n", 16000, 2), *gang, asking("single", gpu_memory=8000)], SHARED)
    assert binds(bench.cycle()) == {"single": "n"}
    assert given(bench, INDEX) == {"single": "0"}


def test_a_pod_bound_now_gets_no_card_that_a_terminating_pod_fills() -> None:
    leaving = asking("old", "n", "0", gpu_memory=8000)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    objects = [cards("n", 16000, 2), leaving, asking("new", gpu_memory=8000)]
    bench = Bench(objects, SHARED)
    bench.cycle()
    assert given(bench, INDEX) == {"new": "1"}
    reference = Bench(objects, SHARED, compat=True)
    reference.cycle()
    assert given(reference, INDEX) == {"new": "0"}


def test_clashing_kinds_put_the_plugin_aside_with_the_references_words() -> None:
    for arguments, told in (
        (
            {"GPUSharingEnable": "true", "GPUNumberEnable": "true"},
            "can not define true in both gpu sharing and gpu number",
        ),
        ({"GPUSharingEnable": "true", "VGPUEnable": "true"}, "gpu-share and vgpu can't be used together"),
    ):
        plan = Bench([cards("n", 8000, 1)], conf(**arguments)).cycle()
        assert any(told in text for text in plan.inconsistencies)


def test_a_locked_node_takes_one_pod() -> None:
    objects = [cards("n", 16000, 2), asking("a", gpu_memory=100), asking("b", gpu_memory=100)]
    locked = conf(GPUSharingEnable="true", NodeLockEnable="true")
    assert binds(Bench(objects, locked).cycle()) == {"a": "n"}
    held = cards("n", 16000, 2, gpu="1970-01-12T13:46:30Z")
    assert binds(Bench([held, *objects[1:]], locked).cycle()) == {}, "another scheduler has locked it ten seconds ago"
    stale = cards("n", 16000, 2, gpu="1970-01-12T13:30:00Z")
    assert binds(Bench([stale, *objects[1:]], locked).cycle()) == {"a": "n"}


def test_a_pod_that_goes_elsewhere_is_told_of_no_card_where_it_was_tried() -> None:
    """n1 does not say how many cards it has: it takes the pod by its memory alone, and there is no card to tell of."""
    plain = node("n1", cpu=64, memory="64Gi", resources={MEMORY: 8000})
    locked = conf(GPUSharingEnable="true", NodeLockEnable="true")
    with Bench([cards("n0", 8000, 1), plain, asking("p", gpu_memory=1000)], locked).open() as session:
        (job,) = session.jobs.peek()
        (uid,) = job.tasks
        with session.statement() as trial:
            trial.allocate(session.jobs[job.uid].tasks[uid], session.nodes["n0"])
            assert (list(session.ledger.bind_annotations), list(session.ledger.bind_locks)) == ([uid], [uid])
        with session.statement() as statement:
            statement.allocate(session.jobs[job.uid].tasks[uid], session.nodes["n1"])
            statement.commit()
        (bind,) = session.plan.binds
    assert (bind.node, dict(bind.annotations), bind.locks) == ("n1", {}, ())


# ---------------------------------------------------------------------- vGPU


CARD = "GPU-{},{},{},NVIDIA-Tesla V100,true,hami-core"


def test_a_share_of_a_vgpu_is_written_as_the_device_plugin_reads_it() -> None:
    bench = Bench(
        [vgpus("n", CARD.format(0, 10, 10000), CARD.format(1, 10, 10000)),
         asking("p", vgpu_number=2, vgpu_memory=3000, vgpu_cores=20)],
        VGPU,
    )  # fmt: skip
    (bind,) = bench.cycle().binds
    ids = "GPU-1,NVIDIA,3000,20:GPU-0,NVIDIA,3000,20:"
    assert bind.annotations == {
        f"{V}node": "n", f"{V}time": str(int(NOW)), IDS: ids, "volcano.sh/devices-to-allocate": ids,
        "volcano.sh/bind-phase": "allocating", "volcano.sh/bind-time": str(int(NOW)),
    }  # fmt: skip


OFFER: dict[str, Any] = {f"{V}number": 9, f"{V}memory": 9, f"{V}cores": 9}


def pool(policy: str = "", count: int = 3, rules: tuple[dict[str, str], ...] = ()) -> Any:
    register = ":".join(f"GPU-{i},{count},10000,NVIDIA-{kind},true,hami-core" for i, kind in enumerate(("A100", "T4")))
    spec = NodeSpec("n", annotations={REGISTER: register}, allocatable=OFFER)
    return VGpu(policy, rules, spread_scores=True).pool_of(spec)


def task(name: str, **annotations: str) -> Any:
    asked = {MEMORY: 1, f"{V}number": 1}
    session = Bench([node("n"), pod(name, annotations=annotations, requests=asked)], VGPU)
    return next(iter(session.state.tasks.values()))


@pytest.mark.parametrize(("compat", "card"), [(False, "GPU-0"), (True, "GPU-1")])
def test_an_unhealthy_card_gets_no_further_pods(compat: bool, card: str) -> None:
    """Compat mode reads the health of cards and does not heed it."""
    sick = CARD.format(1, 10, 10000).replace("true", "false")
    bench = Bench(
        [vgpus("n", CARD.format(0, 10, 10000), sick), asking("p", vgpu_number=1, vgpu_memory=3000)], VGPU, compat=compat
    )
    (bind,) = bench.cycle().binds
    assert bind.annotations[IDS].startswith(f"{card},")


HALF = VGpuDemand((Share(1, 5000, 50),))


def test_what_an_unhealthy_card_holds_stays_and_explanations_name_it() -> None:
    (spec,) = (
        NodeSpec("n", annotations={REGISTER: CARD.format(0, 10, 9000).replace("true", "false")}, allocatable=OFFER),
    )
    found: Any = VGpu("", (), spread_scores=True).pool_of(spec)
    found.restore(task("old", **{IDS: "GPU-0,NVIDIA,3000,20:"}))
    assert found.by_uuid["GPU-0"].used_memory == 3000
    assert "GPU-0 6000 of 9000 MB" in found.shortage(HALF)
    assert found.shortage(HALF).endswith("(unhealthy)")
    assert found.refusal(HALF) is REFUSED


@pytest.mark.parametrize(
    ("before", "demand", "cards"),
    [
        ([], VGpuDemand((Share(1, 1000, 0),)), [["GPU-1"]]),
        ([], VGpuDemand((Share(2, None, 0),)), [["GPU-1", "GPU-0"]]),
        ([], VGpuDemand((Share(3, 1000, 0),)), None),
        ([], VGpuDemand((Share(1, 6000, 0), Share(1, 6000, 0))), [["GPU-1"], ["GPU-0"]]),
        ([HALF], VGpuDemand((Share(1, 6000, 0),)), [["GPU-0"]]),
        ([HALF], VGpuDemand((Share(1, 5000, 51),)), [["GPU-0"]]),
        ([HALF], VGpuDemand((Share(1, 1000, 100),)), [["GPU-0"]]),
        ([VGpuDemand((Share(1, 1000, 100),))], VGpuDemand((Share(1, 1000, 0),)), [["GPU-0"]]),
        ([], VGpuDemand((Share(1, 1000, 0),), types=("a100",)), [["GPU-0"]]),
        ([], VGpuDemand((Share(1, 1000, 0),), other_types=("t4",)), [["GPU-0"]]),
        ([], VGpuDemand((Share(1, 1000, 0),), uuids=("GPU-0",)), [["GPU-0"]]),
        ([], VGpuDemand((Share(1, 1000, 0),), uuids=("GPU-0",), other_uuids=("GPU-0",)), None),
        ([], VGpuDemand((Share(1, 1000, 0),), mode="mig"), None),
    ],
)
def test_which_cards_a_pod_gets(before: list[VGpuDemand], demand: VGpuDemand, cards: list[list[str]] | None) -> None:
    found = pool()
    for number, earlier in enumerate(before):
        found.assign(task(f"t{number}"), earlier, NOW)
    pieces = found._pieces(demand)
    assert (None if pieces is None else [[piece.uuid for piece in row] for row in pieces]) == cards
    assert (found.refusal(demand) is None) == (cards is not None)


def test_policies_order_and_score_cards() -> None:
    one = VGpuDemand((Share(1, 3000, 0),))
    packed, spread = pool("binpack"), pool("spread")
    for found in (packed, spread):
        found.assign(task("t"), one, NOW)
    assert [packed.score(one), spread.score(one)] == [60.0, 100.0]
    assert packed._pieces(one)[0][0].uuid == "GPU-0"
    assert spread._pieces(one)[0][0].uuid == "GPU-1"


def test_pods_of_one_rule_share_no_card() -> None:
    objects = [vgpus("n", CARD.format(0, 10, 10000), CARD.format(1, 10, 10000))]
    for name, labels in (("a", {"workloadType": "training"}), ("b", {"workloadType": "training"}), ("c", {})):
        objects.append(asking(name, vgpu_memory=1000))
        objects[-1]["metadata"]["labels"] = labels
    bench = Bench(objects, conf(VGPUEnable="true", GPUExclusiveRules="[{workloadType: training}]"))
    bench.cycle()
    assert {name: ids.split(",")[0] for name, ids in given(bench, IDS).items()} == {
        "a": "GPU-1", "b": "GPU-0", "c": "GPU-1",
    }  # fmt: skip


@pytest.mark.parametrize("register", ["", "GPU-0,10,10000", "GPU-0,x,10000,T,true,hami-core", "," * 5000])
def test_cards_that_are_registered_in_another_form_are_no_cards(register: str) -> None:
    assert (
        VGpu("", (), spread_scores=True).pool_of(NodeSpec("n", annotations={REGISTER: register}, allocatable=OFFER))
        is None
    )


@pytest.mark.parametrize(("found", "demand"), [(pool(), HALF), (GpuPool("n", 8000, [0, 1]), Demand(memory=5000))])
def test_what_is_released_can_be_assigned_again(found: Any, demand: Any) -> None:
    holder = task("a")
    first = found.assign(holder, demand, NOW)
    found.release(holder)
    assert found.assign(holder, demand, NOW) == first


def test_deviceshare_keeps_the_contract_of_plugins() -> None:
    check_plugin(DeviceShare, {"deviceshare.GPUSharingEnable": True})


def test_answers_about_a_node_are_bounded() -> None:
    """Demands differ by what users write in annotations, so there is no end of them."""
    found = pool()
    for number in range(10 * KNOWN):
        demand = VGpuDemand((Share(1, 1000, 0),), "", (), (f"type-{number}",), (), (), "", ())
        assert found.refusal(demand) is None
    assert len(found._known) <= KNOWN
    objects = [vgpus("n", CARD.format(0, 10, 10000))]
    for number in range(3 * KNOWN):
        objects += [pod_group(f"g{number}"), asking(f"p{number}", group=f"g{number}", vgpu_number=2)]
        objects[-1]["metadata"]["annotations"]["nvidia.com/nouse-gputype"] = f"type-{number}"
    kept: list[int] = []

    def refused(known: Any, *given: Any) -> None:
        remember(known, *given)
        kept.append(len(known))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stromboli.plugins.deviceshare.plugin.remember", refused)
        Bench(objects, VGPU).cycle()
    assert len(kept) >= 3 * KNOWN
    assert max(kept) <= KNOWN


def test_a_queues_status_shows_what_its_pods_have_of_cards() -> None:
    """A pod that names no memory has all of a card's; from the cycle on that finds it on the pod."""
    bench = Bench([vgpus("n", "c0,10,8000,T4,true,hami-core"), asking("p", vgpu_number=1, vgpu_cores=10)], VGPU)

    def shown() -> list[dict[str, str]]:
        found = [one.allocated for one in bench.cycle().queues if one.name == "default"]
        return [{key: value for key, value in one.items() if key.startswith(V)} for one in found]

    assert shown() == [{f"{V}number": "1", f"{V}cores": "10"}]
    assert binds(bench.plan) == {"p": "n"}
    assert shown() == [{f"{V}number": "1", f"{V}cores": "10", f"{V}memory": "8k"}]
    assert shown() == [], "nothing has changed"
    with bench.open() as session:
        (task,) = (task for job in session.jobs.peek() for task in job.tasks.values())
        statement = session.statement()
        statement.evict(session.jobs[task.job].tasks[task.uid], "test")
        plugin = session.plugins["deviceshare"]
        assert isinstance(plugin, DeviceShare)
        assert plugin._beyond_requests() == {}
        statement.discard()
        (amounts,) = plugin._beyond_requests().values()
        assert sum(amounts) == 8_000_000


def test_metrics_show_what_pods_have_of_each_card() -> None:
    """Pods that run, end or are placed, but not those that wait for cards; without nodes nothing is left."""
    registry = CollectorRegistry()
    observer = MetricsObserver(registry)
    runs = pod("a", group="a", on="n0", annotations={IDS: "c0,NVIDIA,3000,20:c1,NVIDIA,500,0:;c0,NVIDIA,100,5:"},
               requests={f"{V}number": 2})  # fmt: skip
    comes = pod("b", group="b", requests={f"{V}number": 1, f"{V}memory": 4000, f"{V}cores": 30},
                annotations={f"{V}use-gpuuuid": "c0"})  # fmt: skip
    ends = pod("c", group="c", on="n0", annotations={IDS: "c1,NVIDIA,3500,40:;"}, deleting=True,
               requests={f"{V}memory": 95_000})  # fmt: skip
    waits = pod("d", group="d", requests={f"{V}number": 1, f"{V}memory": 2000}, annotations={f"{V}use-gpuuuid": "c1"})
    nodes = vgpus("n0", "c0,10,8000,T4,true,hami-core", "c1,10,4096,T4,true,hami-core")
    groups = [pod_group(name) for name in "abcd"]
    bench = Bench([nodes, *groups, runs, comes, ends, waits], conf(VGPUEnable="true"))
    bench.cycle(observer)
    assert binds(bench.plan) == {"b": "n0"}
    names = ("shared_number", "allocated_memory", "allocated_cores", "memory_limit")
    of_pods = [f"{amount}_allocation_for_a_certain_pod" for amount in ("memory", "core")]

    def shown(names: Sequence[str], **labels: str) -> list[float | None]:
        found = (f"volcano_vgpu_device_{name}" for name in names)
        return [registry.get_sample_value(name, {"NodeName": "n0", **labels}) for name in found]

    assert shown(names, devID="c0") == [3, 7100, 55, 8000]
    assert shown(names, devID="c1") == [2, 4000, 40, 4096]
    assert shown(of_pods, devID="c0", podName="a") == [3100, 25]
    assert shown(of_pods, devID="c0", podName="b") == [4000, 30]
    assert shown(of_pods, devID="c1", podName="c") == [3500, 40]
    assert shown(of_pods, devID="c1", podName="d") == [None, None]
    vgpu, bench.config = bench.config, Bench([], conf(GPUSharingEnable="true")).config
    bench.cycle(observer)
    assert shown(names, devID="c0") == [None] * 4, "the kind is off since the last reload"
    bench.config = vgpu
    bench.cycle(observer)
    assert shown(names, devID="c0") == [3, 7100, 55, 8000]
    bench.config = Bench([]).config
    bench.cycle(observer)
    assert shown(names, devID="c0") == [None] * 4, "the plugin is off"
    bench.config = vgpu
    bench.tell(nodes, gone=True)
    bench.cycle(observer)
    assert shown(names, devID="c0") == [None] * 4

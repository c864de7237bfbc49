"""What deviceshare costs: a node is asked about its cards again only after something has changed there."""

from __future__ import annotations

from unittest.mock import patch

from stromboli.plugins.deviceshare.npu import AscendNpu
from stromboli.plugins.deviceshare.vgpu import VGpu, VGpuPool
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, binds

V = "volcano.sh/vgpu-"
CONF = """
actions: "allocate"
tiers:
- plugins:
  - name: predicates
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack, deviceshare.ScheduleWeight: 1,
                deviceshare.AscendHAMiVNPUEnable: true}
"""


def test_nodes_are_asked_once_and_again_when_they_have_changed() -> None:
    nodes, pods = 20, 30
    offer = {f"{V}number": 20, f"{V}memory": 20_000, f"{V}cores": 200}
    register = {"volcano.sh/node-vgpu-register": "A,10,10000,T4,true,hami-core:B,10,10000,T4,true,hami-core:"}
    objects = [node(f"n{i:02}", cpu=64, resources=offer, annotations=register) for i in range(nodes)]
    objects += [pod_group("g"), *(pod(f"p{i}", group="g", requests={f"{V}memory": "1000"}) for i in range(pods))]
    bench, asked = Bench(objects, CONF), 0
    refusal = VGpuPool.refusal

    def counted(self: VGpuPool, demand: object) -> object:
        nonlocal asked
        asked += 1
        return refusal(self, demand)  # type: ignore[arg-type]  # as it came

    with patch.object(VGpuPool, "refusal", counted):
        assert len(binds(bench.cycle())) == pods
    assert asked <= nodes + 4 * pods, "not once for each node and pod"


def test_nodes_without_cards_are_not_read() -> None:
    objects = [*(node(f"n{i}") for i in range(3)), pod_group("g"), pod("p", group="g")]
    with patch.object(VGpu, "pool_of") as read, patch.object(AscendNpu, "pool_of") as read_too:
        assert binds(Bench(objects, CONF).cycle())
    assert not read.called
    assert not read_too.called

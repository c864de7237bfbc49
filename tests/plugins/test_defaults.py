"""What plugins and actions do where the configuration says nothing, and which refusals an eviction cannot change."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Final

import pytest

import stromboli.plugins
from stromboli.builtin import builtin_registry
from stromboli.framework.extension.reason import Reason, StatusCode

REGISTRY: Final = builtin_registry()
PLUGINS: Final[dict[str, dict[str, Any]]] = {
    "binpack": {"binpack.weight": 1, "binpack.cpu": 1, "binpack.memory": 1, "binpack.resources": "",
                "binpack.resources.*": 1},
    "capacity": {"ancestorReclaimLevel": 0, "capacity.DynamicResourceAllocationEnable": True, "gate-timeout": "0s",
                 "capacity.DRAConsumableCapacityEnable": True},
    "cdp": {},
    "conformance": {},
    "deviceshare": {
        "deviceshare.GPUSharingEnable": False, "deviceshare.GPUNumberEnable": False, "deviceshare.VGPUEnable": False,
        "deviceshare.AscendHAMiVNPUEnable": False, "deviceshare.AscendMindClusterVNPUEnable": False,
        "deviceshare.KnownGeometriesCMName": "volcano-vgpu-device-config",
        "deviceshare.KnownGeometriesCMNamespace": "kube-system", "deviceshare.NodeLockEnable": False,
        "deviceshare.SchedulePolicy": "", "deviceshare.ScheduleWeight": 0, "deviceshare.GPUExclusiveRules": [],
    },
    "drf": {},
    "extender": {
        "extender.urlPrefix": "", "extender.httpTimeout": "1s", "extender.ignorable": False,
        "extender.managedResources": [],
        **{f"extender.{verb}Verb": "" for verb in (
            "onSessionOpen", "onSessionClose", "predicate", "prioritize", "preemptable", "reclaimable",
            "queueOverused", "jobEnqueueable", "jobEnqueued", "jobReady", "allocateFunc", "deallocateFunc")},
    },
    "fragmentation": {"fragmentation.weight": 1, "fragmentation.policy": "gradient", "fragmentation.typical": 95},
    "gang": {},
    "network-topology-aware": {
        "weight": 1, "hypernode.binpack.cpu": 1, "hypernode.binpack.memory": 1, "hypernode.binpack.resources": "",
        "hypernode.binpack.resources.*": 1, "hypernode.binpack.normal-pod.enable": True,
        "hypernode.binpack.normal-pod.fading": 0.8, "hypernode.gradient.evict.max-hypernodes": 8,
        "hypernode.keep-whole.enable": False, "hypernode.topology-groups.enable": False,
    },
    "nodegroup": {"strict": True, "enablePreferredOrder": False},
    "nodeorder": {
        "leastrequested.weight": 1, "mostrequested.weight": 0, "balancedresource.weight": 1, "nodeaffinity.weight": 2,
        "tainttoleration.weight": 3, "imagelocality.weight": 1, "podaffinity.weight": 2,
        "podtopologyspread.weight": 2,
    },
    "numa-aware": {"weight": 1},
    "overcommit": {"overcommit-factor": 1.2, "max-queue-overcommit-factor": 0.0},
    "pdb": {},
    "predicates": {
        **{f"predicate.{name}Enable": True for name in (
            "NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "PodTopologySpread", "NodeVolumeLimits",
            "VolumeZone", "VolumeBinding", "DynamicResourceAllocation")},
        "volumebinding.bindTimeoutSeconds": 600, "dynamicresources.bindingTimeoutSeconds": 600,
        "predicate.CacheEnable": False, "predicate.ProportionalEnable": False, "predicate.resources": "",
        "predicate.resources.*": 1.0, "volumebinding.weight": 1, "volumebinding.shape": [],
    },
    "priority": {},
    "proportion": {},
    "rescheduling": {"interval": "5m", "metricsPeriod": "", "strategies": []},
    "resource-strategy-fit": {
        "resourceStrategyFitWeight": 10, "resources": {},
        "sra": {"enable": False, "resources": "", "weight": 0, "resourceWeight": {}},
        "proportional": {"enable": False, "resources": "", "resourceProportion": {}},
    },
    "resourcequota": {},
    "sla": {"sla-waiting-time": None},
    "task-topology": {"task-topology.weight": 1},
    "tdm": {"tdm.revocable-zone.*": None, "tdm.evict.period": "1m"},
    "usage": {
        "usage.weight": 5, "cpu.weight": 1, "memory.weight": 1, "thresholds": {"cpu": 80, "mem": 80},
        "estimator": {"request_ratio": 0.7, "burst_ratio": 0.0, "risk_threshold": 0.6, "risk_factor": 1.2,
                      "be_cpu": "250m", "be_mem": "200Mi"},
    },
}  # fmt: skip
WIDE: Final = {"maxDomains": 8, "allowWholeBundle": True, "minimal-victims": True}
ACTIONS: Final[dict[str, dict[str, Any]]] = {
    "allocate": {"reservation-limit": "1h", "reservation-timeout": "10m"},
    "backfill": {},
    "enqueue": {},
    "gangpreempt": WIDE,
    "gangreclaim": WIDE,
    "preempt": {
        "enableTopologyAwarePreemption": False, "minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 1,
        "maxCandidateNodesAbsolute": 100, "minimal-victims": True, "patience": 0.5,
    },
    "reclaim": {"minimal-victims": True, "patience": 0.5},
    "shuffle": {},
}  # fmt: skip


def defaults(owner: Any) -> dict[str, Any]:
    return {each.key: each.default for each in owner.arguments.values()}


def test_arguments_of_plugins_that_are_not_given() -> None:
    assert {name: defaults(REGISTRY.plugin_class(name)) for name in REGISTRY.plugin_names} == PLUGINS


def test_arguments_of_actions_that_are_not_given() -> None:
    assert {name: defaults(REGISTRY.action(name)) for name in REGISTRY.action_names} == ACTIONS


def test_which_plugins_look_at_the_clock() -> None:
    """A simulation may leave out cycles without news unless one of these is configured."""
    built = {name: REGISTRY.build(name, {}) for name in REGISTRY.plugin_names}
    looking = {"cdp", "deviceshare", "extender", "rescheduling", "sla", "tdm", "usage"}
    assert {name for name, plugin in built.items() if plugin.depends_on_time} == looking
    assert REGISTRY.build("capacity", {"gate-timeout": "1s"}).depends_on_time


LASTING: Final = {
    "node group resource limit annotation invalid",
    "node group label not found",
    "node group affinity not specified",
    "node does not satisfy the node group affinity",
    "node group resource limit exceeded",
    "container {container} cannot be assigned by numa",
    "node(s) were unschedulable",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) had untolerated taint(s)",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) had no available volume zone",
    "proportional of resource {resource} check failed",
    "not allow to dispatch to revocable node",
    "current time beyond revocable zone",
    "the CPU load of the node exceeds the upper limit.",
    "the memory load of the node exceeds the upper limit.",
}
"""What stays as it is whatever is evicted from the node."""


def test_which_refusals_an_eviction_cannot_change() -> None:
    modules = pkgutil.walk_packages(stromboli.plugins.__path__, "stromboli.plugins.")
    found = [value for module in modules for value in vars(importlib.import_module(module.name)).values()]
    reasons = [each for each in found if isinstance(each, Reason) and each.code != StatusCode.ERROR]
    assert {each.text for each in reasons if not each.resolvable} == LASTING
    assert {each.text for each in reasons if each.resolvable}.isdisjoint(LASTING)


@pytest.mark.parametrize(
    ("given", "code", "resolvable"),
    [
        ({}, StatusCode.UNSCHEDULABLE, True),
        ({"resolvable": False}, StatusCode.UNSCHEDULABLE_AND_UNRESOLVABLE, False),
        ({"code": StatusCode.ERROR}, StatusCode.ERROR, False),
        ({"code": StatusCode.UNSCHEDULABLE, "resolvable": False}, StatusCode.UNSCHEDULABLE, True),
    ],
)
def test_a_code_says_whether_an_eviction_could_help(given: Any, code: StatusCode, resolvable: bool) -> None:
    reason = Reason("no {what}", **given)
    assert (reason.code, reason.resolvable, str(reason.of(what="room"))) == (code, resolvable, "no room")
    assert reason.said_by("one").said_by("other").plugin == "one"

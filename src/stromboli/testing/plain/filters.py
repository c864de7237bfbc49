"""The predicates of the plugin ``predicates``: which nodes a task may use, amounts aside.

A filter is made once for a task and gives a verdict for each node: None, or the reason against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stromboli.framework.extension.reason import Reason, StatusCode
from stromboli.model.names import TEMPLATE_UID
from stromboli.model.resources.axes import CPU, MEMORY, PODS
from stromboli.model.task import Task
from stromboli.testing.plain import matching
from stromboli.testing.plain.neighbours import Verdict, pod_affinity, topology_spread
from stromboli.testing.plain.world import PlainWorld, Site

Filter = Callable[[PlainWorld, Task], Verdict]
Settings = Mapping[str, Any]
"""A plugin's arguments by their key in the configuration, defaults filled in."""

POD_NUMBER = Reason("node(s) pod number exceeded", plugin="predicates")
CORDONED = Reason("node(s) were unschedulable", resolvable=False, plugin="NodeUnschedulable")
NODE_AFFINITY = Reason("node(s) didn't match Pod's node affinity/selector", resolvable=False, plugin="NodeAffinity")
TAINTED = Reason("node(s) had untolerated taint(s)", resolvable=False, plugin="TaintToleration")
PORTS = Reason("node(s) didn't have free ports for the requested pod ports", plugin="NodePorts")
CACHED = Reason("plugin equivalence cache predicates failed", code=StatusCode.ERROR, plugin="predicate.CacheEnable")
PROPORTION = Reason("proportional of resource {resource} check failed", resolvable=False, plugin="predicates")

EVERY_ADDRESS = "0.0.0.0"
MEGABYTE = 10**6


def pod_number(_world: PlainWorld, _task: Task) -> Verdict:
    """The node must be allowed more pods than it has, waiting ones counted."""
    return lambda site: POD_NUMBER if site.offers[PODS] <= site.requested[PODS] else None


def cordon(_world: PlainWorld, task: Task) -> Verdict:
    """The node must not be cordoned, unless the task tolerates the taint that stands for it."""
    bears = any(matching.tolerates(each, matching.CORDON) for each in task.spec.tolerations)
    return lambda site: CORDONED if site.spec.unschedulable and not bears else None


def node_affinity(_world: PlainWorld, task: Task) -> Verdict:
    """The node must satisfy nodeSelector and required node affinity."""
    return lambda site: None if matching.suits(task.spec, site.spec) else NODE_AFFINITY


def taints(_world: PlainWorld, task: Task) -> Verdict:
    """The task must tolerate the node's NoSchedule and NoExecute taints."""
    return lambda site: TAINTED if matching.keeps_out(task.spec, site.spec) else None


def ports(_world: PlainWorld, task: Task) -> Verdict:
    """No pod on the node may have a host port in common with the task."""
    wanted = task.template.host_ports

    def verdict(site: Site) -> Reason | None:
        taken = [port for pod in site.pods for port in pod.template.host_ports]
        return PORTS if any(collide(mine, other) for mine in wanted for other in taken) else None

    return verdict


def collide(left: tuple[str, str, int], right: tuple[str, str, int]) -> bool:
    """Whether two (address, protocol, port) meet: 0.0.0.0 stands for every address."""
    return left[1:] == right[1:] and (left[0] == right[0] or EVERY_ADDRESS in (left[0], right[0]))


def proportional(settings: Settings) -> Filter:
    """With the task on it, a node must keep so many idle cores and gigabytes for each idle device.

    Tasks that ask for one of the devices may use them up.
    """
    listed = dict.fromkeys(name.strip() for name in settings["predicate.resources"].split(","))
    names = [name for name in listed if name]
    rates: Mapping[str, float] = settings["predicate.resources.*"]

    def made(world: PlainWorld, task: Task) -> Verdict:
        def verdict(site: Site) -> Reason | None:
            cpu = site.idle[CPU] - task.template.vector[CPU]
            memory = site.idle[MEMORY] - task.template.vector[MEMORY]
            for name in names:
                devices = site.idle[world.columns[name]] if name in world.columns else 0
                cores, gigabytes = rates.get(f"{name}.cpu", 1.0), rates.get(f"{name}.memory", 1.0)
                if cpu < devices * cores or memory < devices * gigabytes * MEGABYTE:
                    return PROPORTION.of(resource=name)
            return None

        takes_devices = any(task.request.get(name) > 0 for name in names)
        return (lambda _site: None) if takes_devices else verdict

    return made


class Equivalence:
    """The filters that placements cannot change, asked once for all tasks with one template annotation.

    The first such task gets the filters' own reasons, the others only its yes or no, whatever their specs say.
    """

    def __init__(self, filters: list[Filter]) -> None:
        self._filters = filters
        self._first: dict[str, Task] = {}

    def __call__(self, world: PlainWorld, task: Task) -> Verdict:
        """The common verdict of the filters."""
        template = task.annotations.get(TEMPLATE_UID, "")
        first = self._first.setdefault(template, task) if template else task
        verdicts = [each(world, first) for each in self._filters]

        def verdict(site: Site) -> Reason | None:
            refused = next((reason for each in verdicts if (reason := each(site))), None)
            return CACHED if refused and first.uid != task.uid else refused

        return verdict


def predicates(settings: Settings) -> list[Filter]:
    """The filters that ``settings`` leave on, in the order in which they are asked."""
    node = node_affinity if settings["predicate.NodeAffinityEnable"] else None
    taint = taints if settings["predicate.TaintTolerationEnable"] else None
    stable: list[Filter] = [each for each in (cordon, node, taint) if each]
    if settings["predicate.CacheEnable"]:
        stable = [Equivalence(stable)]
    changing: dict[str, Filter] = {
        "predicate.NodePortsEnable": ports,
        "predicate.PodAffinityEnable": pod_affinity,
        "predicate.PodTopologySpreadEnable": topology_spread,
    }
    found = [pod_number, *stable, *(each for key, each in changing.items() if settings.get(key, True))]
    return [*found, proportional(settings)] if settings["predicate.ProportionalEnable"] else found

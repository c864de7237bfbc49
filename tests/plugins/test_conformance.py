from __future__ import annotations

import pytest

from stromboli.plugins.conformance import Conformance
from tests.plugins.support import FakeSession, asked, make_task, opened

TASKS = {
    "plain": make_task("plain"),
    "cluster-critical": make_task("a", priority_class="system-cluster-critical"),
    "node-critical": make_task("b", priority_class="system-node-critical"),
    "system": make_task("c", "kube-system/j"),
    "other-class": make_task("d", priority_class="system-cluster-critical-not"),
}


POINTS = ["preemptable", "reclaimable", "unified_evictable", "victim_tasks"]


@pytest.mark.parametrize("point", POINTS)
def test_the_clusters_own_pods_are_spared(point):
    plugin = opened(Conformance(), FakeSession())
    actor = () if point == "victim_tasks" else (make_task(),)
    assert asked(plugin, point)(*actor, list(TASKS.values())) == [TASKS["plain"], TASKS["other-class"]]


@pytest.mark.parametrize(("compat", "points"), [(False, POINTS), (True, POINTS[:3])], ids=["ours", "compat"])
def test_in_the_references_way_nothing_is_kept_from_being_moved(compat, points):
    plugin = opened(Conformance(), FakeSession(compat=compat))
    assert sorted(hook.point.name for hook, _ in plugin.hooks()) == points


def test_its_refusals_are_absolute():
    hooks = [hook for hook, _ in Conformance().hooks()]
    assert sorted(hook.point.name for hook in hooks) == POINTS
    assert all(hook.protects for hook in hooks)

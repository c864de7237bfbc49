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


@pytest.mark.parametrize("point", ["preemptable", "reclaimable", "unified_evictable"])
def test_the_clusters_own_pods_are_spared(point):
    plugin = opened(Conformance(), FakeSession())
    assert asked(plugin, point)(make_task(), list(TASKS.values())) == [TASKS["plain"], TASKS["other-class"]]


def test_its_refusals_are_absolute():
    assert all(hook.protects for hook, _ in Conformance().hooks())

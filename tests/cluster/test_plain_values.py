"""Objects out of plain values: those that need no second look, and those that do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cluster.kinds import KINDS
from stromboli.cluster.objects import from_value
from stromboli.errors import ManifestError
from stromboli.model.spec import without_nulls
from stromboli.model.values.reading import convert

LEAVES = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text(max_size=4)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
TEXTS = st.text(max_size=4) | st.none()


@given(
    labels=st.dictionaries(st.text(max_size=4), TEXTS, max_size=3),
    priority=st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
    amount=st.integers(0, 1 << 62) | st.just("1500m") | st.just(0.5),
    unread=TREES,
)
def test_nulls_are_absent_and_what_is_not_read_does_not_matter(labels, priority, amount, unread):
    containers = [{"name": "c", "resources": {"requests": {"cpu": amount}}, "unread": unread}, None]
    value = {
        "metadata": {"name": "p", "namespace": "ns", "labels": labels, "unread": unread},
        "spec": {"priority": priority, "containers": containers, "nodeName": None},
        "unread": unread,
    }
    assert from_value("Pod", value) == convert(without_nulls(value), KINDS["Pod"].type)


@pytest.mark.parametrize(
    ("pod", "path", "problem"),
    [
        ({"spec": {"unread": [0, 1 << 64]}}, "spec.unread[1]", "the number is too large"),
        ({"spec": {"priority": -(1 << 63) - 1}}, "spec.priority", "the number is too large"),
        ({"spec": {"nodeName": 5}}, "spec.nodeName", "expected a text, got a whole number"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_place(pod, path, problem):
    with pytest.raises(ManifestError) as raised:
        from_value("Pod", {"metadata": {"name": "p", "namespace": "ns"}, **pod})
    assert (raised.value.path, raised.value.object) == (path, "Pod ns/p")
    assert raised.value.problem.startswith(problem)

"""Sound objects that do not go together: (name, objects as YAML, the object at fault, its field, the message)."""

from __future__ import annotations

from tests.cluster.corpus.fields import broken, sound


def _queue(name, parent):
    return broken("Queue", "spec.parent", parent, name)


def _hyper_node(name, *members):
    entries = [{"type": "HyperNode", "selector": {"exactMatch": {"name": member}}} for member in members]
    return broken("HyperNode", "spec.members", entries, name)


def _member_of(group):
    return broken("Pod", "metadata.annotations", {"scheduling.k8s.io/group-name": group}, "p")


TOGETHER = [
    ("queue under itself", [_queue("q", "q")], "Queue q", "spec.parent", "circle: q -> q"),
    ("queues in a circle", [_queue("a", "b"), _queue("b", "a")], "Queue a", "spec.parent", "a -> b -> a"),
    (
        "a long circle of queues",
        [_queue(f"q{i}", f"q{(i + 1) % 5000}") for i in range(5000)],
        "Queue q0",
        "spec.parent",
        "circle",
    ),
    ("unknown parent", [_queue("q", "nobody")], "Queue q", "spec.parent", "no Queue nobody"),
    ("hypernode in itself", [_hyper_node("h", "h")], "HyperNode h", "spec.members", "h -> h"),
    (
        "hypernodes in a circle",
        [_hyper_node("a", "b"), _hyper_node("b", "a")],
        "HyperNode b",
        "spec.members",
        "cyclic dependency detected",
    ),
    (
        "two parents",
        [_hyper_node("c"), _hyper_node("a", "c"), _hyper_node("b", "c")],
        "HyperNode b",
        "spec.members",
        "HyperNode c already has a parent a, and cannot set another parent b",
    ),
    ("unknown hypernode", [_hyper_node("h", "nobody")], "HyperNode h", "exactMatch.name", "no HyperNode nobody"),
    ("unknown queue", [broken("PodGroup", "spec.queue", "q", "g")], "PodGroup default/g", "spec.queue", "no Queue q"),
    (
        "unknown class",
        [broken("PodGroup", "spec.priorityClassName", "top", "g")],
        "PodGroup default/g",
        "spec.priorityClassName",
        "no PriorityClass top",
    ),
    ("unknown group", [_member_of("g")], "Pod default/p", "group-name", "no PodGroup default/g"),
    ("unknown node", [broken("Pod", "spec.nodeName", "n", "p")], "Pod default/p", "spec.nodeName", "no Node n"),
    ("twice", [sound("Queue", "q"), sound("Queue", "q")], "Queue q", "metadata.name", "stood already"),
]

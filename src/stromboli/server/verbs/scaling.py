"""The scale subresource: the number of replicas of an object, without the rest of it."""

from __future__ import annotations

from stromboli.cluster.body import Body, meta, part
from stromboli.server.print.columns import selector_text


def scale_of(body: Body) -> Body:
    """The object's scale."""
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta(body)[name] for name in kept if name in meta(body)},
        "spec": {"replicas": part(body, "spec", "replicas") or 0},
        "status": {
            "replicas": part(body, "status", "replicas") or 0,
            "selector": selector_text(part(body, "spec", "selector")),
        },
    }


def with_scale(body: Body, scale: Body) -> Body:
    """The object with the replicas of a scale; the version that the scale was read at is checked like the object's."""
    found = dict(meta(body))
    if meta(scale).get("resourceVersion"):
        found["resourceVersion"] = meta(scale)["resourceVersion"]
    replicas = part(scale, "spec", "replicas") or 0
    return {**body, "metadata": found, "spec": {**(body.get("spec") or {}), "replicas": replicas}}

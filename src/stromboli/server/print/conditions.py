"""The conditions in an object's status: what they say, and how one is set."""

from __future__ import annotations

from stromboli.cluster.body import Body, part


def condition_of(body: Body, kind: str) -> Body:
    """The object's condition of that type; empty where it has none."""
    found: Body = next((one for one in part(body, "status", "conditions") or () if one.get("type") == kind), {})
    return found


def readiness(body: Body) -> str:
    """Status of a node's or pod's condition Ready: True, False or Unknown; empty where it has none."""
    return str(condition_of(body, "Ready").get("status", ""))


def with_condition(body: Body, condition: Body) -> Body:
    """The object's status with one condition set, in the place of the one of its type."""
    known = part(body, "status", "conditions") or []
    others = [one for one in known if one.get("type") != condition["type"]]
    return {**(body.get("status") or {}), "conditions": [*others, condition]}

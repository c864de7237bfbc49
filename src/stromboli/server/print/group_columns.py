"""The columns of Kubernetes' own PodGroups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stromboli.cluster.body import Body, part
from stromboli.server.print.columns import AGE, NAME, Column, at
from stromboli.server.print.conditions import condition_of


def _policy(body: Body, now: float) -> str:
    return "Basic" if part(body, "spec", "schedulingPolicy", "gang") is None else "Gang"


def _standing(body: Body, now: float) -> str:
    disrupted = condition_of(body, "DisruptionTarget")
    if disrupted.get("status") == "True":
        return str(disrupted.get("reason", ""))
    told = condition_of(body, "PodGroupInitiallyScheduled")
    return {"True": "Scheduled", "": "Pending"}.get(str(told.get("status", "")), "Unschedulable")


_WORKLOAD: Final = Column("Workload", at("spec", "workloadRef", "workloadName"))
GROUP_COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    ("scheduling.k8s.io", "podgroups"): (
        NAME, Column("Policy", _policy), _WORKLOAD, Column("Status", _standing), AGE,
    ),
    ("scheduling.k8s.io", "compositepodgroups"): (NAME, Column("Policy", _policy), _WORKLOAD, AGE),
}  # fmt: skip
"""Columns by collection."""

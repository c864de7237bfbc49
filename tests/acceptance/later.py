"""Acceptance rows that cannot be executed yet, or not in full: what they wait for."""

from __future__ import annotations

from collections.abc import Mapping

LATER: Mapping[str, str] = {
    "S0-21": "a plan is data and writing it cannot fail; the row is about who carries plans out against an API server",
    "S0-44": "placements within hypernodes are not carried over to the state",
    "S0-46": "no NodeShard objects reach the cluster state",
    "S3-11": "the engine scores whole vectors and tells neither single strategies nor totals",
    "S3-30": "CSI drivers and volumes do not reach the cluster state",
    "S3-38": "needs shared devices and their plugin",
}
"""Rows without a test."""

PARTLY: Mapping[str, str] = {
    "S0-04": "pods and nodes; other kinds of object take the same way",
    "S0-09": "the notice is the line `session_closed`; there is no cache to be told beside it",
    "S0-35": "the question; the action shuffle does not exist yet",
    "S0-37": "the reason stands in the plan; the two events are made when it is carried out",
    "S0-39": "there is no API server in a plan: clients are refused by name, events leave with the plan",
    "S1-38": "who may be taken back; the action reclaim does not exist yet",
    "S3-29": "the code of the failure; the action preempt, which it is for, does not exist yet",
    "S3-39": "an unknown node; there are no device errors without devices",
}
"""Rows with a test that leaves something open."""

"""Requests for shared devices that no node can meet, however idle it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.framework.config.config import PluginOption
from stromboli.model.snapshot import Snapshot
from stromboli.model.task import Task
from stromboli.plugins.deviceshare import DeviceShare, idle_cards
from stromboli.plugins.deviceshare.kind import Kind, Pool

Cards = list[tuple[Kind[Any], list[Pool[Any]]]]


def cards_of(option: PluginOption, snapshot: Snapshot) -> Iterator[tuple[Kind[Any], list[Pool[Any]]]]:
    """The cards of all nodes by kind, if ``option`` is the plugin that shares them."""
    if option.name == DeviceShare.name:
        yield from idle_cards(DeviceShare(option.arguments), snapshot)


def lacking_cards(cards: Cards, task: Task) -> str:
    """What is wrong with a pod that no node has the cards for; empty for other pods."""
    for kind, pools in cards:
        demand = kind.demand_of(task)
        if demand is None or any(pool.refusal(demand) is None for pool in pools):
            continue
        if not pools:
            return "no node has cards of the kind that the pod asks for"
        return f"no node has the cards that the pod asks for, even idle; the first, {pools[0].shortage(demand)[:300]}"
    return ""

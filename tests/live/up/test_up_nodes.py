"""The nodes of an embedded cluster: those that an earlier start has left, and pods that run as processes."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.live.up import up
from stromboli.live.up.stored_nodes import silence_all_but
from stromboli.server.api import Api
from stromboli.server.kubelet.shapes import nodes_of


def with_nodes(count: int) -> Api:
    api = Api(lambda work: work())
    for node in nodes_of([f"{count}x4cpu"]):
        api.store.put(("", "nodes"), {**node, "apiVersion": "v1", "kind": "Node"})
    return api


@pytest.mark.parametrize(
    ("count", "named", "told"),
    [
        pytest.param(2, 2, [], id="all are named"),
        pytest.param(3, 1, ["not ready: node-2, node-3 (without --nodes"], id="some are left"),
        pytest.param(13, 1, ["node-2, node-3, node-4, node-5, node-6, node-7 and 2 more (without"], id="many are left"),
    ],
)  # fmt: skip
def test_stored_nodes_that_a_start_does_not_name_are_said_to_be_without_kubelets(
    count: int, named: int, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    api = with_nodes(count)
    with caplog.at_level(logging.WARNING):
        silence_all_but(nodes_of([f"{named}x4cpu"]), api)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == len(told)
    assert all(part in text for part, text in zip(told, said, strict=True))


@pytest.mark.parametrize("real", [True, False])
def test_kubelets_with_processes_are_told_what_pods_have_written(real: bool) -> None:
    api = with_nodes(0)
    before = api.written
    setup: Any = SimpleNamespace(real_pods=real, nodes=nodes_of(["1x4cpu"]))
    found: Any = up._kubelets(setup, api)
    assert (api.written == found.written) if real else (api.written is before)

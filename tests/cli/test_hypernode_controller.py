"""``vc-hypernode-controller-manager``: the HyperNode controller alone, under the name of Volcano's program."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cli.main import hypernode_controller
from stromboli.controllers.selection import CONTROLLERS, looks_of


def test_it_is_that_controller_alone_with_a_lease_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def control(flags: Any) -> int:
        given.append(flags)
        return 3

    monkeypatch.setattr("stromboli.live.process.control_process.control", control)
    assert hypernode_controller(["--kube-api-qps=7"]) == 3
    [flags] = given
    assert looks_of(flags["controllers"]) == CONTROLLERS["hyperNode-controller"]
    assert (flags["leader_elect_resource_name"], flags["kube_api_qps"]) == ("vc-hypernode-controller-manager", 7)
    hypernode_controller(["--leader-elect-resource-name=other"])
    assert given[1]["leader_elect_resource_name"] == "other"

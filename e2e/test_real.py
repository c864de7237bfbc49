"""The real API server is one."""

from __future__ import annotations

import json

from e2e.real import VERSION, RealServer


def test_it_answers_as_the_version_it_is_built_from(kube_apiserver: RealServer) -> None:
    assert json.loads(kube_apiserver.get("/version"))["gitVersion"] == VERSION


def test_it_knows_pods_and_leases(kube_apiserver: RealServer) -> None:
    names = {resource["name"] for resource in json.loads(kube_apiserver.get("/api/v1"))["resources"]}
    assert {"pods", "pods/binding", "pods/eviction", "nodes"} <= names
    groups = {group["name"] for group in json.loads(kube_apiserver.get("/apis"))["groups"]}
    assert "coordination.k8s.io" in groups

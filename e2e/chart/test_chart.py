"""The chart in Helm's own hands: users' values files, what is said of them, and that its objects are those we print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.chart.helm import CHART, HelmFailed, helm, missing, rendered
from stromboli.live.installation.manifests import scope
from stromboli.live.installation.objects import everything
from stromboli.live.installation.readings import evaluated

PRODUCTION: dict[str, Any] = {
    "basic": {"image_registry": "registry.example", "image_tag_version": "v1", "image_pull_secret": "login"},
    "custom": {
        "scheduler_replicas": 2,
        "controller_replicas": 2,
        "leader_elect_enable": True,
        "default_tolerations": [{"key": "control", "operator": "Exists"}],
        "scheduler_resources": {"requests": {"cpu": "4"}, "limits": {"memory": "8Gi"}},
        "scheduler_kube_api_qps": 10_000_000,
        "scheduler_feature_gates": "ElasticScheduling=false",
        "common_labels": {"team": "batch", "app": "mine"},
        "scheduler_podLabels": {"team": "none"},
        "aggregationRule_labels": {"rbac.example/aggregate": "true"},
        "controller_ns": {"pool": "system"},
        "default_ns": {"pool": "all"},
        "scheduler_config_override": 'actions: "allocate"\ntiers:\n- plugins:\n  - name: "gang"\n',
        "sharding_configmap_data": "schedulers: []\n",
        "scheduler_percentage_nodes_to_find": 0,
        "default_csc": {"runAsUser": 1000, "readOnlyRootFilesystem": None},
    },
    "service": {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"]},
}
MONITORED: dict[str, Any] = {
    "serviceMonitor": {"enabled": True, "interval": "10s", "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True},
    "networkPolicy": {"enabled": True, "metricsFrom": [{"namespaceSelector": {}}]},
    "custom": {"hypernode_controller_mode": "standalone", "hypernode_controller_replicas": 2},
}
PARTS: dict[str, Any] = {
    "custom": {"controller_enable": False, "scheduler_name": "volcano-two", "scheduler_log_level": "3"},
    "basic": {"scheduler_image_name": "volcanosh/vc-scheduler", "image_tag_version": "v1.12.0"},
    "crds": {"enabled": False},
    "reservationGuard": {"enabled": False},
}
VALUES = {"none": {}, "production": PRODUCTION, "monitored": MONITORED, "parts": PARTS}


@pytest.fixture(autouse=True)
def _there_is_helm() -> None:
    if reason := missing():
        pytest.skip(reason)


def by_name(objects: list[Any]) -> dict[tuple[str, str], Any]:
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}


@pytest.mark.parametrize("name", VALUES)
def test_what_helm_makes_is_what_we_print(name: str, tmp_path: Path) -> None:
    flat = {f"{group}.{key}": one for group, found in VALUES[name].items() for key, one in found.items()}
    ours = by_name(evaluated(everything(), scope(flat, "volcano", "volcano-system")))
    assert by_name(rendered(VALUES[name], tmp_path)) == ours


@pytest.mark.parametrize("name", VALUES)
def test_helm_finds_nothing_wrong(name: str, tmp_path: Path) -> None:
    file = tmp_path / "values.json"
    file.write_text(json.dumps(VALUES[name]))
    assert "1 chart(s) linted, 0 chart(s) failed" in helm("lint", "--strict", str(CHART), f"--values={file}")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"custom": {"colocation_enable": True}}, "node agents stay Volcano's"),
        ({"custom": {"hypernode_controller_mode": "alone"}}, "must be one of controller-manager, standalone, disabled"),
        ({"basic": {"scheduler_config_file": "config/none.conf"}}, "the chart has no such file"),
        (
            {
                "custom": {
                    "admission_feature_gates": "SchedulingGatesQueueAdmission=true",
                    "enabled_admissions": "/pods/mutate",
                }
            },
            "turn it on or off in both",
        ),
        (
            {
                "custom": {
                    "controller_enabled_controllers": "*,+hyperNode-controller",
                    "hypernode_controller_mode": "standalone",
                }
            },
            "takes it out of the controllers",
        ),
        ({"custom": {"scheduler_enable": "yes"}}, "custom.*scheduler_enable"),
        ({"custom": {"scheduler_affinity": []}}, "custom.*scheduler_affinity"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(HelmFailed, match=f"(?s){told}"):
        rendered(values, tmp_path)


def test_the_chart_is_packed_whole(tmp_path: Path) -> None:
    helm("package", str(CHART), f"--destination={tmp_path}")
    (packed,) = tmp_path.glob("volcano-*.tgz")
    assert packed.stat().st_size < 1 << 20  # what Helm stores of a release has to fit into a Secret

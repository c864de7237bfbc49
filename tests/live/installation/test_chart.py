"""The chart of Helm: its two readings agree, users' values have their effect, mistakes are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli.cli.main import main as command
from stromboli.controllers.selection import looks_of
from stromboli.controllers.work import About
from stromboli.errors import ConfigError
from stromboli.live.installation.chart import chart, schema
from stromboli.live.installation.expressions import Refusal, Value, When, either, first, go_of, merged, text, value_of
from stromboli.live.installation.manifests import Parts, manifests, read_settings, scope
from stromboli.live.installation.objects import everything
from stromboli.live.installation.readings import evaluated, template
from stromboli.live.installation.settings import SETTINGS
from stromboli.live.process.control_flags import CONTROL_FLAGS
from stromboli.live.process.flags import parse
from tools.docs import PROJECT, chart_pages, left_over, stale

SCOPE = {"Values": {"a": {"x": "one", "n": 3, "off": False, "none": None, "map": {"k": "v"}}}}


def v(name: str, *, whole: bool = False) -> Value:
    return Value(f"Values.a.{name}", whole)


@pytest.mark.parametrize(
    ("node", "value", "go"),
    [
        (v("x"), "one", ".Values.a.x"),
        (v("n", whole=True), 3, "(int64 .Values.a.n)"),
        (v("none"), None, ".Values.a.none"),
        (text("50%-", v("x"), v("off")), "50%-onefalse", '(printf "50%%-%v%v" .Values.a.x .Values.a.off)'),
        (first(v("none"), v("off"), "c"), "c", '(coalesce .Values.a.none .Values.a.off "c")'),
        (["é", None], ["é", None], '(list "é" nil)'),
        (either(v("x"), 1, 2), 1, "(ternary 1 2 (not (not .Values.a.x)))"),
        (
            merged(v("none"), v("map"), {"l": 1}),
            {"k": "v", "l": 1},
            '(mergeOverwrite (dict) (default (dict) .Values.a.none) (default (dict) .Values.a.map) (dict "l" 1))',
        ),
    ],
)
def test_an_expression_is_a_value_here_and_an_operand_there(node: Any, value: object, go: str) -> None:
    assert (value_of(node, SCOPE), go_of(node)) == (value, go)


def test_a_tree_becomes_an_object_and_a_template() -> None:
    items = [When(v("x"), {"name": v("x")}), {"m": {"text": "a {{ b"}}]
    tree = {"kind": "K", "gone": When(v("none"), 1), "list": items,
            "lines": "one\n\ntwo\n", "empty": []}  # fmt: skip
    assert evaluated([When(v("x"), tree), When(v("off"), tree)], SCOPE) == [
        {"kind": "K", "list": [{"name": "one"}, {"m": {"text": "a {{ b"}}], "lines": "one\n\ntwo\n", "empty": []}
    ]
    assert template([When(v("x"), tree)]) == (
        "{{- if .Values.a.x }}\n---\nkind: K\n{{- if .Values.a.none }}\ngone: 1\n{{- end }}\nlist:\n"
        "{{- if .Values.a.x }}\n- name: {{ toJson .Values.a.x }}\n{{- end }}\n- m:\n    text: a {{ \"{{\" }} b\n"
        "lines: |\n  one\n\n  two\nempty: []\n{{- end }}\n"
    )  # fmt: skip


def test_a_refusal_fails_with_its_reason() -> None:
    refusal = Refusal(v("x"), "not that")
    assert template([refusal]) == '{{- if .Values.a.x }}\n{{- fail "not that" }}\n{{- end }}\n'
    with pytest.raises(ConfigError, match="not that"):
        evaluated([refusal], SCOPE)
    assert evaluated([Refusal(v("off"), "")], SCOPE) == []


def made(**chosen: Any) -> dict[tuple[str, str], Any]:
    """The objects of a release called volcano, by kind and name; ``a__b=1`` sets a.b."""
    settings = {name.replace("__", ".", 1): value for name, value in chosen.items()}
    found = evaluated(everything(), scope(settings, "volcano", "volcano-system"))
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def pod(objects: dict[tuple[str, str], Any], name: str = "volcano-scheduler") -> Any:
    return objects["Deployment", name]["spec"]["template"]["spec"]


def arguments(objects: dict[tuple[str, str], Any], name: str = "volcano-scheduler") -> list[str]:
    found: list[str] = pod(objects, name)["containers"][0]["args"]
    return found


def test_under_volcanos_name_its_own_deployments_are_taken_over() -> None:
    objects = made()
    for name, app in (("volcano-scheduler", "volcano-scheduler"), ("volcano-controllers", "volcano-controller")):
        spec = objects["Deployment", name]["spec"]
        assert spec["selector"] == {"matchLabels": {"app": app}}
        assert spec["strategy"] == {"type": "Recreate"}  # never two that both decide
    services = {name for kind, name in objects if kind == "Service"}
    assert services == {"volcano-scheduler-service", "volcano-controllers-service", "volcano-admission-service"}
    assert "volcano-scheduler.conf" in objects["ConfigMap", "volcano-scheduler-configmap"]["data"]


@pytest.mark.parametrize(
    ("chosen", "image"),
    [
        ({}, "stromboli:0.1.0"),
        ({"basic__image_registry": "reg.example/x", "basic__image_tag_version": "v2"}, "reg.example/x/stromboli:v2"),
        ({"basic__scheduler_image_tag_version": "v3", "basic__image_tag_version": "v2"}, "stromboli:v3"),
        (
            {"basic__scheduler_image_name": "volcanosh/vc-scheduler", "basic__image_tag_version": "v1"},
            "stromboli:0.1.0",
        ),
        ({"basic__image": "a/b@sha256:0"}, "a/b@sha256:0"),
    ],
)
def test_the_image_is_the_one_that_is_named(chosen: Any, image: str) -> None:
    assert pod(made(**chosen))["containers"][0]["image"] == image


def test_several_replicas_elect_a_leader_and_have_a_budget() -> None:
    objects = made(custom__scheduler_replicas=2)
    assert "--leader-elect=true" in arguments(objects)
    assert "--leader-elect=false" in arguments(objects, "volcano-controllers")
    assert objects["Deployment", "volcano-scheduler"]["spec"]["strategy"] == {"type": "RollingUpdate"}
    assert [name for kind, name in objects if kind == "PodDisruptionBudget"] == ["volcano-scheduler"]


def test_what_a_component_says_wins_over_what_is_said_for_all() -> None:
    mine, all_of_us = [{"key": "mine"}], [{"key": "all"}]
    objects = made(custom__default_tolerations=all_of_us, custom__scheduler_tolerations=mine)
    assert pod(objects)["tolerations"] == mine
    assert pod(objects, "volcano-controllers")["tolerations"] == all_of_us
    assert "tolerations" not in pod(made())


def test_hypernodes_may_have_a_controller_of_their_own() -> None:
    objects = made(custom__hypernode_controller_mode="standalone")
    assert pod(objects, "volcano-hypernode-controller")["containers"][0]["command"] == [
        "/vc-hypernode-controller-manager"
    ]
    assert "--controllers=*,-sharding-controller,-hyperNode-controller" in arguments(objects, "volcano-controllers")
    rules = objects["ClusterRole", "volcano-hypernode-controller"]["rules"]
    assert {name for rule in rules for name in rule["resources"]} == {
        "hypernodes", "hypernodes/status", "nodes", "events",
    }  # fmt: skip
    assert ("Deployment", "volcano-hypernode-controller") not in made(custom__hypernode_controller_mode="disabled")


def gates(admission: str | None, scheduler: str | None, paths: str = "/pods/mutate") -> dict[str, str | None]:
    """Settings that switch feature gates of the webhook server, and of the scheduler."""
    return {
        "custom__admission_feature_gates": admission,
        "custom__scheduler_feature_gates": scheduler,
        "custom__enabled_admissions": paths,
    }


@pytest.mark.parametrize(
    ("admission", "scheduler", "paths"),
    [
        ("SchedulingGatesQueueAdmission=true", "SchedulingGatesQueueAdmission=true", "/pods/mutate"),
        ("SchedulingGatesQueueAdmission=false", None, "/pods/mutate"),
        (None, "SchedulingGatesQueueAdmission=true", "/pods/mutate"),
        ("SchedulingGatesQueueAdmission=true", None, "/jobs/mutate"),
    ],
)
def test_gates_that_leave_no_pod_waiting_are_taken(admission: str | None, scheduler: str | None, paths: str) -> None:
    assert ("Deployment", "volcano-scheduler") in made(**gates(admission, scheduler, paths))


def both(mode: str, controllers: str) -> dict[str, str]:
    """Settings that say where the controller of HyperNodes is, and name controllers."""
    return {"custom__hypernode_controller_mode": mode, "custom__controller_enabled_controllers": controllers}


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"custom__hypernode_controller_mode": "alone"}, "must be one of controller-manager, standalone, disabled"),
        ({"custom__hypernode_controller_mode": "standalone", "custom__hypernode_controller_replicas": 0}, "at least 1"),
        (both("standalone", "hyperNode-controller"), "takes it out of the controllers"),
        (both("standalone", "job-controller,+hyperNode-controller"), "takes it out of the controllers"),
        (both("disabled", "hyperNode-controller,job-controller"), "takes it out of the controllers"),
        ({"custom__controller_enabled_controllers": "*,colocation-config-controller"}, "is not offered yet"),
        (gates("SchedulingGatesQueueAdmission=true", None), "turn it on or off in both"),
        (gates("A=false, SchedulingGatesQueueAdmission=1", "SchedulingGatesQueueAdmission=false"), "on or off in both"),
        ({"custom__colocation_enable": True}, "node agents stay Volcano's"),
        ({"basic__scheduler_config_file": "config/none.conf"}, "the chart has no such file"),
    ],
)
def test_what_cannot_be_is_refused(chosen: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        made(**chosen)


@pytest.mark.parametrize("mode", ["controller-manager", "standalone", "disabled"])
@pytest.mark.parametrize("chosen", [None, "*", "*,-hyperNode-controller", "job-controller,queue-controller"])
def test_controllers_take_every_choice_that_is_not_refused(mode: str, chosen: str | None) -> None:
    objects = made(custom__hypernode_controller_mode=mode, custom__controller_enabled_controllers=chosen)
    flags = parse(arguments(objects, "volcano-controllers"), CONTROL_FLAGS)
    looks = looks_of(flags["controllers"])
    assert About.job in looks
    assert (About.hyper_node in looks) is (mode == "controller-manager" and chosen in (None, "*"))


def test_the_controllers_look_for_shards_where_they_may_read() -> None:
    found = evaluated(everything(), scope({}, "own", "batch"))
    objects = {(one["kind"], one["metadata"]["name"]): one for one in found}
    flags = parse(arguments(objects, "own-controllers"), CONTROL_FLAGS)
    assert (flags["sharding_configmap_namespace"], flags["sharding_configmap"]) == ("batch", "own-sharding-configmap")


def test_monitoring_and_network_policies_come_when_asked_for() -> None:
    kinds = {"ServiceMonitor", "PrometheusRule", "NetworkPolicy"}
    assert not kinds & {kind for kind, _ in made()}
    objects = made(
        serviceMonitor__enabled=True, serviceMonitor__labels={"release": "p"}, prometheusRule__enabled=True,
        networkPolicy__enabled=True, networkPolicy__metricsFrom=[{"podSelector": {}}],
    )  # fmt: skip
    assert kinds <= {kind for kind, _ in objects}
    monitor = objects["ServiceMonitor", "volcano"]
    assert monitor["metadata"]["labels"]["release"] == "p"
    service = objects["Service", "volcano-scheduler-service"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    policy = objects["NetworkPolicy", "volcano-scheduler"]["spec"]
    assert policy["ingress"][0]["from"] == [{"podSelector": {}}]


def test_every_setting_is_in_the_values_file_and_in_its_schema() -> None:
    values = yaml.load(chart()["values.yaml"], yaml.CSafeLoader)
    for one in SETTINGS:
        group, _, name = one.path.partition(".")
        assert values[group][name] == one.default
        assert name in schema()["properties"][group]["properties"]
    assert sum(len(group) for group in values.values()) == len(SETTINGS)


NUMBERS = {
    "basic.admission_port": 8443, "custom.scheduler_replicas": 1, "custom.controller_replicas": 1,
    "custom.admission_replicas": 1, "custom.hypernode_controller_replicas": 1,
    "custom.scheduler_kube_api_qps": 2000, "custom.scheduler_kube_api_burst": 2000,
    "custom.controller_kube_api_qps": 50, "custom.controller_kube_api_burst": 100,
    "custom.hypernode_controller_kube_api_qps": 50, "custom.hypernode_controller_kube_api_burst": 100,
    "custom.scheduler_log_level": 2, "custom.controller_log_level": 2, "custom.admission_log_level": 2,
    "custom.hypernode_controller_log_level": 2, "custom.scheduler_node_worker_threads": 20,
    "custom.controller_worker_threads": 3, "custom.controller_worker_threads_for_gc": 5,
    "custom.controller_worker_threads_for_podgroup": 5, "custom.admission_init_ttl": 3600,
}  # fmt: skip
ON = {
    "custom.scheduler_enable", "custom.controller_enable", "custom.admission_enable",
    "custom.scheduler_metrics_enable", "custom.controller_metrics_enable", "custom.admission_metrics_enable",
    "custom.hypernode_controller_metrics_enable", "custom.sharding_configmap_enable",
    "crds.enabled", "pdb.enabled", "topologySpread.enabled", "reservationGuard.enabled",
}  # fmt: skip
MEMORY = {
    "scheduler": ("500m", "512Mi", "1536Mi"), "controller": ("100m", "256Mi", "1024Mi"),
    "admission": ("100m", "128Mi", "512Mi"), "hypernode_controller": ("100m", "128Mi", "512Mi"),
}  # fmt: skip


def test_what_is_installed_where_nothing_is_chosen() -> None:
    """The numbers are Volcano's, but for those of memory."""
    by_kind = {kind: [one for one in SETTINGS if one.kind == kind] for kind in ("whole", "switch")}
    assert {one.path: one.default for one in by_kind["whole"] if one.default is not None} == NUMBERS
    assert {one.path for one in by_kind["switch"] if one.default} == ON
    for part, (cpu, asked, most) in MEMORY.items():
        (found,) = (one.default for one in SETTINGS if one.path == f"custom.{part}_resources")
        assert found == {"requests": {"cpu": cpu, "memory": asked}, "limits": {"memory": most}}


def test_the_files_of_the_chart_are_what_the_settings_say_today() -> None:
    """A default that changes is a change for every installation."""
    assert [page.path for page in stale(chart_pages(), PROJECT)] == []
    assert left_over(chart_pages(), PROJECT) == []


def test_a_values_file_changes_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("custom:\n  scheduler_replicas: 3\n")
    assert command(["manifests", "--no-crds", "--values", str(file), "--release", "volcano"]) == 0
    found = {
        one["metadata"]["name"]: one
        for one in yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader)
        if one["kind"] == "Deployment"
    }
    assert found["volcano-scheduler"]["spec"]["replicas"] == 3
    file.write_text("custom:\n  scheduler_replica: 3\n")
    with pytest.raises(ConfigError, match=r"no setting custom\.scheduler_replica.*scheduler_replicas"):
        read_settings(file)
    file.write_text("[]\n")
    assert read_settings(file) == {}
    file.write_text("- a\n")
    with pytest.raises(ConfigError, match="groups of settings"):
        read_settings(file)


def test_only_the_account_of_the_scheduler_passes_the_guard() -> None:
    found = {one["kind"]: one for one in manifests(Parts("i", namespace="batch"))}
    (condition,) = found["ValidatingAdmissionPolicy"]["spec"]["matchConditions"]
    assert condition["expression"] == "request.userInfo.username != 'system:serviceaccount:batch:stromboli-scheduler'"


def test_mappings_are_laid_over_the_defaults_as_helm_does() -> None:
    csc = pod(made(custom__default_csc={"runAsUser": 1000, "readOnlyRootFilesystem": None}))["containers"][0]
    assert csc["securityContext"] == {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsUser": 1000,
    }  # fmt: skip

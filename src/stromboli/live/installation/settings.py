"""The settings of the chart: names and meanings of Volcano's chart, and a few of our own.

:data:`SETTINGS` is the one table.  ``values.yaml``, ``values.schema.json`` and what NOTES says derive from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from stromboli.live.installation.expressions import Value

Kind: TypeAlias = Literal["text", "whole", "switch", "map", "list"]

PARTS: Final = ("scheduler", "controller", "admission", "hypernode_controller")
"""The programs as settings name them."""
USER: Final = 65532
"""An unprivileged user: not root."""
POD_SECURITY: Final = {"runAsNonRoot": True, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_SECURITY: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
IMAGE: Final = "stromboli"
"""The image's name."""


class Setting(NamedTuple):
    """One setting: path, kind, default, meaning.  ``idle`` says why it has no effect, ``refused`` why it may not be.

    A default of None leaves the choice to the program.
    """

    path: str
    kind: Kind
    default: Any
    help: str
    idle: str = ""
    refused: str = ""


def _of_parts(suffix: str, kind: Kind, defaults: Mapping[str, Any] | Any, help_text: str) -> tuple[Setting, ...]:
    """The same setting of each program."""

    def default(part: str) -> Any:
        return defaults[part] if isinstance(defaults, Mapping) and set(defaults) >= set(PARTS) else defaults

    return tuple(Setting(f"custom.{part}_{suffix}", kind, default(part), help_text) for part in PARTS)


_NO_WORKERS: Final = "looks at different objects need no workers"
_AGENT: Final = "node agents stay Volcano's: install its chart with only the agent for them"
_BUNDLE: Final = (
    "nothing is bundled: set serviceMonitor.enabled and prometheusRule.enabled, and use your own Prometheus"
)
_MEMORY: Final = {
    "scheduler": (512, 1536),
    "controller": (256, 1024),
    "admission": (128, 512),
    "hypernode_controller": (128, 512),
}
"""What a container asks for and what it may take at most, in MiB: docs/cli.md has the measurements."""

_EVERYONES: Final[tuple[tuple[str, Kind, Any], ...]] = (
    ("affinity", "map", None),
    ("tolerations", "list", None),
    ("ns", "map", None),
    ("sc", "map", POD_SECURITY),
    ("csc", "map", CONTAINER_SECURITY),
)
SETTINGS: Final = (
    Setting("basic.image", "text", "", "The whole name of the image; replaces registry, names and tags."),
    Setting("basic.image_registry", "text", "", "Registry of the images."),
    *(
        Setting(f"basic.{part}_image_name", "text", IMAGE, "One image has all programs; volcanosh/.. means ours.")
        for part in PARTS
    ),
    Setting("basic.image_tag_version", "text", "", "Tag of the images; the chart's appVersion if empty."),
    *(Setting(f"basic.{part}_image_tag_version", "text", "", "Its own tag, if not empty.") for part in PARTS),
    Setting("basic.image_pull_policy", "text", "IfNotPresent", "When images are pulled."),
    Setting("basic.image_pull_secret", "text", "", "Secret to pull them with."),
    Setting("basic.admission_secret_name", "text", "volcano-admission-secret", "Secret of the webhooks' certificate."),
    Setting("basic.admission_port", "whole", 8443, "Where the webhooks listen."),
    Setting("basic.scheduler_config_file", "text", "config/volcano-scheduler.conf", "File of the chart."),
    Setting("basic.admission_config_file", "text", "config/volcano-admission.conf", "File of the chart."),
    Setting("basic.scheduler_configmap", "text", "", "Name of the scheduler's ConfigMap, if not RELEASE-scheduler-.."),
    Setting("basic.agent_image_name", "text", "", "Image of node agents.", idle=_AGENT),
    Setting("basic.agent_image_tag_version", "text", "", "Tag of it.", idle=_AGENT),
    Setting("custom.scheduler_enable", "switch", True, "Install the scheduler."),
    Setting("custom.controller_enable", "switch", True, "Install the controllers."),
    Setting("custom.admission_enable", "switch", True, "Install the webhooks."),
    Setting("custom.scheduler_replicas", "whole", 1, "Schedulers; several elect a leader."),
    Setting("custom.controller_replicas", "whole", 1, "Controllers; several elect a leader."),
    Setting("custom.admission_replicas", "whole", 1, "Webhook servers."),
    Setting("custom.leader_elect_enable", "switch", False, "Elect a leader even of one."),
    Setting("custom.scheduler_metrics_enable", "switch", True, "Serve /metrics."),
    Setting("custom.controller_metrics_enable", "switch", True, "Serve /metrics."),
    Setting("custom.hypernode_controller_metrics_enable", "switch", True, "Serve /metrics."),
    Setting("custom.scheduler_pprof_enable", "switch", False, "Serve /debug/pprof/goroutine."),
    Setting("custom.scheduler_name", "text", None, "schedulerName of the pods that are handled."),
    Setting("custom.scheduler_plugins_dir", "text", "", "Folder of the image with plugins: Python files."),
    Setting("custom.scheduler_kube_api_qps", "whole", 2000, "Requests a second."),
    Setting("custom.scheduler_kube_api_burst", "whole", 2000, "Requests at once."),
    Setting("custom.controller_kube_api_qps", "whole", 50, "Requests a second."),
    Setting("custom.controller_kube_api_burst", "whole", 100, "Requests at once."),
    Setting("custom.hypernode_controller_kube_api_qps", "whole", 50, "Requests a second."),
    Setting("custom.hypernode_controller_kube_api_burst", "whole", 100, "Requests at once."),
    Setting("custom.scheduler_schedule_period", "text", "1s", "Pause between cycles."),
    Setting("custom.scheduler_percentage_nodes_to_find", "whole", None, "Sample nodes; all are looked at if null."),
    Setting("custom.scheduler_feature_gates", "text", None, "Name=true, parted by commas."),
    Setting("custom.admission_feature_gates", "text", None, "Name=true, parted by commas."),
    Setting("custom.ignored_provisioners", "text", None, "Provisioners whose volumes count for no limit."),
    Setting("custom.scheduler_sharding_mode", "text", None, "none, soft or hard."),
    Setting("custom.scheduler_sharding_name", "text", None, "Its NodeShard."),
    Setting("custom.sharding_configmap_enable", "switch", True, "Make the ConfigMap of shards, where data are given."),
    Setting("custom.sharding_configmap_data", "text", None, "Text of sharding.yaml."),
    Setting("custom.controller_enabled_controllers", "text", None, "Such as *,-sharding-controller."),
    Setting("custom.hypernode_controller_mode", "text", "controller-manager", "Or standalone, or disabled."),
    Setting("custom.hypernode_controller_replicas", "whole", 1, "Of the standalone one; several elect a leader."),
    Setting(
        "custom.enabled_admissions",
        "text",
        "/jobs/mutate,/jobs/validate,/podgroups/validate,/queues/mutate,/queues/validate,/hypernodes/validate,"
        "/cronjobs/validate",
        "Paths of webhooks that are served and registered.",
    ),
    Setting("custom.vap_enable", "switch", False, "ValidatingAdmissionPolicies, for the rules that CEL can say."),
    Setting("custom.admission_metrics_enable", "switch", True, "Serve /metrics."),
    Setting("custom.webhooks_namespace_selector_expressions", "list", None, "More of every namespaceSelector."),
    Setting("custom.scheduler_config_override", "text", None, "Text of the configuration, instead of the file."),
    Setting("custom.controller_config_override", "text", None, "Text of volcano-controller.conf."),
    Setting("custom.admission_config_override", "text", None, "Text of volcano-admission.conf."),
    *_of_parts("log_level", "whole", 2, "-v, 0 to 5."),
    Setting("custom.log_format", "text", "json", "json or text."),
    Setting("custom.common_labels", "map", {}, "Labels of all objects but CRDs."),
    Setting("custom.aggregationRule_labels", "map", None, "Labels of the roles for users of jobs."),
    *(
        Setting(f"custom.default_{name}", kind, default, f"Of all programs that have no {{part}}_{name}.")
        for name, kind, default in _EVERYONES
    ),
    *_of_parts("affinity", "map", None, "Instead of default_affinity."),
    *_of_parts("tolerations", "list", None, "Instead of default_tolerations."),
    *_of_parts("ns", "map", None, "nodeSelector, instead of default_ns."),
    *_of_parts("sc", "map", None, "securityContext of its pods, instead of default_sc."),
    *_of_parts("main_csc", "map", None, "securityContext of its container, instead of default_csc."),
    *(
        Setting(
            f"custom.{part}_resources",
            "map",
            {
                "requests": {"cpu": "500m" if part == "scheduler" else "100m", "memory": f"{asked}Mi"},
                "limits": {"memory": f"{most}Mi"},
            },
            "What its container asks for and may take.",
        )
        for part, (asked, most) in _MEMORY.items()
    ),
    *_of_parts("podLabels", "map", None, "More labels of its pods."),
    *_of_parts("labels", "map", None, "More labels of its objects."),
    Setting("service.ipFamilyPolicy", "text", "", "Of all Services."),
    Setting("service.ipFamilies", "list", [], "Of all Services."),
    # ---------------------------------------------------------------------------------------- our own
    Setting("crds.enabled", "switch", True, "Install the definitions of our kinds; they stay when the chart goes."),
    Setting("pdb.enabled", "switch", True, "PodDisruptionBudgets of programs with several replicas."),
    Setting("topologySpread.enabled", "switch", True, "Spread the replicas of a program over nodes."),
    Setting("reservationGuard.enabled", "switch", True, "An admission policy keeps reservations the scheduler's own."),
    Setting("serviceMonitor.enabled", "switch", False, "A ServiceMonitor of the Prometheus operator."),
    Setting("serviceMonitor.interval", "text", "30s", "How often it scrapes."),
    Setting("serviceMonitor.labels", "map", {}, "Labels by which Prometheus finds it."),
    Setting("prometheusRule.enabled", "switch", False, "A PrometheusRule with alerts."),
    Setting("prometheusRule.labels", "map", {}, "Labels by which Prometheus finds it."),
    Setting("networkPolicy.enabled", "switch", False, "NetworkPolicies: what may reach the programs."),
    Setting("networkPolicy.metricsFrom", "list", [], "Peers that may scrape metrics; all if empty."),
    # ------------------------------------------------------------------------------- taken, without effect
    Setting("basic.agent_scheduler_image_name", "text", "", "Image of the agent scheduler.", idle="not asked for"),
    Setting("basic.agent_scheduler_image_tag_version", "text", "", "Tag of it.", idle="not asked for"),
    Setting("basic.agent_scheduler_config_file", "text", "", "File of the chart.", idle="not asked for"),
    Setting("custom.metrics_enable", "switch", False, "Bundled Prometheus and Grafana.", idle=_BUNDLE),
    Setting("custom.go_memlimit_enable", "switch", False, "A limit of Go's.", idle="these programs are not Go's"),
    Setting("custom.scheduler_node_worker_threads", "whole", 20, "Workers.", idle="nodes need no workers"),
    Setting("custom.controller_worker_threads", "whole", 3, "Workers.", idle=_NO_WORKERS),
    Setting("custom.controller_worker_threads_for_gc", "whole", 5, "Workers.", idle=_NO_WORKERS),
    Setting("custom.controller_worker_threads_for_podgroup", "whole", 5, "Workers.", idle=_NO_WORKERS),
    Setting("custom.admission_init_ttl", "whole", 3600, "Of a Job.", idle="certificates are made without a Job"),
    Setting("custom.admission_init_csc", "map", None, "Of a Job.", idle="certificates are made without a Job"),
    Setting("custom.map_enable", "switch", False, "Admission policies.", idle="the webhooks have the same rules"),
    # ------------------------------------------------------------------------------------------ refused
    Setting("custom.colocation_enable", "switch", False, "Node agents.", refused=_AGENT),
    Setting(
        "custom.agent_scheduler_enable",
        "switch",
        False,
        "A second scheduler for single pods.",
        refused="there is no agent scheduler yet: the scheduler itself takes single pods",
    ),
)
"""All settings, in the order of values.yaml."""

_BY_PATH: Final = {setting.path: setting for setting in SETTINGS}


def setting(path: str) -> Value:
    """The value of a setting in an expression.  Raises KeyError for one that the table does not have."""
    return Value(f"Values.{path}", whole=_BY_PATH[path].kind == "whole" and _BY_PATH[path].default is not None)


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted paths as nested mappings."""
    found: dict[str, Any] = {}
    for path, value in flat.items():
        group, _, name = path.partition(".")
        found.setdefault(group, {})[name] = value
    return found

"""``stromboli manifests``: print what is applied to a cluster so that Stromboli schedules it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer


def manifests(
    image: Annotated[str, typer.Option("--image", help="Container image that runs `stromboli`.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace.")] = "volcano-system",
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="A volcano-scheduler.conf for the ConfigMap.")
    ] = None,
    crds: Annotated[bool, typer.Option("--crds/--no-crds", help="Print the definitions of our kinds too.")] = True,
    release: Annotated[
        str, typer.Option("--release", help="What names begin with; volcano takes the place of Volcano's own objects.")
    ] = "stromboli",
    settings: Annotated[
        Path | None,
        typer.Option("--values", "-f", metavar="FILE", help="Settings, as the chart's values file has them."),
    ] = None,
    webhooks: Annotated[bool, typer.Option("--webhooks/--no-webhooks", help="Print the webhook server too.")] = True,
    policies: Annotated[
        bool, typer.Option("--policies", help="Print ValidatingAdmissionPolicies too, for what CEL can say.")
    ] = False,
    gates: Annotated[
        str, typer.Option("--feature-gates", metavar="NAME=BOOL,…", help="Of scheduler and webhook server alike.")
    ] = "",
    alerts: Annotated[bool, typer.Option("--alerts", help="Print Prometheus' alert rules, and nothing else.")] = False,
    dashboards: Annotated[
        bool, typer.Option("--dashboards", help="Print ConfigMaps with dashboards for Grafana, and nothing else.")
    ] = False,
) -> None:
    """Print the manifests of an installation: kinds, RBAC, ConfigMap, Deployments, Services, PodDisruptionBudgets.

    `stromboli manifests | kubectl apply --server-side -f -` installs it. The chart in `charts/volcano` makes the same.
    """
    if alerts:
        from stromboli.metrics.boards.alerts import groups

        print(_documents([{"groups": groups()}]))
        return
    if dashboards:
        from stromboli.metrics.boards.grafana import config_maps

        print(_documents(config_maps(namespace)))
        return
    from importlib.metadata import version

    from stromboli.framework.config.document import read_text
    from stromboli.live.installation.configurations import CONFIGURATION
    from stromboli.live.installation.manifests import Parts, read_settings
    from stromboli.live.installation.manifests import manifests as made

    text = CONFIGURATION if config is None else read_text(config)
    told = _told(gates, webhooks=webhooks, policies=policies)
    chosen = {**told, **(read_settings(settings) if settings else {})}
    parts = Parts(image or f"stromboli:{version('stromboli')}", namespace, text, crds, release, chosen)
    print(_documents(made(parts)))


def _told(gates: str, *, webhooks: bool, policies: bool) -> dict[str, object]:
    """What options say, as settings.  Raises ConfigError for an unknown gate."""
    from stromboli.crds.admission.paths import INSTALLED, PODS_MUTATE
    from stromboli.framework.config.gates import ADMISSION, parse_gates

    told: dict[str, object] = {"custom.admission_enable": webhooks, "custom.vap_enable": policies}
    if not gates:
        return told
    paths = (*INSTALLED, PODS_MUTATE) if parse_gates(gates).get(ADMISSION) else INSTALLED
    both = dict.fromkeys(("custom.scheduler_feature_gates", "custom.admission_feature_gates"), gates)
    return {**told, **both, "custom.enabled_admissions": ",".join(paths)}


def _documents(objects: Iterable[Mapping[str, object]]) -> str:
    """Objects as YAML documents; texts of several lines stand as blocks, so that a configuration can be read."""
    import yaml

    class Dumper(yaml.CSafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    def text(dumper: yaml.CDumper, value: str) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    yaml.add_representer(str, text, Dumper=Dumper)
    return yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, width=120).rstrip("\n")

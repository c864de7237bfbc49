"""The programs of an installation, and what is the same for all objects: names, labels, images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

from stromboli.live.installation.expressions import (
    Call,
    Expression,
    Node,
    Value,
    When,
    both,
    either,
    either_is,
    first,
    merged,
    more,
    no,
    same,
    text,
)
from stromboli.live.installation.settings import IMAGE, setting
from stromboli.live.proofs.permissions import (
    CONTROLLERS_OWN,
    CONTROLLING,
    DISCOVERING,
    DISCOVERING_OWN,
    REVIEWING,
    SCHEDULER_OWN,
    SCHEDULING,
    WEBHOOKS_OWN,
    Grant,
)

RELEASE: Final = Value("Release.Name")
NAMESPACE: Final = Value("Release.Namespace")
APP_VERSION: Final = Value("Chart.AppVersion")
HEALTH_PORT: Final = 11251
THEIRS: Final = "volcanosh/"
"""How the names of Volcano's own images begin."""


class Part(NamedTuple):
    """One of the programs: an account of its own with ``granted`` in the cluster and ``own`` in its namespace.

    ``key`` is what settings call it, ``suffix`` what its objects are called after the release, ``program`` the command
    in the image.
    """

    key: str
    suffix: str
    program: str
    granted: Sequence[Grant]
    own: Sequence[Grant]
    enabled: Node
    metrics_port: int
    elects: bool = True

    @property
    def name(self) -> Expression:
        """What its objects are called."""
        return text(RELEASE, f"-{self.suffix}")

    @property
    def app(self) -> str:
        """The label that its Deployment selects by: Volcano's, so that an upgrade takes its Deployments over."""
        return f"volcano-{self.key.replace('_', '-')}"

    @property
    def service(self) -> str:
        """Suffix of the Service's name."""
        return f"{self.suffix}-service"

    @property
    def replicas(self) -> Value:
        """How many of it are asked for."""
        return setting(f"custom.{self.key}_replicas")


MODE: Final = setting("custom.hypernode_controller_mode")
_ENABLED: Final = {key: setting(f"custom.{key}_enable") for key in ("scheduler", "controller", "admission")}
_REVIEWING_OWN: Final = [
    # an expression stands for the name that it comes to
    one._replace(names=(cast("str", setting("basic.admission_secret_name")),)) if one.names else one
    for one in WEBHOOKS_OWN
]
SCHEDULER: Final = Part(
    "scheduler", "scheduler", "/vc-scheduler", SCHEDULING, SCHEDULER_OWN, _ENABLED["scheduler"], 8080
)  # fmt: skip
CONTROLLERS: Final = Part(
    "controller", "controllers", "/vc-controller-manager", CONTROLLING, CONTROLLERS_OWN, _ENABLED["controller"], 8081
)
HYPERNODES: Final = Part(
    "hypernode_controller", "hypernode-controller", "/vc-hypernode-controller-manager", DISCOVERING, DISCOVERING_OWN,
    same(MODE, "standalone"), 8081,
)  # fmt: skip
ADMISSION: Final = Part(
    "admission", "admission", "/vc-webhook-manager", REVIEWING, _REVIEWING_OWN, _ENABLED["admission"], 8080,
    elects=False,
)  # fmt: skip
PARTS: Final = (SCHEDULER, CONTROLLERS, HYPERNODES, ADMISSION)


def own(part: Part | None, name: str) -> Expression:
    """A setting of a part: its own value, or that of all."""
    everyones = setting(f"custom.default_{name.removeprefix('main_')}")
    return everyones if part is None else first(setting(f"custom.{part.key}_{name}"), everyones)


def elects(part: Part) -> Expression:
    """Whether it elects a leader: when told to, and where there are several; the webhook servers all serve."""
    return either_is(setting("custom.leader_elect_enable"), more(part.replicas, 1))


def selector(part: Part) -> Mapping[str, Node]:
    """What its Deployment selects by, which can never change."""
    return {"app": part.app}


def labels(part: Part | None) -> Expression:
    """The labels of an object."""
    common: dict[str, Node] = {
        "app.kubernetes.io/name": IMAGE,
        "app.kubernetes.io/instance": RELEASE,
        "app.kubernetes.io/version": APP_VERSION,
        "app.kubernetes.io/managed-by": Value("Release.Service"),
    }
    everyones = setting("custom.common_labels")
    if part is None:
        return merged(everyones, common)
    common |= {"app.kubernetes.io/component": part.suffix, **selector(part)}
    return merged(everyones, setting(f"custom.{part.key}_labels"), common)


def pod_labels(part: Part) -> Expression:
    """The labels of its pods."""
    fixed = {"app.kubernetes.io/name": IMAGE, "app.kubernetes.io/component": part.suffix, **selector(part)}
    return merged(setting("custom.common_labels"), setting(f"custom.{part.key}_podLabels"), fixed)


def image(part: Part) -> Expression:
    """The whole name of the image; where Volcano's own is named, it is ours, with our tag."""
    name, registry = setting(f"basic.{part.key}_image_name"), setting("basic.image_registry")
    is_theirs = Call("begins", (name, THEIRS))
    tags = first(setting(f"basic.{part.key}_image_tag_version"), setting("basic.image_tag_version"), APP_VERSION)
    prefix = either(registry, text(registry, "/"), "")
    whole = text(prefix, either(is_theirs, IMAGE, name), ":", either(is_theirs, APP_VERSION, tags))
    return first(setting("basic.image"), whole)


def made(
    api_version: str, kind: str, name: Node, part: Part | None = None, *, cluster: bool = False
) -> dict[str, Node]:
    """The beginning of an object, in our namespace unless it belongs to the ``cluster``."""
    where: dict[str, Node] = {} if cluster else {"namespace": NAMESPACE}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, **where, "labels": labels(part)},
    }


def enabled(part: Part, node: Node, *more_needed: Node) -> When:
    """An object of a part, which is there if the part is."""
    return When(both(part.enabled, *more_needed) if more_needed else part.enabled, node)


def budgeted(part: Part) -> Expression:
    """Whether a part has a PodDisruptionBudget: with one replica it would keep nodes from being drained."""
    return both(setting("pdb.enabled"), more(part.replicas, 1))


def silent(part: Part) -> Expression:
    """Whether two of a part would both work while one replaces the other, and must not."""
    return no(elects(part)) if part.elects else no(True)

"""What an installation tells API servers of admission: webhook configurations, and policies in CEL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stromboli.crds.admission.paths import ALL_PATHS
from stromboli.crds.cel.policies import POLICIES, policies
from stromboli.crds.registration import Registration, configurations, pods_of
from stromboli.live.installation import parts
from stromboli.live.installation.expressions import Call, When, both, first, matches, no, text
from stromboli.live.installation.parts import ADMISSION, NAMESPACE, RELEASE
from stromboli.live.installation.settings import setting
from stromboli.live.installation.workloads import ADMISSION_CONFIGURATION
from stromboli.model.names import SCHEDULER_NAME

_GROUPED: Final = matches(ADMISSION_CONFIGURATION, r"""resourceGroup["']?\s*:""")
"""Whether there are resource groups, so that any pod may belong to one; YAML may quote the key, and JSON does."""


def webhooks() -> Iterator[When]:
    """The configurations of the paths that are served."""
    names = text(pods_of("@").partition("@")[0], first(setting("custom.scheduler_name"), SCHEDULER_NAME), "']")
    service: Any = text(RELEASE, f"-{ADMISSION.service}")  # expressions stand for the texts that they come to
    namespace: Any = NAMESPACE
    ours: Any = names
    where = Registration(service, namespace, ours=ours)
    made: Any = configurations(ALL_PATHS.values(), where, parts.labels(ADMISSION))
    for path, found in zip(ALL_PATHS.values(), made, strict=True):
        (hook,) = found["webhooks"]
        if (expressions := hook["namespaceSelector"].get("matchExpressions")) is not None:
            more = setting("custom.webhooks_namespace_selector_expressions")
            hook = {**hook, "namespaceSelector": {"matchExpressions": Call("extended", (expressions, more))}}
        if path.is_mutating and "matchConditions" in hook:
            hook = {**hook, "matchConditions": When(no(_GROUPED), hook["matchConditions"])}
        is_served = Call("contains", (setting("custom.enabled_admissions"), path.path))
        yield When(both(ADMISSION.enabled, is_served), {**found, "webhooks": [hook]})


def policies_in_cel() -> Iterator[When]:
    """The rules that CEL can say."""
    excluded: Any = (NAMESPACE, "kube-system")
    for one in policies(POLICIES, excluded, parts.labels(None)):
        yield When(setting("custom.vap_enable"), one)

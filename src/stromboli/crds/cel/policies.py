"""ValidatingAdmissionPolicies and their bindings, made of the rules that CEL can say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from stromboli.api.kinds import CRON_JOBS, HYPER_NODES, JOB_FLOWS, JOBS, POD_GROUPS, PODS, QUEUES
from stromboli.crds.admission.paths import ALL_PATHS, Path
from stromboli.crds.cel.jobs import JOB
from stromboli.crds.cel.others import CRON_JOB, HYPER_NODE, JOB_FLOW, POD, POD_GROUP, QUEUE
from stromboli.crds.cel.rule import Policy, Rule
from stromboli.crds.registration import API_VERSION, Labels
from stromboli.crds.schema import Schema

POLICIES: Final[Mapping[str, Policy]] = {
    JOBS: JOB,
    QUEUES: QUEUE,
    POD_GROUPS: POD_GROUP,
    PODS: POD,
    HYPER_NODES: HYPER_NODE,
    CRON_JOBS: CRON_JOB,
    JOB_FLOWS: JOB_FLOW,
}
"""By resource."""


def policies(
    resources: Iterable[str], excluded: Sequence[str] = ("kube-system",), labels: Labels | None = None
) -> list[Mapping[str, object]]:
    """Policy and binding of each resource; namespaces that are ``excluded`` are not looked at."""
    found: list[Mapping[str, object]] = []
    for resource in resources:
        policy, path = POLICIES[resource], ALL_PATHS[f"/{resource.partition('.')[0]}/validate"]
        binding = f"{policy.name}-binding"
        made = {
            "apiVersion": API_VERSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": _metadata(policy.name, labels),
        }
        found.append({**made, "spec": _spec(policy, path)})
        spec = {"policyName": policy.name, "validationActions": ["Deny"], "matchResources": _matched(excluded)}
        kind = "ValidatingAdmissionPolicyBinding"
        found.append({"apiVersion": API_VERSION, "kind": kind, "metadata": _metadata(binding, labels), "spec": spec})
    return found


def lost_rules() -> Mapping[str, Sequence[str]]:
    """What the webhook server checks and the policies do not, by resource."""
    return {resource: policy.lost for resource, policy in POLICIES.items() if policy.lost}


def _metadata(name: str, labels: Labels | None) -> Schema:
    return {"name": name, **({"labels": labels} if labels else {})}


def _matched(excluded: Sequence[str]) -> Schema:
    wanted = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(excluded)}
    return {"namespaceSelector": {"matchExpressions": [wanted]}}


def _spec(policy: Policy, path: Path) -> Schema:
    group, version, plural = path.place
    rule = {"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": list(path.operations)}
    conditions = [{"name": "ours", "expression": policy.only}] if policy.only else []
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        **({"matchConditions": conditions} if conditions else {}),
        "variables": [{"name": name, "expression": text} for name, text in policy.variables.items()],
        "validations": [_validation(one, path) for one in policy.rules],
    }


def _validation(rule: Rule, path: Path) -> Schema:
    made: Schema = {"expression": _when(rule, path), "message": rule.text}
    return {**made, "messageExpression": rule.told} if rule.told else made


def _when(rule: Rule, path: Path) -> str:
    """The expression, which holds for operations that the rule is not about."""
    if set(rule.operations) >= set(path.operations):
        return rule.holds
    about = ", ".join(f"'{name}'" for name in rule.operations)
    return f"!(request.operation in [{about}]) || ({rule.holds})"

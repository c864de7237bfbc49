"""An admission policy that keeps the annotations of reservations the scheduler's own.

The proof that they bear (:mod:`stromboli.model.proof`) makes what others write there worthless; with the policy it is
refused at once, and the API server says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stromboli.live.installation.expressions import Node, text
from stromboli.model.names import PIPELINED_PROOF
from stromboli.model.reservation import KEYS

_API: Final = "admissionregistration.k8s.io/v1"
_NOTES: Final = "has({0}.metadata.annotations) ? {0}.metadata.annotations : {{}}"
_UNCHANGED: Final = (
    "variables.keys.all(key, !(key in variables.wanted) || "
    "(key in variables.stood && variables.stood[key] == variables.wanted[key]))"
)


def guard(name: Node, user: Node, labels: Node) -> list[Mapping[str, Node]]:
    """The policy, and that it is in force: only ``user`` may write them, all may remove them.

    Subresources are looked at, too, as statuses and bindings may bring annotations along.
    """
    keys = ", ".join(f"'{key}'" for key in (*KEYS, PIPELINED_PROOF))
    which = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods", "pods/*"]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{**which, "operations": ["CREATE", "UPDATE"]}]},
        "matchConditions": [{"name": "others", "expression": text("request.userInfo.username != '", user, "'")}],
        "variables": [
            {"name": "keys", "expression": f"[{keys}]"},
            {"name": "wanted", "expression": _NOTES.format("object")},
            {"name": "stood", "expression": f"oldObject == null ? {{}} : ({_NOTES.format('oldObject')})"},
        ],
        "validations": [
            {
                "expression": _UNCHANGED,
                "reason": "Forbidden",
                "message": f"the annotations of reservations ({', '.join(KEYS)}) are the scheduler's: leave them out",
            }
        ],
    }
    metadata = {"name": name, "labels": labels}
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec},
        {"apiVersion": _API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": binding},
    ]

"""Reviews of a user's identity and permissions: every known token allows everything."""

from __future__ import annotations

from stromboli.cluster.body import Body, part
from stromboli.server.http.tokens import Tokens, User
from stromboli.server.schema.resources import Resource


def reviewed(resource: Resource, body: Body, user: User, tokens: Tokens) -> Body:
    """The review that ``user`` asks for, with its answer."""
    whole = {"apiVersion": resource.group_version, "kind": resource.kind, "metadata": {}, **body}
    match resource.kind:
        case "SelfSubjectReview":
            return {**whole, "status": {"userInfo": user.body}}
        case "TokenReview":
            found = tokens.user_of(str(part(body, "spec", "token") or ""))
            told: Body = {"user": found.body} if found else {"error": "invalid bearer token"}
            return {**whole, "status": {"authenticated": found is not None, **told}}
        case "SelfSubjectRulesReview":
            return {**whole, "status": _rules()}
    return {**whole, "status": {"allowed": True}}


def _rules() -> Body:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    addresses = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    return {"resourceRules": [everything], "nonResourceRules": [addresses], "incomplete": False}

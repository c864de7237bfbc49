"""ValidatingAdmissionPolicies: rules in CEL that users put beside those of the server, and bind to what they are about.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from stromboli.cel import CelError
from stromboli.cluster.body import Body, meta, part
from stromboli.errors import ApiFailure
from stromboli.model.selectors import selects
from stromboli.server.admission.matching import Write, all_hold, compiled, holds, unusable
from stromboli.server.admission.webhook_rules import selector_of
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import forbidden

GROUP: Final = "admissionregistration.k8s.io"
POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
MOST_PARAMS: Final = 64
"""Most objects that one binding's selector takes as parameters."""

_CODES: Final[Mapping[str, int]] = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
_DENIED: Final = "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {text}"
_WARNED: Final = "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {text}"
_NO_PARAMS: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"

KindOf = Callable[[str, str], Resource | None]
"""The resource that serves a kind of a group and version, ``apps/v1``."""


class Finding(NamedTuple):
    """What a policy has against a write, and the reason that the answer bears."""

    text: str
    reason: str = "Invalid"


def not_evaluated(body: Body) -> Iterator[str]:
    """What of a policy is stored and not evaluated."""
    spec = body.get("spec") or {}
    for list_name in ("matchConditions", "variables", "validations"):
        for number, one in enumerate(spec.get(list_name) or ()):
            if problem := unusable(one.get("expression", "")):
                yield f"spec.{list_name}[{number}].expression is not evaluated: {problem}"


def check(write: Write, body: Body | None, kind_of: KindOf, warnings: list[str]) -> None:
    """Raise ApiFailure for a write that a bound policy denies; what it only warns of goes into ``warnings``."""
    for binding in sorted(write.world.bodies(GROUP, BINDINGS), key=lambda one: meta(one)["name"]):
        spec = binding.get("spec") or {}
        policy = write.world.body(GROUP, POLICIES, "", spec.get("policyName", ""))
        if policy is None:
            continue
        found = next(iter(_findings(write, body, policy, spec, kind_of)), None)
        if found is None:
            continue
        words = {"policy": meta(policy)["name"], "binding": meta(binding)["name"], "text": found.text}
        actions = spec.get("validationActions") or ()
        if "Warn" in actions:
            warnings.append(_WARNED.format(**words)[:256])
        if "Deny" in actions:
            raise _refusal(write, body, _DENIED.format(**words), found.reason)


def _refusal(write: Write, body: Body | None, text: str, reason: str) -> ApiFailure:
    name = meta(body if body is not None else write.old or {}).get("name", "")
    made = forbidden(write.resource, name, text, [{"message": text}])
    return ApiFailure(_CODES.get(reason, 422), reason, made.message, made.details)


def _findings(write: Write, body: Body | None, policy: Body, binding: Body, kind_of: KindOf) -> Iterator[Finding]:
    spec = policy.get("spec") or {}
    constraints, narrowed = spec.get("matchConstraints") or {}, binding.get("matchResources") or {}
    version = _version(write, body, constraints)
    if not version or not (_version(write, body, narrowed) if narrowed.get("resourceRules") else True):
        return
    if not write.is_selected(narrowed, body):
        return
    given = write.given(body, version)
    for params in _params(write, body, spec.get("paramKind"), binding.get("paramRef"), kind_of):
        if isinstance(params, Finding):
            yield params
        else:
            yield from _judged(spec, {**given, "params": params})


def _version(write: Write, body: Body | None, wanted: Body) -> str:
    """The version in which the rules take the object; empty where they don't, or except it."""
    name = meta(body if body is not None else write.old or {}).get("name", "")
    taken, excepted = (
        [one for one in wanted.get(rules) or () if not one.get("resourceNames") or name in one["resourceNames"]]
        for rules in ("resourceRules", "excludeResourceRules")
    )
    policy = {"matchPolicy": wanted.get("matchPolicy", "Equivalent")}
    if excepted and write.version_of({**policy, "rules": excepted}):
        return ""
    return write.version_of({**policy, "rules": taken}) if write.is_selected(wanted, body) else ""


def _params(
    write: Write, body: Body | None, kind: Body | None, wanted: Body | None, kind_of: KindOf
) -> Iterator[Body | Finding | None]:
    """The objects that the policy is evaluated with, each by itself; None once where it takes none."""
    if not kind or not wanted:
        yield None
        return
    resource = kind_of(kind.get("apiVersion", ""), kind.get("kind", ""))
    own = meta(body if body is not None else write.old or {}).get("namespace", "")
    space = (wanted.get("namespace") or own) if resource is not None and resource.namespaced else ""
    found = [] if resource is None else [*_chosen(write, resource, space, wanted)]
    yield from found[:MOST_PARAMS]
    if not found and wanted.get("parameterNotFoundAction") != "Allow":
        yield Finding(_NO_PARAMS, "Forbidden")


def _chosen(write: Write, resource: Resource, space: str, wanted: Body) -> Iterator[Body]:
    if name := wanted.get("name"):
        one = write.world.body(*resource.collection, space, name)
        yield from () if one is None else (one,)
        return
    for one in write.world.bodies(*resource.collection, space):
        if selects(selector_of(wanted.get("selector")), meta(one).get("labels") or {}):
            yield one


def _judged(spec: Body, given: dict[str, Any]) -> Iterator[Finding]:
    """What validations that do not hold say, and those that cannot be evaluated where that is fatal."""
    is_fatal = spec.get("failurePolicy", "Fail") != "Ignore"
    try:
        if not all_hold(spec.get("matchConditions") or (), given):
            return
    except CelError as error:
        if is_fatal:
            yield Finding(f"failed to evaluate the match conditions: {error}")
        return
    known = {**given, "variables": _variables(spec, given)}
    for one in spec.get("validations") or ():
        try:
            if not holds(one["expression"], known):
                yield Finding(_told(one, known), one.get("reason") or "Invalid")
        except CelError as error:
            if is_fatal:
                yield Finding(f"expression '{one['expression']}' resulted in error: {error}")


def _variables(spec: Body, given: dict[str, Any]) -> dict[str, Any]:
    """The values of variables that can be had; only an expression that uses one of the others fails for its want."""
    found: dict[str, Any] = {}
    for one in spec.get("variables") or ():
        try:
            found[one["name"]] = compiled(one["expression"]).bounded({**given, "variables": found})
        except CelError:
            continue
    return found


def _told(validation: Body, known: dict[str, Any]) -> str:
    """The message of a validation that does not hold: computed, stated, or the expression itself."""
    text: object = ""
    if made := validation.get("messageExpression"):
        try:
            text = compiled(made).bounded(known)
        except CelError:
            text = ""  # as in Kubernetes: then the stated message counts
    if isinstance(text, str) and text.strip() and "\n" not in text:
        return text.strip()
    return validation.get("message") or f"failed expression: {part(validation, 'expression')}"

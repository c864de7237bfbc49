"""ValidatingAdmissionPolicies: rules in CEL that users add to those of the server, and bind to resources.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from stromboli.cel import CelError, message, program
from stromboli.cluster.body import Body, meta
from stromboli.errors import ApiFailure
from stromboli.model.selectors import selects
from stromboli.server.admission.matching import Write, all_hold, holds, mistaken, unusable
from stromboli.server.admission.webhook_rules import selector_of
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import Cause, forbidden, wrong

GROUP: Final = "admissionregistration.k8s.io"
POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
MOST_PARAMS: Final = 64
"""Most objects that one binding's selector takes as parameters."""

_CODES: Final[Mapping[str, int]] = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
_DENIED: Final = "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {text}"
_WARNED: Final = "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {text}"
_NO_PARAMS: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"

_USED: Final = re.compile(r"\bvariables\.(\w+)")
MOST_WARNINGS: Final = 16
"""Most warnings that one policy, webhook or definition gives to one answer."""

KindOf = Callable[[str, str], Resource | None]
"""The resource that serves a kind of a group and version, ``apps/v1``."""


class Finding(NamedTuple):
    """What a policy has against a write, and the reason that the answer bears.

    One that ``is_error`` is about the policy's own use: it denies whatever the binding's actions are.
    """

    text: str
    reason: str = "Invalid"
    is_error: bool = False


def _actions(spec: Body) -> list[str]:
    """What a binding has done about failures."""
    return [*(spec.get("validationActions") or ())]


def mistakes(body: Body) -> Iterator[Cause]:
    """What is wrong with a policy or a binding beyond its schema."""
    spec = body.get("spec") or {}
    actions = _actions(spec)
    if {"Deny", "Warn"} <= set(actions):
        yield wrong("spec.validationActions", actions, "must not contain both Deny and Warn")
    yield from mistaken(spec.get("matchConditions"), "spec.matchConditions", "name", "expression")
    yield from mistaken(spec.get("variables"), "spec.variables", "name", "expression")
    yield from mistaken(spec.get("validations"), "spec.validations", "expression")


def not_evaluated(body: Body) -> Iterator[str]:
    """What of a policy is stored and not evaluated."""
    spec = body.get("spec") or {}
    for list_name in ("matchConditions", "variables", "validations"):
        for number, one in enumerate(spec.get(list_name) or ()):
            if problem := unusable(one["expression"]):
                yield f"spec.{list_name}[{number}].expression is not evaluated: {problem}"


def check(write: Write, body: Body | None, kind_of: KindOf, warnings: list[str]) -> None:
    """Raise ApiFailure for a write that a bound policy denies; what it only warns of goes into ``warnings``."""
    for binding in sorted(write.world.bodies(GROUP, BINDINGS), key=lambda one: meta(one)["name"]):
        spec = binding.get("spec") or {}
        policy = write.world.body(GROUP, POLICIES, "", spec.get("policyName", ""))
        if policy is None:
            continue
        names, actions = {"policy": meta(policy)["name"], "binding": meta(binding)["name"]}, _actions(spec)
        found: Iterable[Finding] = _findings(write, body, policy, spec, kind_of)
        if "Warn" in actions:
            found = told = [*found]
            warnings += [_WARNED.format(text=one.text, **names)[:256] for one in told[:MOST_WARNINGS]]
        if (denied := next((one for one in found if one.is_error or "Deny" in actions), None)) is not None:
            raise _refusal(write, body, _DENIED.format(text=denied.text, **names), denied.reason)


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
            yield from (params,) if _is_fatal(spec) else ()
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
    if len(found) > MOST_PARAMS:
        yield Finding(f"its binding selects {len(found)} parameters, more than {MOST_PARAMS}", is_error=True)
    elif found:
        yield from found
    elif wanted.get("parameterNotFoundAction") != "Allow":
        yield Finding(_NO_PARAMS, "Forbidden", is_error=True)


def _chosen(write: Write, resource: Resource, space: str, wanted: Body) -> Iterator[Body]:
    if name := wanted.get("name"):
        one = write.world.body(*resource.collection, space, name)
        yield from () if one is None else (one,)
        return
    for one in write.world.bodies(*resource.collection, space):
        if selects(selector_of(wanted.get("selector")), meta(one).get("labels") or {}):
            yield one


def _is_fatal(spec: Body) -> bool:
    return bool(spec.get("failurePolicy", "Fail") != "Ignore")


def _judged(spec: Body, given: dict[str, Any]) -> Iterator[Finding]:
    """What validations that do not hold say, and those that cannot be evaluated where that is fatal."""
    try:
        if not all_hold(spec.get("matchConditions") or (), given):
            return
    except CelError as error:
        if _is_fatal(spec):
            yield Finding(f"failed to evaluate the match conditions: {error}")
        return
    variables, strange = _variables(spec, given)
    known = {**given, "variables": variables}
    for one in spec.get("validations") or ():
        try:
            if not (strange.intersection(_USED.findall(one["expression"])) or holds(one["expression"], known)):
                yield Finding(_told(one, known), one.get("reason") or "Invalid")
        except CelError as error:
            if _is_fatal(spec):
                yield Finding(f"expression '{one['expression']}' resulted in error: {error}")


def _variables(spec: Body, given: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The values of variables that can be had, and the names of those that nothing here can evaluate.

    Of the others only an expression that uses one fails for its want; what uses the latter counts as holding.
    """
    found: dict[str, Any] = {}
    strange: set[str] = set()
    for one in spec.get("variables") or ():
        name, text = one["name"], one["expression"]
        if unusable(text) or strange.intersection(_USED.findall(text)):
            strange.add(name)
            continue
        with suppress(CelError):
            found[name] = program(text).bounded({**given, "variables": found})
    return found, strange


def _told(validation: Body, known: dict[str, Any]) -> str:
    """The message of a validation that does not hold: computed, stated, or the expression itself."""
    stated = validation.get("message") or f"failed expression: {validation['expression']}"
    return message(validation.get("messageExpression") or "", known, stated)

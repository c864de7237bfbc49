"""Webhooks that users register: which of them a write must pass, what they are asked, and what follows from answers.

Writes are made at one go, and a webhook takes time.  A write that needs an answer raises :class:`Unanswered`; its maker
asks (:mod:`stromboli.server.http.asking`), notes the answer in the write's :class:`Answers`, and makes the write again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

from stromboli.cel import CelError
from stromboli.cluster.body import Body, encode, meta, part, with_meta
from stromboli.errors import ApiFailure
from stromboli.server.admission.admission import STATUS, Rule, World
from stromboli.server.admission.matching import Write, all_hold, mistaken, unusable
from stromboli.server.admission.policies import BINDINGS, GROUP, MOST_WARNINGS, POLICIES, KindOf, check, not_evaluated
from stromboli.server.admission.policies import mistakes as mistakes_of_policy
from stromboli.server.admission.webhook_rules import Place, mistakes, place_of
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import invalid
from stromboli.server.verbs.patching import json_patched

MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
NO_CONDITION: Final = "webhook {name}: matchConditions[{number}] is not evaluated: {problem}"
MOST_ASKED: Final = 64
"""Most webhooks that one write may pass."""


class Question(NamedTuple):
    """What a webhook is asked; ``key`` is the same for the same object.  A ``problem`` is why it cannot be asked."""

    key: str
    name: str
    place: Place
    authorities: str
    seconds: int
    is_fatal: bool
    review: Body
    problem: str = ""


class Reply(NamedTuple):
    """What a webhook answers: the ``response`` of its AdmissionReview, or why there is none."""

    response: Mapping[str, Any]
    failure: str = ""


class Unanswered(Exception):
    """A write has to wait for the answer to ``question``."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.name)
        self.question = question


@dataclass
class Answers:
    """What is known for one write, in each of its attempts.

    ``born`` keeps the uid, the name and the time that an object was given by the first attempt.
    """

    user: Body
    dry_run: bool = False
    known: dict[str, Reply] = field(default_factory=dict)
    born: dict[tuple[str, ...], Body] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Within it writes find these answers; others ask no webhook."""
        token = _ANSWERS.set(self)
        self.warnings.clear()
        try:
            yield
        finally:
            _ANSWERS.reset(token)


_ANSWERS: ContextVar[Answers | None] = ContextVar("answers", default=None)
_GIVEN: Final = ("name", "uid", "creationTimestamp")


class Registered(Rule):
    """Asks the webhooks of the cluster, and its policies.

    ``versions`` names the versions in which a kind is served, ``kind_of`` finds the kind of a policy's parameters.
    """

    def __init__(self, versions: Callable[[Resource], Sequence[str]], kind_of: KindOf) -> None:
        self._versions, self._kind_of = versions, kind_of

    def admit(self, resource: Resource, body: Body, old: Body | None, world: World) -> Body:
        """The object as the webhooks leave it, if all of them allow it."""
        answers = _ANSWERS.get()
        if resource.group == GROUP:
            self._check(resource, body, answers)
            return body
        if answers is None or not _asks(world):
            return body
        if old is None:
            body = _as_born(resource, body, answers, world)
        return self._passed(resource, body, old, world, answers, "CREATE" if old is None else "UPDATE")

    def admit_status(self, resource: Resource, body: Body, old: Body, world: World) -> Body:
        """The object as the webhooks about statuses leave it, if all of them allow it."""
        answers = _ANSWERS.get()
        if answers is None or resource.group == GROUP or not _asks(world):
            return body
        return self._passed(resource, body, old, world, answers, "UPDATE", STATUS)

    def admit_deletion(self, resource: Resource, body: Body, world: World) -> None:
        """Raise if a webhook or a policy wants the object to stay."""
        answers = _ANSWERS.get()
        if answers is not None and resource.group != GROUP:
            self._passed(resource, None, body, world, answers, "DELETE")

    def _passed(
        self, resource: Resource, body: Body | None, old: Body | None, world: World, answers: Answers, operation: str,
        subresource: str = "",
    ) -> Body:  # fmt: skip
        """The object as the webhooks leave it; None stands for one that is deleted."""
        user, versions = answers.user, self._versions(resource)
        write = Write(versions, resource, old, world, operation, user, answers.dry_run, subresource)
        asking = _Asking(write, answers)
        body = asking.changed(body, world.bodies(GROUP, MUTATING))
        check(write, body, self._kind_of, answers.warnings)
        asking.judged(body, world.bodies(GROUP, VALIDATING))
        return body or {}

    def _check(self, resource: Resource, body: Body, answers: Answers | None) -> None:
        causes = [*mistakes(body), *mistakes_of_policy(body)]
        for number, hook in enumerate(body.get("webhooks") or ()):
            causes += mistaken(hook.get("matchConditions"), f"webhooks[{number}].matchConditions", "name", "expression")
        if causes:
            raise invalid(resource, meta(body).get("name", ""), causes)
        if answers is not None:
            found = not_evaluated(body) if resource.plural == POLICIES else _not_evaluated(body)
            answers.warnings += [text[:256] for text in islice(found, MOST_WARNINGS)]


def _not_evaluated(body: Body) -> Iterator[str]:
    """Conditions of webhooks that nothing here can evaluate; they count as true."""
    for hook in body.get("webhooks") or ():
        for number, one in enumerate(hook.get("matchConditions") or ()):
            if problem := unusable(one["expression"]):
                yield NO_CONDITION.format(name=hook["name"], number=number, problem=problem)


def _asks(world: World) -> bool:
    """Whether any webhook or policy is registered."""
    return any(_any(world, kind) for kind in (MUTATING, VALIDATING, BINDINGS))


def _any(world: World, kind: str) -> bool:
    return next(iter(world.bodies(GROUP, kind)), None) is not None


def _as_born(resource: Resource, body: Body, answers: Answers, world: World) -> Body:
    """The new object with the name and uid of the first attempt, unless that has been stored by now."""
    found = meta(body)
    key = (resource.title, found.get("namespace", ""), found.get("generateName") or found.get("name", ""))
    known = answers.born.get(key, {})
    stored = world.body(*resource.collection, key[1], known.get("name", "")) or {}
    if known and part(stored, "metadata", "uid") != known["uid"]:
        return with_meta(body, **known)
    answers.born[key] = {name: found[name] for name in _GIVEN if name in found}
    answers.known.clear()
    return body


@dataclass(frozen=True)
class _Asking:
    """One write on its way through the webhooks."""

    write: Write
    answers: Answers

    def changed(self, body: Body | None, mutating: Iterable[Body]) -> Body | None:
        """The object after all webhooks that may change it; None stands for one that is deleted."""
        seen: dict[str, Body | None] = {}
        hooks = [*_hooks(mutating)]
        for again in (False, True):
            for name, hook in hooks:
                if again and (hook.get("reinvocationPolicy") != "IfNeeded" or seen.get(name, body) == body):
                    continue
                body = seen[name] = self._changed(name, hook, body)
        return body

    def judged(self, body: Body | None, validating: Iterable[Body]) -> None:
        """Raise for an object that a webhook refuses."""
        for name, hook in _hooks(validating):
            self._changed(name, hook, body, may_patch=False)

    def _changed(self, config: str, hook: Body, body: Body | None, *, may_patch: bool = True) -> Body | None:
        """The object as one webhook leaves it; as it is where the webhook is not to be asked."""
        version = self.write.version_of(hook)
        if not version or not self.write.is_selected(hook, body) or not self._wanted(hook, body, version):
            return body
        question = self._question(config, hook, body, version)
        reply = Reply({}, question.problem) if question.problem else self.answers.known.get(question.key)
        if reply is None:
            if len(self.answers.known) >= MOST_ASKED:
                raise _failed(question.name, f"the write has passed {MOST_ASKED} webhooks already")
            raise Unanswered(question)
        return self._after(question, reply, body, may_patch)

    def _after(self, question: Question, reply: Reply, body: Body | None, may_patch: bool) -> Body | None:
        response, failure = reply
        self.answers.warnings += [f"{text:.256}" for text in _texts(response.get("warnings"))]
        if not failure and not response.get("allowed"):
            raise _denied(question.name, response.get("status") or {})
        if body is not None and may_patch and response.get("patch"):
            try:
                return _patched(body, response)
            except (ApiFailure, ValueError, binascii.Error) as error:
                failure = f"its patch cannot be used: {error}"
        if failure and question.is_fatal:
            raise _failed(question.name, failure)
        if failure:
            self.answers.warnings.append(f"webhook {question.name} was passed over: {failure}"[:256])
        return body

    def _wanted(self, hook: Body, body: Body | None, version: str) -> bool:
        """Whether the webhook's own conditions hold; one that fails does so for the write, where that is fatal."""
        conditions = hook.get("matchConditions")
        try:
            return not conditions or all_hold(conditions, self.write.given(body, version))
        except CelError as error:
            if hook.get("failurePolicy") == "Ignore":
                return False
            raise _failed(hook["name"], f"its match conditions cannot be evaluated: {error}") from error

    def _question(self, config: str, hook: Body, body: Body | None, version: str) -> Question:
        request = self.write.request(body, version)
        key = hashlib.sha256(encode([config, request])).hexdigest()
        review: Body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        review["request"] = {"uid": f"{key[:8]}-{key[8:12]}-4{key[13:16]}-8{key[17:20]}-{key[20:32]}", **request}
        client = hook["clientConfig"]
        where, problem = place_of(client, self.write.world)
        if self.write.dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            problem = "it has side effects, and so is not asked in a dry run"
        fatal, seconds = hook.get("failurePolicy") != "Ignore", hook.get("timeoutSeconds", 10)
        return Question(key, hook["name"], where, client.get("caBundle") or "", seconds, fatal, review, problem)


def _patched(body: Body, response: Mapping[str, Any]) -> Body:
    if response.get("patchType", "JSONPatch") != "JSONPatch":
        raise ValueError(f"the patch type {response['patchType']!r:.40} is not JSONPatch")
    found = json_patched(body, json.loads(base64.b64decode(response["patch"], validate=True)))
    kept = {name: meta(body).get(name) for name in (*_GIVEN, "namespace")}
    return {**with_meta(found, **kept), "apiVersion": body["apiVersion"], "kind": body["kind"]}


def _hooks(configurations: Iterable[Body]) -> Iterator[tuple[str, Body]]:
    """The webhooks with names of their own, in the order in which they are asked."""
    for body in sorted(configurations, key=lambda one: meta(one)["name"]):
        for number, hook in enumerate(body.get("webhooks") or ()):
            yield f"{body['kind']}/{meta(body)['name']}/{number}/{meta(body).get('generation', 0)}", hook


def _texts(found: object) -> list[str]:
    return [text for text in found[:MOST_WARNINGS] if isinstance(text, str)] if isinstance(found, list) else []


def _denied(name: str, status: Mapping[str, Any]) -> ApiFailure:
    why = status.get("message") or status.get("reason")
    told = f'admission webhook "{name}" denied the request' + (f": {why}" if why else " without explanation")
    code = status.get("code")
    details = status.get("details") if isinstance(status.get("details"), dict) else None
    code = code if isinstance(code, int) and 400 <= code < 600 else 400
    return ApiFailure(code, str(status.get("reason") or ""), told, details)


def _failed(name: str, why: str) -> ApiFailure:
    return ApiFailure(500, "InternalError", f'Internal error occurred: failed calling webhook "{name}": {why}')

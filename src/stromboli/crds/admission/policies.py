"""Whether lifecycle policies make sense together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from stromboli.api.batch import ANY, COMMAND_ISSUED, EVENTS, ON_RUNNING, OUT_OF_SYNC, LifecyclePolicy
from stromboli.api.bus import JOB_ACTIONS
from stromboli.crds.admission.texts import invalid, listed

_INTERNAL: Final = (OUT_OF_SYNC, COMMAND_ISSUED, ON_RUNNING)
POLICY_EVENTS: Final = tuple(event for event in EVENTS if event not in _INTERNAL)
"""Events that users' policies may be for."""


def events_of(policy: LifecyclePolicy) -> list[str]:
    """The events that a policy is for, each once."""
    return list(dict.fromkeys([*policy.events, policy.event] if policy.event else policy.events))


def check_policies(policies: Iterable[LifecyclePolicy], path: str) -> str:
    """What is wrong with policies that stand together, with the words that are known; the first fault, or nothing."""
    problems = list(_problems(policies, path))
    if not problems:
        return ""
    count = f"{len(problems)} error{'s' if len(problems) > 1 else ''} occurred:"
    lines = "".join(f"\n\t* {problem}" for problem in problems)
    return f"{count}{lines}\n\n valid events are {listed(POLICY_EVENTS)}, valid actions are {listed(JOB_ACTIONS)};"


def _problems(policies: Iterable[LifecyclePolicy], path: str) -> Iterator[str]:
    events: dict[str, None] = {}
    codes: dict[int, None] = {}
    for policy in policies:
        problem = _shape(policy) or _event_problem(policy, path, events) or _code_problem(policy, codes)
        if problem:
            yield problem
            break
    if ANY in events and len(events) > 1:
        yield "if there's * here, no other policy should be here"


def _shape(policy: LifecyclePolicy) -> str:
    if events_of(policy):
        clash = policy.exit_code is not None
        return "must not specify event and exitCode simultaneously" if clash else ""
    return "either event and exitCode should be specified" if policy.exit_code is None else ""


def _event_problem(policy: LifecyclePolicy, path: str, seen: dict[str, None]) -> str:
    for event in events_of(policy):
        if event not in POLICY_EVENTS:
            return invalid(path, event, "invalid policy event")
        if policy.action not in JOB_ACTIONS:
            return invalid(path, policy.action, "invalid policy action")
        if event in seen:
            return f"duplicate event {event}  across different policy"
        seen[event] = None
    return ""


def _code_problem(policy: LifecyclePolicy, seen: dict[int, None]) -> str:
    code = policy.exit_code
    if code is None:
        return ""
    if code == 0:
        return "0 is not a valid error code"
    if code in seen:
        return f"duplicate exitCode {code}"
    seen[code] = None
    return ""

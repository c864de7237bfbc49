"""What a hook may answer: outsiders' answers are held against it, so that a wrong one is told by plugin and hook."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from stromboli.framework.extension.hook import Hook
from stromboli.framework.extension.merge import (
    Agree,
    All,
    AnyOf,
    FirstOpinion,
    Merge,
    Sum,
    SumByName,
    Tell,
    Union,
    Vote,
)
from stromboli.framework.extension.reason import Reason
from stromboli.model.table import Node
from stromboli.model.task import Task

Function = Callable[..., Any]


class Rule(NamedTuple):
    """``holds`` says whether an answer, given to these arguments, is ``what`` it must be."""

    what: str
    holds: Callable[[Any, Sequence[Any]], bool]


def held_to(rule: Rule | None, hook: Hook, function: Function) -> Function:
    """``function``, raising TypeError for an answer that is not what it must be; without a rule anything will do."""
    if rule is None:
        return function

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        answer = function(*arguments, **named)
        if not rule.holds(answer, arguments):
            raise TypeError(f"{hook.name} must answer {rule.what}, not {_shown(answer):.80}")
        return answer

    return call


def _shown(answer: object) -> str:
    shape = f"{answer.dtype} of shape {answer.shape} " if isinstance(answer, np.ndarray) else ""
    return f"{shape}{answer!r}"


# -- Kinds of answer -------------------------------------------------------------------------------------------------


def _is_number(answer: object) -> bool:
    try:
        return isinstance(answer, Real) and math.isfinite(answer)
    except OverflowError:
        return False


def _are_reasons(answer: object) -> bool:
    said = answer if isinstance(answer, tuple) else (answer,)
    return answer is None or all(isinstance(one, Reason) and isinstance(one.text, str) for one in said)


def _are_tasks(answer: object) -> bool:
    return isinstance(answer, Sequence) and all(isinstance(one, Task) for one in answer)


def _is_pair(answer: object) -> bool:
    return isinstance(answer, tuple) and len(answer) == 2 and all(isinstance(one, str) for one in answer)


def _is_candidate(answer: object, arguments: Sequence[Any]) -> bool:
    """Whether it is one of the nodes that were given by their scores."""
    by_score: Mapping[float, Sequence[Node]] = arguments[1]
    return isinstance(answer, Node) and any(answer.name == node.name for nodes in by_score.values() for node in nodes)


def _is_column(answer: object, arguments: Sequence[Any], kinds: str) -> bool:
    """Whether it is an array of numbers of these kinds of numpy, one a row of the nodes that were asked about."""
    rows = len(arguments[1])
    return isinstance(answer, np.ndarray) and answer.dtype.kind in kinds and answer.shape == (rows,)


NUMBER = Rule("a finite number", lambda answer, _: _is_number(answer))
TRUTH = Rule("true or false", lambda answer, _: answer is not None)
REASONS = Rule("None, a Reason or a tuple of Reasons", lambda answer, _: _are_reasons(answer))
INVALID = Rule("None or (reason, message)", lambda answer, _: answer is None or _is_pair(answer))
NODE = Rule("one of the nodes or None", lambda answer, asked: answer is None or _is_candidate(answer, asked))
TASKS = Rule("a list of tasks", lambda answer, _: _are_tasks(answer))
VOTERS_TASKS = Rule("a list of tasks, or None to abstain", lambda answer, _: answer is None or _are_tasks(answer))
NUMBERS_BY_NAME = Rule(
    "finite numbers by name",
    lambda answer, _: isinstance(answer, Mapping) and all(map(_is_number, answer.values())),
)
SCORES_OF_A_RUN = Rule(
    "None or a finite number a placement",
    lambda answer, asked: (
        answer is None
        or (isinstance(answer, np.ndarray) and answer.shape == (asked[2],) and bool(np.isfinite(answer).all()))
    ),
)
A_ROW_EACH = Rule("a number a row", lambda answer, asked: _is_column(answer, asked, "biuf"))
NUMBER_A_ROW = Rule(
    "None or a finite number a row",
    lambda answer, asked: answer is None or (_is_column(answer, asked, "biuf") and bool(np.isfinite(answer).all())),
)


def _masks(reasons: int) -> Rule:
    """Bools, or bit masks of so many reasons, a row."""

    def holds(answer: Any, arguments: Sequence[Any]) -> bool:
        if answer is None or _is_column(answer, arguments, "b"):
            return True
        return _is_column(answer, arguments, "iu") and all(0 <= mask < 1 << reasons for mask in np.unique(answer))

    return Rule(f"None, or a row each true, false or a mask of {reasons} reasons", holds)


# -- Which kind belongs to which hook --------------------------------------------------------------------------------

_BY_MERGE: Mapping[type[Merge], Rule] = MappingProxyType(
    {
        FirstOpinion: NUMBER, Vote: NUMBER, All: TRUTH, AnyOf: TRUTH, Agree: VOTERS_TASKS, Union: TASKS, Sum: NUMBER,
        SumByName: NUMBERS_BY_NAME,
    }
)  # fmt: skip
_BY_POINT: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(("predicate", "pre_predicate"), REASONS),
        **dict.fromkeys(("simulate_add_task", "simulate_remove_task", "simulate_predicate"), REASONS),
        "job_valid": INVALID,
        "best_node": NODE,
    }
)
_BY_FORM: Mapping[str, Rule | None] = MappingProxyType(
    {"vector": NUMBER_A_ROW, "raw": NUMBER_A_ROW, "many": NUMBER, "job": TRUTH, "key": None}
)


def rule_of(hook: Hook) -> Rule | None:
    """What the hook must answer; None where anything will do."""
    point = hook.point
    if hook.form == "many" and isinstance(point.merge, Tell):
        return None
    if hook.form == "vector" and point.per_node == "fit":
        return _masks(len(hook.reasons))
    if hook.form != "scalar":
        return _BY_FORM[hook.form]
    return _BY_POINT.get(point.name) or _BY_MERGE.get(type(point.merge))


def rule_of_row(hook: Hook) -> Rule:
    """What the one-node method of a vector hook must answer."""
    return REASONS if hook.point.per_node == "fit" else NUMBER

"""Checks of hooks that are asked per node: forms agree, keys and promises hold, answers are well-formed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from stromboli.errors import PlacementError
from stromboli.framework.engine.classes import TaskClass
from stromboli.framework.engine.placer import Engine
from stromboli.framework.engine.rows import own_uid
from stromboli.framework.extension.answers import Answer
from stromboli.framework.extension.contract import held_to, rule_of, rule_of_row
from stromboli.framework.extension.hook import Limit
from stromboli.framework.extension.reason import Reason
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import Task
from stromboli.testing.moves import make
from stromboli.testing.trial import MOST, Trial

Said = Hashable
"""What a hook says of one node in a form that compares: texts of reasons, or a number."""


def per_node(trial: Trial) -> Iterator[Answer]:
    """The plugin's hooks that are asked per node."""
    fits, scores = trial.answers("predicate", "scalar", "vector"), trial.answers("node_order", "scalar", "vector")
    yield from chain(fits, scores, trial.answers("batch_node_order", "vector", "raw"))


def check_nodes(trial: Trial) -> None:
    """All checks of this module, those that move tasks last."""
    for answer in per_node(trial):
        for task in trial.waiting:
            if answer.hook.form != "scalar":
                check_forms(trial, answer, task)
            if answer.hook.form == "raw":
                check_normalise(trial, answer, task)
                check_alike(trial, answer, task)
        check_key(trial, answer)
        check_limit(trial, answer)
        if promises(answer) and answer.hook.form != "scalar" and not answer.hook.static:
            check_hypothetical(trial, answer)
    check_beforehand(trial)
    check_promises(trial)
    check_amounts(trial)
    check_kept(trial)


def promises(answer: Answer) -> bool:
    """Whether the hook promises to read nothing but its key and the node's own row."""
    return answer.hook.key is not None and not answer.hook.reads


# -- What is said ----------------------------------------------------------------------------------------------------


def said(trial: Trial, answer: Answer, task: Task, rows: NodeRows | None = None) -> list[Said]:
    """What a hook says of each row, of all by default."""
    nodes = trial.session.table.view() if rows is None else rows
    if answer.hook.form == "scalar":
        return [said_of(trial, answer, answer.function, task, node) for node in nodes]
    function = held_to(rule_of(answer.hook), answer.hook, answer.function)
    found = trial.ask(answer.hook, function, task, nodes)
    fits = answer.hook.point.per_node == "fit"
    if found is None:
        return [() if fits else 0.0] * len(nodes)
    return _spelled_out(answer.hook.reasons, found) if fits else [float(each) for each in found]


def said_of(trial: Trial, answer: Answer, function: Any, task: Task, node: Node) -> Said:
    """What the form for one node says."""
    found = trial.ask(answer.hook, held_to(rule_of_row(answer.hook), answer.hook, function), task, node)
    if answer.hook.point.per_node != "fit":
        return float(found)
    return _texts(found if isinstance(found, tuple) else () if found is None else (found,))


def _spelled_out(reasons: Sequence[Reason], found: npt.NDArray[Any]) -> list[Said]:
    if found.dtype.kind == "b":
        return [() if fits else _texts(reasons[:1]) for fits in found.tolist()]
    return [_texts([r for bit, r in enumerate(reasons) if mask >> bit & 1]) for mask in found.tolist()]


def _texts(reasons: Sequence[Reason]) -> Said:
    return tuple(sorted(reason.text for reason in reasons))


def _first_difference(left: Sequence[Said], right: Sequence[Said]) -> int | None:
    return next((place for place, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1]), None)


# -- Forms -----------------------------------------------------------------------------------------------------------


def check_forms(trial: Trial, answer: Answer, task: Task) -> None:
    """All nodes at once, in another order, one by one, and in the form for one row: the same answers."""
    table, hook = trial.session.table, answer.hook
    whole = said(trial, answer, task)
    others: dict[str, list[Said]] = {}
    if "candidates" not in hook.reads:
        backwards = np.arange(len(table), dtype=np.intp)[::-1]
        others["asked in reverse order"] = said(trial, answer, task, table.view(backwards))[::-1]
        alone = (said(trial, answer, task, table.view(np.array([row]))) for row in range(len(table)))
        others["asked about it alone"] = [each[0] for each in alone]
    row_form = answer.row
    if row_form is not None and trial.ask(hook, answer.function, task, table.view()) is not None:
        others[f"in the form for one node, {hook.row},"] = [
            said_of(trial, answer, row_form, task, node) for node in table.view()
        ]
    for how, other in others.items():
        if (row := _first_difference(whole, other)) is not None:
            node = table.statics.names[row]
            flaw = f"says {whole[row]!r} of {task} on node {node}, but {how} {other[row]!r}"
            trial.fail(hook.name, flaw)


def check_normalise(trial: Trial, answer: Answer, task: Task) -> None:
    """Normalising works entry by entry: an entry's score depends on it and the extremes alone."""
    raw = trial.ask(answer.hook, answer.function, task, trial.session.table.view())
    if raw is None or not len(raw):
        return
    normalise = answer.normalise
    values = raw.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    whole = trial.ask(answer.hook, normalise, task, values, low, high)
    for place, value in enumerate(values):
        alone = trial.ask(answer.hook, normalise, task, np.array([value]), low, high)
        if float(alone[0]) != float(whole[place]):
            flaw = f"makes of raw score {value} {whole[place]} among others and {alone[0]} alone, for {task}"
            trial.fail(f"{answer.hook.name}, normalise={answer.hook.normalise}", flaw)


def check_alike(trial: Trial, answer: Answer, task: Task) -> None:
    """Rows that are said to have one raw score have it."""
    if (alike := answer.alike) is None or trial.ask(
        answer.hook, answer.function, task, trial.session.table.view()
    ) is None:
        return
    table = trial.session.table
    for rows in ([*range(len(table))], *([row, row + 1] for row in range(len(table) - 1))):
        nodes = table.view(np.array(rows, dtype=np.intp))
        common = trial.ask(answer.hook, alike, task, nodes, 1)
        raw = trial.ask(answer.hook, answer.function, task, nodes)
        if common is not None and len(rows) > 1 and not (raw == common[0]).all():
            flaw = f"says that {common[0]} is the raw score of all of {len(rows)} nodes, which have {raw.tolist()}"
            trial.fail(f"{answer.hook.name}, alike={answer.hook.alike}", f"{flaw}, for {task}")


def check_key(trial: Trial, answer: Answer) -> None:
    """Tasks with equal keys get equal answers."""
    key = answer.hook.key
    first: dict[Hashable, tuple[Task, list[Said]]] = {}
    for task in trial.waiting:
        value = trial.ask(answer.hook, key or own_uid, task)
        if not _is_hashable(value):
            trial.fail(answer.hook.name, f"its key {value!r} cannot be hashed")
        now = said(trial, answer, task)
        other, before = first.setdefault(value, (task, now))
        if (row := _first_difference(before, now)) is not None:
            node = trial.session.table.statics.names[row]
            flaw = f"says {before[row]!r} of {other} and {now[row]!r} of {task} on node {node}"
            trial.fail(answer.hook.name, f"{flaw}; yet both have key {value!r}")


def check_beforehand(trial: Trial) -> None:
    """A ``pre_predicate`` with a key says of all tasks of a template the same."""
    for answer in trial.answers("pre_predicate", "scalar"):
        first: dict[Hashable, tuple[Task, object]] = {}
        for task in trial.waiting if answer.hook.key is not None else ():
            now = trial.ask(answer.hook, answer.function, task)
            other, before = first.setdefault(task.template, (task, now))
            if before != now:
                flaw = f"says {before} of {other} and {now} of {task}"
                trial.fail(answer.hook.name, f"{flaw}; yet both have one template")


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


# -- Promises --------------------------------------------------------------------------------------------------------


def check_hypothetical(trial: Trial, answer: Answer) -> None:
    """Asked how a node would be with one more pod on it, the hook says what it says when the pod is there."""
    for task, other in pairwise(sorted(trial.waiting, key=lambda task: (task.job, task.template.number))):
        if task.job == other.job and task.template is other.template:
            for row in range(min(len(trial.session.table), MOST)):
                _check_one_more(trial, answer, task, other, row)


def _check_one_more(trial: Trial, answer: Answer, task: Task, other: Task, row: int) -> None:
    session = trial.session
    nodes = session.table.view(np.array([row]))
    more = nodes.after(np.array([1], dtype=np.int64), *session.ledger.arrays(other.template))
    (expected,) = said(trial, answer, task, more)
    found = expected
    with session.statement() as statement, suppress(PlacementError):
        statement.place(session.jobs[other.job], (other,), (row,), OperationKind.ALLOCATE)
        (found,) = said(trial, answer, task, session.table.view(np.array([row])))
    if found != expected:
        node = session.table.statics.names[row]
        flaw = f"says {found!r} of {task} on node {node} with {other} there, but {expected!r} when asked beforehand"
        trial.fail(answer.hook.name, f"{flaw}; read amounts from the rows given, or declare reads=")


def check_limit(trial: Trial, answer: Answer) -> None:
    """Once a task is placed, the hook refuses tasks like it where its limit said so beforehand."""
    if answer.limit is None:
        return
    key = answer.hook.key or own_uid
    for task, other in pairwise(sorted(trial.waiting, key=lambda task: (task.job, task.template.number))):
        if task.job == other.job and key(task) == key(other):
            for row in range(min(len(trial.session.table), MOST)):
                _check_limit(trial, answer, answer.limit, (task, other), row)


def _check_limit(
    trial: Trial, answer: Answer, limit_of: Callable[[Task], Limit | None], pair: tuple[Task, Task], row: int
) -> None:
    session, (task, other) = trial.session, pair
    limit = trial.ask(answer.hook, limit_of, task)
    if limit is None or said(trial, answer, task)[row] != ():
        return
    limit.place(int(limit.domains[row]))
    with session.statement() as statement, suppress(PlacementError):
        statement.place(session.jobs[other.job], (other,), (row,), OperationKind.ALLOCATE)
        for at, one in enumerate(said(trial, answer, task)):
            admitted = bool(limit.rows[at]) and limit.admits(int(limit.domains[at]))
            if admitted != (one == ()):
                names = session.table.statics.names
                flaw = f"says {one!r} of {task} on node {names[at]} once {other} is on {names[row]}"
                trial.fail(f"{answer.hook.name}, limit={answer.hook.limit}", f"{flaw}, but the limit {admitted}")


def check_promises(trial: Trial) -> None:
    """What has happened on other nodes changes no answer that promises so; static answers never change."""
    session = trial.session
    keeping = [answer for answer in per_node(trial) if promises(answer)]
    before = {(at, task.uid): said(trial, answer, task) for at, answer in enumerate(keeping) for task in trial.waiting}
    start = len(session.table.journal)
    with session.statement() as statement:
        make(session, statement, trial.moves)
        touched = set(session.table.journal[start:])
        for at, answer in enumerate(keeping):
            for task in (task for task in trial.waiting if not task.node_name):
                _compare(trial, answer, task, before[at, task.uid], set() if answer.hook.static else touched)


def check_amounts(trial: Trial) -> None:
    """What a hook that reads amounts alone says of a node it says of every node with these amounts, then and later."""
    session = trial.session
    reading = [answer for answer in per_node(trial) if answer.hook.amounts]
    first: dict[tuple[int, str, int], tuple[str, Said]] = {}
    for answer in reading:
        if not promises(answer):
            trial.fail(answer.hook.name, "amounts= needs key=, and excludes reads=")
    with session.statement() as statement:
        for moves in ([], trial.moves):
            make(session, statement, moves)
            for at, answer in enumerate(reading):
                for task in (task for task in trial.waiting if not task.node_name):
                    _compare_states(trial, answer, at, task, first)


def _compare_states(
    trial: Trial, answer: Answer, at: int, task: Task, first: dict[tuple[int, str, int], tuple[str, Said]]
) -> None:
    table = trial.session.table
    states = table.states.of(range(len(table)))
    for row, one in enumerate(said(trial, answer, task)):
        node, other = first.setdefault((at, task.uid, states[row]), (table.statics.names[row], one))
        if one != other:
            flaw = f"said {other!r} of {task} on node {node} and says {one!r} on node {table.statics.names[row]}"
            trial.fail(answer.hook.name, f"{flaw}, which has the same amounts; leave out amounts=")


def _compare(trial: Trial, answer: Answer, task: Task, before: list[Said], touched: set[int]) -> None:
    now = said(trial, answer, task)
    for row, (old, new) in enumerate(zip(before, now, strict=True)):
        if old != new and row not in touched:
            node = trial.session.table.statics.names[row]
            broken = "though it is static" if answer.hook.static else "though nothing happened there; declare reads="
            flaw = f"said {old!r} of {task} on node {node} and says {new!r} after the moves, {broken}"
            trial.fail(answer.hook.name, flaw)


def check_kept(trial: Trial) -> None:
    """The answers that the engine has kept and renewed equal those of a task class made afresh, scores included."""
    session = trial.session
    classes = session.placer.classes if isinstance(session.placer, Engine) else None
    if classes is None:
        return
    for task in trial.waiting:
        made = classes.of(task)
        if not made.scored:  # as no node is open, yet
            made.add_scores()
    with session.statement() as statement:
        make(session, statement, trial.moves)
        for task in (task for task in trial.waiting if not task.node_name):
            kept, fresh = _figures(classes.of(task)), _figures(TaskClass(classes.hooks, session.ledger, task))
            for name, figures in kept.items():
                if not np.array_equal(figures, fresh[name]):
                    _fail_kept(trial, session, task, name, figures, fresh)


def _figures(cls: TaskClass) -> Mapping[str, npt.NDArray[Any]]:
    """What a task class concludes: which nodes fit, and how they score."""
    fitting = cls.fitting(None)
    total = cls.total(slice(None), cls.normal(fitting) if fitting.any() else None)
    return {
        "which nodes fit": fitting,
        "which have idle room": fitting & cls.now,
        "scores": np.where(fitting, total, 0),
    }


def _fail_kept(
    trial: Trial, session: Session, task: Task, name: str, kept: npt.NDArray[Any], fresh: Mapping[str, npt.NDArray[Any]]
) -> None:
    row = int(np.flatnonzero(kept != fresh[name])[0])
    node = session.table.statics.names[row]
    flaw = f"of {task}, {name}: {kept[row]} was kept for node {node}, asked afresh it is {fresh[name][row]}"
    trial.fail("answers kept between placements", flaw)

"""How a method of a plugin is tied to an extension point: decorators named as the points.

``@predicate`` answers per node, ``@predicate.vector(key=...)`` for all nodes, ``@allocatable.many`` for a run of equal
tasks, ``@job_order.key`` as a sort key.  A decorator only marks the method; whether its parameters match the point is
checked when the class of the plugin is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeVar, overload

import numpy as np
import numpy.typing as npt

from stromboli.errors import PluginError
from stromboli.framework.extension.merge import Agree, Union
from stromboli.framework.extension.points import OTHER_NAMES, POINTS, Form, Point
from stromboli.framework.extension.reason import Reason
from stromboli.model.task import PodTemplate, Task

Reads = Literal["cluster", "candidates", "job", "queue", "clock"]
"""What an answer may read besides the task's key and the node's own row; one that reads the candidates is asked with
exactly their rows, whenever they or anything in the cluster may have changed."""


def by_template(task: Task) -> PodTemplate:
    """The key of an answer that looks at nothing of the pod but its spec."""
    return task.template


READS: tuple[Reads, ...] = ("cluster", "candidates", "job", "queue", "clock")

Function = TypeVar("Function", bound=Callable[..., Any])

_MARK = "__stromboli_hooks__"


class Limit(Protocol):
    """How many tasks that are alike may lie in each of some domains, as they are placed one after the other.

    ``rows`` are the nodes that are not refused for good, ``domains`` the domain of each node, both of shape (nodes,).
    """

    rows: npt.NDArray[np.bool_]
    domains: npt.NDArray[np.intp]

    def admits(self, domain: int) -> bool:
        """Whether the next task may go to a node of ``domain``."""

    def place(self, domain: int) -> bool:
        """Count a task in ``domain``; whether domains may take a task now that could not before."""


@dataclass(frozen=True, slots=True)
class Hook:
    """The record a decorator leaves on a method.

    ``key`` names what the answer reads of the task (None: not declared, so nothing is shared between tasks); with a
    key and without ``reads`` the answer promises to depend on nothing else but the node's own row.  A ``pre_predicate``
    may have the key ``by_template``: then it promises one answer, while nothing is placed, for all tasks of a template,
    and reports nothing, so that one of a run of equal tasks is asked.  ``reasons`` are
    what a vector of a fit may say: the reason of a False, or the reasons of the mask's bits.  ``protects`` makes a
    victim hook's refusal absolute: a task that it refuses alone is no candidate, and of the tasks that the vote names
    only those are evicted that it permits together.  So it is called before and after the vote; a task that it permits
    among others it must permit among fewer.  A protecting hook of ``victim_tasks`` names no victims.

    ``static`` promises more: the answer reads only what placements cannot change (labels, taints, offers), so it is
    never renewed within a session.  ``row`` names a method that gives a vector hook's answer for one node, (task,
    node); it is asked where only a few rows changed and must agree to the last bit.  ``normalise`` names the method
    (task, raw, low, high) -> scores that turns the raw scores of ``batch_node_order.raw`` into scores, entry by entry,
    given the least and the greatest raw score among the candidate nodes.

    ``limit`` names the method (task) of a predicate that reads the cluster; it gives a :class:`Limit`: how the answers
    follow from where such tasks are placed, as long as nothing else happens; None where they follow otherwise.

    ``amounts`` promises of a hook with a key that it reads nothing of a node but its amounts, and reports nothing: what
    it says of one node it says of every node with equal amounts, then and later, so the engine asks once for each.

    ``alike`` names the method (task, nodes, count) of raw scores that reads more: where all these rows have one raw
    score, and go on having one while ``count`` tasks of the same key are placed among them one after the other, it
    gives that score before each of these placements, shape (count,); None where they may come to differ.

    ``own`` promises of a sort key of jobs, or of tasks, that within a session it changes only where a task of that job
    moves, so it is kept until then.  Of a vote on victims it promises that for actors of one job that are alike it
    follows from the candidate, its job as it stands, and those candidates of that job that come before it; that
    candidates are named in their order; and that nothing is reported but refusals and names.  Of its form for jobs it
    promises that it follows from the job as it stands, and of the actor's job from its queue, its priority, and whether
    it is that job.  Of the actor itself a form for jobs, promised or not, reads ``template``, ``priority`` and ``role``
    alone: it is asked once for all pods of a job that are equal in these, whatever their labels and annotations.
    Of ``allocatable.many`` it promises that it follows from what the task asks for and what the queue, and those above
    it, hold: one that would be allowed is allowed in the place of one that asks for the same.  Of ``preemptive`` it
    promises the same, and that tasks which are allowed together are allowed one after the other.  Of ``job_starving``
    it promises that no job starves that has its minimum and whose tasks all run, are being bound, or have succeeded.

    ``by_priority`` promises of a form for jobs that within a session it says the same of all jobs of a queue that have
    equal priorities, but for the actor's own, so one of them is asked for all.
    """

    point: Point
    form: Form = "scalar"
    key: Callable[[Task], Hashable] | None = None
    reads: tuple[Reads, ...] = ()
    reasons: tuple[Reason, ...] = ()
    protects: bool = False
    static: bool = False
    row: str = ""
    normalise: str = ""
    alike: str = ""
    limit: str = ""
    amounts: bool = False
    own: bool = False
    by_priority: bool = False

    @property
    def declared(self) -> str:
        """The hook as written, with the parameters it must accept: ``predicate.vector(task, nodes)``."""
        return f"{self.name}({', '.join(self.point.parameters(self.form))})"

    @property
    def name(self) -> str:
        """The decorator as written: ``predicate``, ``predicate.vector``."""
        return self.point.name if self.form == "scalar" else f"{self.point.name}.{self.form}"


@dataclass(frozen=True, slots=True)
class Tie:
    """A decorator for one point and form: ``@job_order``, ``@predicate(key=...)``, ``@node_order.vector(key=...)``."""

    point: Point
    form: Form = "scalar"

    @overload
    def __call__(self, function: Function, /) -> Function: ...

    @overload
    def __call__(
        self,
        function: None = None,
        /,
        *,
        key: Callable[[Task], Hashable] | None = None,
        reads: Sequence[Reads] = (),
        reasons: Sequence[Reason] = (),
        protects: bool = False,
        static: bool = False,
        row: str = "",
        normalise: str = "",
        alike: str = "",
        limit: str = "",
        amounts: bool = False,
        own: bool = False,
        by_priority: bool = False,
    ) -> Callable[[Function], Function]: ...

    def __call__(
        self,
        function: Function | None = None,
        /,
        *,
        key: Callable[[Task], Hashable] | None = None,
        reads: Sequence[Reads] = (),
        reasons: Sequence[Reason] = (),
        protects: bool = False,
        static: bool = False,
        row: str = "",
        normalise: str = "",
        alike: str = "",
        limit: str = "",
        amounts: bool = False,
        own: bool = False,
        by_priority: bool = False,
    ) -> Function | Callable[[Function], Function]:
        """Mark the method; with keywords, give the decorator that does.  See :class:`Hook` for the keywords."""
        hook = Hook(
            self.point, self.form, key, tuple(reads), tuple(reasons), protects, static, row, normalise, alike, limit,
            amounts, own, by_priority,
        )  # fmt: skip
        return _mark(hook) if function is None else _mark(hook)(function)

    @property
    def vector(self) -> Tie:
        """The form for all nodes at once: ``(task, nodes)``, one answer a row."""
        return Tie(self.point, "vector")

    @property
    def raw(self) -> Tie:
        """Raw scores for all nodes at once, to be normalised over the candidates: ``(task, nodes)``."""
        return Tie(self.point, "raw")

    @property
    def many(self) -> Tie:
        """The form for a run of equal tasks."""
        return Tie(self.point, "many")

    @property
    def key(self) -> Tie:
        """The sort key of an order: comparing keys must equal asking the comparison."""
        return Tie(self.point, "key")

    @property
    def job(self) -> Tie:
        """Whether any task of a job could be named as a victim: false is a promise for the actor's whole turn."""
        return Tie(self.point, "job")


def _mark(hook: Hook) -> Callable[[Function], Function]:
    def mark(function: Function) -> Function:
        setattr(function, _MARK, (hook, *hooks_on(function)))
        return function

    return mark


def hooks_on(function: object) -> tuple[Hook, ...]:
    """The hooks that decorators left on a method, uppermost first."""
    hooks: tuple[Hook, ...] = getattr(function, _MARK, ())
    return hooks


def points_of(plugin: type) -> frozenset[str]:
    """The names of the points that the methods of a plugin class answer."""
    methods = (value for base in plugin.__mro__ for value in vars(base).values())
    return frozenset(hook.point.name for method in methods for hook in hooks_on(method))


def check_hook(
    plugin: str, hook: Hook, function: Callable[..., Any], *, method: bool = False, names: bool = True
) -> None:
    """Raise PluginError if the hook cannot stand on that function.

    ``method`` says that the first parameter is ``self``; without ``names`` only the number of parameters counts.
    """
    problem = _misuse(hook) or _mismatch(hook, function, method, names)
    if problem:
        label = getattr(function, "__name__", "function")
        raise PluginError(plugin, f"hook {label}: {problem}", point=hook.point.name)


def _misuse(hook: Hook) -> str:
    fit = hook.form == "vector" and hook.point.per_node == "fit"
    names_victims = isinstance(hook.point.merge, (Agree, Union))
    unknown = sorted(set(hook.reads).difference(READS))
    mistakes = {
        f"{hook.point.name} has no form .{hook.form}": not hook.point.has(hook.form),
        f"reads= knows {', '.join(READS)}, not {', '.join(unknown)}": bool(unknown),
        "a fit over all nodes must declare 1 to 64 reasons=": fit and not 1 <= len(hook.reasons) <= 64,
        "key= and reads= belong to points that are asked per node, key=by_template to pre_predicate, too": not (
            _may_read(hook)
        ),
        "raw scores need normalise=": hook.form == "raw" and not hook.normalise,
        **_false_promises(hook, fit),
        "static= excludes reads=": hook.static and bool(hook.reads),
        "protects= belongs to points that name victims": hook.protects and not names_victims,
        "own= belongs to sort keys of jobs and tasks, votes on victims, quotas of queues and job_starving": hook.own
        and hook.name not in _OWN,
        "by_priority= belongs to forms for jobs": hook.by_priority and hook.form != "job",
    }
    return next((text for text, holds in mistakes.items() if holds), "")


def _may_read(hook: Hook) -> bool:
    """Whether the hook may say what it reads of a task, and what else."""
    of_nodes = hook.point.per_node or hook.form in ("vector", "raw")
    beforehand = hook.point.name == "pre_predicate" and hook.key is by_template
    return bool(of_nodes) or not (hook.reads or (hook.key is not None and not beforehand))


_OWN: Final = (
    "job_order.key", "task_order.key", "preemptable", "preemptable.job", "reclaimable", "reclaimable.job",
    "allocatable.many", "preemptive", "job_starving",
)  # fmt: skip
"""The decorators that take ``own=``."""


def _false_promises(hook: Hook, fit: bool) -> Mapping[str, bool]:
    """What is wrong with what the hook says of how its answers change."""
    changes = bool(hook.reads) or not hook.static
    return {
        "limit= belongs to predicates that read the cluster": bool(hook.limit)
        and not (fit and "cluster" in hook.reads),
        "amounts= excludes reads= and static=": hook.amounts and (bool(hook.reads) or hook.static),
        "alike= belongs to raw scores that change": bool(hook.alike) and not (hook.form == "raw" and changes),
    }


def _mismatch(hook: Hook, function: Callable[..., Any], method: bool, names: bool) -> str:
    try:
        given = list(inspect.signature(function).parameters.values())[int(method) :]
    except (TypeError, ValueError):  # a builtin without a readable signature can only be tried
        return ""
    declared = hook.point.parameters(hook.form)
    if _accepts(given, declared) and (not names or _named(given, declared)):
        return ""
    return f"takes ({', '.join(map(str, given))}), but must be {hook.declared}"


def _accepts(given: Sequence[inspect.Parameter], declared: Sequence[str]) -> bool:
    positional = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in given)
    keyword = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in given)
    return len(needed) <= len(declared) and (open_ended or len(declared) <= len(positional)) and not keyword


def _named(given: Sequence[inspect.Parameter], declared: Sequence[str]) -> bool:
    pairs = zip((p for p in given if p.kind is not p.VAR_POSITIONAL), declared, strict=False)
    return all(p.name.lstrip("_") in (name, *OTHER_NAMES.get(name, ())) for p, name in pairs)


job_order = Tie(POINTS["job_order"])
queue_order = Tie(POINTS["queue_order"])
task_order = Tie(POINTS["task_order"])
sub_job_order = Tie(POINTS["sub_job_order"])
cluster_order = Tie(POINTS["cluster_order"])
victim_queue_order = Tie(POINTS["victim_queue_order"])
job_valid = Tie(POINTS["job_valid"])
job_ready = Tie(POINTS["job_ready"])
job_pipelined = Tie(POINTS["job_pipelined"])
job_starving = Tie(POINTS["job_starving"])
job_enqueueable = Tie(POINTS["job_enqueueable"])
job_enqueued = Tie(POINTS["job_enqueued"])
sub_job_ready = Tie(POINTS["sub_job_ready"])
sub_job_pipelined = Tie(POINTS["sub_job_pipelined"])
overused = Tie(POINTS["overused"])
allocatable = Tie(POINTS["allocatable"])
preemptive = Tie(POINTS["preemptive"])
target_job = Tie(POINTS["target_job"])
reserved_nodes = Tie(POINTS["reserved_nodes"])
pre_predicate = Tie(POINTS["pre_predicate"])
predicate = Tie(POINTS["predicate"])
node_order = Tie(POINTS["node_order"])
batch_node_order = Tie(POINTS["batch_node_order"])
node_map = Tie(POINTS["node_map"])
node_reduce = Tie(POINTS["node_reduce"])
best_node = Tie(POINTS["best_node"])
hyper_node_order = Tie(POINTS["hyper_node_order"])
hyper_node_gradient_for_job = Tie(POINTS["hyper_node_gradient_for_job"])
hyper_node_gradient_for_sub_job = Tie(POINTS["hyper_node_gradient_for_sub_job"])
preemptable = Tie(POINTS["preemptable"])
reclaimable = Tie(POINTS["reclaimable"])
unified_evictable = Tie(POINTS["unified_evictable"])
victim_tasks = Tie(POINTS["victim_tasks"])
simulate_add_task = Tie(POINTS["simulate_add_task"])
simulate_remove_task = Tie(POINTS["simulate_remove_task"])
simulate_predicate = Tie(POINTS["simulate_predicate"])
simulate_allocatable = Tie(POINTS["simulate_allocatable"])
on_allocate = Tie(POINTS["on_allocate"])
on_deallocate = Tie(POINTS["on_deallocate"])

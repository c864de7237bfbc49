"""The extension points, all of them, in one table.

A point is a question that the session asks its plugins.  The decorators of plugins, the switches of the configuration,
the compiled callables of a session, the labels of metrics and traces and the documentation page derive from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from stromboli.framework.extension import order
from stromboli.framework.extension.merge import (
    Agree,
    All,
    AnyOf,
    FirstAnswer,
    FirstOpinion,
    Merge,
    Only,
    Sum,
    SumByName,
    Tell,
    Union,
    Vote,
)

Form = Literal["scalar", "vector", "raw", "many", "key", "job"]
"""How a hook answers: for one thing, for all nodes at once (as raw scores: before they are normalised), for a run of
equal tasks, as a sort key, or for all tasks of a job at once."""

OTHER_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "left": ("l",),
        "right": ("r",),
        "preemptor": ("actor",),
        "reclaimer": ("actor",),
        "context": ("actor",),
        "sub_job": ("sub",),
        "preemptees": ("candidates",),
        "reclaimees": ("candidates",),
    }
)
"""Parameter names that a hook may use in place of the declared ones."""


def nothing(*_args: object) -> None:
    """The answer where no plugin has the point: None."""


def whole_domain(_owner: object, domain: object, _purpose: object = None) -> list[list[object]]:
    """The gradient where no plugin has one: the hypernode itself, alone."""
    return [[domain]]


@dataclass(frozen=True, slots=True)
class Point:
    """One extension point.

    ``arguments`` are the parameter names that a hook must accept and ``answers`` says what it returns; ``many``,
    ``key`` and ``job`` are the parameters of the forms of those names, empty where the point has no such form.
    ``switches`` are keys of a plugin's entry in the configuration (any one that is on is enough; none: always asked),
    ``on`` is what the loader fills in where the configuration is silent.  ``per_node`` points may be answered for all
    nodes at once: ``fit`` by bool or reason masks, ``score`` by numbers; ``normalised`` ones also as raw scores with a
    function that normalises them.  ``several`` hooks of one plugin are all asked; elsewhere a second registration
    replaces the first.  Where the plugins have no opinion and ``reverse_of`` names a point, the reverse of that point's
    answer counts.  ``unsplit`` names the point that is asked in its place for jobs that are not split into parts; such
    points are asked as (job, part).  ``registration`` and ``query`` are the reference's names, ``seed`` the name of the
    registration where the first description of the session lists it (seventeen do).
    """

    name: str
    arguments: tuple[str, ...]
    answers: str
    merge: Merge
    asked_by: str
    doc: str
    switches: tuple[str, ...] = ()
    on: bool = True
    default: str = ""
    per_node: Literal["", "fit", "score"] = ""
    normalised: bool = False
    many: tuple[str, ...] = ()
    key: str = ""
    job: tuple[str, ...] = ()
    several: bool = False
    reverse_of: str = ""
    alias_of: str = ""
    unsplit: str = ""
    registration: str = ""
    query: tuple[str, ...] = ()
    seed: str = ""

    def parameters(self, form: Form) -> tuple[str, ...]:
        """The parameter names of a hook of that form; empty where the point does not know the form."""
        vector = ("task", "nodes") if self.per_node or self.normalised else ()
        raw = ("task", "nodes") if self.normalised else ()
        key = (self.key,) if self.key else ()
        other = {"vector": vector, "raw": raw, "many": self.many, "key": key, "job": self.job}
        return self.arguments if form == "scalar" else other[form]

    def has(self, form: Form) -> bool:
        """Whether hooks of that form exist for this point."""
        return form == "scalar" or bool(self.parameters(form))

    def enabled(self, switches: Mapping[str, bool]) -> bool:
        """Whether a plugin with these switches is asked; a switch that is not there is off."""
        return not self.switches or any(map(switches.get, self.switches))


_ROWS = (
    Point(
        "job_order", ("left", "right"), "int, negative: left first",
        FirstOpinion(order.by_age, order.age_key), "all actions",
        "Which of two jobs comes first. `ask.job_order.opinion` asks the plugins alone; 0 means equal.",
        ("enableJobOrder",), default="creation time, then uid", key="job",
        registration="AddJobOrderFn", query=("JobOrderFn", "JobOrderCompareFn"), seed="AddJobOrderFn",
    ),
    Point(
        "queue_order", ("left", "right"), "int, negative: left first",
        FirstOpinion(order.by_queue, order.queue_key), "all actions",
        "Which of two queues comes first.",
        ("enableQueueOrder",), default="creation time, then name", key="queue",
        registration="AddQueueOrderFn", query=("QueueOrderFn",), seed="AddQueueOrderFn",
    ),
    Point(
        "task_order", ("left", "right"), "int, negative: left first",
        FirstOpinion(order.by_turn, order.TaskTurn), "all actions",
        "Which of two tasks of a job comes first.",
        ("enableTaskOrder",), default="pod index where both have one, creation time, uid", key="task",
        registration="AddTaskOrderFn", query=("TaskOrderFn", "TaskCompareFns"), seed="AddTaskOrderFn",
    ),
    Point(
        "sub_job_order", ("left", "right"), "int, negative: left first",
        FirstOpinion(order.by_part, order.part_key), "allocate, gangpreempt, gangreclaim",
        "Which of two sub-jobs of a job comes first.",
        ("enabledSubJobOrder",), default="match index, then uid", key="sub_job",
        registration="AddSubJobOrderFn", query=("SubJobOrderFn",),
    ),
    Point(
        "cluster_order", ("left", "right"), "int, negative: left first",
        FirstOpinion(order.by_name, order.name_key), "none (not used yet)",
        "Which of two clusters comes first.",
        ("enabledClusterOrder",), on=False, default="name", key="cluster",
        registration="AddClusterOrderFn", query=("ClusterOrderFn",),
    ),
    Point(
        "victim_queue_order", ("left", "right", "preemptor_queue"), "int, negative: left's tasks are evicted first",
        FirstOpinion(), "gangreclaim, the order of victims",
        "From which of two queues victims are taken first.",
        default="the reverse of queue_order", reverse_of="queue_order",
        registration="AddVictimQueueOrderFn", query=("VictimQueueOrderFn",),
    ),
    Point(
        "job_valid", ("job",), "None, or (reason, message)",
        FirstAnswer(), "cycle state, most actions",
        "Whether the job can be looked at in this session; the first failure counts.",
        default="valid", registration="AddJobValidFn", query=("JobValid",), seed="AddJobValidFn",
    ),
    Point(
        "job_ready", ("job",), "bool",
        All(), "allocate, decisions to commit",
        "Whether the job has enough tasks placed to start. `.many(job, task, k)`: after how many further "
        "allocations of tasks like this one it turns true, k + 1 if not within k.",
        ("enableJobReady",), default="true", many=("job", "task", "k"),
        registration="AddJobReadyFn", query=("JobReady",), seed="AddJobReadyFn",
    ),
    Point(
        "job_pipelined", ("job",), "vote: -1, 0 or 1",
        Vote(), "allocate, preempt, reclaim, gangpreempt, gangreclaim",
        "Whether the job would be ready once its reserved nodes are free.",
        ("enableJobPipelined",), default="true",
        registration="AddJobPipelinedFn", query=("JobPipelined",), seed="AddJobPipelinedFn",
    ),
    Point(
        "job_starving", ("job",), "bool",
        All(silent=False, by_tier=True), "preempt, reclaim, gangpreempt, gangreclaim",
        "Whether the job may take resources from others; the first tier with any function decides. "
        "`.many(job, task, k)`: after how many further tasks like this one that get room it turns false, k + 1 if not "
        "within k.",
        ("enableJobStarving",), default="false", many=("job", "task", "k"),
        registration="AddJobStarvingFns", query=("JobStarving",),
    ),
    Point(
        "job_enqueueable", ("job",), "vote: -1, 0 or 1",
        Vote(), "enqueue",
        "Whether a pending PodGroup may enter the queue.",
        ("enableJobEnqueued",), default="true",
        registration="AddJobEnqueueableFn", query=("JobEnqueueable",), seed="AddJobEnqueueableFn",
    ),
    Point(
        "job_enqueued", ("job",), "nothing",
        Tell(), "enqueue",
        "A PodGroup has entered the queue.",
        ("enableJobEnqueued",), registration="AddJobEnqueuedFn", query=("JobEnqueued",),
    ),
    Point(
        "sub_job_ready", ("sub_job",), "bool",
        All(), "allocate",
        "Whether the sub-job has enough tasks placed. Asked as (job, sub_job); a job without subGroupPolicy is asked "
        "`job_ready` instead.",
        ("enabledSubJobReady",), default="true", many=("sub_job", "task", "k"), unsplit="job_ready",
        registration="AddSubJobReadyFn", query=("SubJobReady",),
    ),
    Point(
        "sub_job_pipelined", ("sub_job",), "vote: -1, 0 or 1",
        Vote(), "allocate",
        "Whether the sub-job would be ready once its reserved nodes are free. Asked as (job, sub_job); a job without "
        "subGroupPolicy is asked `job_pipelined` instead.",
        ("enabledSubJobPipelined",), default="true", unsplit="job_pipelined",
        registration="AddSubJobPipelinedFn", query=("SubJobPipelined",),
    ),
    Point(
        "overused", ("queue",), "bool",
        AnyOf(), "allocate, reclaim, gangreclaim",
        "Whether the queue has more than its share.",
        ("enabledOverused",), default="false",
        registration="AddOverusedFn", query=("Overused",), seed="AddOverusedFn",
    ),
    Point(
        "allocatable", ("queue", "task"), "bool",
        All(), "allocate, preempt, gangpreempt, gangreclaim",
        "Whether the queue may be given this task's resources. `.many(queue, task, k)`: to how many of the next k "
        "tasks like this one the answer stays true.",
        ("enabledAllocatable",), default="true", many=("queue", "task", "k"),
        registration="AddAllocatableFn", query=("Allocatable",), seed="AddAllocatableFn",
    ),
    Point(
        "preemptive", ("queue", "tasks"), "bool",
        All(), "reclaim, gangreclaim",
        "Whether the queue may take resources back from other queues for these tasks.",
        ("enablePreemptive",), default="true",
        registration="AddPreemptiveFn", query=("Preemptive",),
    ),
    Point(
        "target_job", ("jobs",), "job or None",
        Only(nothing), "none (no longer used)",
        "The job for which nodes are reserved.",
        ("enableTargetJob",), default="None",
        registration="AddTargetJobFn", query=("TargetJob",),
    ),
    Point(
        "reserved_nodes", (), "nothing",
        Tell(), "none (no longer used)",
        "Time to lock nodes for the target job.",
        ("enableReservedNodes",), registration="AddReservedNodesFn", query=("ReservedNodes",),
    ),
    Point(
        "pre_predicate", ("task",), "None or Reason",
        FirstAnswer(), "allocate, backfill, preempt, reclaim",
        "Whether the task can be placed at all; asked once per task, before its nodes.",
        ("enablePredicate",), default="fits", several=True,
        registration="AddPrePredicateFn", query=("PrePredicateFn",), seed="AddPrePredicateFn",
    ),
    Point(
        "predicate", ("task", "node"), "None, Reason or tuple of them; all nodes: bool (true fits) or uint64 masks",
        FirstAnswer(), "allocate, backfill, preempt, reclaim",
        "Whether the node suits the task, resources aside. Asked as `predicate`, `predicate_for_allocate` (every code "
        "refuses) and `predicate_for_preempt` (plain Unschedulable does not).",
        ("enablePredicate",), default="fits", per_node="fit", several=True,
        registration="AddPredicateFn",
        query=("PredicateFn", "PredicateForAllocateAction", "PredicateForPreemptAction"), seed="AddPredicateFn",
    ),
    Point(
        "node_order", ("task", "node"), "float; all nodes: float64 array",
        Sum(), "scoring in allocate, backfill, preempt, reclaim",
        "How well the node suits the task; higher is better.",
        ("enableNodeOrder",), default="0", per_node="score", several=True,
        registration="AddNodeOrderFn", query=("NodeOrderFn",), seed="AddNodeOrderFn",
    ),
    Point(
        "batch_node_order", ("task", "nodes"), "{node name: float}",
        SumByName(), "scoring",
        "Scores of several nodes at once, by name; adds to `node_order`.",
        ("enableNodeOrder",), default="0", alias_of="node_order", normalised=True, several=True,
        registration="AddBatchNodeOrderFn", query=("BatchNodeOrderFn",), seed="AddBatchNodeOrderFn",
    ),
    Point(
        "node_map", ("task", "node"), "float",
        Sum(), "scoring",
        "A raw score, kept per plugin and floored to an integer for the same plugin's `node_reduce`.",
        ("enableNodeOrder",), default="0", alias_of="node_order",
        registration="AddNodeMapFn", query=("NodeOrderMapFn",),
    ),
    Point(
        "node_reduce", ("task", "scores"), "nothing; edits scores in place",
        Tell(), "scoring",
        "Normalises the plugin's own `node_map` scores, {node name: int}, before they are added up.",
        ("enableNodeOrder",), registration="AddNodeReduceFn", query=("NodeOrderReduceFn",),
    ),
    Point(
        "best_node", ("task", "nodes_by_score"), "node or None",
        FirstAnswer(), "allocate, backfill",
        "Takes one of the nodes, given as {score: [node]}, whatever their scores.",
        ("enableBestNode",), default="the highest score",
        registration="AddBestNodeFn", query=("BestNodeFn",), seed="AddBestNodeFn",
    ),
    Point(
        "hyper_node_order", ("sub_job", "nodes_by_hyper_node"), "{hypernode name: float}",
        SumByName(), "allocate",
        "How well each hypernode suits the sub-job; higher is better.",
        ("enabledHyperNodeOrder",), default="0",
        registration="AddHyperNodeOrderFn", query=("HyperNodeOrderMapFn",),
    ),
    Point(
        "hyper_node_gradient_for_job", ("job", "hyper_node", "purpose"), "[[hypernode]], to be tried in this order",
        Only(whole_domain), "allocate, gangpreempt, gangreclaim",
        "The hypernodes below this one in which the job may be placed; purpose is Allocate or Evict.",
        ("enabledHyperNodeGradient",), default="[[hyper_node]]",
        registration="AddHyperNodeGradientForJobFn", query=("HyperNodeGradientForJobFn",),
    ),
    Point(
        "hyper_node_gradient_for_sub_job", ("sub_job", "hyper_node", "purpose"),
        "[[hypernode]], to be tried in this order",
        Only(whole_domain), "allocate, gangpreempt, gangreclaim",
        "The hypernodes below this one in which the sub-job may be placed; purpose is Allocate or Evict.",
        ("enabledHyperNodeGradient",), default="[[hyper_node]]",
        registration="AddHyperNodeGradientForSubJobFn", query=("HyperNodeGradientForSubJobFn",),
    ),
    Point(
        "preemptable", ("preemptor", "preemptees"), "list: these may be evicted; None abstains",
        Agree(), "preempt",
        "Which tasks of its own queue the preemptor may evict. `.job(preemptor, job)`: false promises that no task of "
        "that job is named while the preemptor's job has its turn, so that nodes without a chance are passed over. Of "
        "the preemptor it reads `template`, `priority`, `role` and its job alone.",
        ("enablePreemptable",), default="no victims", job=("preemptor", "job"),
        registration="AddPreemptableFn", query=("Preemptable",), seed="AddPreemptableFn",
    ),
    Point(
        "reclaimable", ("reclaimer", "reclaimees"), "list: these may be evicted; None abstains",
        Agree(), "reclaim",
        "Which tasks of other queues the reclaimer may evict. `.job(reclaimer, job)` as for `preemptable`.",
        ("enableReclaimable",), default="no victims", job=("reclaimer", "job"),
        registration="AddReclaimableFn", query=("Reclaimable",), seed="AddReclaimableFn",
    ),
    Point(
        "unified_evictable", ("context", "candidates"), "list: these may be evicted; None abstains",
        Agree(), "gangpreempt, gangreclaim",
        "Which tasks may be evicted for a job; context has kind (GangPreempt, GangReclaim, TaskPreempt, TaskReclaim), "
        "job, task and hypernode.",
        default="no victims",
        registration="AddUnifiedEvictableFn", query=("UnifiedEvictable",),
    ),
    Point(
        "victim_tasks", ("tasks",), "list of tasks to evict",
        Union(), "shuffle",
        "Which running tasks should be moved elsewhere.",
        ("enabledVictim",), default="no victims", several=True,
        registration="AddVictimTasksFns", query=("VictimTasks",), seed="AddVictimTasksFn",
    ),
    Point(
        "simulate_add_task", ("state", "task_to_schedule", "task", "node"), "None or Reason",
        FirstAnswer(), "preempt, topology-aware",
        "Tries what holds with the task on the node; changes the cycle state only.",
        ("enablePreemptable", "enabledAllocatable"), default="fits",
        registration="AddSimulateAddTaskFn", query=("SimulateAddTaskFn",),
    ),
    Point(
        "simulate_remove_task", ("state", "task_to_schedule", "task", "node"), "None or Reason",
        FirstAnswer(), "preempt, topology-aware",
        "Tries what holds without the task on the node; changes the cycle state only.",
        ("enablePreemptable", "enabledAllocatable"), default="fits",
        registration="AddSimulateRemoveTaskFn", query=("SimulateRemoveTaskFn",),
    ),
    Point(
        "simulate_predicate", ("state", "task", "node"), "None or Reason",
        FirstAnswer(), "preempt, topology-aware",
        "`predicate` under a tried cycle state.",
        ("enablePredicate",), default="fits", several=True,
        registration="AddSimulatePredicateFn", query=("SimulatePredicateFn",),
    ),
    Point(
        "simulate_allocatable", ("state", "queue", "task"), "bool",
        All(), "preempt, topology-aware",
        "`allocatable` under a tried cycle state.",
        ("enabledAllocatable",), default="true",
        registration="AddSimulateAllocatableFn", query=("SimulateAllocatableFn",),
    ),
    Point(
        "on_allocate", ("event",), "nothing; may set event.err",
        Tell(), "statement and session: allocate, pipeline, undone evictions",
        "A task has taken its place; event has task and err. `.many(task, rows)`: tasks like this one took the rows of "
        "the node table, one row a task.",
        many=("task", "rows"), several=True, registration="AddEventHandler",
    ),
    Point(
        "on_deallocate", ("event",), "nothing",
        Tell(), "statement and session: evict, undone allocations and reservations",
        "A task has left its place. `.many(task, rows)` as for `on_allocate`; must bear a task that was never counted.",
        many=("task", "rows"), several=True, registration="AddEventHandler",
    ),
)  # fmt: skip

POINTS: Mapping[str, Point] = MappingProxyType({row.name: row for row in _ROWS})
"""Every extension point by its Python name, in the order of the documentation."""

SWITCHES: Mapping[str, bool] = MappingProxyType({switch: row.on for row in _ROWS for switch in row.switches})
"""Every switch in the reference's spelling, with what the loader fills in where it is not written."""

"""Lines of the reference that are not printed here: key -> (text, why).

Part of the table in :mod:`stromboli.narration.catalogue`.  A line that comes into force moves from here to its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DROPPED: Final[Mapping[str, tuple[str, str]]] = {
    "job_spec_missing": (
        "The scheduling spec of Job <{uid}:{job}> is nil, ignore it.",
        "a job is made of its PodGroup, so none lacks a spec; pods without a PodGroup are told on the pod",
    ),
    "job_invalid": (
        "Job <{job}> is not valid, reason: {reason}, message {message}, skip initing cycle state for tasks in it",
        "cycle states are made when first asked for; the actions name invalid jobs (`allocate_job_invalid` and so on)",
    ),
    "job_update_failed": (
        "Failed to update job <{job}>: {error}",
        "statuses are written after the cycle: `write_failed` names the PodGroup",
    ),
    "queue_status_failed": (
        "failed to update queue <{queue}> status: {error}",
        "statuses are written after the cycle: `write_failed` names the queue",
    ),
    "evict_failed": (
        "Failed to evict task: {error}",
        "a commit only writes the plan; what the cluster refuses is told by `evict_pod_failed`",
    ),
    "predicates_failed_shard": (
        "Predicates failed: node {node} is not in scheduler shard",
        "refusals are counted: `{count} node isn't in scheduler node shard` in the text of the task",
    ),
    "score_failed": (
        "Error in Calculating Priority for the node:{error}",
        "all scores of a task are asked in one step: `batch_score_failed`",
    ),
    "evict_task_failed": (
        "Failed to evict Task <{task}>: {error}",
        "the same text is told by `shuffle_failed`",
    ),
    "pod_update_ignored": (
        "Pod <{task}> already in cache with allocated status, ignore the update event",
        "a pod's event always counts; what was decided of it meanwhile stands beside it",
    ),
    "binds_failed": (
        "There are {tasks} tasks in total and {failed} binds failed, latency {latency}",
        "each bind ends by itself: `bind_failed` names the pod, and metrics count",
    ),
    "job_deleting": (
        "Try to delete Job <{uid}:{job}>",
        "a job goes in one step: `job_deleted`",
    ),
    "argument_invalid": (
        "Could not parse argument: {value} for key {argument} to {kind}",
        "the same text is told by `complaint`, as of every argument of another type",
    ),
    "overcommit_factor_invalid": (
        (
            "Invalid input {factor} for overcommit-factor, reason: overcommit-factor cannot be less than 1, "
            "using default value: {default}."
        ),
        "the same text is told by `complaint`, as of every argument out of its range",
    ),
    "predicate_node_failed": (
        "predicates, get node {node} info failed: {error}",
        "a placement on an unknown node is refused before any event: `node_missing`",
    ),
    "predicate_cache_failed": (
        "Failed to get node {node} info from cache",
        "there is no second cache of nodes that could lack one",
    ),
    "device_allocate_failed": (
        "AllocateToPod failed {error}",
        "there are no shared devices yet",
    ),
    "device_release_failed": (
        "Device {device} release failed for pod {task}, err:{error}",
        "there are no shared devices yet",
    ),
    "pod_of_others": (
        "Pod {task} is not scheduled by {schedulers}, skip creating PodGroup and Job for it in cache.",
        "it would stand in the log for every event of every pod of other schedulers",
    ),
}

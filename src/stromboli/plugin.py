"""What an author of a plugin needs: the base class, arguments, reasons, and one decorator for each extension point.

::

    from stromboli.plugin import Plugin, Reason, arg, node_order, predicate

    class Zone(Plugin):
        name = "zone"
        weight = arg("zone.weight", float, 1.0)

        @predicate(key=lambda task: task.labels.get("zone"))
        def same_zone(self, task, node):
            zone = task.labels.get("zone")
            return Reason("node(s) were in another zone") if zone and node.labels.get("zone") != zone else None
"""

from __future__ import annotations

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.config.argument import Complaint, arg, arg_pattern, arg_section, is_duration
from stromboli.framework.extension.hook import (
    Hook,
    Limit,
    allocatable,
    batch_node_order,
    best_node,
    by_template,
    cluster_order,
    hyper_node_gradient_for_job,
    hyper_node_gradient_for_sub_job,
    hyper_node_order,
    job_enqueueable,
    job_enqueued,
    job_order,
    job_pipelined,
    job_ready,
    job_starving,
    job_valid,
    node_map,
    node_order,
    node_reduce,
    on_allocate,
    on_deallocate,
    overused,
    pre_predicate,
    predicate,
    preemptable,
    preemptive,
    queue_order,
    reclaimable,
    reserved_nodes,
    simulate_add_task,
    simulate_allocatable,
    simulate_predicate,
    simulate_remove_task,
    sub_job_order,
    sub_job_pipelined,
    sub_job_ready,
    target_job,
    task_order,
    unified_evictable,
    victim_queue_order,
    victim_tasks,
)
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.reason import Reason, StatusCode
from stromboli.framework.session.reference import ReferenceView

__all__ = [
    "ClusterView",
    "Complaint",
    "Hook",
    "Limit",
    "Plugin",
    "Reason",
    "ReferenceView",
    "StatusCode",
    "allocatable",
    "arg",
    "arg_pattern",
    "arg_section",
    "batch_node_order",
    "best_node",
    "by_template",
    "cluster_order",
    "hyper_node_gradient_for_job",
    "hyper_node_gradient_for_sub_job",
    "hyper_node_order",
    "is_duration",
    "job_enqueueable",
    "job_enqueued",
    "job_order",
    "job_pipelined",
    "job_ready",
    "job_starving",
    "job_valid",
    "node_map",
    "node_order",
    "node_reduce",
    "on_allocate",
    "on_deallocate",
    "overused",
    "pre_predicate",
    "predicate",
    "preemptable",
    "preemptive",
    "queue_order",
    "reclaimable",
    "reserved_nodes",
    "simulate_add_task",
    "simulate_allocatable",
    "simulate_predicate",
    "simulate_remove_task",
    "sub_job_order",
    "sub_job_pipelined",
    "sub_job_ready",
    "target_job",
    "task_order",
    "unified_evictable",
    "victim_queue_order",
    "victim_tasks",
]

"""The lines of the plugins: component -> (key, level, text).

Part of the table in :mod:`stromboli.narration.catalogue`, where levels and placeholders are explained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ROWS: Final[Mapping[str, tuple[tuple[str, int | str, str], ...]]] = {
    "plugins": (
        (
            "orphan_skipped", "W",
            "[{plugin}] Skip {what} <{task}>: job <{job}> not found in session (orphaned task from deleted PodGroup)",
        ),
        ("spared", 5, "[{plugin}] Task <{task}> is spared: {why}"),
    ),
    "gang": (
        (
            "gang_refused", 4,
            ("Can not preempt task <{task}> because job {name} ready num({ready}) <= MinAvailable({min_available}) "
             "for gang-scheduling"),
        ),
        ("gang_victims", 4, "Victims from Gang plugins, victims={victims} preemptor={task}"),
        ("gang_job_order", 4, "Gang JobOrderFn: <{left}> is ready: {left_ready}, <{right}> is ready: {right_ready}"),
    ),
    "priority": (
        (
            "priority_task_order", 4,
            "Priority TaskOrder: <{left}> priority is {left_priority}, <{right}> priority is {right_priority}",
        ),
        (
            "priority_job_order", 4,
            "Priority JobOrderFn: <{left}> priority: {left_priority}, <{right}> priority: {right_priority}",
        ),
        (
            "priority_refused_job", 4,
            ("[priority] Can not preempt task <{task}> because preemptee job has greater or equal job priority "
             "({preemptee}) than preemptor ({preemptor})"),
        ),
        (
            "priority_refused_task", 4,
            ("[priority] Can not preempt task <{task}> because preemptee task has greater or equal task priority "
             "({preemptee}) than preemptor ({preemptor})"),
        ),
        ("priority_victims", 4, "[priority] Victims from Priority plugin are {victims}"),
    ),
    "drf": (
        (
            "drf_job_order", 4,
            "DRF JobOrderFn: <{left}> share state: {left_share}, <{right}> share state: {right_share}",
        ),
        ("drf_victims", 4, "[drf] Victims from DRF preemptable plugin are {victims}"),
        ("hdrf_victims", 4, "[drf] Victims from HDRF plugin are {victims}"),
        ("drf_total", 4, "Total Allocatable {total}"),
        (
            "drf_refused", 4,
            ("[drf] Can not preempt task <{task}>: share of preemptor {preemptor_share} > share of preemptee "
             "{preemptee_share}"),
        ),
        (
            "drf_allocated", 4,
            "[drf] AllocateFunc: task <{task}>, resreq <{request}>, share <{share}>, namespace share <-1>",
        ),
        (
            "drf_deallocated", 4,
            "[drf] DeallocateFunc: task <{task}>, resreq <{request}>, share <{share}>, namespace share <-1>",
        ),
    ),
    # --------------------------------------------------------------------------------------- proportion and capacity
    "queues": (
        ("queue_event_allocated", 4, "[{plugin}] AllocateFunc: task <{task}>, resreq <{request}>, share <{share}>"),
        ("queue_event_deallocated", 4, "[{plugin}] DeallocateFunc: task <{task}>, resreq <{request}>, share <{share}>"),
        ("total_resource", 4, "The total resource is <{total}>"),
        ("total_guarantee", 4, "The total guarantee resource is <{guarantee}>"),
        ("considering_job", 4, "Considering Job <{job}>."),
        ("queue_attributes_added", 4, "Added Queue <{queue}> attributes."),
        (
            "queue_attributes", 4,
            ("The attributes of queue <{queue}> in {plugin}: deserved <{deserved}>, realCapability "
             "<{real_capability}>, allocate <{allocated}>, request <{request}>, elastic <{elastic}>, share "
             "<{share:.2f}>"),
        ),
        (
            "queue_sums", 5,
            "Queue {queue} allocated <{allocated}> request <{request}> inqueue <{inqueue}> elastic <{elastic}>",
        ),
        (
            "queue_closed_allocate", 3,
            "Queue <{queue}> current state: {state}, is not in open state, can not allocate tasks.",
        ),
        ("queue_closed_enqueue", 3, "Queue <{queue}> current state: {state}, is not open state, reject job <{job}>."),
        ("capability_unset", 4, "Capability of queue <{queue}> was not set, allow job <{job}> to Inqueue."),
        ("min_resources_unset", 4, "job {name} MinResources is null."),
        (
            "enqueue_amounts", 5,
            ("job {name} min resource <{min_resources}>, queue {queue} capability <{capability}> allocated "
             "<{allocated}> inqueue <{inqueue}> elastic <{elastic}>"),
        ),
        ("enqueue_vote", 5, "job {name} inqueue {permitted}"),
    ),
    "proportion": (
        ("queue_weight", 4, "Considering Queue <{queue}>: weight <{weight}>, total weight <{total_weight}>."),
        ("queue_deserved", 4, "Format queue <{queue}> deserved resource to <{deserved}>"),
        ("queue_met", 4, "queue <{queue}> is meet"),
        ("queue_met_capability", 4, "queue <{queue}> is meet cause of the capability"),
        ("remaining", 4, "Remaining resource is <{remaining}>"),
        ("weights_exhausted", 4, "Exiting when total weight is 0"),
        (
            "remaining_exhausted", 4,
            "Exiting when remaining is empty or no queue has more resource request: <{remaining}>",
        ),
        (
            "proportion_overused", 3,
            "Queue <{queue}> is overused: deserved <{deserved}>, allocated <{allocated}>, share <{share}>",
        ),
        (
            "proportion_refused", 3,
            "Queue <{queue}>: deserved <{deserved}>, allocated <{allocated}>; Candidates total request <{request}>",
        ),
        (
            "proportion_refused_simulated", 3,
            ("Queue <{queue}>: deserved <{deserved}>, allocated <{allocated}>; Candidate <{name}>: resource request "
             "<{request}>"),
        ),
        ("proportion_victims", 4, "Victims from proportion plugins are {victims}"),
    ),
    "capacity": (
        (
            "capacity_refused", 3,
            ("Queue <{queue}>: realCapability <{real_capability}>, allocated <{allocated}>, reserved <{reserved}>; "
             "Candidate <{name}>: resource request <{request}>"),
        ),
        ("capacity_victims", 4, "[capacity] Victims from capacity plugin: victims={victims} reclaimer={task}."),
        (
            "capacity_above_capability", 3,
            ("Queue <{queue}> cannot reclaim because futureUsed <{future_used}> exceeds realCapability "
             "<{real_capability}>."),
        ),
        (
            "capacity_above_deserved", 4,
            ("Queue <{queue}> itself can not reclaim, futureUsed: {future_used}, deserved: {deserved}, requested: "
             "{request}"),
        ),
        (
            "capacity_spared_guarantee", 5,
            ("[capacity] Queue <{queue}> guarantee <{guarantee}> would not be kept without reclaimee <{task}>: "
             "allocated <{allocated}>, Reclaimee Resreq: <{request}>, Deserved: <{deserved}>."),
        ),
        (
            "capacity_spared_deserved", 5,
            ("[capacity] Queue <{queue}> allocated resources are not greater than deserved on any relevant dimension "
             "of reclaimee. Hence reclaimee <{task}> cannot be reclaimed. Deserved: <{deserved}>, Allocated: "
             "<{allocated}>, Reclaimee Resreq: <{request}>, Guarantee: <{guarantee}>."),
        ),
        (
            "capacity_spared_family", 5,
            ("[capacity] Skip reclaim for reclaimee <{task}> from queue <{queue}>: both leaf deserved signals are "
             "empty for requested resources <{request}> under shared ancestor scope. Deserved: <{deserved}>, "
             "Allocated: <{allocated}>, Guarantee: <{guarantee}>."),
        ),
        ("queue_faulty", "E", "Failed to update Queue <{queue}> attributes, error: {fault}"),
        ("capacity_hierarchy_invalid", 3, "Capacity plugin failed to check queue's hierarchical structure!"),
    ),
    "overcommit": (
        ("overcommit_entered", 5, "Enter overcommit plugin ..."),
        ("overcommit_left", 5, "Leaving overcommit plugin."),
        ("overcommit_best_effort", 4, "Job <{job}> is bestEffort, permit to be inqueue."),
        ("overcommit_permitted", 4, "Sufficient resources, permit job <{job}> to be inqueue"),
        ("overcommit_refused", 4, "Resource in cluster is overused, reject job <{job}> to be inqueue"),
    ),
    # --------------------------------------------------------------------------------------------------------- nodes
    "predicates": (
        ("predicate_node_missing", 4, "NodeInfo predicates Task <{task}> on Node <{node}> failed, node info not found"),
        (
            "predicate_pod_number", 4,
            ("NodePodNumber predicates Task <{task}> on Node <{node}> failed, allocatable <{allocatable}>, existed "
             "<{existing}>"),
        ),
        ("predicate_allocate", 4, "predicates, allocate {node}"),
        ("predicate_allocated", 4, "predicates, update pod {task} allocate to node [{node}]"),
        ("predicate_deallocate", 4, "predicates, deallocate {node}"),
        ("predicate_deallocated", 4, "predicates, update pod {task} deallocate from node [{node}]"),
        (
            "predicate_proportional", 4,
            "checkNodeResourceIsProportional predicates Task <{task}> on Node <{node}>: fit {fit}",
        ),
        ("predicate_cached", 4, "Predicate node {node} and pod {name} result {fit}"),
        ("predicate_uncached", 3, "Don't find pod {name} template uid"),
        (
            "predicate_skipped", 5,
            ("The predicate of plugin {name} will skip execution for pod <{task}>, because the status returned by "
             "pre-predicate is skip"),
        ),
    ),
    "nodeorder": (
        (
            "strategy_score", 5,
            "Node: {node}, task<{task}> plugin {strategy} weight {weight}, raw score: {raw}, weighted score: {score}",
        ),
        ("total_score", 4, "Nodeorder Total Score for task<{task}> on node {node} is: {score}"),
        ("batch_total_score", 4, "Batch Total Score for task {task} is: {scores}"),
        ("plugin_score", 4, "{plugin} Score for task {task} is: {scores}"),
        ("strategy_failed", "W", "Node: {node}, <{strategy}> Priority Failed because of Error: {error}"),
    ),
    "rescheduling": (
        ("rescheduling_entered", 5, "Enter rescheduling plugin ..."),
        ("rescheduling_left", 5, "Leaving rescheduling plugin."),
        ("rescheduling_early", 3, "It is not the time to execute rescheduling strategies."),
        ("rescheduling_strategy", 4, "strategy: {name}"),
        ("utilization_all_above", 4, "The resource utilization of all nodes is above the threshold"),
        ("utilization_all_below", 4, "The resource utilization of all nodes is below the threshold"),
        ("utilization_all_below_target", 4, "The resource utilization of all nodes is below the target threshold"),
        ("utilization_parameters_invalid", "E", "parameters parse error for lowNodeUtilization"),
    ),
    "network-topology-aware": (
        ("hyper_node_gradient_failed", "E",
         '"build hyperNode gradient fail" job="{job}" hyperNode="{hyper_node}" err="{error}"'),
    ),
    "extender": (
        ("extender_failed", "W", "Failed to call extender for {verb}: {error}"),
    ),
    "task-topology": (
        ("task_topology_invalid", 4, "Failed to read task topology from job <{job}> annotations, error: {error}."),
    ),
    "usage": (
        ("usage_entered", 5, "Enter usage plugin ..."),
        ("usage_left", 5, "Leaving usage plugin ..."),
        (
            "usage_figures", 4,
            ("node:{node}, cpu usage:{cpu}, mem usage:{memory}, metrics time is {time}, shadowCPUEst: {cpu_guess}, "
             "shadowMemEst: {memory_guess}"),
        ),
        ("usage_cpu_exceeded", 3, "Node {node} cpu usage {usage} exceeds the threshold {threshold}"),
        ("usage_memory_exceeded", 3, "Node {node} mem usage {usage} exceeds the threshold {threshold}"),
        (
            "usage_filter_stale", 4,
            ("The period({period}) is empty or the usage metrics data is not updated for more than {minutes} "
             "minutes, Usage plugin filter for task {task} on node {node} pass, metrics time is {time}. "),
        ),
        (
            "usage_score_stale", 4,
            ("The period({period}) is empty or the usage metrics data is not updated for more than {minutes} "
             "minutes, Usage plugin score for task {task} on node {node} is 0, metrics time is {time}. "),
        ),
        ("usage_filter_passed", 4, "Usage plugin filter for task {task} on node {node} pass."),
    ),
    # ------------------------------------------------------------------------------------------- jobs and disruption
    "resourcequota": (
        ("quota_refused", 4, "enqueueable false for job: {job}, because :{message}"),
    ),
    "sla": (
        ("sla_entered", 4, "Enter sla plugin ..."),
        ("sla_left", 4, "Leaving sla plugin."),
        ("sla_global_time", 4, "Global job waiting time is {duration}."),
        ("sla_global_unreadable", "E", "Error occurs in parsing global job waiting time in sla plugin, err: {error}."),
        ("sla_global_invalid", "W", "Invalid global waiting time setting: {duration} in sla plugin."),
        ("sla_job_unreadable", "W", "Error occurs in parsing waiting time for job <{job}>, err: {error}."),
    ),
    "tdm": (
        ("tdm_entered", 5, "Enter tdm plugin ..."),
        ("tdm_left", 5, "Leaving tdm plugin."),
        ("tdm_next", 4, "TDM next evict time at {time}"),
        ("tdm_victims", 4, "TDM got {count} victims"),
        (
            "tdm_budget", 3,
            "Job <{job}> max evict:{most}, potential victims number:{potential}, max victims number:{count}",
        ),
    ),
    "pdb": (
        ("pdb_entered", 4, "Enter pdb plugin ..."),
        ("pdb_left", 4, "Leaving pdb plugin."),
        (
            "pdb_violated", 4,
            "The pod <{pod}> of task <{name}> violates the pdb constraint, so filter it from the victim list",
        ),
    ),
    "cdp": (
        ("cdp_opened", 4, "plugin cdp session open"),
        ("cdp_invalid", "W", "invalid time duration {name}={value}"),
        ("cdp_victims", 4, "Victims from cdp plugins are {victims}"),
    ),
}  # fmt: skip

"""The lines of cycle, session, statement, actions and cache: component -> (key, level, text).

Part of the table in :mod:`stromboli.narration.catalogue`, where levels and placeholders are explained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ROWS: Final[Mapping[str, tuple[tuple[str, int | str, str], ...]]] = {
    # ------------------------------------------------------------------------------------------- process and session
    "scheduler": (
        ("scheduler_started", 2, "Scheduler completes Initialization and start to run"),
        ("config_loaded", 2, "Successfully loaded Scheduler conf as follows:\n{text}"),
        ("config_load_started", 4, "Start loadSchedulerConf ..."),
        ("config_file_event", 4, "watch {path} event: {event}"),
        (
            "config_unreadable", "E",
            "Failed to read the Scheduler config in '{path}', using previous configuration: {error}",
        ),
        ("config_invalid", "E", "Scheduler config {text} is invalid: {error}"),
        ("plugin_missing", "E", "Failed to get plugin {name}."),
        ("cycle_started", 4, "Start scheduling ..."),
        ("cycle_ended", 4, "End scheduling ..."),
    ),
    "session": (
        ("snapshot_taken", 3, '"SnapShot for scheduling" jobNum="{jobs}" QueueNum="{queues}" NodeNum="{nodes}"'),
        (
            "session_opened", 3,
            ("Open Session {session} with <{jobs}> Job and <{queues}> Queues. HyperNodesReadyToSchedule: "
             "{hyper_nodes_ready}"),
        ),
        ("session_closed", 3, "Close Session {session}"),
        ("job_queue_missing", 3, "The Queue <{queue}> of Job <{job}> does not exist, ignore it."),
        ("job_priority", 4, "The priority of job <{job}> is <{priority_class}/{priority}>"),
        ("hyper_node_removed_job", 3, '"remove allocated hyperNode for job" job="{job}" hyperNode="{hyper_node}"'),
        (
            "hyper_node_removed_sub_job", 3,
            '"remove allocated hyperNode for subJob" job="{job}" subJob="{sub_job}" hyperNode="{hyper_node}"',
        ),
        (
            "hyper_node_updated_job", 3,
            '"update job allocated hyperNode" job="{job}" old="{old_hyper_node}" new="{hyper_node}"',
        ),
        (
            "hyper_node_updated_sub_job", 3,
            ('"update subJob allocated hyperNode" job="{job}" subJob="{sub_job}" old="{old_hyper_node}" '
             'new="{hyper_node}"'),
        ),
        (
            "queue_status_kept", 5,
            "Queue <{queue}> allocated resource keeps equal, no need to update queue status <{allocated}>.",
        ),
        # Of Stromboli's own: mistakes that the reference would not notice.
        ("complaint", "W", "{text}"),
        ("inconsistency", "E", "Inconsistent: {text}"),
        ("action_failed", "E", "Action {action} failed: {error}"),
        ("plugin_failed", "E", "Plugin {name} failed and is put aside for this session: {error}"),
    ),
    # ----------------------------------------------------------------------------------- statement and session calls
    "statement": (
        ("committing", 3, "Committing operations ..."),
        ("discarding", 3, "Discarding operations ..."),
        ("keeping", 3, "Keeping operations ..."),
        ("evict_operation", 3, "task {task} evict from node {node}"),
        ("pipeline_operation", 3, "task {task} pipeline from node {node}"),
        ("allocate_operation", 3, "task {task} allocate from node {node}"),
        ("unpipeline_operation", 3, "task {task} unpipeline from node {node}"),
        ("allocating", 3, "Allocating operations ..."),
        (
            "after_pipelined", 3,
            "After pipelined Task <{task}> to Node <{node}>: idle <{idle}>, used <{used}>, releasing <{releasing}>",
        ),
        (
            "after_unpipelined", 3,
            "After unpipelined Task <{task}> to Node <{node}>: idle <{idle}>, used <{used}>, releasing <{releasing}>",
        ),
        (
            "after_allocated", 3,
            "After allocated Task <{task}> to Node <{node}>: idle <{idle}>, used <{used}>, releasing <{releasing}>",
        ),
        ("task_removed", 3, "Remove Task <{name}> on node <{node}>"),
        ("allocate_failed", "E", "Failed to allocate task <{task}>: {error}."),
        ("unevict_failed", "E", "Failed to unevict task: {error}"),
        ("unpipeline_failed", "E", "Failed to unpipeline task: {error}"),
        ("unallocate_failed", "E", "Failed to unallocate task: {error}"),
        (
            "allocate_callback_failed", "E",
            ("Failed to exec allocate callback functions for task <{task}> to node <{node}> when {step} in Session "
             "<{session}>: {error}"),
        ),
        ("job_missing", "E", "Failed to find Job <{job}> in Session <{session}> index when {step}."),
        ("node_missing", "E", "Failed to find Node <{node}> in Session <{session}> index when {step}."),
        (
            "resources_insufficient", "E",
            "resources <{names}> are not sufficient to do operation: <{available}> sub <{request}>",
        ),
        (
            "idle_negative", "E",
            ('"Idle resources turn into negative after allocated" nodeName="{node}" task="{task}" '
             'resources="{names}" idle="{idle}" req="{request}"'),
        ),
        (
            "dealloc_underflow", "W",
            ("[{plugin}] dealloc underflow: {kind} <{name}>, task <{task}>, {dimension}: wanted {wanted}, allocated "
             "{allocated}"),
        ),
    ),
    # ------------------------------------------------------------------------------------------------------- actions
    "actions": (
        ("action_entered", 5, "Enter {action} ..."),
        ("action_left", 5, "Leaving {action} ..."),
        ("queue_missing", "E", "Failed to find Queue <{queue}> for Job <{job}>"),
        ("queue_added", 5, "Added Queue <{queue}> for Job <{job}>"),
        ("job_added", 5, "Added Job <{job}> into Queue <{queue}>"),
        ("queue_overused", 3, "Queue <{queue}> is overused, ignore it."),
        ("pre_predicate_failed", 3, "PrePredicate for task {task} failed for: {error}"),
        ("considering_resources", 4, "Considering Task <{task}> on node <{node}>: <{request}> vs. <{idle}>"),
        ("predicates_failed", 3, "Predicates failed: {error}"),
        ("scores", 5, "Prioritize nodeScoreMap for task<{task}> is: {scores}"),
        ("batch_score_failed", "E", "Error in Calculating batch Priority for the node, err {error}"),
        ("no_preemptors", 3, "No preemptors in Queue <{queue}>, break."),
        ("no_preemptor_task", 3, "No preemptor task in job <{job}>."),
        ("considering_node", 3, "Considering Task <{task}> on Node <{node}>."),
        ("no_victims", 3, "No validated victims on Node <{node}>: {error}"),
        ("pipeline_failed", "E", "Failed to pipeline Task <{task}> on Node <{node}>"),
        (
            "eviction_postponed", 3,
            ("Job <{job}> waits until {until} before it evicts {victims} tasks, as the slowest takes {grace} s to end"),
        ),
        (
            "eviction_not_sought", 3,
            "Job <{job}> waits until {until} before it evicts a pod: {looks} others that wait seek quicker victims",
        ),
        ("idle_room_left", 3, "Job <{job}> evicts no pod: the idle room for it is left to allocate and backfill"),
        ("max_domains_invalid", "W", "Invalid maxDomains value {value} for action {action}, falling back to default 8"),
        ("reservation_redeemed", 3, "Redeeming Task <{task}> on its reserved node <{node}>"),
        ("reservation_kept", 3, "Task <{task}> keeps its reservation on node <{node}>: <{request}> vs. <{idle}>"),
        ("reservation_given_up", 3, "Reservation of Task <{task}> on node <{node}> given up, reason: {reason}"),
    ),
    "enqueue": (
        ("enqueue_started", 3, "Try to enqueue PodGroup to {queues} Queues"),
    ),
    "allocate": (
        ("allocate_started", 3, "Try to allocate resource to {queues} Queues"),
        ("allocate_job_added", 4, "Added Job <{job}> into Queue <{queue}>"),
        ("allocate_job_skipped", 4, "Job <{job}> Queue <{queue}> skip allocate, reason: {reason}"),
        ("allocate_job_invalid", 4, "Job <{job}> Queue <{queue}> skip allocate, reason: {reason}, message {message}"),
        (
            "allocate_job_admitted", 4,
            ("Job <{job}> Queue <{queue}> status update from pending to inqueue, reason: no enqueue action is "
             "configured."),
        ),
        ("allocate_queue_missing", "W", "Skip adding Job <{job}> because its queue {queue} is not found"),
        ("task_gated", 4, "Task <{task}> has external scheduling gate, skip it."),
        ("task_best_effort", 4, "Task <{task}> is BestEffort task, skip it."),
        ("queue_without_jobs", 4, "Can not find jobs for queue {queue}."),
        (
            "allocate_job", 3,
            ('"Try to allocate resource" queue="{queue}" job="{job}" nominatedHyperNode="{hyper_node}" '
             'taskNum="{tasks}"'),
        ),
        (
            "allocate_topology_job", 3,
            ('"Try to allocate resource for job contains hard topology or subjob policy" queue="{queue}" '
             'job="{job}" allocatedHyperNode="{hyper_node}" subJobNum="{sub_jobs}"'),
        ),
        ("queue_overused_task", 3, "Queue <{queue}> is overused when considering task <{name}>, ignore it."),
        ("task_role_failed", 5, "Task {name} with role spec {role} has already predicated failed, skip"),
        ("nodes_for_job", 3, "There are <{nodes}> nodes for Job <{job}>"),
        (
            "node_filtered", 5,
            ("Predicate filtered node {node}, idle: {idle} and future idle: {future_idle} do not meet the "
             "requirements of task: {name}"),
        ),
        ("binding", 3, "Binding Task <{task}> to node <{node}>"),
        ("pipelining", 3, "Pipelining Task <{task}> to node <{node}> for <{request}> on <{releasing}>"),
        (
            "limited_resources", 3,
            "Predicates failed in allocate for task <{task}> on node <{node}> with limited resources",
        ),
        ("sub_job_ready", 3, '"SubJob ready, return statement" job="{job}" subJob="{sub_job}"'),
        ("sub_job_pipelined", 3, '"SubJob pipelined, return statement" job="{job}" subJob="{sub_job}"'),
        ("job_in_hyper_node", 3, '"Allocate job to hyperNode success" job="{job}" hyperNode="{hyper_node}"'),
        (
            "sub_job_in_hyper_node", 3,
            '"Allocate subJob to hyperNode success" subJob="{sub_job}" hyperNode="{hyper_node}"',
        ),
        (
            "sub_job_from_nomination", 3,
            '"Allocate subJob from nomination success" subJob="{sub_job}" hyperNode="{hyper_node}"',
        ),
        ("no_solution", 5, '"Cannot find any solution for job" job="{job}"'),
        ("queue_gate_removed", 3, "Task {task} has the QueueAllocationGate, queue async gate removal"),
    ),
    "backfill": (
        ("backfill_pre_predicate_failed", 3, "PrePredicate for task {task} failed in backfill for: {error}"),
        ("backfill_job_invalid", 4, "Job <{job}> Queue <{queue}> skip backfill, reason: {reason}, message {message}"),
    ),
    "preempt": (
        ("preempt_job_invalid", 4, "Job <{job}> Queue <{queue}> skip preemption, reason: {reason}, message {message}"),
        (
            "preempt_job_topology", 3,
            ("Job <{job}> Queue <{queue}> skip preemption, reason: jobs containing networkTopology do not support "
             "preemption"),
        ),
        ("preempt_queue_missing", 3, "Queue <{queue}> not found for Job <{job}>, skip preemption"),
        (
            "preempt_not_starving", 4,
            ("Job <{job}> Queue <{queue}> skip preemption, reason: not starving: ready {ready}, waiting {waiting}, "
             "minAvailable {min_available}"),
        ),
        ("preempt_victim", 3, "Try to preempt Task <{victim}> for Task <{task}>"),
        ("preempted", 3, "Preempted <{preempted}> for Task <{task}> requested <{request}>."),
        ("preempt_failed", 3, "Preemptor <{task}> failed to preempt Task , err: {error}"),
        ("preempt_no_nodes", 3, "No nodes are eligible to preempt task {task}"),
        ("preemptees", 3, "all preemptees: {tasks}"),
        ("all_victims", 3, "allVictims: {tasks}"),
        (
            "preempt_enough", 3,
            "Pod {task} can be scheduled on node {node} after preempt {victim}, stop evicting more pods",
        ),
        ("preempt_no_candidate", 4, "Node <{node}> is no candidate for Task <{task}>: {error}"),
    ),
    "reclaim": (
        ("reclaim_started", 3, "There are <{jobs}> Jobs and <{queues}> Queues in total for scheduling."),
        ("reclaim_queue_added", 4, "Added Queue <{queue}> for Job <{job}>"),
        ("reclaim_job_invalid", 4, "Job <{job}> Queue <{queue}> skip reclaim, reason: {reason}, message {message}"),
        (
            "reclaim_not_starving", 4,
            ("Job <{job}> Queue <{queue}> skip reclaim, reason: not starving: ready {ready}, waiting {waiting}, "
             "minAvailable {min_available}"),
        ),
        ("reclaim_tasks", 3, "Considering reclaim for {tasks} tasks of job <{job}>."),
        ("reclaim_never", 3, "Task {task} cannot preempt (policy Never)"),
        ("reclaim_refused", 3, "Queue <{queue}> cannot reclaim for task <{name}>, skip"),
        ("no_reclaimees", 4, "No reclaimees on Node <{node}>."),
        ("reclaim_victim", 3, "Try to reclaim Task <{victim}> for Tasks <{task}>"),
        (
            "reclaimed", 3,
            ("Reclaimed <{reclaimed}> for task <{task}> requested <{request}>, and Node <{node}> availableResources "
             "<{available}>."),
        ),
    ),
    "gangpreempt": (
        (
            "gang_domain", 4,
            ("Considering HyperNode <{domain}> for Job <{job}>: need <{need}>, idle <{idle}>, bundles that may go "
             "<{gain}> of tasks {allowed}"),
        ),
        ("gang_evicts", 3, "Job <{job}> takes the room of tasks {victims} in HyperNode <{domain}>"),
    ),
    "gangreclaim": (
        ("gang_reclaim_refused", 3, "Queue <{queue}> cannot reclaim for job <{job}>, skip"),
    ),
    "shuffle": (
        ("shuffle_failed", "E", "Failed to evict Task <{task}>: {error}"),
        ("shuffle_victim", 3, "pod {name} from namespace {namespace} and job {job} will be evicted."),
    ),
    # --------------------------------------------------------------------------------------------------------- cache
    "cache": (
        ("pod_added", 3, "Added pod <{task}> into cache."),
        ("pod_deleted", 3, "Deleted pod <{task}> from cache."),
        ("pod_updated", 4, "Updated pod <{task}> in cache."),
        ("evicting", 3, "Evicting pod {task}, because of {reason}"),
        ("evict_pod_failed", "E", "Failed to evict pod <{task}>: {error}"),
        ("bind_ok", 3, "bind ok, latency {latency}"),
        ("bind_failed", "E", "Failed to bind pod <{task}> to node {node} : {error}"),
        ("resync_task", 2, "resyncTask task {name}"),
        ("condition_updated", 3, "Updating pod condition for {task} to ({type}=={status})"),
        ("nominated_node_updated", 3, "Updating pod nominatedNodeName for {task} from ({old_node}) to ({node})"),
        ("condition_kept", 4, "task unscheduleable {task}, message: {message}, skip by no condition update"),
        ("job_deleted", 3, "Job <{uid}:{job}> was deleted."),
        (
            "metrics_type_missing", 3,
            ("The metrics type is not set in the volcano scheduler configmap file. As a result, the CPU and memory "
             "load information of the node is not collected."),
        ),
        ("node_metrics_failed", "E", "Error getting node metrics: {error}"),
        ("node_out_of_sync", "E", '"Node out of sync" name="{node}" resources="{names}"'),
        ("handler_not_synced", "E", "{name} handler synchronization is not completed"),
    ),
}  # fmt: skip

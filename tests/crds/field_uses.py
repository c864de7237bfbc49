"""Which test executes what a field of our kinds means, and why nothing acts on the others.

Keys are paths; what is said of a field holds for everything inside of it that has no row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

JOBS = "tests/controllers/test_jobs.py"
JOB_PLUGINS = "tests/controllers/test_job_plugins.py"
POLICIES = "tests/controllers/test_policies.py"
OTHERS = "tests/controllers/test_others.py"
LAWS = "tests/controllers/test_laws.py"
ADMISSION = "tests/crds/test_admission.py"
LIVE = "tests/live/test_controlling.py"
FIFO = "tests/actions/test_fifo.py"
GANG = "tests/plugins/test_gang.py"
CAPACITY = "tests/plugins/test_capacity.py"
POLICY = "tests/acceptance/test_s3_policy.py"
SESSION = "tests/acceptance/test_s0_session.py"
NODE_GROUP = "tests/plugins/test_nodegroup.py"
TOPOLOGY = "tests/model/test_topology.py"

_PARTITIONS = f"{JOBS}::test_partitions_are_numbered_and_become_sub_groups"
_CHOOSING = f"{POLICIES}::test_choosing"
_LATER = f"{POLICIES}::test_an_action_is_put_off_and_done"
_RESTARTED = f"{JOBS}::test_a_restarted_job_waits_in_its_queue_again_and_gives_up_after_its_retries"
_CLAIMS = f"{JOBS}::test_a_job_with_its_own_claims"
_TIERS = f"{SESSION}::test_S0_12_soft_topologies_and_tier_names_become_tiers"
_TAKEN_DOWN = f"{JOBS}::test_a_job_is_taken_down_by_command"
_COUNTED = f"{LAWS}::test_whatever_happens_to_a_job"
_STANDS_FOR = f"{TOPOLOGY}::test_which_nodes_the_members_stand_for"
_MARKED = f"{SESSION}::test_S0_02_every_session_has_its_own_uid_and_marks_new_conditions_with_it"

USES: Mapping[str, Mapping[str, str]] = {
    "Job": {
        "spec": f"{LIVE}::test_jobs_run_and_complete",
        "spec.schedulerName": f"{JOBS}::test_pods_are_named_labelled_and_annotated_as_ever",
        "spec.minAvailable": f"{JOBS}::test_how_jobs_end",
        "spec.volumes": _CLAIMS,
        "spec.volumes.volumeClaimName": f"{JOBS}::test_a_job_waits_for_a_claim_that_it_names",
        "spec.tasks": f"{JOBS}::test_a_new_job_gets_a_pod_group_and_waits",
        "spec.tasks.replicas": f"{JOBS}::test_scaling_up_and_down",
        "spec.tasks.minAvailable": f"{JOBS}::test_how_jobs_end",
        "spec.tasks.template": f"{JOBS}::test_pods_are_named_labelled_and_annotated_as_ever",
        "spec.tasks.policies": _CHOOSING,
        "spec.tasks.policies.timeout": _LATER,
        "spec.tasks.topologyPolicy": f"{JOBS}::test_pods_are_named_labelled_and_annotated_as_ever",
        "spec.tasks.maxRetry": f"{POLICIES}::test_what_pods_tell",
        "spec.tasks.dependsOn": f"{JOBS}::test_tasks_wait_for_others",
        "spec.tasks.partitionPolicy": _PARTITIONS,
        "spec.tasks.partitionPolicy.totalPartitions": f"{ADMISSION}::test_every_rule",
        "spec.tasks.partitionPolicy.networkTopology.highestTierAllowed": f"{ADMISSION}::test_every_rule",
        "spec.tasks.partitionPolicy.networkTopology.highestTierName": f"{ADMISSION}::test_every_rule",
        "spec.policies": _CHOOSING,
        "spec.policies.timeout": _LATER,
        "spec.plugins": f"{JOB_PLUGINS}::test_the_plugin_env_tells_pods_their_number",
        "spec.queue": f"{ADMISSION}::test_every_rule",
        "spec.maxRetry": _RESTARTED,
        "spec.ttlSecondsAfterFinished": f"{OTHERS}::test_a_finished_job_goes_when_its_time_is_over",
        "spec.priorityClassName": f"{JOBS}::test_pods_are_named_labelled_and_annotated_as_ever",
        "spec.minSuccess": f"{JOBS}::test_how_jobs_end",
        "spec.networkTopology": f"{ADMISSION}::test_every_rule",
        "status": _COUNTED,
        "status.state.lastTransitionTime": f"{OTHERS}::test_a_finished_job_goes_when_its_time_is_over",
        "status.minAvailable": f"{JOBS}::test_a_new_job_gets_a_pod_group_and_waits",
        "status.taskStatusCount": f"{JOBS}::test_a_completed_job_keeps_its_finished_pods_and_counts_them",
        "status.terminating": _RESTARTED,
        "status.version": _TAKEN_DOWN,
        "status.retryCount": _RESTARTED,
        "status.runningDuration": f"{JOBS}::test_a_completed_job_keeps_its_finished_pods_and_counts_them",
        "status.controlledResources": f"{JOB_PLUGINS}::test_the_plugin_env_tells_pods_their_number",
        "status.conditions": f"{JOBS}::test_phases_are_remembered_each_once_the_newest_last",
    },
    "PodGroup": {
        "spec": f"{LIVE}::test_plain_pods_get_groups_and_run",
        "spec.minMember": f"{GANG}::test_valid",
        "spec.minTaskMember": f"{GANG}::test_valid",
        "spec.queue": f"{ADMISSION}::test_every_rule",
        "spec.priorityClassName": f"{POLICY}::test_S3_40_the_more_important_job_and_task_go_first",
        "spec.minResources": f"{POLICY}::test_S3_64_S3_65_the_minimum_must_fit_with_what_is_held_and_admitted",
        "spec.networkTopology": _TIERS,
        "spec.subGroupPolicy": f"{GANG}::test_sub_jobs_answer_for_themselves",
        "spec.subGroupPolicy.name": f"{ADMISSION}::test_every_rule",
        "spec.subGroupPolicy.networkTopology": _TIERS,
        "status": f"{LIVE}::test_plain_pods_get_groups_and_run",
        "status.phase": f"{JOBS}::test_a_new_job_gets_a_pod_group_and_waits",
        "status.conditions": f"{GANG}::test_condition",
        "status.conditions.transitionID": _MARKED,
    },
    "Queue": {
        "spec.dequeueStrategy": f"{FIFO}::test_a_job_that_waits_keeps_those_behind_it_waiting_in_its_own_queue",
        "spec": f"{OTHERS}::test_a_new_queue_is_open_and_below_root",
        "spec.weight": f"{POLICY}::test_S3_62_shares_go_by_weight_until_requests_are_met",
        "spec.capability": f"{POLICY}::test_a_capability_limits_where_it_is_above_0",
        "spec.deserved": f"{CAPACITY}::test_amounts_of_a_queue_by_itself",
        "spec.guarantee": f"{POLICY}::test_S3_59_what_others_are_guaranteed_is_not_there",
        "spec.reclaimable": f"{CAPACITY}::test_which_queues_give_and_which_take",
        "spec.parent": f"{OTHERS}::test_closing_and_opening_go_down_the_hierarchy",
        "spec.priority": f"{POLICY}::test_S3_63_priority_of_the_queue_goes_before_its_share",
        "spec.affinity": f"{NODE_GROUP}::test_where_a_queue_may_go",
        "spec.extendClusters": f"{JOBS}::test_jobs_of_queues_that_extend_to_other_clusters_are_marked",
        "status": f"{OTHERS}::test_states_of_queues",
        "status.allocated": f"{SESSION}::test_S0_22_what_queues_hold_is_written_at_the_close",
    },
    "HyperNode": {
        "spec": _STANDS_FOR,
        "spec.tierName": _TIERS,
        "status": f"{OTHERS}::test_members_of_hypernodes_are_counted",
    },
    "Command": {
        "action": _TAKEN_DOWN,
        "target": _TAKEN_DOWN,
    },
}
"""Kind -> path -> test."""

_METRICS = "Volcano does not write it either: figures of queues are metrics"

ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "Job": {
        "spec.runningEstimate": "kept for people; Volcano does not act on it either",
        "status.state.reason": "kept; nothing writes it",
        "status.state.message": "kept; nothing writes it",
    },
    "PodGroup": {},
    "Queue": {
        "spec.type": "a word for people",
        "spec.extendClusters.name": "jobs are marked for forwarding; forwarding them is another program's",
        "spec.extendClusters.weight": "as above",
        "spec.extendClusters.capacity": "as above",
        "status.pending": _METRICS,
        "status.running": _METRICS,
        "status.unknown": _METRICS,
        "status.inqueue": _METRICS,
        "status.completed": _METRICS,
        "status.reservation": "kept; nothing writes it",
    },
    "HyperNode": {
        "status.conditions": "kept; nothing writes it",
    },
    "Command": {
        "reason": "a word for people",
        "message": "a sentence for people",
    },
}
"""Kind -> path -> why nothing acts on it."""

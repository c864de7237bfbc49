"""Which lines two cycles of a busy cluster tell: a line removed or added in the code changes the table."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.narration.observe import Counting
from stromboli.testing.builders import Manifest, hyper_node, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, conf


def jobs(name: str, pods: int, of: str, cpu: int, on: int = -1, least: int = 0, **spec: Any) -> list[Manifest]:
    """A job; where it runs its pods lie on one node after the other, ``on`` the first of them."""
    runs = on >= 0
    group = pod_group(name, queue=of, min_member=least or pods, phase="Running" if runs else "Pending", **spec)
    places = [f"n{(on + i) % 4}" if runs else "" for i in range(pods)]
    return [group, *(pod(f"{name}-{i}", group=name, cpu=cpu, memory="1Gi", on=each) for i, each in enumerate(places))]


def cluster() -> list[Manifest]:
    """Two queues on four nodes: one runs too much, the other waits with gangs of all sizes."""
    classes: list[Manifest] = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("high", 10), ("low", 1))
    ]
    return [
        *classes, *(node(f"n{i}", cpu=4, memory="8Gi") for i in range(4)), queue("a", weight=1), queue("b", weight=3),
        *jobs("run", 4, "a", 2, on=0, least=1, priorityClassName="low"), *jobs("more", 4, "a", 1, on=1, least=1),
        *jobs("first", 3, "a", 1, priorityClassName="high"), *jobs("big", 4, "b", 3), *jobs("huge", 2, "b", 9),
        *jobs("free", 2, "b", 0), *jobs("lone", 1, "b", 1, least=2), *jobs("late", 1, "gone", 1),
    ]  # fmt: skip


ALWAYS = """
    action_entered action_left after_allocated allocate_job allocate_job_added allocate_job_invalid
    allocate_operation allocate_started allocating batch_total_score binding committing condition_kept
    considering_job considering_resources cycle_ended cycle_started discarding drf_allocated drf_total
    enqueue_started job_added job_priority job_queue_missing metric.e2e_job metric.job_retry_counts
    metric.job_share metric.queue_figures metric.task_latency metric.unschedule_job_count
    metric.unschedule_task_count node_filtered nodes_for_job pdb_entered pdb_left plan.committed plugin_score
    predicate_allocate predicate_allocated predicate_skipped predicates_failed preempt_job_invalid
    preempt_not_starving queue_added queue_attributes queue_attributes_added queue_event_allocated
    queue_status_kept queue_sums queue_without_jobs reclaim_job_invalid reclaim_not_starving reclaim_queue_added
    scores session_closed session_opened snapshot_taken strategy_score sub_job_ready total_guarantee
    total_resource total_score
"""
SCENES = {
    ("enqueue, allocate, backfill, preempt, reclaim", False): """
        considering_node metric.pipelined_tasks metric.preemption_attempt metric.preemption_victims
        no_preemptor_task no_preemptors no_victims overcommit_entered overcommit_left preempt_failed preempted
        proportion_refused queue_deserved queue_met_capability queue_overused_task queue_weight reclaim_refused
        reclaim_started reclaim_tasks remaining remaining_exhausted spared
    """,
    ("enqueue, allocate, backfill, preempt, reclaim", True): """
        after_pipelined after_unpipelined considering_node drf_deallocated drf_refused drf_victims evict_operation
        gang_refused gang_victims metric.preemption_attempt metric.preemption_victims no_preemptor_task
        no_preemptors no_reclaimees no_victims overcommit_entered overcommit_left pipeline_operation
        predicate_deallocate predicate_deallocated preempt_failed preempt_victim preempted priority_refused_job
        priority_victims proportion_refused proportion_victims queue_deserved queue_event_deallocated
        queue_met_capability queue_overused_task queue_weight reclaim_refused reclaim_started reclaim_tasks
        reclaim_victim reclaimed remaining remaining_exhausted spared
    """,
    ("enqueue, allocate, backfill, gangpreempt, gangreclaim", False): """
        capacity_above_capability capacity_above_deserved gang_domain gang_reclaim_refused metric.pipelined_tasks
    """,
    ("enqueue, allocate, backfill, gangpreempt, gangreclaim", True): """
        capacity_above_capability capacity_above_deserved gang_domain gang_reclaim_refused
    """,
    ("enqueue, allocate, shuffle, preempt, reclaim, backfill", False): """
        allocate_topology_job cdp_opened complaint considering_node job_in_hyper_node metric.pipelined_tasks
        metric.preemption_attempt metric.preemption_victims no_preemptor_task no_preemptors no_victims
        preempt_failed preempted proportion_refused queue_deserved queue_met_capability queue_overused_task
        queue_weight reclaim_refused reclaim_started reclaim_tasks remaining remaining_exhausted
        rescheduling_early rescheduling_entered rescheduling_left sla_entered sla_global_time sla_left spared
        sub_job_in_hyper_node tdm_entered tdm_left usage_entered usage_figures usage_filter_stale usage_left
        usage_score_stale
    """,
    ("enqueue, allocate, shuffle, preempt, reclaim, backfill", True): """
        after_pipelined after_unpipelined allocate_topology_job cdp_opened cdp_victims complaint considering_node
        drf_deallocated drf_refused drf_victims evict_operation gang_victims job_in_hyper_node
        metric.preemption_attempt metric.preemption_victims no_preemptor_task no_preemptors no_reclaimees
        no_victims pipeline_operation predicate_deallocate predicate_deallocated preempt_failed preempt_victim
        preempted priority_refused_job priority_victims proportion_refused queue_deserved queue_event_deallocated
        queue_met_capability queue_overused_task queue_weight reclaim_refused reclaim_started reclaim_tasks
        reclaim_victim reclaimed remaining remaining_exhausted rescheduling_early rescheduling_entered
        rescheduling_left sla_entered sla_global_time sla_left spared sub_job_in_hyper_node tdm_entered tdm_left
        tdm_next tdm_victims usage_entered usage_figures usage_filter_stale usage_left usage_score_stale
    """,
}


MORE = """[
    {name: sla, arguments: {sla-waiting-time: 1s}}, {name: cdp, arguments: {cdp.cooldown-time: 1h}}, {name: tdm},
    {name: task-topology}, {name: usage}, {name: network-topology-aware}, {name: numa-aware}, {name: rescheduling}
]"""


def tiers(actions: str) -> tuple[str, ...]:
    """The plugins that are asked besides the actions."""
    first = "priority gang conformance pdb"
    if "shuffle" in actions:
        return first, MORE, "drf predicates nodeorder proportion"
    return first, f"drf predicates nodeorder {'capacity' if 'gang' in actions else 'proportion overcommit binpack'}"


@pytest.mark.parametrize(("actions", "compat"), SCENES)
def test_what_two_cycles_tell(actions: str, compat: bool) -> None:
    objects, told = cluster(), Counting()
    if "shuffle" in actions:
        racks = [hyper_node("r0", 1, "n0", "n1"), hyper_node("r1", 1, "n2", "n3")]
        close = {"mode": "hard", "highestTierAllowed": 1}
        objects += [*racks, *jobs("close", 2, "b", 1, networkTopology=close)]
    bench = Bench(objects, conf(*tiers(actions), actions=actions), compat=compat)
    for _ in range(2):
        bench.cycle(told)
    assert set(told.counts) == {*ALWAYS.split(), *SCENES[actions, compat].split()}

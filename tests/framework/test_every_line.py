"""The code writes every line of the catalogue: the rules run, and their lines are collected."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from stromboli.narration.catalogue import LINES

PROJECT = Path(__file__).parents[2]

SCENARIOS = (
    *(f"acceptance/test_{name}.py" for name in ("s0_conf", "s0_placing", "s0_session", "s2_preempt", "s2_search")),
    *(f"acceptance/test_{name}.py" for name in ("s3_loads", "s3_nodes", "s3_policy", "s4_reservations")),
    *(f"actions/test_{name}.py" for name in ("gang_actions", "gates", "held_room", "idle_room", "patience", "shuffle")),
    *(f"plugins/test_{name}.py" for name in ("capacity", "cdp", "network_topology_aware", "rescheduling", "tdm")),
    *(f"live/test_{name}.py" for name in ("binds", "seldom_told")),
    "plugins/task_topology/test_task_topology.py",
    "docs/test_eviction_page.py",
    "framework/test_seldom_told.py",
    "integrations/test_extender.py::test_verbs_and_their_failures",
    "journal/test_record.py::test_what_cannot_be_recorded_ends_the_record_and_not_the_cycle",
    "live/test_controlling.py::test_a_job_that_cannot_be_served_is_terminated_in_the_end",
    "live/test_controlling.py::test_a_kind_that_the_server_has_only_later_is_followed_from_then_on",
    "live/test_controlling.py::test_jobs_run_and_complete",
    "live/test_outside.py::test_a_plan_without_such_questions_is_replayable_on_a_live_cluster",
    "live/test_outside.py::test_a_refused_kind_is_asked_for_again_after_a_while_and_told_once",
    "live/test_proofs.py::test_a_pod_made_again_under_the_name_does_not_inherit_one",
    "live/test_proofs.py::test_the_key_is_made_at_the_first_start_and_shared",
    "live/test_serve.py::test_a_changed_file_counts_and_a_bad_one_does_not",
    "live/test_serve.py::test_a_stop_waits_for_no_server_that_is_not_there",
    "live/test_service.py::test_what_a_signal_asks_for_may_fail_and_ends_nothing",
    "live/test_troubles.py::test_a_bind_beyond_what_can_be_counted_leaves_the_pod_as_it_was",
    "live/test_troubles.py::test_a_job_that_cannot_be_counted_is_left_out_by_name_until_it_can",
    "live/test_troubles.py::test_a_state_that_cannot_be_counted_is_rebuilt_and_scheduling_goes_on",
    "live/test_troubles.py::test_an_audit_tells_what_it_cannot_compare_or_repair_and_does_the_rest",
    "live/writing/test_pool.py::test_what_fails_again_as_its_failure_is_dealt_with_is_told_and_all_other_work_is_done",
    "live/test_troubles.py::test_failed_duties_are_tried_again_and_each_kind_of_failure_shows_one_traceback",
    "live/test_troubles.py::test_an_unexpected_failure_is_told_and_everything_else_goes_on[loads of nodes]",
    "live/test_up.py::test_a_part_that_dies_ends_the_cluster_and_is_told",
    "live/webhooks/test_troubles.py",
    "live/webhooks/test_reviews.py::test_what_cert_manager_injects_stays_and_what_is_missing_is_told_once",
    "live/webhooks/test_reviews.py::test_a_certificate_is_replaced_while_reviews_go_on",
    "live/webhooks/test_reviews.py::test_a_secret_that_cannot_be_used_is_restored_without_notice",
    "migration/test_shadow.py",
    "live/test_executor.py::test_an_eviction_that_is_refused_leaves_the_pod_as_it_was",
)
"""Tests that run the rules, by path in tests/.  Some of them fail here, those of steps that a loud log leaves out."""

NOT_COLLECTED: Mapping[str, str] = {
    "log_lines_lost": "the log prints it by itself, about lines that it could not write; tests/metrics/test_logs.py",
}
"""Lines that the scenarios do not tell, with the reason."""


@pytest.mark.slow
def test_every_line_of_the_catalogue_is_told_by_the_code(tmp_path: Path) -> None:
    found = tmp_path / "told.json"
    plugin = ["-p", "tests.support.told_lines", f"--told-lines={found}", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", *plugin, *(f"tests/{path}" for path in SCENARIOS)]
    run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert run.returncode in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), run.stdout + run.stderr
    keys = json.loads(found.read_text())
    assert keys["unknown"] == []
    assert set(LINES) - set(keys["told"]) == set(NOT_COLLECTED)

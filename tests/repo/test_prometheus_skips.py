"""A story without Prometheus is skipped where there is no network, and fails where apt-get says anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.monitoring.prometheus import told
from tests.support.skips import matches, parse_rule

LIST = Path(__file__).parents[1] / "allowed_skips.txt"


@pytest.mark.parametrize(
    ("problem", "is_allowed"),
    [
        ("E: Failed to fetch x  Temporary failure resolving 'a'", True),
        ("E: Failed to fetch x  Could not connect to a:80 (1.2.3.4). - connect (111: Connection refused)", True),
        ("('apt-get', 'update') has not ended in 300 s", True),
        ("E: Unable to locate package promethoys", False),
        ("E: Can't select candidate version from package prometheus as it has no candidate", False),
    ],
)
def test_only_a_missing_network_is_a_reason(problem: str, is_allowed: bool) -> None:
    rules = [parse_rule(line) for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    test = "e2e/monitoring/test_alerts.py::test_the_rules_are_well_formed"
    assert any(matches(rule.test, test) and matches(rule.reason, told(problem)) for rule in rules) is is_allowed

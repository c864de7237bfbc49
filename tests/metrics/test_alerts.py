"""Alerts name metrics that are shown and log lines that are written; e2e/monitoring tests whether they fire."""

from __future__ import annotations

import re

import pytest

from stromboli.live.process.control_flags import CONTROL_FLAGS
from stromboli.metrics.boards.alerts import ALERTS, Alert, groups, page
from stromboli.narration.catalogue import LINES
from tests.metrics.shown import shown

NAMES = re.compile(r"\b(?:volcano|stromboli)_[a-z0-9_]+")
KEYS = re.compile(r"`([a-z]+(?:_[a-z]+)+)`")


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_its_metrics_are_shown(alert: Alert) -> None:
    asked = set(NAMES.findall(alert.expr))
    assert asked
    assert asked <= shown()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_the_log_lines_that_it_names_are_written(alert: Alert) -> None:
    assert set(KEYS.findall(alert.action)) <= set(LINES)


def test_programs_that_are_not_scraped_have_no_rules() -> None:
    [(of_all)], [(of_one)] = groups(), groups(["scheduler"])
    silent = {
        "StromboliControllersSilent",
        "StromboliWebhooksFail",
        "StromboliWebhooksRefuseMuch",
        "StromboliWebhookCertificateEnds",
        "StromboliWebhookCertificateUnknown",
    }
    assert {one["alert"] for one in of_all["rules"]} - {one["alert"] for one in of_one["rules"]} == silent  # type: ignore[attr-defined]


def test_the_page_leaves_no_template() -> None:
    assert "{{" not in page()


def test_the_port_that_it_names_is_the_controllers() -> None:
    """The chart's Service leads to the flag's default."""
    (alert,) = (alert for alert in ALERTS if alert.name == "StromboliControllersSilent")
    address = next(flag.default for flag in CONTROL_FLAGS if flag.name == "listen-address")
    assert f"their port {address.lstrip(':')}." in alert.action

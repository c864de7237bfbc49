"""What docs/scheduled-jobs.md shows may be stored, and its numbers are those of the source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli.api.kinds import KINDS
from stromboli.controllers.cron_jobs.due import MANY
from stromboli.controllers.job_flows.probes import MOST_PODS, MOST_TARGETS, PERIOD
from stromboli.crds import admission
from stromboli.crds.admission.cron_jobs import LONGEST_NAME
from stromboli.crds.admission.job_flows import MOST_FLOWS
from stromboli.live.controllers.prober import AT_ONCE, PATIENCE
from stromboli.model.values.cron import parse_schedule

PAGE = (Path(__file__).parents[2] / "docs" / "scheduled-jobs.md").read_text(encoding="utf-8")
OBJECTS: list[Any] = [
    found
    for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    for found in yaml.load_all(text, yaml.CSafeLoader)
]


def test_all_kinds_are_shown() -> None:
    assert {found["kind"] for found in OBJECTS} == {"CronJob", "JobTemplate", "JobFlow"}


@pytest.mark.parametrize("found", OBJECTS, ids=lambda found: f"{found['kind']}-{found['metadata']['name']}")
def test_what_is_shown_may_be_stored(found: Any) -> None:
    assert admission.validate(KINDS[found["kind"]].resource, found, None, admission.Objects({})) == []


@pytest.mark.parametrize("text", re.findall(r"`(@[a-z]+(?: \w+)?)`", PAGE))
def test_descriptors_can_be_read(text: str) -> None:
    assert parse_schedule(text).following(0)


def test_numbers() -> None:
    words = " ".join(PAGE.split())
    assert (MANY, PERIOD) == (100, 5.0)
    for text in (
        f"names of more than {LONGEST_NAME} characters", f"more than {MOST_FLOWS} flows", "every 5 seconds",
        f"At most {MOST_PODS} pods of a task and {MOST_TARGETS} addresses",
        f"{PATIENCE:.0f} seconds, {AT_ONCE} at once",
    ):  # fmt: skip
        assert text in words, text

"""The table of log lines holds the reference's texts, and fields are shown as they look there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.resources.resource import Resource
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task
from stromboli.narration import catalogue_core, catalogue_live, catalogue_plugins
from stromboli.narration.catalogue import LINES, METRIC_KEYS, WORK_KEYS, Line, generate_page, shown
from stromboli.narration.catalogue_dropped import DROPPED

SPEC = Path(__file__).parents[2] / ".." / "shared" / "spec" / "logs.md"
"""The list that the table was made from; beside the project only while it is worked on."""

OWN = {
    *("complaint", "inconsistency", "action_failed", "plugin_failed", "unpipeline_operation"),
    *("spared", "preempt_no_candidate", "gang_domain", "gang_evicts", "eviction_postponed", "eviction_not_sought"),
    "idle_room_left",
    *(key for rows in catalogue_live.ROWS.values() for key, _, _ in rows),
}
"""Lines that the reference does not have."""

UNLISTED = {
    *("capacity_spared_guarantee", "capacity_spared_deserved", "capacity_spared_family", "queue_faulty"),
    *("tdm_entered", "tdm_left", "tdm_next", "tdm_victims", "tdm_budget"),
    *("pdb_left", "cdp_opened", "cdp_invalid", "hyper_node_gradient_failed", "task_topology_invalid"),
    "extender_failed",
}
"""Lines of plugins that the list leaves out: its column of plugins names the important ones."""

EXPECTED = {
    "scheduler_started": (2, "Scheduler completes Initialization and start to run"),
    "config_loaded": (2, "Successfully loaded Scheduler conf as follows:\n{}"),
    "session_opened": (3, "Open Session {} with <{}> Job and <{}> Queues. HyperNodesReadyToSchedule: {}"),
    "snapshot_taken": (3, '"SnapShot for scheduling" jobNum="{}" QueueNum="{}" NodeNum="{}"'),
    "action_entered": (5, "Enter {} ..."),
    "queue_overused": (3, "Queue <{}> is overused, ignore it."),
    "no_preemptors": (3, "No preemptors in Queue <{}>, break."),
    "binding": (3, "Binding Task <{}> to node <{}>"),
    "after_allocated": (3, "After allocated Task <{}> to Node <{}>: idle <{}>, used <{}>, releasing <{}>"),
    "node_missing": ("E", "Failed to find Node <{}> in Session <{}> index when {}."),
    "preempt_failed": (3, "Preemptor <{}> failed to preempt Task , err: {}"),
    "strategy_score": (5, "Node: {}, task<{}> plugin {} weight {}, raw score: {}, weighted score: {}"),
    "total_score": (4, "Nodeorder Total Score for task<{}> on node {} is: {}"),
    "backfill_job_invalid": (4, "Job <{}> Queue <{}> skip backfill, reason: {}, message {}"),
    "usage_score_stale": (
        4,
        (
            "The period({}) is empty or the usage metrics data is not updated for more than {} minutes, "
            "Usage plugin score for task {} on node {} is 0, metrics time is {}. "
        ),
    ),
}

PRIORITY_REFUSED = (
    "[priority] Can not preempt task <{}> because preemptee {} has greater or equal {} priority ({}) "
    "than preemptor ({})"
)
EXPANDED = {
    "Successfully loaded Scheduler conf as follows:": {"config_loaded"},
    ".. subJob": {"hyper_node_removed_sub_job"},
    "After unpipelined": {"after_unpipelined"},
    "After allocated": {"after_allocated"},
    "Failed to find Node ..": {"node_missing"},
    "resources <[names]> are not sufficient to do operation: <{}> sub <{}>": {"resources_insufficient"},
    "failed in backfill for:": {"backfill_pre_predicate_failed"},
    "skip reclaim": {"reclaim_not_starving"},
    ".. skip backfill ..": {"backfill_job_invalid"},
    "DeallocateFunc": {"drf_deallocated", "queue_event_deallocated"},
    "[proportion] ..": {"queue_event_allocated"},
    "[capacity] ..": {"queue_event_allocated"},
    "; Candidate <{}>: resource request <{}>": {"proportion_refused_simulated"},
    ".., is not open state, reject job <{}>.": {"queue_closed_enqueue"},
    ".. below the threshold": {"utilization_all_below"},
    ".. below the target threshold": {"utilization_all_below_target"},
    "Node {} mem usage ..": {"usage_memory_exceeded"},
    "node:{}, cpu usage:{}, mem usage:{}, metrics time is {}": {"usage_figures"},
    ".. Usage plugin score for task {} on node {} is 0, ..": {"usage_score_stale"},
    ".. for job <{}>, skip": {"gang_reclaim_refused"},
    "Job <{}> Queue <{}> skip allocate, reason: {}}": {"allocate_job_skipped", "allocate_job_invalid"},
    PRIORITY_REFUSED: {
        "priority_refused_job",
        "priority_refused_task",
    },
}
"""What the list writes in short, and the lines that stand for it."""

OTHER_WORDS = {
    "Proportion AllocateFunc",
    "Proportion EvictFunc",
    "Queue <{}>: deserved <..",
    ".. allocate to NOT EXIST node [..]",
    ".. {} Priority Failed because of Error",
}
"""Wordings of old releases that the list mentions beside the present one."""


def anonymous(text: str) -> str:
    """The text with its placeholders unnamed."""
    return re.sub(r"\{[^}]*\}", "{}", text)


MINE: dict[str, list[Line]] = {}
for each in LINES.values():
    MINE.setdefault(anonymous(each.message), []).append(each)


NOT_PRINTED = {anonymous(text).replace("\n", "") for text, _ in DROPPED.values()} | {
    anonymous(match[1]) for text, _ in DROPPED.values() if (match := re.match('"([^"]*)"', text))
}


def listed() -> Iterator[tuple[str, str]]:
    """Level and anonymous text of each line in the list; a level within a cell counts for the rest of the cell."""
    for row in SPEC.read_text().split("\n## 2.")[1].splitlines():
        if row.startswith("|") and not row.startswith(("| level", "|---")):
            level, texts = re.split(r"(?<!\\)\|", row)[1:3]
            for other, text in re.findall("(?:; ([0-9EWF]) )?`([^`]+)`", texts):
                level = other or level.strip().removesuffix(" (S)")
                yield level, anonymous(text)


def test_keys_are_unique_words() -> None:
    rows = [
        row
        for table in (catalogue_core.ROWS, catalogue_plugins.ROWS, catalogue_live.ROWS)
        for rows in table.values()
        for row in rows
    ]
    assert len(rows) == len(LINES)
    assert all(re.fullmatch("[a-z][a-z_]*", key) for key in LINES)
    assert all(re.fullmatch(r"metric\.[a-z0-9_]+", key) for key in METRIC_KEYS)


@pytest.mark.parametrize("key", EXPECTED)
def test_texts_and_levels(key: str) -> None:
    line = LINES[key]
    assert (line.level, anonymous(line.text)) == EXPECTED[key]


@pytest.mark.parametrize("key", LINES)
def test_lines_are_well_formed(key: str) -> None:
    line = LINES[key]
    assert line.level in {0, 2, 3, 4, 5, "E", "W", "F"}
    assert len(line.literals) == len(line.fields) + 1
    assert "{" not in "".join(line.literals)
    assert {*line.names.values()}.isdisjoint({"ts", "severity", "v", "component", "key", "msg"})
    assert len(set(line.names.values())) == len(set(line.fields))
    if line.structured:
        assert "{" not in line.message
        assert [f'{name}="{{{field}}}"' for field, name in line.names.items()] == re.findall(
            r'\w+="\{\w+\}"', line.text
        )


def test_every_listed_text_is_a_line() -> None:
    if SPEC.is_file():
        missing = [
            text
            for _, text in listed()
            if text not in MINE and text not in EXPANDED and text not in OTHER_WORDS and text not in NOT_PRINTED
        ]
        assert missing == []
        assert {key for keys in EXPANDED.values() for key in keys} <= set(LINES)


def test_every_line_is_listed() -> None:
    if SPEC.is_file():
        texts = {text for _, text in listed()}
        expanded = {key for keys in EXPANDED.values() for key in keys}
        own = {line.key for text, lines in MINE.items() if text not in texts for line in lines}
        assert own - expanded == OWN | UNLISTED


def test_lines_have_a_listed_level() -> None:
    if SPEC.is_file():
        levels: dict[str, list[str]] = {}
        for level, text in listed():
            levels.setdefault(text, []).append(level)
        clear = {text: found[0].split(" / ") for text, found in levels.items() if text in MINE and len(set(found)) == 1}
        assert len(clear) > 150
        assert [text for text, found in clear.items() if not any(str(line.level) in found for line in MINE[text])] == []


TASK = Task(uid="u", namespace="ns", name="a-0", template=None, status=TaskStatus.Pending, key="ns/a-0")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b", "a b"),
        (3, "3"),
        (True, "true"),
        (None, "<nil>"),
        (0.5, "0.5"),
        (2.0, "2"),
        (float("inf"), "+Inf"),
        (np.float64(1.25), "1.25"),
        (np.int64(7), "7"),
        (TASK, "ns/a-0"),
        (Job("ns/a"), "ns/a"),
        (Queue("q"), "q"),
        (Resource(1000, 1024, {"pods": 1}), "cpu 1000.00, memory 1024.00, pods 1.00"),
        ([TASK, "b"], "[ns/a-0 b]"),
        ((), "[]"),
        ({"b", "a"}, "[a b]"),
        ({"n2": 1.0, "n1": 0.25}, "map[n1:0.25 n2:1]"),
        (ValueError("no node"), "no node"),
    ],
)
def test_fields_are_shown_as_the_reference_shows_them(value: object, text: str) -> None:
    assert shown(value) == text


def test_the_page_names_every_line() -> None:
    page = generate_page()
    assert all(f"`{key}`" in page for key in LINES)
    assert all(f"\n## {line.component}\n" in page for line in LINES.values())
    assert "| 3 | `queue_overused` | `Queue <{queue}> is overused, ignore it.` |" in page


def test_lines_that_are_not_printed_say_why_and_are_no_lines() -> None:
    page = generate_page()
    assert DROPPED.keys().isdisjoint(LINES)
    assert all(text and why and why in page for text, why in DROPPED.values())


SOURCE = Path(__file__).parents[2] / "src" / "stromboli"


def test_the_core_tells_only_what_the_catalogue_names() -> None:
    asking = re.compile(r'\b(?:tells|teller)\((?:\w+, )?"([\w.]+)"')
    asked = {key for path in SOURCE.rglob("*.py") for key in asking.findall(path.read_text())}
    assert asked
    assert asked - set(LINES) - set(METRIC_KEYS) - set(WORK_KEYS) == set()

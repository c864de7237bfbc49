"""The page about queues: every number in its tables is what the scheduler works out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stromboli.api.scheduling import Guarantee
from stromboli.fairness.quota import flat, tree
from stromboli.model.queue import Queue, QueueSpec
from stromboli.model.resources.resource import INFINITE, Resource
from stromboli.testing.builders import node, queue
from tests.plugins.factored_queues import asking, entering, factored, text
from tests.plugins.queue_jobs import evicted, job, many

PAGE = (Path(__file__).parents[2] / "docs" / "queues.md").read_text(encoding="utf-8")


def tables():
    """The rows of every table, as mappings of column to cell, by the columns."""
    found = {}
    for block in re.findall(r"(?:^\|.*\|\n)+", PAGE, re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in block.splitlines()]
        found[tuple(head)] = [dict(zip(head, row, strict=True)) for row in rows]
    return found


TABLES = tables()
SIDE = TABLES["queue", "guarantee", "deserved", "capability", "may hold", "deserves"]
TREE = TABLES["queue", "parent", "guarantee", "capability", "may hold"]
BACK = TABLES["queue", "deserved", "holds before", "holds after"]
ADMITS = TABLES["deserved", "factor", "max-queue-overcommit-factor", "capability", "admits up to"]


def written(row):
    def amounts(name):
        return {"cpu": row[name]} if row.get(name) else None

    spec = QueueSpec(
        parent=row.get("parent", ""),
        capability=amounts("capability"),
        deserved=amounts("deserved"),
        guarantee=Guarantee(resource=amounts("guarantee")),
    )
    return Queue(row["queue"], spec=spec)


def cores(resource):
    return "unlimited" if resource.milli_cpu >= INFINITE else f"{resource.milli_cpu / 1000:g}"


def test_side_by_side():
    quotas = flat([written(row) for row in SIDE], Resource(30_000, 0))
    for row in SIDE:
        quota = quotas[row["queue"]]
        assert (cores(quota.real_capability), cores(quota.deserved)) == (row["may hold"], row["deserves"])


def test_tree():
    quotas = tree([Queue("root"), *(written(row) for row in TREE)], Resource(30_000, 0))
    assert {row["queue"]: row["may hold"] for row in TREE} == {
        row["queue"]: cores(quotas[row["queue"]].real_capability) for row in TREE
    }


def test_taking_back():
    first, second = BACK
    queues = [queue(row["queue"], deserved={"cpu": row["deserved"]}) for row in BACK]
    asks = [each for i in range(8) for each in job(f"new-{i}", second["queue"])]
    held = int(first["holds before"])
    gone = len(evicted(node("n1", cpu=held), *queues, *many(held, first["queue"]), *asks))
    assert (str(held - gone), str(gone)) == (first["holds after"], second["holds after"])


@pytest.mark.parametrize("row", ADMITS)
def test_factors(row):
    capability = {"capability": {"cpu": row["capability"]}} if row["capability"] else {}
    q = factored("q", row["factor"], deserved={"cpu": row["deserved"]}, **capability)
    most = int(row["admits up to"])
    setup = text(row["max-queue-overcommit-factor"])
    admitted = [entering([q, asking("g", "q", cpu)], setup)[0] for cpu in (most, most + 1)]
    assert admitted == [["g"], []]

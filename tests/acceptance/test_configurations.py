"""Every configuration of the documents that asked for the scheduler is loaded as it stands there, and runs a cycle.

The files in configurations/ hold their lines as written, comments included; indentation that a document had lost is
restored, and an excerpt got the lines around it that make it a whole file.  Y7 is a table of parameters written out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stromboli.framework.config.effective import describe
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import GPU, Bench, binds

FOLDER = Path(__file__).parent / "configurations"
ACTIONS = 'actions: "enqueue, allocate, backfill"\n'
"""What excerpts leave out."""

GANG: list[Manifest] = [
    node("n1", cpu=4, resources={GPU: 1}), node("n2", cpu=4),
    pod_group("g", min_member=2, phase="Pending", annotations={"sla-waiting-time": "1h"}),
    pod("a", group="g"), pod("b", group="g"),
]  # fmt: skip


DEVICES = "devices are the plugin deviceshare's"
TOLD: dict[str, dict[str, str]] = {
    "Y1": {}, "Y2": {}, "Y3": {}, "Y4": {}, "Y6": {},
    "Y5": {
        "predicate.GPUSharingEnable": DEVICES, "predicate.GPUNumberEnable": DEVICES,
    },
    "Y7": {"topologyAwarePreemptWorkerNum": "nodes are tried in order, and more workers would find the same"},
}  # fmt: skip
"""What has no effect in each of them, and why: the log says so in every cycle of a bench."""


def text_of(name: str) -> str:
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return text if text.startswith("actions:") else ACTIONS + text


def written(text: str) -> set[str]:
    """The keys of switches and arguments in the lines of a configuration."""
    pairs = (line.strip().partition(": ") for line in text.splitlines())
    return {key for key, colon, _ in pairs if colon and key not in ("actions", "- name", "name")}


@pytest.mark.parametrize("name", TOLD)
def test_a_configuration_of_the_documents_runs_and_what_has_no_effect_is_told(name: str) -> None:
    """S0-40, S0-41, S2-28, S3-01, S3-18, S3-19, S3-20, S3-50."""
    bench = Bench(GANG, text_of(name))
    assert bench.config.complaints == ()
    lines = bench.logged(0)
    assert binds(bench.plan).keys() == {"a", "b"}
    assert bench.plan.inconsistencies == []
    assert len(lines) == len(TOLD[name])
    for key, why in TOLD[name].items():
        assert [line for line in lines if f"argument {key} of " in line and line.endswith(why)], key


@pytest.mark.parametrize("name", TOLD)
def test_everything_that_is_written_counts_as_it_is_written(name: str) -> None:
    text = text_of(name)
    bench = Bench(GANG, text)
    rows = [row for row in describe(bench.config, bench.registry) if row.origin.startswith("conf:")]
    keys = {row.origin.partition(" as ")[2] or row.name for row in rows}
    assert keys == written(text)
    assert {row.name for row in rows if "without effect" in row.origin} == set(TOLD[name])
    shown = {row.origin.partition(" as ")[2] or row.name: row.value for row in rows}
    for line in text.splitlines():
        key, colon, value = line.strip().partition(": ")
        if colon and key in shown:
            told = shown[key]
            wanted = value.partition(" #")[0].strip('"')
            assert (float(wanted) == told) if wanted.isdigit() else (wanted == str(told).removesuffix(".0").lower()), (
                key
            )

"""Acceptance rows S0: plugins are made as the configuration says."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.errors import ConfigError
from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.points import POINTS
from stromboli.framework.session.reference import ReferenceView
from stromboli.metrics.prometheus import MetricsObserver, new_registry
from stromboli.plugin import arg
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench, Workshop, binds, conf, loaded, task_of

GANG_OF_TWO: list[Manifest] = [
    node("n1", cpu=1), pod_group("g", min_member=2), pod("a", group="g"), pod("b", group="g"),
]  # fmt: skip
VICTIMS = [node("n1", cpu=9), pod_group("g", min_member=2), *(pod(f"r{i}", group="g", on="n1") for i in range(2)),
           pod("p", group="h")]  # fmt: skip
Y1 = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: priority}]
- plugins: [{name: drf}, {name: proportion}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
Y2 = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - {name: gang, enabledJobOrder: true, enabledJobReady: true, enabledJobPipelined: true, enabledPreemptable: true}
"""


def test_S0_15_builders_get_their_arguments_tier_by_tier_and_are_timed() -> None:
    seen: list[tuple[str, int]] = []

    def made(letter: str) -> type[Plugin]:
        class Made(Plugin):
            name = letter
            size = arg("size", int, 1)

            def on_session_open(self, session: ClusterView) -> None:
                seen.append((letter, self.size))

        return Made

    text = conf("[{name: a, arguments: {size: 7}}, {name: b}]", "[{name: c, arguments: {size: 9}}]")
    samples = new_registry()
    Bench(GANG_OF_TWO, text, *(made(letter) for letter in "abc")).cycle(MetricsObserver(samples))
    assert seen == [("a", 7), ("b", 1), ("c", 9)]

    def count(name: str, **labels: str) -> Any:
        return samples.get_sample_value(f"volcano_{name}_count", labels or None)

    assert count("open_session_duration_milliseconds") == 1
    assert count("e2e_scheduling_latency_milliseconds") == 1
    for letter in "abc":
        for phase in ("OnSessionOpen", "OnSessionClose"):
            assert count("plugin_scheduling_latency_milliseconds", plugin=letter, OnSession=phase) == 1


def test_S0_16_an_unknown_plugin_is_refused_with_place_and_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"conf:3: unknown plugin proporton; did you mean 'proportion'\?"):
        loaded(conf("proporton"), Workshop())


def test_S0_16_leniently_it_is_logged_and_skipped_and_the_others_work() -> None:
    bench = Bench([node("n1"), pod_group("g"), pod("p", group="g")])
    bench.config = loaded(conf("nosuch gang", "predicates"), bench.registry, lenient=True)
    assert "Failed to get plugin nosuch." in bench.logged(1)
    assert binds(bench.plan) == {"p": "n1"}


def test_S0_40_three_tiers_load_in_their_order_and_gang_is_asked_before_drf() -> None:
    with Bench(GANG_OF_TWO, Y1).open() as session:
        assert [[o.name for o in tier] for tier in ReferenceView(session).tiers] == [
            ["gang", "priority"], ["drf", "proportion"], ["predicates", "nodeorder"],
        ]  # fmt: skip
        assert list(ReferenceView(session).points["job_order"]) == ["gang", "priority", "drf"]


@pytest.mark.parametrize(("written", "victims"), [("true", []), ("false", ["r0"])])
def test_S0_41_the_other_spelling_of_a_switch_acts(written: str, victims: list[str]) -> None:
    text = Y2.replace("enabledPreemptable: true", f"enabledPreemptable: {written}") + "  - {name: conformance}"
    with Bench(VICTIMS, text).open() as session:
        found = session.ask.preemptable(task_of(session, "p"), [task_of(session, "r0")])
        assert [task.name for task in found] == victims
        assert ("gang" in ReferenceView(session).points["preemptable"]) == (written == "true")
        assert {"job_order", "job_ready", "job_pipelined"} <= {
            n for n, own in ReferenceView(session).points.items() if "gang" in own
        }


@pytest.mark.parametrize(
    ("switches", "asked"),
    [
        ("enableJobOrder: false, enabledJobOrder: true", False),
        ("enabledJobOrder: false, enableJobOrder: true", True),
        ("enabledJobOrder: false", False),
        ("enableJobOrder: false", False),
    ],
)
def test_S0_42_the_references_own_spelling_wins(switches: str, asked: bool) -> None:
    with Bench(GANG_OF_TWO, conf(f"[{{name: gang, {switches}}}]")).open() as session:
        assert ("gang" in ReferenceView(session).points["job_order"]) is asked


def test_S0_43_a_switch_that_is_not_written_is_on_and_one_off_leaves_the_others() -> None:
    bench = Bench(GANG_OF_TWO, conf("[{name: gang, enableJobOrder: false}]", "predicates"))
    with bench.open() as session:
        gang = {name for name, plugins in ReferenceView(session).points.items() if "gang" in plugins}
        assert "job_order" not in gang
        assert {"job_ready", "job_pipelined", "job_starving", "preemptable", "reclaimable"} <= gang
    plan = bench.cycle()
    assert plan.binds == []  # one of two fits: job_ready still holds the gang back
    assert sorted(update.reason for update in plan.pod_conditions) == ["Schedulable", "Unschedulable"]


def test_S0_43_hierarchy_and_cluster_order_are_off_unless_written() -> None:
    for text, on in (("[{name: drf}]", False), ("[{name: drf, enableHierarchy: true}]", True)):
        with Bench(GANG_OF_TWO, conf(text)).open() as session:
            assert session.config.hierarchy_enabled("drf") is on
            assert ReferenceView(session).tiers[0][0].enabled(POINTS["cluster_order"]) is False

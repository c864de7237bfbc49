"""Runs a scenario: loads its objects, runs its cycles, and says what was decided and what it cost."""

from __future__ import annotations

import gc
import resource
import time
from dataclasses import replace
from typing import Any

from stromboli.builtin import builtin_registry
from stromboli.cluster.events import Added
from stromboli.cluster.files.scenario import Scenario, decode_scenario
from stromboli.cluster.rim import ShardingSet, VolumesSet
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_actions
from stromboli.errors import ManifestError
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config, load_config
from stromboli.framework.config.gates import parse_gates, switched_on
from stromboli.framework.config.registry import Registry
from stromboli.framework.session.session import Session
from stromboli.model.objects.shard import HARD, SOFT
from stromboli.narration.observe import SILENT, Observer
from stromboli.sim.between import apply_change, apply_plan, leave_names, take, tentative_names
from stromboli.sim.collecting import no_collecting
from stromboli.sim.outcome import Json, close_figures, outcome, queue_figures

NOW = 1_760_000_000.0
"""The time at which scenarios run, in seconds since 1970, by default; their own times lie far from it."""


class Run:
    """One scenario being run.  ``problems`` are the objects that could not be used."""

    def __init__(
        self, scenario: Scenario, config: Config, registry: Registry, observer: Observer = SILENT, now: float = NOW
    ) -> None:
        self.scenario, self.config, self.registry, self.observer, self.now = scenario, config, registry, observer, now
        self.state = ClusterState()
        self.state.set_gates(config.gates)
        ignored = frozenset(scenario.options.ignored_provisioners)
        counted, named = (config.ways.asks(row) for row in ("attachable-volumes", "missing-claims"))
        VolumesSet(True, ignored, counted, named).make(self.state)
        self.problems: list[ManifestError] = []
        self.plans: list[Plan] = []
        self.figures: Json = {}
        self.shares: Json = {}
        self.tentative: dict[str, str] = {}
        self.load_cpu = 0.0
        self.cycle_cpu: list[float] = []
        self.cycle_wall: list[float] = []

    @no_collecting()
    def load(self) -> None:
        """Take all objects in."""
        start = time.process_time()
        self.problems += take(self.state, self.scenario.taken())
        options = self.scenario.options
        if options.sharding_mode in (HARD, SOFT):
            ShardingSet(options.sharding_mode, options.shard_name).make(self.state)
            self.state.apply(Added("NodeShard", options.shard))
        used = options.node_usage
        self.state.measured({name: sample.at(self.now) for name, sample in used.items()})
        self.load_cpu += time.process_time() - start

    def go(self) -> None:
        """Run all cycles, with what happens between them."""
        for cycle in range(1, self.scenario.cycles + 1):
            if cycle > 1:
                options = self.scenario.options
                apply_plan(self.state, self.plans[-1], options.bound_become, options.evicted_become)
                leave_names(self.state, self.plans[-1], self.tentative)
            for change in self.scenario.events:
                if change.before_cycle == cycle:
                    self.problems += apply_change(self.state, change)
            self._cycle()

    def again(self, config: Config) -> float:
        """CPU seconds of one cycle more, with another configuration, on the state as it is; it leaves nothing."""
        self.config = config
        self._cycle()
        self.plans.pop()
        self.cycle_wall.pop()
        return self.cycle_cpu.pop()

    @no_collecting()
    def _cycle(self) -> None:
        gc.collect()
        self.observer.started("cycle", "")
        cpu, wall = time.process_time(), time.perf_counter()
        snapshot = self.state.snapshot()
        with Session.open(snapshot, self.config, self.registry, self.now, 0, self.observer) as session:
            spent = self._look(session)
            run_actions(session)
            start = time.process_time()
            close_figures(session, self.figures)
            if self.config.ways.asks("tentative-names"):
                self.tentative = tentative_names(session)
            spent += time.process_time() - start
        self.observer.ended("cycle", "")  # a part of the cycle: the log writes out then what it has held back
        self.cycle_cpu.append(time.process_time() - cpu - spent)
        self.cycle_wall.append(time.perf_counter() - wall)
        self.plans.append(session.plan)

    def _look(self, session: Session) -> float:
        """Note the figures at open, for the answer; returns the CPU seconds that it took."""
        start = time.process_time()
        self.figures = queue_figures(session)
        drf = session.plugins.get("drf")
        if drf is not None:
            self.shares = {job.uid: drf.share(job) for job in session.jobs.peek()}  # type: ignore[attr-defined]
        return time.process_time() - start

    def answer(self) -> Json:
        """The line that answers the scenario."""
        found: dict[str, Any] = {"name": self.scenario.name}
        found["outcome"] = outcome(self.plans, self.state, self.figures, self.shares)
        troubles = [text for plan in self.plans for text in plan.inconsistencies]
        if troubles:
            found["outcome"]["errors"] = troubles
        if self.problems:
            found["problems"] = [str(problem) for problem in self.problems]
        if ignored := self.scenario.ignored:
            found["ignored"] = ignored
        several = self.scenario.cycles > 1
        found["timing"] = {
            "load_cpu_s": round(self.load_cpu, 4),
            "cycle_cpu_s": [round(s, 4) for s in self.cycle_cpu] if several else round(self.cycle_cpu[0], 4),
            "cycle_wall_s": [round(s, 4) for s in self.cycle_wall] if several else round(self.cycle_wall[0], 4),
            "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        }
        return found


def run_scenario(text: bytes | str, *, compat: bool = False, gates: str = "", observer: Observer = SILENT) -> Json:
    """Answer one scenario, with feature ``gates`` such as ``Name=true,Other=false``.

    Raises StromboliError when it cannot be read or its configuration is refused.
    """
    run = loaded(text, compat=compat, gates=gates, observer=observer)
    del text  # it may be larger than what is made of it
    run.go()
    return run.answer()


def loaded(text: bytes | str, *, compat: bool = False, gates: str = "", observer: Observer = SILENT) -> Run:
    """One scenario, read and loaded, no cycle run yet.  Raises as :func:`run_scenario`."""
    start = time.process_time()
    scenario = decode_scenario(text)
    registry = builtin_registry()
    config = load_config(
        scenario.conf,
        source=f"{scenario.name}: conf",
        lenient=compat,
        compat=compat,
        known_plugins=registry.plugin_names,
        known_actions=registry.action_names,
        allow_hdrf_with_proportion=scenario.options.allow_hdrf_with_proportion,
    )
    config = replace(config, features=switched_on(parse_gates(gates)), sampling=scenario.options.sampling)
    registry.resolve(config)
    run = Run(scenario, config, registry, observer)
    run.load_cpu = time.process_time() - start
    run.load()
    return run

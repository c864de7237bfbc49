"""Plans for a cluster read from files: one cycle or several, and why whatever waits does so."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from stromboli.cluster.complete import Grouping, ungrouped
from stromboli.cluster.files.reader import Progress
from stromboli.cluster.files.usage_file import usage_of
from stromboli.cluster.rim import ShardingSet
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_actions
from stromboli.errors import ConfigError
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.effective import check_arguments
from stromboli.framework.config.gates import parse_gates, switched_on
from stromboli.framework.config.registry import Registry
from stromboli.framework.session.admission import Vote, votes
from stromboli.framework.session.session import Session
from stromboli.narration.observe import SILENT, Observer, Several
from stromboli.plugins.network_topology_aware import NetworkTopologyAware
from stromboli.sim.between import apply_plan
from stromboli.sim.collecting import no_collecting
from stromboli.sim.explanation.notes import Hushed, Notes
from stromboli.sim.explanation.reasons import Cycle, Reason
from stromboli.sim.ignored import KEEPS_CLOSE, NUMA_AWARE, Heeded, why_no_groups
from stromboli.sim.loading import Loading
from stromboli.sim.outcome import Json, close_figures, outcome, queue_figures


class Settings(msgspec.Struct, frozen=True):
    """Which configuration to plan with.

    ``config`` is its file (empty: the built-in one), ``plugins`` a directory of plugins, ``seed`` draws among equal
    nodes where it is given, ``gates`` are feature gates, ``Name=true,Other=false``.
    """

    config: str = ""
    compat: bool = False
    lenient: bool = False
    plugins: str = ""
    seed: int | None = None
    gates: str = ""


def config_of(settings: Settings, registry: Registry) -> Config:
    """The configuration, plugins and actions that it names imported.  Raises ConfigError, PluginError and OSError."""
    config = registry.configured(settings.config, lenient=settings.lenient, compat=settings.compat)
    config = replace(config, features=switched_on(parse_gates(settings.gates)))
    return config if settings.seed is None else replace(config, tie_break="seeded")


def refuse_arguments(config: Config, registry: Registry) -> None:
    """Raise ConfigError for the first argument that is unknown or unusable."""
    for complaint in check_arguments(config, registry):
        if complaint.kind != "tolerated":
            raise ConfigError(complaint.text, file=config.source, line=complaint.line, nearest=complaint.nearest)


class Planning:
    """A cluster that is planned for: load it, run cycles, ask for the answer.

    ``now`` is in seconds since 1970.  With ``strict`` the first mistake in an object or argument is raised.
    ``grouping`` puts pods that are loaded into the gangs of their owners.
    """

    def __init__(
        self, config: Config, registry: Registry, *, now: float, seed: int = 0, strict: bool = False,
        observer: Observer = SILENT, grouping: Grouping = ungrouped,
    ) -> None:  # fmt: skip
        self.config, self.registry, self.now, self.seed = config, registry, now, seed
        self.observer = Hushed(observer)
        self.state = ClusterState()
        self.state.set_gates(config.gates)
        self.state.utc_offset = time.localtime(now).tm_gmtoff
        self.loading = Loading(self.state, strict=strict, grouping=grouping)
        self.plans: list[Plan] = []
        self.figures: Json = {}
        self.shares: Json = {}
        self._last: Cycle | None = None
        self.load_cpu = 0.0
        self.cycle_cpu: list[float] = []
        self.cycle_wall: list[float] = []

    def shard(self, mode: str, name: str) -> None:
        """Plan for the scheduler of the NodeShard ``name`` among those loaded; ``mode`` is none, hard or soft."""
        ShardingSet(mode, name).make(self.state)
        self.state.nodes.shards.announce()

    def measure(self, file: str) -> None:
        """Read loads of nodes from a file (see :mod:`stromboli.cluster.files.usage_file`).  Raises ManifestError,
        OSError.
        """
        self.state.measured(usage_of(Path(file).read_bytes(), self.now, file))

    def load(self, paths: Iterable[str | Path], progress: Progress | None = None) -> None:
        """Read files and directories, and add what controllers would.  Raises ManifestError when strict."""
        start = time.process_time()
        with no_collecting():
            self.loading.take(paths, progress)
            self.loading.complete()
        self.load_cpu = time.process_time() - start

    def run(self, cycles: int = 1) -> Cycle:
        """Run ``cycles`` cycles, what each has decided coming true before the next; the last one's record."""
        for number in range(cycles):
            if number:
                apply_plan(self.state, self.plans[-1])
            self._last = self.cycle()
        return self.last

    @property
    def last(self) -> Cycle:
        """The record of the last cycle.  Raises ValueError when none was run."""
        if self._last is None:
            raise ValueError("no cycle was run yet")
        return self._last

    def cycle(self) -> Cycle:
        """Run one cycle on the state as it stands, and keep its plan."""
        left_outside: dict[str, list[Vote]] = {}
        notes = Notes()
        observer = Several([notes, self.observer])
        cpu, wall = time.process_time(), time.perf_counter()
        observer.started("cycle", "")
        with no_collecting(), self._session(observer) as session:
            figures = queue_figures(session)
            self._note_shares(session)
            notes.then = lambda action: self._ask_again(session, action, left_outside)
            run_actions(session)
            close_figures(session, figures)
        observer.ended("cycle", "")
        self.cycle_cpu.append(time.process_time() - cpu)
        self.cycle_wall.append(time.perf_counter() - wall)
        self.plans.append(session.plan)
        self.figures = figures
        return Cycle(session, notes, left_outside, self.state)

    def _session(self, observer: Observer) -> Session:
        return Session.open(self.state.snapshot(), self.config, self.registry, self.now, self.seed, observer)

    def _note_shares(self, session: Session) -> None:
        drf = session.plugins.get("drf")
        if drf is not None:
            self.shares = {job.uid: drf.share(job) for job in session.jobs.peek()}  # type: ignore[attr-defined]

    def _ask_again(self, session: Session, action: str, found: dict[str, list[Vote]]) -> None:
        """Once enqueue is done, ask each plugin on its own about every job that was left outside."""
        if action != "enqueue":
            return
        self.observer.quiet = True
        for job in session.jobs.peek():
            if job.is_pending():
                found[job.uid] = votes(session, job)
        self.observer.quiet = False

    # ------------------------------------------------------------------ the answer

    def ignored(self) -> list[str]:
        """What the objects say or ask for in vain, after the last cycle."""
        session = self.last.session
        options = (option for option in session.config.plugins() if option.name == NetworkTopologyAware.name)
        no_groups = why_no_groups(next((option.arguments for option in options), None))
        heeded = Heeded(bool(session.hooks.answers.of(KEEPS_CLOSE)), NUMA_AWARE in session.plugins, no_groups)
        unfulfilled = self.loading.unfulfilled(heeded)
        return [*map(str, self.loading.ignored), *map(str, unfulfilled)]

    def reasons(self) -> dict[str, Reason]:
        """Why jobs wait after the last cycle."""
        return self.last.reasons()

    def answer(self, reasons: dict[str, Reason]) -> Json:
        """All of it as JSON: what ``scenario run`` answers, and reasons, what was added, problems and remarks."""
        found: Json = {"name": "plan", "outcome": outcome(self.plans, self.state, self.figures, self.shares)}
        if troubles := [text for plan in self.plans for text in plan.inconsistencies]:
            found["outcome"]["errors"] = troubles
        found["reasons"] = msgspec.to_builtins(reasons)
        found["added"] = list(self.loading.added)
        found["problems"] = [str(error) for error in self.loading.problems]
        found["remarks"] = [str(error) for error in self.loading.remarks]
        found["ignored"] = [*self.loading.kinds_ignored(), *self.ignored()]
        found["timing"] = self.timing()
        return found

    def timing(self) -> Json:
        """What it cost, in seconds and MiB."""
        single = len(self.cycle_cpu) == 1
        cpu, wall = ([round(s, 4) for s in times] for times in (self.cycle_cpu, self.cycle_wall))
        return {
            "load_cpu_s": round(self.load_cpu, 4),
            "cycle_cpu_s": cpu[0] if single else cpu,
            "cycle_wall_s": wall[0] if single else wall,
            "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        }

"""The report of a sweep: in short, tables with confidence, plots, differences of configurations, how to repeat it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from html import escape
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from stromboli.errors import StudyError
from stromboli.sim.simulation.unstarted import in_short
from stromboli.study.report import plots
from stromboli.study.report.figures_shown import HEADLINES, chosen, shown
from stromboli.study.report.statistics import Interval, interval, paired
from stromboli.study.tables import write_whole

if TYPE_CHECKING:
    from stromboli.study.sweeps.sweep import Result, Sweep

QUEUES: Final = 20
"""How many queues the table of queues has at most: those with the most jobs."""

OVER_TIME: Final = (("waiting", "Jobs waiting", "jobs"), ("fragmentation", "Fragmentation", "% of what is free"))
"""Columns of the samples that are drawn over time, with titles and units."""

STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:1000px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.2rem;margin-top:2.2rem;border-bottom:1px solid #ddd}
table{border-collapse:collapse;margin:.8rem 0}th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #eee}
th:first-child,td:first-child{text-align:left}th{background:#f6f6f6}.good{color:#1a7f37}.bad{color:#b3261e}
.quiet{color:#666;font-size:.9rem}.plots{display:flex;flex-wrap:wrap;gap:.6rem}.plots svg{width:470px;height:auto}
pre{background:#f6f6f6;padding:.7rem;overflow:auto;font-size:.85rem}.add{color:#1a7f37}.del{color:#b3261e}
.note{background:#fff6e0;border-left:4px solid #e0a800;padding:.5rem .8rem}li{margin:.25rem 0}
"""


def write_report(sweep: Sweep, file: Path) -> Path:
    """Write the report and answer with its file.  Raises StudyError where no point is done, and OSError."""
    if not sweep.results:
        raise StudyError(f"no point of {sweep.folder} is done yet; run stromboli sweep again")
    traces = list(dict.fromkeys(one.title["trace"] for one in sweep.results))
    parts = chain(_head(sweep), *(_Trace(sweep, name).parts() for name in traces), _differences(sweep), _end(sweep))
    write_whole(file, "\n".join(parts).encode())
    return file


def _head(sweep: Sweep) -> Iterator[str]:
    done, whole = len(sweep.results), len(sweep.plan["points"])
    title = "Comparison of scheduling policies: " + ", ".join(sweep.confs)
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>' + escape(title) + "</title>"
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
    yield (
        f'<p class="quiet">{done} simulations by the scheduler itself: {len(sweep.confs)} configurations, '
        f"{_count(sweep, 'trace')}, {_count(sweep, 'load')}, {_count(sweep, 'seed')}. "
        f"The first configuration is what the others are compared with.</p>"
    )
    if done < whole:
        yield f'<p class="note">{whole - done} of {whole} simulations are not done; run the sweep again.</p>'


def _count(sweep: Sweep, key: str) -> str:
    number = len({one.title[key] for one in sweep.results})
    return f"{number} {key}{'' if number == 1 else 's'}"


class _Trace:
    """The part of a report on one trace."""

    def __init__(self, sweep: Sweep, name: str) -> None:
        self.name = name
        self.results = [one for one in sweep.results if one.title["trace"] == name]
        self.confs = [conf for conf in sweep.confs if any(one.title["conf"] == conf for one in self.results)]
        self.loads = sorted({one.title["load"] for one in self.results})
        self.figures = list(chosen(self.results[0].figures))

    def parts(self) -> Iterator[str]:
        """The section as pieces of HTML."""
        yield f"<h2>{escape(self.name)}</h2>"
        yield from self._in_short()
        yield from self._plots()
        for load in self.loads:
            yield from self._table(load)
        yield from self._queues()

    def of(self, conf: str, load: float) -> list[Result]:
        """The points of a configuration at a load, by seed."""
        found = (one for one in self.results if one.title["conf"] == conf and one.title["load"] == load)
        return sorted(found, key=lambda one: one.title["seed"])

    def values(self, conf: str, load: float, figure: str) -> list[float]:
        """A figure of these points."""
        return [one.figures.get(figure, 0.0) for one in self.of(conf, load)]

    def difference(self, conf: str, load: float, figure: str) -> Interval:
        """What a configuration changes against the first one, over the seeds that both have."""
        ours = {one.title["seed"]: one.figures.get(figure, 0.0) for one in self.of(conf, load)}
        base = {one.title["seed"]: one.figures.get(figure, 0.0) for one in self.of(self.confs[0], load)}
        both = sorted(ours.keys() & base.keys())
        return paired([ours[seed] for seed in both], [base[seed] for seed in both])

    # ------------------------------------------------------------------ sentences

    def _in_short(self) -> Iterator[str]:
        for conf in self.confs[1:]:
            yield f"<p><b>{escape(conf)}</b> against {escape(self.confs[0])}:</p><ul>"
            for load in self.loads:
                yield from self._changes(conf, load, f"Load {load:g}: " if len(self.loads) > 1 else "")
            yield "</ul>"
        yield from (f'<p class="note">{note}</p>' for note in self._notes())

    def _changes(self, conf: str, load: float, where: str) -> Iterator[str]:
        """A sentence for each figure that differs, and one on the others."""
        told = [name for name in HEADLINES if self._is_shown(conf, load, name)]
        yield from (f"<li>{where}{self._sentence(conf, load, name)}</li>" for name in told)
        alike = ", ".join(shown(name).title.lower() for name in HEADLINES if name not in told)
        if alike:
            yield f"<li>{where}no difference shown in {alike}</li>"

    def _notes(self) -> Iterator[str]:
        """What limits what the figures can say."""
        if self._all_alike():
            yield (
                "All seeds gave the same figures: nothing in these simulations is drawn at random, so there is no "
                "spread over seeds to judge differences by. Loads other than whole numbers, failures and "
                "<code>tie-break: seeded</code> are."
            )
        elif any(len(self.of(conf, load)) == 1 for conf in self.confs for load in self.loads):
            yield "One seed cannot tell whether a difference is chance; take ten or more."
        if any(one.figures["unfinished"] for one in self.results):
            yield "Some jobs never ended; waits count those that started."
        yield from (self._unstarted(conf, load) for conf in self.confs for load in self.loads if self._lost(conf, load))

    def _lost(self, conf: str, load: float) -> int:
        return int(sum(self.values(conf, load, "unstarted")))

    def _unstarted(self, conf: str, load: float) -> str:
        reasons = Counter[str]()
        for one in self.of(conf, load):
            reasons.update(one.unstarted)
        jobs = int(sum(self.values(conf, load, "jobs")))
        return escape(
            f"{conf} at load {load:g} never started {self._lost(conf, load):,} of {jobs:,} jobs, which its waits and "
            f"slowdowns leave out: {in_short(reasons)}."
        )

    def _is_shown(self, conf: str, load: float, name: str) -> bool:
        """Whether a difference is more than chance, as far as the seeds can tell."""
        change = self.difference(conf, load, name)
        return change.differs or (change.half in (None, 0.0) and change.mean != 0)

    def _sentence(self, conf: str, load: float, name: str) -> str:
        told, change = shown(name), self.difference(conf, load, name)
        base, new = (fmean(self.values(one, load, name) or [0.0]) for one in (self.confs[0], conf))
        word = self._word(conf, load, name, change.mean)
        part = f", {100 * change.mean / base:+.0f} %" if base else ""
        sure = f", 95 % sure within ± {told.form(change.half)}" if change.half else ""
        return f'{told.title}: <span class="{word}">{told.form(new)}</span> instead of {told.form(base)}{part}{sure}'

    def _all_alike(self) -> bool:
        seeds = [self.values(conf, load, "mean_response") for conf in self.confs for load in self.loads]
        return any(len(values) > 1 for values in seeds) and all(len(set(values)) == 1 for values in seeds)

    # ------------------------------------------------------------------ tables

    def _table(self, load: float) -> Iterator[str]:
        yield (
            f"<table><tr><th>Load {load:g}</th>" + "".join(f"<th>{escape(conf)}</th>" for conf in self.confs) + "</tr>"
        )
        for name in self.figures:
            cells = "".join(f"<td>{self._cell(conf, load, name)}</td>" for conf in self.confs)
            yield f'<tr><td title="{escape(shown(name).meaning)}">{escape(shown(name).title)}</td>{cells}</tr>'
        yield '</table><p class="quiet">Mean over seeds ± 95 % confidence; coloured where it differs from the first '
        yield "configuration by more than chance.</p>"

    def _titles(self) -> str:
        return "".join(f"<th>{escape(conf)}</th>" for conf in self.confs)

    def _cell(self, conf: str, load: float, name: str) -> str:
        form, found = shown(name).form, interval(self.values(conf, load, name))
        text = form(found.mean) + (f" ± {form(found.half)}" if found.half else "")
        change = self.difference(conf, load, name)
        return f'<span class="{self._word(conf, load, name, change.mean)}">{text}</span>' if change.differs else text

    def _word(self, conf: str, load: float, name: str, change: float) -> str:
        """Whether a change is good or bad; none is good of a configuration that never starts more jobs."""
        word = _verdict(name, change)
        more = self._lost(conf, load) > self._lost(self.confs[0], load)
        return "quiet" if more and word == "good" else word

    def _queues(self) -> Iterator[str]:
        jobs: dict[str, float] = {}
        for one in self.results:
            for queue, figures in one.queues.items():
                jobs[queue] = max(jobs.get(queue, 0.0), figures["jobs"])
        if len(jobs) < 2:
            return
        load, form = self.loads[-1], shown("mean_wait").form
        yield f"<h3>Mean wait by queue, load {load:g}</h3><table><tr><th>Queue</th><th>Jobs</th>"
        yield f"{self._titles()}</tr>"
        for queue in sorted(jobs, key=lambda queue: (-jobs[queue], queue))[:QUEUES]:
            cells = (
                [one.queues[queue]["mean_wait"] for one in self.of(conf, load) if queue in one.queues]
                for conf in self.confs
            )
            waits = "".join(f"<td>{form(fmean(cell)) if cell else '–'}</td>" for cell in cells)
            yield f"<tr><td>{escape(queue)}</td><td>{jobs[queue]:.0f}</td>{waits}</tr>"
        yield "</table>"

    # ------------------------------------------------------------------ plots

    def _plots(self) -> Iterator[str]:
        used = [name for name in self.figures if name.startswith("utilisation ")][-1:]
        yield '<div class="plots">'
        for name in ("mean_wait", "bounded_slowdown", "goodput", *used):
            factor, unit = self._unit(name)
            rows = {conf: [self._scaled(name, conf, load, factor) for load in self.loads] for conf in self.confs}
            yield plots.bars(f"{shown(name).title} · {self.name}", unit, self.loads, rows)
        load = self.loads[-1]
        waits = {conf: self._waits(conf, load) for conf in self.confs}
        yield plots.distribution(
            f"Waits at load {load:g} · {self.name}", {name: some for name, some in waits.items() if some}
        )
        for column, title, unit in (
            ("waiting", "Jobs waiting", "jobs"),
            ("fragmentation", "Fragmentation", "% of what is free"),
        ):
            rows_over_time = {conf: self._over_time(conf, load, column) for conf in self.confs if self.of(conf, load)}
            yield plots.lines(f"{title} over time, load {load:g} · {self.name}", unit, rows_over_time)
        yield "</div>"

    def _scaled(self, name: str, conf: str, load: float, factor: float) -> Interval:
        found = interval(self.values(conf, load, name))
        return Interval(found.mean * factor, None if found.half is None else found.half * factor)

    def _unit(self, name: str) -> tuple[float, str]:
        """What a figure is multiplied by in its plot, and the unit then."""
        if name != "mean_wait":
            return (1.0, "times") if name == "bounded_slowdown" else (100.0, "%")
        longest = max(one.figures[name] for one in self.results)
        return (1 / 3600, "hours") if longest > 7200 else (1 / 60, "minutes") if longest > 120 else (1.0, "seconds")

    def _waits(self, conf: str, load: float) -> list[float]:
        """The waits of all jobs that started, of all seeds."""
        found = (row["wait"] for one in self.of(conf, load) for row in one.jobs)
        return [wait for wait in found if isinstance(wait, float)]

    def _over_time(self, conf: str, load: float, column: str) -> tuple[list[float], list[float]]:
        """The samples of the first seed."""
        samples = self.of(conf, load)[0].samples
        factor = 100.0 if column == "fragmentation" else 1.0
        return [_number(one["time"]) for one in samples], [factor * _number(one[column]) for one in samples]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _verdict(name: str, change: float) -> str:
    from stromboli.study.sweeps.sweep import more_is_better

    return "good" if (change > 0) == more_is_better(name) else "bad"


def _differences(sweep: Sweep) -> Iterator[str]:
    """What differs between the configurations."""
    (first, text), *others = sweep.confs.items()
    yield f"<h2>Configurations</h2><h3>{escape(first)}</h3><pre>{escape(text)}</pre>"
    for name, other in others:
        lines = list(unified_diff(text.splitlines(), other.splitlines(), first, name, lineterm=""))
        told = "\n".join(map(_line, lines)) if lines else "the same text"
        yield f"<h3>{escape(name)}: what differs from {escape(first)}</h3><pre>{told}</pre>"


def _line(line: str) -> str:
    kind = "add" if line.startswith("+") else "del" if line.startswith("-") else ""
    return f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line)


def _end(sweep: Sweep) -> Iterator[str]:
    yield "<h2>What the figures mean</h2><table><tr><th>Figure</th><th>Meaning</th><th>Formula</th></tr>"
    for name in chosen(sweep.results[0].figures):
        told = shown(name)
        yield (
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in (told.title, told.meaning, told.formula)) + "</tr>"
        )
    yield "</table><p>Every simulation runs the cycle of the scheduler in virtual time; jobs live as their trace says. "
    yield "A simulation models no reactions of users, and no network or disk that slows jobs down.</p>"
    used = ", ".join(f"{name} {version}" for name, version in sweep.plan["versions"].items())
    seeds = _listed(sorted({one.title["seed"] for one in sweep.results}))
    yield f'<p class="quiet">Seeds {seeds}. Computed with {escape(used)}. Equal inputs give equal results.</p>'
    yield "</body></html>"


def _listed(numbers: Sequence[int]) -> str:
    whole = len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1))
    return f"{numbers[0]} to {numbers[-1]}" if whole else ", ".join(map(str, numbers))

"""Measures and prints tables: ``python -m benchmarks [--quick] [--profile NAME] [NAMES...]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from typing import Final

from benchmarks import devices, flush, gates, growth, observers
from benchmarks.cases import CASES, Case, can_run, case_named
from benchmarks.measure import Measured, ask, last_cycle, measure
from benchmarks.tables import figure, head, machine, row
from benchmarks.workloads import Json

_COLUMNS: Final = (
    "workload",
    "nodes × pods",
    "jobs",
    "CPU s",
    "target",
    "Volcano",
    "times faster",
    "load µs/pod",
    "peak MiB",
    "target",
    "Volcano",
    "process CPU s",
    "binds",
    "verdict",
)
_COMPARISONS: Final = {"gates": gates, "devices": devices}
_TABLES: Final = ("growth", "observers", "flush", *_COMPARISONS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables that are asked for; the exit code is 1 when an outcome is wrong or a figure over its target."""
    options = _options(arguments)
    print(machine())
    if options.profile:
        return _profile(_case(options.profile, options.quick), options.limit, options.functions)
    usual = [case.name for case in CASES if can_run(case.workload.kind) and not case.large]
    named = options.names or [*usual, *_TABLES]
    fine = _main_table([_case(name, options.quick) for name in named if name not in _TABLES], options)
    if "growth" in named:
        fine &= growth.show(options.quick, options.repeat, options.limit)
    if "observers" in named:
        fine &= observers.show([_case(name, options.quick) for name in observers.CASES], options.quick)
    if "flush" in named:
        fine &= flush.show(options.quick)
    for table, room in _COMPARISONS.items():
        if table in named:
            fine &= room.COMPARISON.show([_case(name, options.quick) for name in room.CASES], options.quick)
    return 0 if fine else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure scheduling cycles.")
    known, large = ", ".join([*names, *_TABLES]), ", ".join(case.name for case in CASES if case.large)
    parser.add_argument("names", nargs="*", metavar="NAMES", help=f"of {known}; default: all but {large}")
    parser.add_argument("--quick", action="store_true", help="small clusters: is the outcome right, does all run")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs of each workload; the median counts")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="how long one run may take (600)")
    parser.add_argument("--profile", choices=names, metavar="NAME", help="where the time of one workload goes instead")
    parser.add_argument("--functions", action="store_true", help="with --profile: by function, too")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in {*names, *_TABLES}]
    if unknown:
        parser.error(f"no workload or table is named {unknown[0]!r}")
    return options


def _case(name: str, quick: bool) -> Case:
    return case_named(name).quick() if quick else case_named(name)


def _main_table(cases: Sequence[Case], options: argparse.Namespace) -> bool:
    fine = True
    if cases:
        print("\n" + head(_COLUMNS))
    for case in cases:
        measured = measure(case.workload, repeat=options.repeat, limit=options.limit)
        verdict = judged(case, measured, options.quick)
        print(_row(case, measured, verdict), flush=True)
        fine &= verdict in {"ok", "-"}
    return fine


def judged(case: Case, measured: Measured, quick: bool) -> str:
    """``ok``, or what is wrong or over its target; ``-`` for a right outcome when the figures are not looked at."""
    if measured.wrong:
        return f"wrong: {measured.wrong[0]}"
    if quick:
        return "-"
    limits = (
        ("CPU", measured.cycle, case.target),
        ("load", _load(case, measured), case.load),
        ("memory", measured.peak, case.memory),
    )
    over = [name for name, value, limit in limits if limit is not None and value > limit]
    return f"over: {', '.join(over)}" if over else "ok"


def _load(case: Case, measured: Measured) -> float:
    """Microseconds a pod."""
    return measured.load / (case.workload.pods + case.workload.waiting) * 1e6


def _row(case: Case, measured: Measured, verdict: str) -> str:
    workload = case.workload
    faster = case.reference / measured.cycle if case.reference and measured.cycle else None
    pods = f"{workload.pods:,}" + (f" + {workload.waiting:,}" if workload.waiting else "")
    cells = [
        case.name,
        f"{workload.nodes:,} × {pods}",
        f"{workload.jobs:,}",
        figure(measured.cycle, 3),
        figure(case.target, 1),
        figure(case.reference, 0),
        figure(faster, 0),
        figure(_load(case, measured), 0),
        figure(measured.peak, 0),
        figure(case.memory, 0),
        figure(case.reference_memory, 0),
        figure(measured.process, 1),
        f"{measured.binds:,}",
        verdict,
    ]
    return row(cells)


def _profile(case: Case, limit: float, functions: bool) -> int:
    """Print the CPU seconds of the parts of the last cycle; ``functions`` runs it again and asks for those as well."""
    with tempfile.TemporaryFile() as scenario:
        case.workload.write(scenario)
        answers = [ask(scenario, limit, ["--spans"])] + ([ask(scenario, limit, ["--profile"])] if functions else [])
    for answer in answers:
        if answer.content is None:
            print(f"{case.name}: {answer.trouble}", file=sys.stderr)
            return 1
        print(_parts(case, answer.content) if "spans" in answer.content else answer.content["profile"])
    return 0


def _parts(case: Case, answer: Json) -> str:
    total = last_cycle(answer)
    spans: dict[str, float] = {span: seconds for span, seconds in answer["spans"].items() if span != "cycle "}
    top = sum(seconds for span, seconds in spans.items() if not span.startswith("plugin_open "))
    lines = [head([case.name, "CPU s", "%"])]
    for span, seconds in [*spans.items(), ("snapshot and the rest of the close", total - top), ("cycle", total)]:
        lines.append(row([span.strip(), figure(seconds, 4), figure(100 * seconds / total, 1)]))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

"""Hold the source to its budgets, and print what exceeds them: `python -m tools.budgets [PROJECT] [--lower]`.

Functions of the package have a median of at most 6 lines and a 90th percentile of at most 25, none more than 60, and a
complexity of at most 12, conditions inside expressions counted.  Files have at most 400 lines, folders at most 20
modules, classes at most 40 public names, circles of imports at most 3 files; at most 2 % of the code stands twice.

What exceeds a limit stands in budget_exceptions.toml with its present value and a reason.  It may become smaller, not
larger; when it has, a line asks to lower the exception, and --lower does it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.allowances import Allowances
from tools.purity import impurities
from tools.sizes import Size, Source, all_sizes, read_sources
from tools.structure import test_modules

TREES = ("src", "tools", "tests", "benchmarks", "e2e")
MEDIAN, NINTH_DECILE = 6, 25
FORBIDDEN_STEMS = {"util", "utils", "helper", "helpers", "common", "misc"}
LIMITS = {
    "function lines": 60,
    "complexity": 12,
    "file lines": 400,
    "modules a folder": 20,
    "public names a class": 40,
    "files a circle of imports": 3,
    "near-duplicates in a thousand lines": 20,
}
LIMITS_OF_TESTS = {"file lines": 600, "modules a folder": 30}  # tables of scenarios may be long
WITHOUT_EXCEPTION = {"function lines"}


def limit_of(size: Size) -> int:
    """Answer how large something may be without an exception."""
    of_tests = LIMITS_OF_TESTS if size.path.parts[0] == "tests" else {}
    return of_tests.get(size.limit, LIMITS[size.limit])


def oversized(size: Size, allowances: Allowances) -> Iterator[str]:
    """Yield the complaint about `size`, if it exceeds what it is allowed."""
    usual = limit_of(size)
    limit = usual if size.limit in WITHOUT_EXCEPTION else allowances.limit(size, usual)
    if size.value > limit:
        excepted = f", its exception {limit}" if limit != usual else ""
        yield f"{size.where}: {size.limit} {size.value}, at most {usual}{excepted}"


def broken_rules(source: Source) -> Iterator[str]:
    """Yield what a module does that no exception can allow."""
    for name in {source.path.stem, source.path.parent.name} & FORBIDDEN_STEMS:
        yield f"{source.path}:1: the name {name!r} says nothing about what is inside"
    for line, text in impurities(source.path, source.tree):
        yield f"{source.path}:{line}: {text}"
    for line, module in test_modules(source.tree):
        yield f"{source.path}:{line}: imports the test module {module}: what tests share stands in tests/support"


def spread(lengths: list[int]) -> Iterator[str]:
    """Yield complaints about the package's functions as a whole."""
    if lengths and (median := statistics.median(lengths)) > MEDIAN:
        yield f"src: the median function has {median:g} lines, at most {MEDIAN}"
    if lengths and (decile := ninth_decile(lengths)) > NINTH_DECILE:
        yield f"src: every tenth function has more than {decile - 1} lines, at most {NINTH_DECILE}"


def ninth_decile(lengths: list[int]) -> int:
    """Answer the length that nine functions of ten don't exceed."""
    return sorted(lengths)[int(0.9 * len(lengths))]


def package_lengths(sources: Sequence[Source]) -> list[int]:
    """Answer the lengths of all functions of the package."""
    return [function.lines for source in sources if source.of_package for function in source.functions]


def summary(lengths: list[int]) -> str:
    """Say in one line how long the package's functions are."""
    if not lengths:
        return "no functions yet"
    middle, most = statistics.median(lengths), max(lengths)
    return f"{len(lengths)} functions: median {middle:g} lines, p90 {ninth_decile(lengths)}, longest {most}"


def breaches(sources: Sequence[Source], allowances: Allowances) -> list[str]:
    """Check all sources; one line for each thing that exceeds a budget or breaks a rule."""
    found = [text for source in sources for text in broken_rules(source)]
    found += [text for size in all_sizes(sources) for text in oversized(size, allowances)]
    return [*found, *spread(package_lengths(sources)), *allowances.breaches()]


def main(arguments: list[str]) -> int:
    """Check the project at the path given (by default the one that holds this file); 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", nargs="?", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--lower", action="store_true", help="lower the exceptions that allow more than is needed")
    options = parser.parse_args(arguments)
    sources, allowances = read_sources(options.project, TREES), Allowances.read(options.project)
    found = breaches(sources, allowances)
    if options.lower:
        allowances.lower(options.project)
    requests = [] if options.lower else allowances.requests()
    print("\n".join([*found, *requests, f"budgets: {len(found)} over; {summary(package_lengths(sources))}"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

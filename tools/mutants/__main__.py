"""Break lines of the source one by one, and see that a test fails: `python -m tools.mutants [--count N] [--seed S]`.

A seeded sample of lines of framework, actions, plugins, cluster, live and controllers is broken, a line at a time, and
the tests that execute it are run, the quickest first.  A mutant that runs into a time limit counts as caught.  What
changes nothing stands in `equivalent.toml`, and is not drawn: mutations with the reason, and constants that are
measures.  Which tests execute which line is recorded first (`.mutants/`), for tests whose files have changed since the
last time; `--fresh` records all anew, `--as-recorded` nothing.  A test without a record is asked last, if its file uses
the broken module; that it takes long catches nothing.

Prints how many were tried, caught and survived, and what each survivor changes; 1 if fewer than 95 % were caught.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.mutants.campaign import Campaign, at, known_in, sample
from tools.mutants.notes import Notes, noting
from tools.mutants.recording import Record, Recorder

PROJECT = Path(__file__).parents[2]
FLOOR = 0.95


@dataclass(frozen=True)
class Target:
    """What is broken, and what may notice it: a project, and folders of it with sources and with tests."""

    project: Path = PROJECT
    sources: tuple[str, ...] = tuple(
        f"src/stromboli/{name}"
        for name in (
            "framework",
            "reservations",
            "preemption",
            "allocation",
            "actions",
            "queue_accounts",
            "plugins",
            "cluster",
            "live",
            "controllers",
        )
    )
    tests: tuple[str, ...] = tuple(
        f"tests/{name}"
        for name in (
            "acceptance", "actions", "api", "cases", "cli", "cluster", "controllers", "crds", "devices", "docs",
            "fairness", "filters", "framework", "integrations", "job_plugins", "journal", "kube", "laws", "live",
            "metrics", "migration", "model", "plugins", "preemption", "recorded", "server", "sim", "study", "testing",
        )
    )  # fmt: skip

    @property
    def record(self) -> Path:
        """The file that says which tests execute which line."""
        return self.project / ".mutants" / "record.json.gz"

    @property
    def options(self) -> list[str]:
        """The arguments of pytest; slow tests are left out."""
        quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", "--rootdir", str(self.project)]
        return [*quiet, *(str(self.project / folder) for folder in self.tests)]

    def texts(self) -> dict[str, str]:
        """The texts of the modules that are broken, by their paths."""
        found = [path for folder in self.sources for path in sorted((self.project / folder).rglob("*.py"))]
        return {
            path.relative_to(self.project).as_posix(): path.read_text(encoding="utf-8")
            for path in found
            if not path.name.startswith("catalogue")  # texts and levels of log lines
        }


def arguments(given: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants")
    parser.add_argument("--count", type=int, default=200, help="how many lines to break (200)")
    parser.add_argument("--seed", type=int, default=0, help="which lines (0)")
    parser.add_argument("--at", action="append", default=[], metavar="PATH:LINE", help="break this line in every way")
    parser.add_argument("--seconds", type=float, default=60, help="most CPU seconds of tests for one mutant (60)")
    parser.add_argument("--fresh", action="store_true", help="record again which tests execute which line")
    parser.add_argument(
        "--as-recorded",
        action="store_true",
        help="record nothing; tests without a record are asked last",
    )
    return parser.parse_args(given)


def recorded(target: Target, texts: dict[str, str], *, fresh: bool) -> None:
    """Bring the record up to date, in a process of its own: what that has imported must not linger."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    record = Record() if fresh else Record.read(target.record)
    record.renew(texts)
    notes = Notes()
    with noting(notes, target.project, texts):
        pytest.main(target.options, plugins=[Recorder(record, target.record, notes)])
    os._exit(0)


def report(campaign: Campaign) -> int:
    """Print the result; 1 if too few were caught."""
    tried = len(campaign.verdicts)
    survivors = {mutation: verdict for mutation, verdict in campaign.verdicts.items() if not verdict.caught}
    late = sum(verdict.by == "time-out" for verdict in campaign.verdicts.values())
    for mutation, verdict in survivors.items():
        print(f"\n{mutation.where}: {verdict.by}\n{mutation.diff}")
    caught = tried - len(survivors)
    share = caught / tried if tried else 0.0
    print(f"\ntried {tried}, caught {caught} ({late} by time-out), survived {len(survivors)}: {share:.1%}")
    return 0 if share >= FLOOR else 1


def main(given: list[str], target: Target = Target()) -> int:
    """Record, break, report."""
    wanted, texts = arguments(given), target.texts()
    os.environ["CI"] = "1"  # what tests draw is drawn alike each time
    known = known_in(Path(__file__).with_name("equivalent.toml"))
    if not wanted.as_recorded:
        recorded(target, texts, fresh=wanted.fresh)
    record = Record.read(target.record)
    record.renew(texts)
    drawn = at(texts, wanted.at, known) if wanted.at else sample(texts, wanted.count, wanted.seed, known)
    campaign = Campaign(record, target.project, list(drawn), wanted.seconds)
    pytest.main(target.options, plugins=[campaign])
    return report(campaign)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

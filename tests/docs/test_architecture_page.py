"""The page on architecture: its tables name what is there, its walks are taken."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.docs.walks import PACKAGE, PAGE, Step, a_gang_takes_room, a_pod_is_bound, first_missing, steps
from tests.support.virtual import run

ROOT = Path(__file__).parents[2]
TEXT = PAGE.read_text(encoding="utf-8")
BIND, VICTIM, RESERVATION = (
    "A pod, from watch event to bind",
    "A victim, from candidate to deletion",
    "A reservation, from decision to bind",
)


def rows(head: str) -> list[list[str]]:
    """The cells of each row of the table with this head."""
    table = TEXT.partition(head)[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def layers() -> list[tuple[set[str], str]]:
    """Each line of the contract: its packages that exist, and whether they may know each other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (lines,) = [contract["layers"] for contract in contracts if contract["id"] == "layers"]
    found = []
    for line in lines:
        names = {name for name in re.findall(r"\w+", line) if (PACKAGE / name).is_dir() or exists(f"{name}.py")}
        found.append((names, "" if len(names) == 1 else "and" if ":" in line else "apart"))
    return found


def exists(path: str) -> bool:
    return (PACKAGE / path).is_file()


def test_the_table_of_layers_is_the_contract() -> None:
    shown = [(set(re.findall(r"`(\w+)`", names)), joined) for names, joined, _ in rows("| in `src/stromboli/` |")]
    assert shown == layers()


def test_the_parts_of_packages_are_those_that_are_there() -> None:
    shown = {name.strip("`/"): set(re.findall(r"`(\w+)/`", parts)) for name, parts in rows("| package | its parts |")}
    for name, parts in shown.items():
        assert parts == {path.parent.name for path in (PACKAGE / name).glob("*/__init__.py")}, name


def test_every_file_that_is_named_is_there() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", TEXT))
    assert [path for path in sorted(named) if not (exists(path) or (ROOT / path).is_file())] == []


def test_a_walk_names_no_file_twice() -> None:
    for heading in (BIND, VICTIM, RESERVATION):
        paths = [step.path for step in steps(heading)]
        assert len(paths) > 12
        assert len(set(paths)) == len(paths), heading


def test_a_pod_takes_the_walk_to_its_bind() -> None:
    assert first_missing(steps(BIND), run(a_pod_is_bound())) is None


def test_victims_and_reservations_take_their_walks(tmp_path: Path) -> None:
    entered = run(a_gang_takes_room(tmp_path))
    assert first_missing(steps(VICTIM), entered) is None
    assert first_missing(steps(RESERVATION), entered) is None


def test_a_step_out_of_order_is_missed() -> None:
    first, second = Step("a.py", "a"), Step("b.py", "b")
    assert first_missing([first, second], [first, first, second]) is None
    assert first_missing([first, second], [second, first]) == second

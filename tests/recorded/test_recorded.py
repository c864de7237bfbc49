"""Recorded decisions of our own: what a cycle decides, says, counts and remembers changes only on purpose.

A record of production is replayed by later releases, too, and there it has to come to the same, to the last word.  So
seeded scenes of every action and of every plugin but extender, each over several cycles, are decided again and compared
with what is kept in `decisions/`.  After a change that is meant `python -m tests.recorded --write` records them anew,
and the commit shows which decisions it has changed.
"""

from __future__ import annotations

import pytest

from tests.recorded.families import FAMILIES, NAMES
from tests.recorded.keeping import Cycles, differences, of_now, read, recorded, written

AT_ONCE = 6
"""Scenes that one test decides, of different families."""
PARTS = -(-len(NAMES) // AT_ONCE)
HOW = """
{differences}

python -m tests.recorded --show {name} --against HEAD   shows all of it, before and now
python -m tests.recorded --write                        records all scenes anew, if that is what was meant"""


@pytest.fixture(scope="module")
def known() -> dict[str, Cycles]:
    """What was recorded, by scene."""
    return {name: cycles for family in FAMILIES for name, cycles in recorded(family).items()}


@pytest.mark.parametrize("part", range(PARTS))
def test_scenes_are_decided_as_recorded(part: int, known: dict[str, Cycles]) -> None:
    for name in NAMES[part::PARTS]:
        found = differences(name, known[name], of_now(name))
        if found:
            pytest.fail(HOW.format(differences="\n".join(found), name=name), pytrace=False)


def test_no_scene_is_decided_otherwise_where_nothing_listens(known: dict[str, Cycles]) -> None:
    unlike = [name for name, cycles in known.items() if any("unheard" in parts for parts in cycles)]
    assert unlike == []


def test_every_record_has_a_scene(known: dict[str, Cycles]) -> None:
    assert sorted(known) == sorted(NAMES)


def test_a_record_reads_as_it_was_written() -> None:
    cycles = [{"binds": "a>n1 b>n2", "texts": "0a"}, {"log": "1b"}, {}]
    assert read(written([("x-0", cycles), ("x-1", [])])) == {"x-0": cycles, "x-1": []}


def test_a_difference_says_which_scene_cycle_and_part() -> None:
    before: Cycles = [{"binds": "a>n1", "log": "1"}, {"log": "2"}]
    after: Cycles = [{"binds": "a>n2", "log": "1"}]
    assert differences("x-0", before, after) == [
        "x-0, cycle 1, binds:\n  was a>n1\n  is  a>n2",
        "x-0, cycle 2, log:\n  was 2\n  is  None",
    ]

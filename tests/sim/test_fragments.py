"""Fragments of a simulation: what is kept by node equals what is worked out afresh."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from stromboli.sim.simulation.fragments import Fragments
from stromboli.sim.simulation.workload import Pods, SimJob, Workload
from stromboli.testing.builders import node

NAMES = ("cpu", "nvidia.com/gpu")
NODES = tuple(node(f"n{number}", cpu=8, resources={NAMES[1]: number % 3}) for number in range(5))
SORTS = ({"cpu": "1"}, {"cpu": "4", NAMES[1]: "1"}, {"cpu": "2", NAMES[1]: "2"})
JOBS = tuple(SimJob(f"j{number}", 0.0, 1.0, (Pods(number + 1, asked),)) for number, asked in enumerate(SORTS))
MOVES = st.lists(st.tuples(st.integers(0, 4), st.sampled_from([(1.0, 0.0), (4.0, 1.0), (0.1, 0.2)]), st.booleans()))


@given(MOVES)
def test_what_is_kept_by_node_is_what_is_worked_out_afresh(
    moves: Sequence[tuple[int, tuple[float, float], bool]],
) -> None:
    kept = Fragments(Workload("w", JOBS, NODES), NAMES)
    for row, amounts, asked in moves:
        kept.placed(f"n{row}", amounts, 1)
        if asked:
            kept.rate()
    fresh = Fragments(Workload("w", JOBS, NODES), NAMES)
    fresh.free[:] = kept.free
    assert kept.rate() == fresh.rate()

"""Floors of what the laws' examples reach: a run that reaches less fails, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.reached import read_floors

ROOT = Path(__file__).parents[2]
LAWS = """
import pytest
from hypothesis import given, settings, strategies as st
from stromboli.cycle import run_cycle
from stromboli.builtin import builtin_registry
from stromboli.framework.config.config import DEFAULT_CONFIG, load_config
from stromboli.testing.builders import cluster, node, pod, pod_group

REGISTRY = builtin_registry()
CONFIG = load_config(
    DEFAULT_CONFIG, source="c", known_plugins=REGISTRY.plugin_names, known_actions=REGISTRY.action_names
)

@pytest.mark.law("gangs")
@settings(max_examples=40, derandomize=True, database=None)
@given(fits=st.booleans(), number=st.integers(0, 10**6))
def test_gangs(fits, number):
    pods = [pod(f"g-{i}", group="g", cpu=1) for i in range(2)]
    plan = run_cycle(cluster(node("n", cpu=4 if fits else 1), pod_group("g", min_member=2), *pods), CONFIG, REGISTRY)
    assert len(plan.binds) == 2 * fits
"""


@pytest.mark.parametrize(("floor", "passes"), [(0.2, True), (0.99, False)])
def test_a_run_that_reaches_too_little_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, floor: float, passes: bool
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\nmarkers =\n    law(name): a law\n")
    folder = pytester.mkdir("tests") / "laws"
    folder.mkdir()
    (folder / "floors.toml").write_text(f'["test_gangs.py::test_gangs"]\n"gang bound" = {floor}\n"gang held" = 0.01\n')
    (folder / "test_gangs.py").write_text(LAWS)
    result = pytester.runpytest("-p", "tests.support.reached", "tests")
    result.assert_outcomes(passed=1)
    assert result.ret == (pytest.ExitCode.OK if passes else pytest.ExitCode.TESTS_FAILED)
    result.stdout.re_match_lines([" *40  test_gangs.py::test_gangs: gang bound [0-9]+%, gang held [0-9]+%"])
    assert any("TOO LOW  test_gangs.py::test_gangs: gang bound" in line for line in result.outlines) is not passes


def test_a_floor_of_something_that_nothing_counts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "floors.toml").write_text('["test_a.py::test_b"]\n"moon reached" = 0.5\n')
    with pytest.raises(pytest.UsageError, match="nothing counts moon reached"):
        read_floors(tmp_path / "floors.toml")


def test_every_floor_is_of_a_test_of_today() -> None:
    floors = read_floors(ROOT / "tests/laws/floors.toml")
    assert floors["test_evictions.py::test_shares"]["reclaim evicts"] >= 0.25
    for name in floors.keys() - {"every law"}:
        file, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / "tests/laws" / file).read_text(encoding="utf-8")

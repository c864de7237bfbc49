"""The recorded cases and their judge, which lie outside the project."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

SHARED = Path(__file__).parents[3] / "shared"


CASES = SHARED / "cases"


JUDGE = SHARED / "tools/judge.py"


SCOPE = "eviction"
"""Cases whose configuration names nothing but the actions and plugins of every cluster: no topology, no devices."""


VARYING: Mapping[str, str] = {
    "multicycle/003": "shares after evictions that differ from run to run; ours are a recorded outcome's",
    **dict.fromkeys(
        (
            "unit:preempt/topologyawarepreempt-func1--can-not-preempt-resources-when-task-preemption-policy-is-never",
            "unit:preempt/topologyawarepreempt-func1--preempt-low-priority-job-in-same-queue",
            (
                "unit:preempt/topologyawarepreempt-func1"
                "--preempt-low-priority-job-in-same-queue-allocatable-and-has-enough-reso"
            ),
            "unit:preempt/topologyawarepreempt-func1--preempt-one-task-of-different-job-to-fit-both-jobs-on-one-node",
        ),
        "proportion and capacity are both configured; which of them recorded its figures differs from run to run",
    ),
}
"""Cases whose recorded arithmetic is a matter of chance, with the reason; their other levels count."""


DEVICES = ("gpushare", "vgpu", "vgpu_mig", "npu", "devices_cycles")
"""Families with the plugin deviceshare; they are decided in compat mode alone."""


class Case(NamedTuple):
    """A recorded case: what was decided for a scenario."""

    family: str
    name: str
    recorded: Mapping[str, Any]
    scenario: Mapping[str, Any]


def judge_module() -> ModuleType:
    """The judge, from its file.  It adds up equal requests once: most pods of a case are alike."""
    spec = importlib.util.spec_from_file_location("recorded_cases_judge", JUDGE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    slow = module.requests
    known = cache(lambda spec: slow({"spec": json.loads(spec)}))
    module.requests = lambda pod: Counter(known(json.dumps(pod["spec"])))  # type: ignore[attr-defined]
    return module


def case_name(file: Path) -> str:
    """The name that the judge gives to the case of a file."""
    folder = file.parent
    above = {"unit": "unit:", "unit-derived": "derived:"}.get(folder.parent.name, "")
    return f"{above}{folder.name}/{file.name.split('.json')[0]}"


def every(_name: str) -> bool:
    """Tell that a case is wanted, whatever its name."""
    return True


def cases(
    judge: ModuleType, scope: str = SCOPE, *, devices: bool = False, wanted: Callable[[str], bool] = every
) -> Iterator[Case]:
    """All cases of a scope, with ``devices`` those of :data:`DEVICES`, too, as far as their names are ``wanted``.

    One is read after the other: all together they are so many objects that looking for garbage takes its time.
    Meanwhile no run collects garbage before it starts, as runs do that are timed.
    """
    with patch("stromboli.sim.runner.gc.collect"):
        for file in sorted(CASES.rglob("*.json*")):
            if wanted(case_name(file)):
                found = judge.load([str(file)], set(), scope)
                if devices and not found:
                    found = judge.load([str(file)], set(DEVICES), "devices")
                yield from map(Case._make, found)

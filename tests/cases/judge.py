"""The recorded cases and their judge, which lie outside the project."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

SHARED = Path(__file__).parents[3] / "shared"


CASES = SHARED / "cases"


JUDGE = SHARED / "tools/judge.py"


SCOPE = "eviction"
"""Cases whose configuration names nothing but actions and plugins that are here."""


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
        "proportion and capacity are both configured; whose figures were recorded differs from run to run",
    ),
}
"""Cases whose recorded arithmetic is a matter of chance, with the reason; their other levels count."""


def judge_module() -> ModuleType:
    """The judge, from its file."""
    spec = importlib.util.spec_from_file_location("recorded_cases_judge", JUDGE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

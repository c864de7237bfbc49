"""The conformance kit for authors of plugins: does a plugin keep what its hooks promise?"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from stromboli.framework.extension.plugin import Plugin
from stromboli.testing.builders import Manifest
from stromboli.testing.cycle_checks import check_cycle
from stromboli.testing.moves import Move
from stromboli.testing.node_checks import check_nodes
from stromboli.testing.other_checks import check_handlers, check_many, check_orders, check_quotas, check_sated
from stromboli.testing.shrinking import Example, smallest
from stromboli.testing.trial import Trial
from stromboli.testing.victim_checks import check_by_priority, check_own, check_victims

CHECKS = (
    check_nodes,
    check_orders,
    check_many,
    check_handlers,
    check_victims,
    check_own,
    check_by_priority,
    check_quotas,
    check_sated,
    check_cycle,
)
"""What is checked of every example, in this order."""


class FlawFoundError(Exception):
    """An example shows a flaw: the search is over."""


def check_plugin(
    plugin_class: type[Plugin], arguments: Mapping[str, object] | None = None, *, examples: int = 50
) -> None:
    """Try a plugin on random small clusters, with ``arguments`` as in the configuration.

    Every hook that is asked per node must give the same answers in all its forms and orders, to tasks with equal keys,
    and, unless it declares ``reads=``, whatever happens on other nodes; answers that the engine kept must equal fresh
    ones.  A ``pre_predicate`` with a key must say the same of all tasks of a template.  ``.many`` must say what the
    plain form says one by one, ``.key`` order as the comparison does.  A task that a protecting hook permits among
    others it must permit alone, too; a vote with ``own=`` must name the same tasks of a job, whatever the other
    candidates, until the job changes, and what a queue is allowed with it must follow from what the queue holds.  A
    form for jobs with ``by_priority=`` must say the same of jobs of one queue and priority, but for the actor's own.
    In a whole cycle nothing may be raised, and nothing answered that a point cannot use.

    Raises AssertionError with plugin, hook, what is wrong and the smallest example found; ImportError where the package
    ``hypothesis`` is missing.  The same ``examples`` are tried each time.
    """
    from hypothesis import HealthCheck, Phase, given, settings

    from stromboli.testing import strategies

    def fails(example: Example) -> AssertionError | None:
        try:
            trial = Trial(plugin_class, arguments or {}, *example)
            for each in CHECKS:
                each(trial)
        except AssertionError as failure:
            return failure
        return None

    def look(objects: list[Manifest], moves: list[Move]) -> None:
        if not found and (failure := fails((objects, moves))):
            found.append(smallest(fails, (objects, moves), failure))
        if found:
            raise FlawFoundError  # no other example is drawn

    found: list[AssertionError] = []
    checks, phases = list(HealthCheck), (Phase.generate,)
    once = settings(
        max_examples=examples, derandomize=True, phases=phases, deadline=None, suppress_health_check=checks,
        report_multiple_bugs=False,
    )  # fmt: skip
    with suppress(FlawFoundError):
        once(given(strategies.clusters(max_nodes=4, max_gangs=3), strategies.moves)(look))()
    if found:
        raise found[0]

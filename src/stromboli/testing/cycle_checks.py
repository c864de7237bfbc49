"""A check of everything that is not looked at by itself: a plugin takes part in cycles and is not put aside."""

from __future__ import annotations

from typing import Final

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.config.config import Config, PluginOption
from stromboli.testing.builders import cluster
from stromboli.testing.trial import NOW, Trial

ACTIONS: Final = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
COMPANY: Final = ("gang", "predicates")
"""Plugins without which cycles ask little."""


def check_cycle(trial: Trial) -> None:
    """A cycle asks whatever it needs to; an exception, or an answer that the point cannot use, is a flaw."""
    registry = builtin_registry()
    registry.add(trial.plugin_class)
    company = (PluginOption.filled(name) for name in COMPANY if name != trial.plugin_class.name)
    config = Config(ACTIONS, ((*company, trial.option),))
    try:
        plan = run_cycle(cluster(*trial.objects), config, registry, now=NOW)
    except Exception as error:
        raise trial.flaw("in a cycle", f"raised {error!r}") from error
    for told in plan.inconsistencies:
        trial.fail("in a cycle", told.removeprefix(f"plugin {trial.plugin_class.name}: "))

"""Which controllers run, in the words of Volcano's ``--controllers``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from stromboli.controllers.work import About
from stromboli.errors import ConfigError
from stromboli.framework.config.argument import nearest

CONTROLLERS: Final[Mapping[str, frozenset[About]]] = {
    "job-controller": frozenset({About.job}),
    "pg-controller": frozenset({About.pod, About.idle_group}),
    "queue-controller": frozenset({About.queue}),
    "gc-controller": frozenset({About.garbage}),
    "cronjob-controller": frozenset({About.cron_job}),
    "jobflow-controller": frozenset({About.job_flow}),
    "jobtemplate-controller": frozenset({About.job_template}),
    "hyperNode-controller": frozenset({About.hyper_node, About.discovery}),
    "sharding-controller": frozenset({About.sharding}),
}
"""The controllers, and the looks that are theirs.  A command is carried out by the controller of its target."""

OFF: Final = frozenset({"sharding-controller"})
"""Controllers that run only where they are named, or ``*`` is."""

NOT_OFFERED: Final = frozenset({"colocation-config-controller"})
"""Controllers of the reference that are not there: they may be switched off, and are left out of all."""


def looks_of(terms: Sequence[str]) -> frozenset[About]:
    """The looks of the controllers that ``terms`` choose.

    ``*`` stands for all, ``name`` or ``+name`` for one, ``-name`` takes one away; where nothing is chosen, it is taken
    from all but :data:`OFF`.  Raises ConfigError for a name that is not known or not offered, and for one that is both
    chosen and taken away.
    """
    given = [(term[:1] == "-", term.lstrip("+-")) for term in terms if term != "*"]
    away = {name for minus, name in given if minus}
    chosen = {name for minus, name in given if not minus}
    for name in sorted(away | chosen):
        _check(name, name in chosen, name in away)
    if "*" in terms:
        chosen = set(CONTROLLERS)
    return frozenset().union(*(CONTROLLERS[name] for name in (chosen or CONTROLLERS.keys() - OFF) - away))


def _check(name: str, chosen: bool, away: bool) -> None:
    if name not in CONTROLLERS and name not in NOT_OFFERED:
        problem = f"--controllers: there is no {name}; there are {', '.join(CONTROLLERS)}"
        raise ConfigError(problem, nearest=nearest(name, (*CONTROLLERS, *NOT_OFFERED)))
    if chosen and away:
        raise ConfigError(f"--controllers: {name} cannot have both '-' and '+' prefixes")
    if chosen and name in NOT_OFFERED:
        raise ConfigError(f"--controllers: {name} is not offered yet")

"""How the controllers run."""

from __future__ import annotations

from typing import Final, NamedTuple

from stromboli.controllers.sharding.configuration import Sharding
from stromboli.controllers.work import BY_DEFAULT, About
from stromboli.job_plugins.registry import JobPlugins
from stromboli.model.names import NAMESPACE, SCHEDULER_NAME, SHARDING_CONFIG_MAP

BREATH: Final = 0.1
"""Seconds between two looks at one object: what happens meanwhile is seen together and costs one status."""

CONFIG_MAP: Final = "volcano-controller-configmap"
"""The ConfigMap of the controllers' settings in Volcano's installation."""


class Options(NamedTuple):
    """How the controllers run; names and defaults are those of Volcano's flags.

    ``max_requeue`` failed looks (negative: any number) are repeated before an object is given up; those that no
    server listened to do not count.  ``looks`` are those of the chosen controllers
    (:func:`stromboli.controllers.selection.looks_of`); ``config_map`` in ``namespace`` says where HyperNodes come from;
    ``job_plugins`` are those that jobs may name, None for all that are built in or installed; ``breath`` and
    ``stop_timeout``, in seconds, are ours.  ``sharding`` divides nodes among schedulers as long as the ConfigMap
    ``sharding_config_map`` in ``sharding_namespace`` does not say how; either name empty: it is never looked at.
    """

    scheduler_names: tuple[str, ...] = (SCHEDULER_NAME,)
    max_requeue: int = 15
    inherit_owner_annotations: bool = True
    looks: frozenset[About] = BY_DEFAULT
    group_by: frozenset[str] = frozenset()
    job_plugins: JobPlugins | None = None
    breath: float = BREATH
    namespace: str = NAMESPACE
    config_map: str = CONFIG_MAP
    stop_timeout: float = 20.0
    sharding: Sharding | None = None
    sharding_config_map: str = SHARDING_CONFIG_MAP
    sharding_namespace: str = NAMESPACE

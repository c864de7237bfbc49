"""What controllers have to do: looks at single objects."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:  # the names of controllers are asked for where nothing of the world is needed
    from stromboli.controllers.world import Key


class About(StrEnum):
    """What kind of look an object needs."""

    job = "job"
    queue = "queue"
    pod = "pod"
    garbage = "garbage"
    command = "command"
    hyper_node = "hypernode"
    idle_group = "idle PodGroup"
    discovery = "network topology source"
    cron_job = "CronJob"
    job_flow = "JobFlow"
    job_template = "JobTemplate"
    sharding = "NodeShards"


BY_DEFAULT: Final = frozenset(About) - {About.sharding}
"""The looks that are done unless something else is chosen: NodeShards are made only where that is asked for."""


class Work(NamedTuple):
    """One object that has to be looked at."""

    about: About
    key: Key

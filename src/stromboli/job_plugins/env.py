"""``env``: every container learns the number of its pod within the task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stromboli.job_plugins.plugin import AddEnv, Edit, JobPlugin, Place


class Env(JobPlugin):
    """Variables with the number of the pod."""

    name = "env"

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterator[Edit]:
        """The number, under the name of today and an older one."""
        yield AddEnv(tuple({"name": name, "value": str(place.index)} for name in ("VK_TASK_INDEX", "VC_TASK_INDEX")))

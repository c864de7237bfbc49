"""``tensorflow``: tells containers the role of each pod in ``TF_CONFIG``, as TensorFlow expects it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from stromboli.job_plugins.hosts import MOST_ENV, check_size, host
from stromboli.job_plugins.plugin import AddEnv, Edit, JobPlugin, Place, flag

_ENCODE: Final = msgspec.json.Encoder().encode


class Tensorflow(JobPlugin):
    """The variable ``TF_CONFIG``; a job of one pod needs none."""

    name = "tensorflow"
    ps = flag("ps", "ps")
    worker = flag("worker", "worker")
    chief = flag("chief", "chief")
    evaluator = flag("evaluator", "evaluator")
    port = flag("port", 2222)

    @property
    def _named(self) -> dict[str, str]:
        """The task that plays each part."""
        return {"ps": self.ps, "worker": self.worker, "chief": self.chief, "evaluator": self.evaluator}

    @cached_property
    def _parts(self) -> dict[str, str]:
        """The part that each task plays, by its name; of two the first counts."""
        return {task: part for part, task in reversed(self._named.items())}

    def problem(self) -> str:
        """Raises PluginError where the names of the pods are too many for a variable."""
        tasks = [task for task in self.job.spec.tasks if task.name in self._parts]
        found = (host(self.job, task, index) for task in tasks for index in range(task.replicas))
        check_size(self.name, found, MOST_ENV - 1024, "a variable", around=10)
        return ""

    @cached_property
    def _cluster(self) -> dict[str, list[str]]:
        found = {part: self._addresses(task) for part, task in self._named.items()}
        return {part: addresses for part, addresses in found.items() if addresses}

    def _addresses(self, name: str) -> list[str]:
        task = self.task(name)
        return [f"{host(self.job, task, index)}:{self.port}" for index in range(task.replicas)] if task else []

    @cached_property
    def _is_needed(self) -> bool:
        return [task.replicas for task in self.job.spec.tasks] != [1]

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterator[Edit]:
        """The cluster, and the pod's part in it."""
        if self._is_needed:
            part = {"type": self._parts.get(place.task.name, place.task.name), "index": place.index}
            text = _ENCODE({"cluster": self._cluster, "task": part}).decode()
            yield AddEnv(({"name": "TF_CONFIG", "value": text},), init=False)

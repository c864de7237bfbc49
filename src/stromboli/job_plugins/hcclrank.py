"""``hcclrank``: pods are annotated with their rank in Huawei's collective communication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stromboli.job_plugins.edits import CONTAINERS, rows
from stromboli.job_plugins.plugin import Annotate, Edit, JobPlugin, Place, flag

RANK: Final = "hccl/rankIndex"


class HcclRank(JobPlugin):
    """The annotation ``hccl/rankIndex``, from the variable ``RANK`` or the pod's number."""

    name = "hcclrank"
    marks = False
    master = flag("master", "master")
    worker = flag("worker", "worker")

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterator[Edit]:
        """The rank, unless the pod has one or is neither master nor worker."""
        if pod["metadata"].get("annotations", {}).get(RANK):
            return
        if rank := _stated(pod) or self._counted(place):
            yield Annotate(RANK, rank)

    def _counted(self, place: Place) -> str:
        master = self.task(self.master)
        if place.task.name == self.master:
            return str(place.index)
        before = master.replicas if master else 0
        return str(before + place.index) if place.task.name == self.worker else ""


def _stated(pod: Mapping[str, Any]) -> str:
    """The first ``RANK`` in the environment of a container."""
    variables = (entry for one in rows(pod["spec"].get(CONTAINERS)) for entry in rows(one.get("env")))
    return next((str(entry.get("value") or "") for entry in variables if entry.get("name") == "RANK"), "")

"""The objects that job plugins want: what is known of them, and what is to be done about one that is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from stromboli.controllers.changes import Json, Keep
from stromboli.controllers.pods import JOB_API, JOB_KIND
from stromboli.errors import ObjectInTheWay
from stromboli.job_plugins.wanted import Wanted

FRESH: Final = 10.0
"""Seconds for which an object that was read counts as it was: after that it is read again before pods are made."""
RECHECK: Final = 300.0
"""Seconds until the objects of a job to which nothing happens are read again."""

Name = tuple[str, str]
"""Resource and name."""


class Kept(NamedTuple):
    """An object as it was last seen, at time ``at``, saying what was ``wanted``.

    ``uid`` is empty for one that is not the job's and says so anyway.
    """

    wanted: Wanted
    uid: str
    version: str
    at: float


class KeptObjects:
    """What is known of the objects of each job, by the job's uid."""

    def __init__(self) -> None:
        self._of: dict[str, dict[Name, Kept]] = {}

    def of(self, job_uid: str) -> Mapping[Name, Kept]:
        """What is known of a job's objects."""
        return self._of.get(job_uid, {})

    def note(self, job_uid: str, kept: Kept) -> None:
        """An object has been seen as it is wanted."""
        self._of.setdefault(job_uid, {})[kept.wanted.resource, kept.wanted.name] = kept

    def drop(self, job_uid: str, name: Name) -> None:
        """An object is gone, or nothing is known of it any more."""
        known = self._of.get(job_uid, {})
        known.pop(name, None)
        if not known:
            self._of.pop(job_uid, None)

    def forget(self, job_uid: str) -> None:
        """A job is gone."""
        self._of.pop(job_uid, None)


def is_of(found: Mapping[str, Any], owner_uid: str) -> bool:
    """Whether an object belongs to the job of that uid."""
    owner = _controller(found)
    return owner is not None and owner.get("uid") == owner_uid


def repair(change: Keep, found: Mapping[str, Any], made: Mapping[str, str], kept: Kept | None) -> Json:
    """The merge patch that makes ``found`` what the job needs; empty if it is.

    ``made`` is what the object's maker adds.  An object of another owner is not touched: it may stand in if it
    says what is wanted.  Raises :class:`~stromboli.errors.ObjectInTheWay` where the job has to wait.
    """
    metadata = found.get("metadata", {})
    what = f"{change.wanted.sort.kind} {change.namespace}/{change.wanted.name}"
    if metadata.get("deletionTimestamp"):
        raise ObjectInTheWay(f"{what} is being deleted; it is created again when it is gone")
    difference = change.wanted.difference(found, made)
    if is_of(found, change.owner_uid):
        return difference
    if kept is not None and kept.uid and kept.uid == metadata.get("uid"):
        owners = [*metadata.get("ownerReferences", ()), change.owner]
        return {**difference, "metadata": {"ownerReferences": owners}}
    owner = _controller(found)
    if owner is not None and (owner.get("apiVersion"), owner.get("kind")) == (JOB_API, JOB_KIND):
        raise ObjectInTheWay(f"{what} belongs to another job, maybe an earlier one of that name, until that is gone")
    if difference:
        text = f"{what} is not the job's, and is not what plugin {change.plugin} needs: delete or rename it"
        raise ObjectInTheWay(text)
    return {}


def _controller(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    owners = found.get("metadata", {}).get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)

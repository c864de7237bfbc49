"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had."""

from __future__ import annotations

from typing import Final, NamedTuple

from stromboli.cluster.body import Body, meta, part
from stromboli.server.controllers.workloads.objects import Objects, short_hash, template_of

REVISIONS: Final = ("apps", "controllerrevisions")
HASH: Final = "controller-revision-hash"


class Revisions(NamedTuple):
    """The revision of the present template, and all, the oldest first."""

    present: Body
    all: list[Body]

    @property
    def name(self) -> str:
        """What pods of the present template bear as their label."""
        return str(meta(self.present)["name"])


def revisions_of(objects: Objects, owner: Body) -> Revisions:
    """The revisions of ``owner``, that of its present template made where it is missing.  Raises ApiFailure."""
    known = sorted(objects.owned(owner, REVISIONS), key=_number)
    highest = _number(known[-1]) if known else 0
    data = {"spec": {"template": {**template_of(owner), "$patch": "replace"}}}
    present = next((one for one in known if one.get("data") == data), None)
    if present is None:
        name = f"{meta(owner)['name']}-{short_hash(data)}"
        labels = {**(part(owner, "spec", "selector", "matchLabels") or {}), HASH: name.rpartition("-")[2]}
        present = objects.create(REVISIONS, owner, {"name": name, "labels": labels}, data=data, revision=highest + 1)
    elif _number(present) < highest:
        present = objects.change(REVISIONS, present, {"revision": highest + 1})
    return Revisions(present, sorted(objects.owned(owner, REVISIONS), key=_number))


def forget_old(objects: Objects, owner: Body, revisions: Revisions, used: set[str]) -> None:
    """Delete the oldest revisions that no pod is of, but for as many as asked for."""
    unused = [one for one in revisions.all if meta(one)["name"] not in used and one is not revisions.present]
    limit = int(part(owner, "spec", "revisionHistoryLimit"))
    for one in unused[: max(len(unused) - limit - 1, 0)]:
        objects.delete(REVISIONS, one)


def _number(revision: Body) -> int:
    return int(revision.get("revision", 0))

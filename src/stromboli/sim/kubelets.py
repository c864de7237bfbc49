"""Pods that live and end on the nodes of a world, as their annotations say (:mod:`stromboli.cluster.lives`)."""

from __future__ import annotations

from functools import partial

from stromboli.cluster.body import Body, meta, part, stamp
from stromboli.cluster.events import Deleted
from stromboli.cluster.lives import life_of
from stromboli.sim.world import SimChange, SimWorld, key_of


class Kubelets:
    """Start the pods that are bound, end them when their time is over, and let go those that are told to.

    The pods of a node that has left are gone at once, unless they have done their work.
    """

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._met: set[str] = set()
        self._ending: set[str] = set()
        world.follow(self._hear)
        for change in world.listed():
            self._hear(change)

    def _hear(self, change: SimChange) -> None:
        if change.kind == "Node" and change.how is Deleted:
            self._node_left(str(meta(change.body)["name"]))
        elif change.kind == "Pod":
            self._pod(change)

    def _node_left(self, name: str) -> None:
        for pod in self._world.all("Pod"):
            if part(pod, "spec", "nodeName") == name and part(pod, "status", "phase") != "Succeeded":
                self._world.remove("Pod", key_of(pod))

    def _pod(self, change: SimChange) -> None:
        pod, uid = change.body, meta(change.body)["uid"]
        if change.how is Deleted:
            self._met.discard(uid)
            self._ending.discard(uid)
        elif not part(pod, "spec", "nodeName"):
            return
        elif "deletionTimestamp" in meta(pod):
            self._end(uid, pod)
        elif uid not in self._met:
            self._met.add(uid)
            self._world.timeline.after(life_of(pod).start_after, partial(self._start, key_of(pod), uid))

    def _start(self, key: str, uid: str) -> None:
        pod = self._living(key, uid)
        if pod is None:
            return
        if part(pod, "status", "phase") == "Pending":
            status = {"phase": "Running", "startTime": stamp(self._world.timeline.now)}
            pod = self._world.patch("Pod", key, {"status": status})
        run = life_of(pod).run
        if run.seconds is not None:
            phase = "Failed" if run.exit_code else "Succeeded"
            self._world.timeline.after(run.seconds, partial(self._over, key, uid, phase))

    def _over(self, key: str, uid: str, phase: str) -> None:
        if self._living(key, uid) is not None:
            self._world.patch("Pod", key, {"status": {"phase": phase}})

    def _living(self, key: str, uid: str) -> Body | None:
        """The pod, unless it is gone or told to go."""
        pod = self._world.get("Pod", key)
        there = pod is not None and meta(pod)["uid"] == uid and "deletionTimestamp" not in meta(pod)
        return pod if there else None

    def _end(self, uid: str, pod: Body) -> None:
        if uid not in self._ending:
            self._ending.add(uid)
            grace = meta(pod).get("deletionGracePeriodSeconds") or 0
            self._world.timeline.after(life_of(pod).stops_within(grace), partial(self._gone, key_of(pod), uid))

    def _gone(self, key: str, uid: str) -> None:
        pod = self._world.get("Pod", key)
        if pod is not None and meta(pod)["uid"] == uid:
            self._world.remove("Pod", key)

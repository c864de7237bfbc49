"""What is done to pods besides writing them: binding to a node, and eviction."""

from __future__ import annotations

from collections.abc import Callable

from stromboli.cluster.body import Body, Key, changed, meta, part, stamp, with_meta
from stromboli.server import status_errors
from stromboli.server.admission.admission import World
from stromboli.server.admission.disruption import taken_from
from stromboli.server.print.conditions import with_condition
from stromboli.server.schema.resources import Resource
from stromboli.server.storage.store import Store
from stromboli.server.verbs.writing import Deletion, Options, Writer, deletion_of


class _Binding:
    """What texts call the subresource."""

    title, group, plural, kind = "pods/binding", "", "pods/binding", "Binding"


class Pods:
    """The subresources of pods that are commands."""

    def __init__(
        self, resource: Resource, store: Store, writer: Writer, world: World, clock: Callable[[], float]
    ) -> None:
        self._resource = resource
        self._store = store
        self._writer = writer
        self._world = world
        self._clock = clock

    def bind(self, key: Key, binding: Body, options: Options) -> None:
        """Put a pod on a node, once."""
        pod = self._writer.entry(self._resource, key).body
        node = part(binding, "target", "name")
        if not node:
            cause = status_errors.required("target.name")
            raise status_errors.invalid(_Binding, key[1], [cause])
        self._refuse_binding(pod, binding, key[1])
        annotations = {**(meta(pod).get("annotations") or {}), **(meta(binding).get("annotations") or {})}
        condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        condition["lastTransitionTime"] = stamp(self._clock())
        bound = with_meta(pod, annotations=annotations or None)
        bound = {**bound, "spec": {**pod["spec"], "nodeName": node}, "status": with_condition(pod, condition)}
        if not options.dry_run:
            self._store.put(self._resource.collection, bound)

    def _refuse_binding(self, pod: Body, binding: Body, name: str) -> None:
        why = None
        uid, node = meta(binding).get("uid"), part(pod, "spec", "nodeName")
        if uid and uid != meta(pod).get("uid"):
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta(pod).get('uid')}"
        elif "deletionTimestamp" in meta(pod):
            why = f"pod {name} is being deleted, cannot be assigned to a host"
        elif node:
            why = f'pod {name} is already assigned to node "{node}"'
        elif part(pod, "spec", "schedulingGates"):
            why = f"pod {name} has non-empty .spec.schedulingGates"
        if why is not None:
            raise status_errors.conflict(_Binding, name, why)

    def evict(self, key: Key, eviction: Body, options: Options) -> None:
        """Delete a pod if its disruption budget allows it."""
        pod = self._writer.entry(self._resource, key).body
        how = deletion_of(eviction.get("deleteOptions"))
        budget = taken_from(pod, self._world, stamp(self._clock()))
        if budget is not None and not options.dry_run:
            self._store.put(("policy", "poddisruptionbudgets"), budget)
        self._mark_and_delete(key, pod, how, options)

    def _mark_and_delete(self, key: Key, pod: Body, how: Deletion, options: Options) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastTransitionTime": stamp(self._clock()),
        }
        conditioned = part(pod, "spec", "nodeName") and part(pod, "status", "phase") not in ("Succeeded", "Failed")
        preconditioned = how.uid in (None, meta(pod).get("uid")) and how.version in (None, meta(pod)["resourceVersion"])
        if conditioned and preconditioned and not options.dry_run and "deletionTimestamp" not in meta(pod):
            self._store.put(self._resource.collection, changed(pod, status=with_condition(pod, condition)))
            how = Deletion(how.grace, how.uid, None, how.propagation)
        self._writer.delete(self._resource, key, how, options)

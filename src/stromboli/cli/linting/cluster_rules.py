"""The rules for queues, PodGroups and pods, as one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

import numpy as np

from stromboli.api.scheduling import POD_GROUP_COMPLETED, QUEUE_CLOSED, QUEUE_CLOSING
from stromboli.cli.linting.card_requests import Cards, cards_of, lacking_cards
from stromboli.cli.linting.claim_requests import idle_devices, lacking_devices
from stromboli.cli.linting.findings import Rule, Severity, Spot
from stromboli.errors import ManifestError
from stromboli.filters.devices.book import DeviceBook
from stromboli.framework.config.config import Config
from stromboli.framework.extension.figures import amounts_text, by_name, shown
from stromboli.model.job import Job
from stromboli.model.names import NODE_GROUP_NAME, NODE_GROUP_RESOURCE_LIMITS, OVERCOMMIT_FACTOR, ROOT_QUEUE
from stromboli.model.queue import Queue
from stromboli.model.resources.amounts import MIN, totals
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Amount
from stromboli.model.status import COMPLETED_STATUS
from stromboli.model.task import Task
from stromboli.plugins.nodegroup import NO_RULES, limits_of, read_rules
from stromboli.plugins.overcommit import read_factor
from stromboli.sim.ignored import NOTHING_HEEDED, Heeded
from stromboli.sim.loading import Loading

Amounts = dict[str, float]


class Cluster:
    """Objects as the rules look at them; ``config`` says which queue plugin reads them, if it is known.

    ``heeded`` says which wishes its plugins heed.
    """

    def __init__(self, loading: Loading, config: Config | None = None, heeded: Heeded = NOTHING_HEEDED) -> None:
        self.heeded = heeded
        self.loading, self.state = loading, loading.state
        self.snapshot = loading.state.snapshot()
        self.config = config

    @property
    def queues(self) -> Mapping[str, Queue]:
        """All queues."""
        return self.state.queues

    @cached_property
    def total(self) -> Amounts:
        """What all nodes offer together; empty without nodes."""
        table = self.snapshot.table
        if not len(table):
            return {}
        names, sums = self.state.axes.names, totals(table.alloc)
        return {name: float(value) for name, value in zip(names, sums, strict=False)}

    @cached_property
    def children(self) -> dict[str, list[Queue]]:
        """Queues by parent; those that name none are children of root."""
        found: dict[str, list[Queue]] = {}
        for queue in self.queues.values():
            if queue.name != ROOT_QUEUE:
                found.setdefault(queue.spec.parent or ROOT_QUEUE, []).append(queue)
        return found

    @cached_property
    def jobs(self) -> list[Job]:
        """Jobs that have a PodGroup and are not over."""
        return [job for job in self.state.jobs.values() if job.facts.queue and job.phase != POD_GROUP_COMPLETED]

    @cached_property
    def cards(self) -> Cards:
        """Shared devices, as if no pod held any; none without the plugin that shares them."""
        options = self.config.plugins() if self.config is not None else ()
        return [cards for option in options for cards in cards_of(option, self.snapshot)]

    @cached_property
    def devices(self) -> DeviceBook:
        """Claimed devices, as if no claim had any."""
        return idle_devices(self.snapshot, self.state.tasks.values())

    def uses(self, plugin: str) -> bool:
        """Whether the configuration, if there is one, lists ``plugin``."""
        return self.config is not None and any(option.name == plugin for option in self.config.plugins())


def amounts(written: Mapping[str, Amount] | None) -> Amounts:
    """A resource list in the scheduler's units."""
    return by_name(Resource.from_list(written or {}))


def guarantee(queue: Queue) -> Amounts:
    """What is kept for a queue."""
    return amounts(queue.spec.guarantee.resource if queue.spec.guarantee else None)


def _over(left: Amounts, right: Amounts, names: Mapping[str, float]) -> Iterator[str]:
    """``cpu: 12 > 8`` for each of ``names`` of which there is more on the left."""
    for name in names:
        have, limit = left.get(name, 0), right.get(name, 0)
        if have >= limit + MIN:
            yield f"{name}: {shown(name, have)} > {shown(name, limit)}"


def _added(parts: list[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


# ---------------------------------------------------------------------- objects and names


def _spot(error: ManifestError) -> Spot:
    document = f" (document {error.document})" if error.document else ""
    return Spot(error.problem + document, 0, error.object, error.path, error.file)


def _unusable(cluster: Cluster) -> Iterator[Spot]:
    yield from map(_spot, cluster.loading.problems)


def _odd(cluster: Cluster) -> Iterator[Spot]:
    yield from (_spot(error) for error in cluster.loading.remarks if not _is_dangling(error))


def _dangling(cluster: Cluster) -> Iterator[Spot]:
    for error in filter(_is_dangling, cluster.loading.remarks):
        severity: Severity | None = "warning" if "PriorityClass" in error.problem else None
        yield _spot(error)._replace(severity=severity)


def _is_dangling(error: ManifestError) -> bool:
    return not error.file and not error.document


# ---------------------------------------------------------------------- queues


def _limit_below_guarantee(cluster: Cluster) -> Iterator[Spot]:
    for queue in cluster.queues.values():
        limit = amounts(queue.spec.capability)
        for text in _over(guarantee(queue), limit, limit):
            yield Spot(f"guarantee is beyond capability in {text}", 0, f"Queue {queue.name}", "spec.guarantee.resource")


def _deserved_out_of_bounds(cluster: Cluster) -> Iterator[Spot]:
    for queue in cluster.queues.values():
        deserved, limit = amounts(queue.spec.deserved), amounts(queue.spec.capability)
        for text in _over(deserved, limit, limit):
            yield Spot(f"deserved is beyond capability in {text}", 0, f"Queue {queue.name}", "spec.deserved")
        for text in _over(guarantee(queue), deserved, deserved):
            yield Spot(f"guarantee is beyond deserved in {text}", 0, f"Queue {queue.name}", "spec.deserved")


def _guarantees_beyond_cluster(cluster: Cluster) -> Iterator[Spot]:
    if cluster.total:
        promised = _added([guarantee(queue) for queue in _top(cluster)])
        for text in _over(promised, cluster.total, promised):
            yield Spot(
                f"guarantees of all queues together are beyond the cluster in {text}", 0, "Queues", "spec.guarantee"
            )


def _deserved_beyond_cluster(cluster: Cluster) -> Iterator[Spot]:
    if cluster.total:
        promised = _added([amounts(queue.spec.deserved) for queue in _top(cluster)])
        for text in _over(promised, cluster.total, promised):
            yield Spot(f"deserved of all queues together is beyond the cluster in {text}", 0, "Queues", "spec.deserved")


def _top(cluster: Cluster) -> list[Queue]:
    return cluster.children.get(ROOT_QUEUE, [])


def _children_beyond_parent(cluster: Cluster) -> Iterator[Spot]:
    for name, children in cluster.children.items():
        parent = cluster.queues.get(name)
        if parent is not None and name != ROOT_QUEUE:
            yield from _beyond(parent, children)


def _beyond(parent: Queue, children: list[Queue]) -> Iterator[Spot]:
    where = f"Queue {parent.name}"
    pairs = (
        ("guarantee", guarantee(parent), _added([guarantee(child) for child in children])),
        ("deserved", amounts(parent.spec.deserved), _added([amounts(child.spec.deserved) for child in children])),
    )
    for what, own, theirs in pairs:
        for text in _over(theirs, own, own):
            yield Spot(f"the children's {what} together is beyond its own in {text}", 0, where, f"spec.{what}")
    limit = amounts(parent.spec.capability)
    for child in children:
        for text in _over(amounts(child.spec.capability), limit, limit):
            yield Spot(
                f"capability is beyond that of parent {parent.name} in {text}",
                0,
                f"Queue {child.name}",
                "spec.capability",
            )


def _no_weight(cluster: Cluster) -> Iterator[Spot]:
    for queue in cluster.queues.values():
        if queue.spec.weight < 1 and queue.name != ROOT_QUEUE and not cluster.uses("capacity"):
            yield Spot(f"weight is {queue.spec.weight}", 0, f"Queue {queue.name}", "spec.weight")


def _parents_not_read(cluster: Cluster) -> Iterator[Spot]:
    if cluster.config is None or cluster.uses("capacity"):
        return
    for queue in cluster.queues.values():
        if queue.spec.parent not in ("", ROOT_QUEUE):
            yield Spot(f"parent {queue.spec.parent} is not looked at", 0, f"Queue {queue.name}", "spec.parent")


def _annotation_unusable(cluster: Cluster) -> Iterator[Spot]:
    for queue in cluster.queues.values():
        notes, where = queue.annotations, f"Queue {queue.name}"
        if limits_of(notes, cluster.state.axes) is None:
            text = "the limits are no JSON of groups with amounts"
            yield Spot(text, 0, where, f"metadata.annotations[{NODE_GROUP_RESOURCE_LIMITS}]")
        factor = notes.get(OVERCOMMIT_FACTOR)
        if factor is not None:
            path = f"metadata.annotations[{OVERCOMMIT_FACTOR}]"
            if not read_factor(factor):
                yield Spot(f"{factor[:40]!r} is no decimal of at least 1", 0, where, path)
            elif not any(amounts(queue.spec.deserved).values()):
                yield Spot("a factor of its own needs an amount in spec.deserved", 0, where, path)


def _group_nowhere(cluster: Cluster) -> Iterator[Spot]:
    labels = {spec.labels.get(NODE_GROUP_NAME, "") for spec in cluster.snapshot.table.statics.specs}
    for queue in cluster.queues.values():
        rules, where = read_rules(queue.spec.affinity or {}), f"Queue {queue.name}"
        named = dict.fromkeys((*rules.required, *rules.preferred))
        if rules != NO_RULES and not named and not rules.avoided:
            yield Spot("no group is required or preferred, so none may be used", 0, where, "spec.affinity")
        for group in named if cluster.total else ():
            if group not in labels:
                yield Spot(f"no node is in group {group}", 0, where, "spec.affinity")


# ---------------------------------------------------------------------- jobs


def _job(job: Job, text: str, path: str) -> Spot:
    return Spot(text, 0, f"PodGroup {job.uid}", path)


def _in_a_branch(cluster: Cluster) -> Iterator[Spot]:
    for job in cluster.jobs:
        if job.queue == ROOT_QUEUE or cluster.children.get(job.queue):
            kind = "the root" if job.queue == ROOT_QUEUE else "no leaf: it has children"
            yield _job(job, f"queue {job.queue} is {kind}", "spec.queue")


def _in_a_closed_queue(cluster: Cluster) -> Iterator[Spot]:
    for job in cluster.jobs:
        queue = cluster.queues.get(job.queue)
        if queue is not None and queue.status.state in (QUEUE_CLOSED, QUEUE_CLOSING):
            yield _job(job, f"queue {job.queue} is {queue.status.state}", "spec.queue")


def _never_admitted(cluster: Cluster) -> Iterator[Spot]:
    for job in cluster.jobs:
        asked = {name: value for name, value in amounts(job.group.spec.min_resources).items() if name != "pods"}
        queue = cluster.queues.get(job.queue)
        limit = amounts(queue.spec.capability) if queue is not None else {}
        for text in _over(asked, limit, {name: 0 for name in asked if name in limit}):
            yield _job(
                job, f"minResources is beyond the capability of queue {job.queue} in {text}", "spec.minResources"
            )
        for text in _over(asked, cluster.total, asked) if cluster.total else ():
            yield _job(job, f"minResources is beyond the whole cluster in {text}", "spec.minResources")


def _too_few_pods(cluster: Cluster) -> Iterator[Spot]:
    for job in cluster.jobs:
        waits = any(task.status not in COMPLETED_STATUS for task in job.tasks.values())
        if waits and job.valid_task_num() < job.min_available:
            text = f"minMember is {job.min_available}, but pods that can run are {job.valid_task_num()}"
            yield _job(job, text, "spec.minMember")


def _roles_not_checked(cluster: Cluster) -> Iterator[Spot]:
    for job in cluster.jobs:
        roles = sum(job.facts.task_min.values())
        if roles > job.min_available:
            text = f"minTaskMember adds up to {roles}, more than minMember {job.min_available}"
            yield _job(job, text, "spec.minTaskMember")


def _fits_no_node(cluster: Cluster) -> Iterator[Spot]:
    """Pods that ask for more than any single node offers; each kind of pod once."""
    if not cluster.total:
        return
    seen: dict[int, None] = {}
    for task in cluster.state.tasks.values():
        if task.template.number in seen or task.node_name or task.status in COMPLETED_STATUS:
            continue
        seen[task.template.number] = None
        if not _offered(cluster, task):
            request = {name: value for name, value in by_name(task.request).items() if name != "pods"}
            yield Spot(f"no node offers {amounts_text(request)} at once", 0, f"Pod {task.key}", "spec.containers")
        elif cards := lacking_cards(cluster.cards, task):
            yield Spot(cards, 0, f"Pod {task.key}", "spec.containers")
        elif claims := lacking_devices(cluster.devices, task) if task.claims else "":
            yield Spot(claims, 0, f"Pod {task.key}", "spec.resourceClaims")


def _offered(cluster: Cluster, task: Task) -> bool:
    """Whether any node, if it were idle, had room for ``task``."""
    vector = task.template.vector
    columns = [column for column, amount in enumerate(vector) if amount]
    want = np.array([vector[column] for column in columns], dtype=np.int64)
    return bool((cluster.snapshot.table.alloc[columns] >= want[:, None]).all(axis=0).any())


CLUSTER_RULES: Final[tuple[Rule[Cluster], ...]] = (
    Rule("unusable-object", "error", _unusable,
         "The object is left out, as if it were not there.",
         "Correct the field."),
    Rule("dangling-name", "error", _dangling,
         "What refers to an object that is not there, or to itself in a circle, is not scheduled, or not as meant.",
         "Add the object, or correct the name."),
    Rule("odd-object", "warning", _odd,
         "It does no harm, but was hardly meant so.",
         "Keep one object of a name, and no file without any."),
    Rule("limit-below-guarantee", "error", _limit_below_guarantee,
         "The queue cannot use all of its guarantee, and the rest is kept from other queues.",
         "Raise the capability, or lower the guarantee."),
    Rule("deserved-out-of-bounds", "error", _deserved_out_of_bounds,
         "guarantee <= deserved <= capability must hold; otherwise shares are cut in unexpected places.",
         "Bring the three into this order."),
    Rule("guarantees-beyond-cluster", "error", _guarantees_beyond_cluster,
         "Not all guarantees can be kept, and other queues get nothing at all.",
         "Lower guarantees, or add nodes."),
    Rule("deserved-beyond-cluster", "warning", _deserved_beyond_cluster,
         "Queues may stay below what they deserve without any queue having too much, so nothing is reclaimed for them.",
         "Let the deserved amounts add up to the cluster."),
    Rule("children-beyond-parent", "error", _children_beyond_parent,
         "The parent's values limit its children, so what they are promised beyond it cannot be given.",
         "Lower the children's values, or raise the parent's."),
    Rule("no-weight", "warning", _no_weight,
         "proportion shares by weight: a queue without any deserves nothing.",
         "Give it a weight of 1 or more."),
    Rule("parents-not-read", "warning", _parents_not_read,
         "Only capacity reads parents of queues; with this configuration the tree is flat.",
         "Use capacity with enableHierarchy, or take the parents out."),
    Rule("unusable-annotation", "error", _annotation_unusable,
         "A queue with unreadable limits gets no pods placed; one with an unreadable factor admits no jobs.",
         "Correct the annotation, or remove it."),
    Rule("group-nowhere", "warning", _group_nowhere,
         "nodegroup lets a queue use only groups that it requires, prefers or merely avoids.",
         "Name a group, or label nodes with volcano.sh/nodegroup-name."),
    Rule("not-in-a-leaf", "warning", _in_a_branch,
         "Queues with children are for sums; with capacity's hierarchy their own jobs are never admitted.",
         "Put the job into a leaf of the tree."),
    Rule("closed-queue", "warning", _in_a_closed_queue,
         "A queue that is not Open admits nothing.",
         "Open the queue, or put the job into another."),
    Rule("never-admitted", "error", _never_admitted,
         "enqueue admits a job only when all its minResources have room at once.",
         "Lower minResources, or raise the queue's capability or the cluster."),
    Rule("too-few-pods", "error", _too_few_pods,
         "A gang starts when minMember of its pods can; with fewer pods it never does.",
         "Create the missing pods, or lower minMember."),
    Rule("roles-not-checked", "note", _roles_not_checked,
         "Minimums by role count only where minMember covers their sum.",
         "Raise minMember to the sum, or lower the minimums by role."),
    Rule("fits-no-node", "error", _fits_no_node,
         "The pod waits for ever, however idle the cluster is.",
         "Ask for less, or add a node that is large enough."),
)  # fmt: skip
"""All rules for objects."""

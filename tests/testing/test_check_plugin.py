"""The conformance kit passes honest plugins, and says of each kind of flaw which hook has it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from stromboli.builtin import builtin_registry
from stromboli.framework.session.reference import ReferenceView
from stromboli.plugin import (
    Plugin,
    Reason,
    allocatable,
    arg,
    batch_node_order,
    best_node,
    by_template,
    job_order,
    job_ready,
    job_starving,
    node_order,
    on_allocate,
    on_deallocate,
    pre_predicate,
    predicate,
    preemptable,
    preemptive,
    queue_order,
    reclaimable,
)
from stromboli.testing.check_plugin import check_plugin

BIG = Reason("node is too big")


@pytest.mark.parametrize("name", builtin_registry().plugin_names)
def test_built_in_plugins_pass(name) -> None:
    made_by = builtin_registry().plugin_class(name)
    assert made_by is not None
    check_plugin(made_by, examples=25)


def test_arguments_reach_the_plugin() -> None:
    binpack = builtin_registry().plugin_class("binpack")
    assert binpack is not None
    check_plugin(binpack, {"binpack.cpu": 7, "binpack.resources": "nvidia.com/gpu"}, examples=10)
    with pytest.raises(AssertionError, match=r"plugin binpack, arguments: Could not parse argument: seven"):
        check_plugin(binpack, {"binpack.cpu": "seven"}, examples=10)


# -- Honest plugins --------------------------------------------------------------------------------------------------


class Honest(Plugin):
    """Hooks of all kinds that keep their promises."""

    name = "honest"
    weight = arg("honest.weight", float, 1.5)

    def on_session_open(self, session) -> None:
        self.session = session
        self.table = session.table
        self.held: dict[str, int] = {}

    @predicate
    def keyless(self, task, node):
        return (BIG, Reason("and odd")) if node.row % 2 and task.name.endswith("1") else None

    @predicate.vector(key=lambda task: task.labels.get("app"), static=True, reasons=(BIG,))
    def by_label(self, task, nodes):
        return nodes.alloc[0] < 8000 if task.labels.get("app") == "a" else None

    @predicate.vector(key=lambda task: None, reads=("cluster",), reasons=(Reason("too many"),), row="crowded_node")
    def crowded(self, _task, nodes):
        return np.full(len(nodes), len(self.session.ledger.log) < 3)

    def crowded_node(self, _task, _node):
        return Reason("too many") if len(self.session.ledger.log) >= 3 else None

    @node_order.vector(key=lambda task: task.template, row="room_on")
    def room(self, task, nodes):
        return (nodes.alloc[0] - nodes.used[0] - task.template.vector[0]) * self.weight

    def room_on(self, task, node):
        return (
            float(node.table.alloc[0, node.row] - node.table.used[0, node.row] - task.template.vector[0]) * self.weight
        )

    @batch_node_order.raw(key=lambda task: None, normalise="to_hundred")
    def use(self, _task, nodes):
        return nodes.used[1]

    def to_hundred(self, _task, raw, low, high):
        return (raw - low) / max(high - low, 1.0) * 100

    @job_order
    def bigger_first(self, left, right):
        return len(right.tasks) - len(left.tasks)

    @job_order.key
    def size(self, job):
        return -len(job.tasks)

    @allocatable
    def at_most_two(self, queue, task):
        return self.held.get(queue.name, 0) < 2

    @allocatable.many
    def of_many(self, queue, task, k):
        return max(0, min(k, 2 - self.held.get(queue.name, 0)))

    @job_ready
    def has_two(self, job):
        return job.ready_task_num() >= 2

    @job_ready.many
    def after_many(self, job, task, k):
        needed = max(1, 2 - job.ready_task_num())
        return needed if needed <= k else k + 1

    @on_allocate
    def come(self, event):
        self._count(event.task, 1)

    @on_allocate.many
    def come_many(self, task, rows):
        self._count(task, len(rows))

    @on_deallocate
    def leave(self, event):
        self._count(event.task, -1)

    @on_deallocate.many
    def leave_many(self, task, rows):
        self._count(task, -len(rows))

    def _count(self, task, number) -> None:
        queue = self.session.job_of(task).queue
        self.held[queue] = self.held.get(queue, 0) + number


def test_an_honest_plugin_passes() -> None:
    check_plugin(Honest)


# -- Flaws -----------------------------------------------------------------------------------------------------------


class Flawed(Plugin):
    """Base of what follows: remembers the session."""

    def on_session_open(self, session) -> None:
        self.session, self.held = session, 0


class WrongRowForm(Flawed):
    name = "row"

    @predicate.vector(key=lambda task: None, reasons=(BIG,), row="one")
    def fits(self, _task, nodes):
        return nodes.alloc[0] < 4000

    def one(self, _task, node):
        return BIG if node.allocatable.milli_cpu > 4000 else None


class NeighbouringRows(Flawed):
    name = "neighbours"

    @node_order.vector(key=lambda task: None)
    def rank(self, _task, nodes):
        return np.argsort(np.argsort(nodes.alloc[0]))


class TableInsteadOfRows(Flawed):
    name = "table"

    @node_order.vector(key=lambda task: None)
    def use(self, _task, nodes):
        return self.session.table.used[0][nodes.rows]


class LeakyKey(Flawed):
    name = "leaky"

    @predicate(key=lambda task: task.namespace)
    def fits(self, task, node):
        return BIG if task.labels.get("app") == "a" else None


class UnhashableKey(Flawed):
    name = "unhashable"

    @node_order(key=lambda task: task.labels)
    def score(self, _task, _node):
        return 1.0


class SecretReader(Flawed):
    name = "secret"

    @node_order(key=lambda task: None)
    def busy(self, _task, _node):
        return float(len(self.session.ledger.log))


class NotStatic(Flawed):
    name = "moving"

    @predicate.vector(key=lambda task: None, static=True, reasons=(BIG,))
    def idle(self, _task, nodes):
        return nodes.used[0] < 1000


class Jointly(Flawed):
    name = "jointly"

    @batch_node_order.raw(key=lambda task: None, normalise="share")
    def raw(self, _task, nodes):
        return nodes.alloc[0]

    def share(self, _task, raw, low, high):
        return raw / raw.sum()


class ReadsNames(Flawed):
    name = "names"

    @node_order.vector(key=lambda task: None, amounts=True)
    def score(self, _task, nodes):
        return nodes.rows


class NoLimit:
    def __init__(self, nodes):
        self.rows, self.domains = np.ones(nodes, dtype=bool), np.zeros(nodes, dtype=np.intp)

    def admits(self, _domain):
        return True

    def place(self, _domain):
        return False


class Unlimited(Flawed):
    name = "unlimited"

    def on_session_open(self, session):
        self.session = session

    @predicate.vector(key=lambda task: task.template, reads=("cluster",), reasons=(BIG,), limit="none")
    def first_alone(self, _task, nodes):
        return np.full(len(nodes), not self.session.ledger.log)

    def none(self, _task):
        return NoLimit(len(self.session.table))


class Unlike(Flawed):
    name = "unlike"

    @batch_node_order.raw(key=lambda task: None, reads=("job",), normalise="as_it_is", alike="one_score")
    def raw(self, _task, nodes):
        return nodes.rows

    def as_it_is(self, _task, raw, _low, _high):
        return raw

    def one_score(self, _task, _nodes, count):
        return np.zeros(count)


class WrongShape(Flawed):
    name = "shape"

    @node_order.vector(key=lambda task: None)
    def score(self, _task, _nodes):
        return np.zeros(3)


class WrongType(Flawed):
    name = "type"

    @predicate(key=lambda task: None)
    def fits(self, _task, _node):
        return "no"


class NoNumber(Flawed):
    name = "nan"

    @node_order(key=lambda task: None)
    def score(self, _task, _node):
        return float("nan")


class UnknownBit(Flawed):
    name = "bit"

    @predicate.vector(key=lambda task: None, reasons=(BIG,))
    def fits(self, _task, nodes):
        return np.full(len(nodes), 2, dtype=np.uint64)


class Raising(Flawed):
    name = "raising"

    @node_order
    def score(self, task, _node):
        return 1 / len(task.labels)


class BadOpening(Flawed):
    name = "opening"

    def on_session_open(self, session) -> None:
        raise ValueError("closed")


class Contradicting(Flawed):
    name = "contradicting"

    @queue_order
    def always(self, _left, _right):
        return -1


class WrongKeyOrder(Flawed):
    name = "upside-down"

    @job_order
    def bigger_first(self, left, right):
        return len(right.tasks) - len(left.tasks)

    @job_order.key
    def size(self, job):
        return len(job.tasks)


class Counting(Flawed):
    """Counts the events that it gets."""

    name = "counting"

    @on_allocate
    def come(self, _event):
        self.held += 1

    @on_allocate.many
    def come_many(self, _task, rows):
        self.held += len(rows)

    @on_deallocate
    def leave(self, _event):
        self.held -= 1

    @on_deallocate.many
    def leave_many(self, _task, rows):
        self.held -= len(rows)


class Generous(Counting):
    name = "generous"

    @allocatable
    def at_most_two(self, _queue, _task):
        return self.held < 2

    @allocatable.many
    def of_many(self, _queue, _task, k):
        return min(k, 3 - self.held)


class Hasty(Counting):
    name = "hasty"

    @job_ready
    def has_two(self, job):
        return job.ready_task_num() >= 2

    @job_ready.many
    def after_many(self, _job, _task, _k):
        return 1


class Forgetful(Counting):
    name = "forgetful"

    @on_allocate.many
    def come_many(self, _task, _rows):
        self.held += 1

    @job_order
    def by_count(self, left, right):
        return ((left.uid > right.uid) - (left.uid < right.uid)) * (1 if self.held else -1)

    @node_order(key=lambda task: None, reads=("cluster",))
    def score(self, _task, _node):
        return float(self.held)


class NoCandidate(Flawed):
    name = "nowhere"

    def on_session_open(self, session) -> None:
        self.session = session

    @predicate
    def not_the_first(self, _task, node):
        return BIG if node.name == ReferenceView(self.session).node_list[0].name else None

    @best_node
    def first_of_all(self, _task, _nodes_by_score):
        return ReferenceView(self.session).node_list[0]


class NoVictims(Flawed):
    name = "names"

    @preemptable
    def all_by_name(self, _preemptor, preemptees):
        return [task.name for task in preemptees]


class Herd(Flawed):
    """Lets pods go together alone."""

    name = "herd"

    @reclaimable(protects=True)
    def several(self, _reclaimer, reclaimees):
        return reclaimees if len(reclaimees) > 1 else []


class OneInAll(Flawed):
    """Names one candidate, of whatever job."""

    name = "one"

    @preemptable(own=True)
    def the_first(self, _preemptor, preemptees):
        return preemptees[:1]


class Busy(Flawed):
    """Names every candidate while nothing has been placed."""

    name = "busy"

    def on_session_open(self, session) -> None:
        self.table, self.before = session.table, session.table.used.copy()

    @reclaimable(own=True)
    def at_first(self, _reclaimer, reclaimees):
        return reclaimees if (self.table.used == self.before).all() else []


class ByName(Flawed):
    """Allows jobs by their names, and says that this follows from their priorities."""

    name = "by-name"

    @reclaimable
    def all_of_them(self, _reclaimer, reclaimees):
        return reclaimees

    @reclaimable.job(by_priority=True)
    def even(self, _reclaimer, job):
        return int(job.name[-1:], 36) % 2 == 0


class Choosy(Flawed):
    """Allows a queue one more pod where the first one is even."""

    name = "choosy"

    def on_session_open(self, session) -> None:
        self.session = session

    def _odd(self) -> bool:
        placed = [task for task, _, sign in self.session.ledger.log if sign > 0 and task.status.name == "Pipelined"]
        return any(int(task.name.rpartition("-")[2]) % 2 for task in placed if task.name[-1:].isdigit())

    @allocatable
    def not_after_odd(self, _queue, _task):
        return not self._odd()

    @allocatable.many(own=True)
    def none_after_odd(self, _queue, _task, k):
        return 0 if self._odd() else k


class Pairs(Flawed):
    """Lets queues take room back for two pods and more, but never for one alone."""

    name = "pairs"

    @preemptive(own=True)
    def several(self, _queue, tasks):
        return len(tasks) != 1


class Greedy(Flawed):
    """Promises that jobs with all pods running are content, and says that they starve."""

    name = "greedy"

    @job_starving(own=True)
    def never_content(self, _job):
        return True


class Sated(Flawed):
    """Says that any job starves for one more pod, and goes on to starve."""

    name = "sated"

    @job_starving
    def always(self, _job):
        return True

    @job_starving.many
    def one_more(self, _job, _task, _k):
        return 1


class Evens(Flawed):
    """Refuses every second pod, and says that this follows from its template."""

    name = "evens"

    @pre_predicate(key=by_template)
    def odd_ones(self, task):
        return BIG if task.index % 2 else None


@pytest.mark.parametrize(
    ("flawed", "sentence"),
    [
        (WrongRowForm, r"plugin row, predicate.vector: says \('node is too big',\) .* in the form for one node, one,"),
        (NeighbouringRows, r"plugin neighbours, node_order.vector: says .* but asked"),
        (TableInsteadOfRows, r"plugin table, node_order.vector: says .* when asked beforehand; read amounts from"),
        (LeakyKey, r"plugin leaky, predicate: says .* yet both have key '\w+'"),
        (UnhashableKey, r"plugin unhashable, node_order: its key \{.*\} cannot be hashed"),
        (SecretReader, r"plugin secret, node_order: said 0.0 .* though nothing happened there; declare reads="),
        (NotStatic, r"plugin moving, predicate.vector: said .* though it is static"),
        (Jointly, r"plugin jointly, batch_node_order.raw, normalise=share: makes of raw score"),
        (Unlimited, r"plugin unlimited, predicate.vector, limit=none: says .* but the limit True"),
        (ReadsNames, r"plugin names, node_order.vector: said .* which has the same amounts; leave out amounts="),
        (Unlike, r"plugin unlike, batch_node_order.raw, alike=one_score: says that 0.0 is the raw score of all of 2"),
        (Evens, r"plugin evens, pre_predicate: says .* of Task.* and .* of Task.*; yet both have one template"),
        (WrongShape, r"plugin shape, node_order.vector: raised .* a finite number a row, not float64 of shape \(3,\)"),
        (WrongType, r"plugin type, predicate: raised .* None, a Reason or a tuple of Reasons, not 'no'"),
        (NoNumber, r"plugin nan, node_order: raised .* must answer a finite number, not nan"),
        (UnknownBit, r"plugin bit, predicate.vector: raised .* a mask of 1 reasons, not uint64 of shape"),
        (Raising, r"plugin raising, node_order: raised ZeroDivisionError"),
        (BadOpening, r"plugin opening, on_session_open: plugin opening: ValueError: closed"),
        (Contradicting, r"plugin contradicting, queue_order: says -1 .* but -1 the other way round"),
        (WrongKeyOrder, r"plugin upside-down, job_order.key: gives .* job_order says"),
        (Generous, r"plugin generous, allocatable.many: says 3 for 3 tasks like .* one by one it is 2"),
        (Hasty, r"plugin hasty, job_ready.many: says 1 for 1 tasks like .* one by one it is 2"),
        (Forgetful, r"plugin forgetful, on_allocate.many and on_deallocate.many: told at once, after .*; told task by"),
        (NoCandidate, r"plugin nowhere, in a cycle: TypeError: best_node must answer one of the nodes or None, not"),
        (NoVictims, r"plugin names, preemptable: raised .* must answer a list of tasks, or None to abstain, not \['"),
        (OneInAll, r"plugin one, preemptable: names \[\] of .*, and \[Task.* though no task of that job has moved"),
        (ByName, r"plugin by-name, reclaimable.job: says .* and .* of .*, of the same queue and priority; leave out"),
        (Busy, r"plugin busy, reclaimable: names \[Task.* of .*, and \[\] though no task of that job has moved; leave"),
        (Choosy, r"plugin choosy, allocatable.many: says \[1, 0.*\] for Task.* when in turn each of .*; leave out"),
        (Pairs, r"plugin pairs, preemptive: allows \[Task.*\] together, but not Task.* are placed; leave out own="),
        (Sated, r"plugin sated, job_starving.many: says 1 for 1 tasks like .* one by one it is 2"),
        (Greedy, r"plugin greedy, job_starving: says that Job.* starves, all of whose tasks run; leave out own="),
        (Herd, r"plugin herd, reclaimable: protects, lets Task\(.*\) go among others, and does not let it go alone"),
    ],
)  # fmt: skip
def test_flaws_are_found(flawed, sentence) -> None:
    with pytest.raises(AssertionError, match=sentence) as failure:
        check_plugin(flawed)
    assert re.search(r"for example in this cluster:\n\{|even in an empty cluster", str(failure.value))
    assert len(str(failure.value).splitlines()) <= 10

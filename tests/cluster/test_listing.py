"""The listing of jobs: whatever comes, goes and changes, it shows what would be listed from scratch."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cluster.events import Deleted, Modified
from stromboli.cluster.listing import Listing
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.framework.books.candidates import jobs_by_priority
from stromboli.framework.books.phases import unsettled
from stromboli.model.job import BOUND, PENDING, RUNNING, Job, JobFacts
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue, state

QUEUES = ("a", "b", "c")


class Step(NamedTuple):
    """One change: of the job ``number``, or of a queue; ``shows`` says whether a snapshot is taken after it."""

    what: str
    number: int
    created: int
    queue: str
    shows: bool


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(("come", "come", "go", "change", "replace", "settle", "settle", "queue")),
        st.integers(0, 5),
        st.integers(0, 3),
        st.sampled_from(("", *QUEUES)),
        st.booleans(),
    ),
    max_size=30,
)


def _facts(uid: str, step: Step) -> JobFacts:
    group = msgspec.structs.replace(Job(uid).facts.group, created=step.created, evicted_whole=step.created == 3)
    facts = JobFacts(group, step.queue)
    facts.priority = step.created % 2
    return facts


class _Jobs:
    """Jobs, and a listing that is kept up to date as a state does it."""

    def __init__(self, there: Sequence[Step] = ()) -> None:
        """``there`` are jobs that were there without an event, as a record's beginning has them."""
        self.jobs = {uid: Job(uid, _facts(uid, one)) for one in there for uid in [f"ns/{one.number}"]}
        self.queues = {"a", "b"}
        self.listing = Listing()

    def take(self, step: Step) -> None:
        uid = f"ns/{step.number}"
        if step.what == "queue":
            if step.queue:
                self.queues ^= {step.queue}
                self.listing.regroup()
        elif step.what == "come":
            job = Job(uid, _facts(uid, step))
            job.index = {RUNNING: {}} if step.created else {}
            self._set(job)
            self.listing.move(uid)
        elif uid in self.jobs:
            self._change(uid, step)

    def _change(self, uid: str, step: Step) -> None:
        if step.what == "go":
            del self.jobs[uid]
            self.listing.move(uid)
        elif step.what == "change":
            job = self.jobs[uid].copy()
            job.facts = _facts(uid, step)
            job.index = {RUNNING: {}} if step.number % 2 else {PENDING: {}}
            self._set(job)
            self.listing.move(uid)
        elif step.what == "replace":
            job = self.jobs[uid].copy()
            self._set(job)
            job.index = {BOUND: {}} if step.created else {}  # it changes until it is shown
        else:
            self.jobs[uid].settled = True

    def _set(self, job: Job) -> None:
        self.jobs[job.uid] = job
        self.listing.replace(job)

    def expected(self) -> list[str]:
        """The jobs that are to be shown, from scratch."""
        order = sorted(self.jobs.values(), key=lambda job: (job.created, job.uid))
        return [job.uid for job in order if job.facts.queue in self.queues]


@given(STEPS, STEPS)
def test_what_is_shown_is_what_would_be_listed_from_scratch(there: Sequence[Step], steps: Sequence[Step]) -> None:
    one = _Jobs(there)
    for step in steps:
        one.take(step)
        if not step.shows:
            continue
        shown, holdings, queueless = one.listing.shown(one.jobs, one.queues, ())
        assert list(shown) == list(holdings) == one.expected()
        assert all(shown[uid] is one.jobs[uid] for uid in shown)
        assert all(holdings[uid] is one.jobs[uid].sums.held for uid in shown)
        others = {uid: job.facts.queue for uid, job in one.jobs.items() if uid not in shown and job.facts.queue}
        assert queueless == others


@given(STEPS, STEPS)
def test_open_jobs_leave_no_job_out_that_is_not_settled(there: Sequence[Step], steps: Sequence[Step]) -> None:
    one = _Jobs(there)
    for step in steps:
        one.take(step)
        if step.shows:
            shown, _, _ = one.listing.shown(one.jobs, one.queues, ())
            among = one.listing.open_jobs()
            assert list(unsettled(shown, among)) == list(unsettled(shown))
            assert sum(bool(shown[uid].settled) for uid in among) <= len(QUEUES)


@given(STEPS, STEPS)
def test_jobs_by_priority_are_those_that_would_be_found_from_scratch(
    there: Sequence[Step], steps: Sequence[Step]
) -> None:
    one, kept = _Jobs(there), list[tuple[object, object]]()
    for step in steps:
        one.take(step)
        if step.shows:
            shown, _, _ = one.listing.shown(one.jobs, one.queues, ())
            found = one.listing.by_priority()
            assert found == jobs_by_priority(shown)
            kept.append((found, deepcopy(found)))
    assert all(found == before for found, before in kept), "what a snapshot has seen stays"


def test_failed_jobs_are_left_out() -> None:
    one = _Jobs()
    for number in range(3):
        one.take(Step("come", number, 0, "a", False))
    shown, holdings, queueless = one.listing.shown(one.jobs, one.queues, {"ns/1"})
    assert (list(shown), list(holdings), queueless) == (["ns/0", "ns/2"], ["ns/0", "ns/2"], {})


@given(STEPS, STEPS)
def test_what_was_shown_stays_and_is_shown_again_until_something_changes(
    there: Sequence[Step], steps: Sequence[Step]
) -> None:
    one = _Jobs(there)
    before = one.listing.shown(one.jobs, one.queues, ())
    assert one.listing.shown(one.jobs, one.queues, ()).jobs is before.jobs
    then = [list(part.items()) for part in before]
    for step in steps:
        one.take(step)
        one.listing.shown(one.jobs, one.queues, ())
        assert [list(part.items()) for part in before] == then


def tell(cluster: ClusterState, *objects: Manifest, gone: bool = False) -> None:
    for each in objects:
        cluster.apply((Deleted if gone else Modified)(each["kind"], from_value(each["kind"], each)))


ORPHAN = pod("p", group="g")
GONE = [
    pytest.param((ORPHAN,), id="the pod of a PodGroup that never came"),
    pytest.param((pod_group("g"), ORPHAN), id="the PodGroup, then its pod"),
    pytest.param((ORPHAN, pod_group("g")), id="the pod, then its PodGroup"),
]


@pytest.mark.parametrize("gone", GONE)
def test_a_job_that_is_gone_is_in_no_later_list(gone: Sequence[Manifest]) -> None:
    """A new queue has all jobs listed again: those that are no more must have left their order by then."""
    cluster = state(node("n"), pod_group("stays"))
    tell(cluster, *gone)
    cluster.set_hyper_nodes("default/g", "rack", {})
    assert "default/stays" in cluster.snapshot().jobs
    for each in gone:
        tell(cluster, each, gone=True)
        cluster.snapshot()
    assert list(cluster.jobs) == ["default/stays"]
    tell(cluster, queue("another"))
    assert list(cluster.snapshot().jobs) == ["default/stays"]


def test_a_job_without_its_pod_group_is_listed_no_more() -> None:
    cluster = state(node("n"), pod_group("g"), ORPHAN)
    assert list(cluster.snapshot().jobs) == ["default/g"]
    tell(cluster, pod_group("g"), gone=True)
    assert (list(cluster.snapshot().jobs), list(cluster.jobs)) == ([], ["default/g"])
    tell(cluster, pod_group("g"))
    assert list(cluster.snapshot().jobs) == ["default/g"]


def test_a_listing_is_copied_once_after_a_snapshot_however_often_it_changes() -> None:
    jobs = {uid: Job(uid, JobFacts(Job(uid).facts.group, "q")) for uid in ("ns/a", "ns/b")}
    listing = Listing()
    for uid in jobs:
        listing.move(uid)
    shown = listing.shown(jobs, {"q"}, set()).jobs
    listing.replace(jobs["ns/a"].copy())
    first = listing._listed
    listing.replace(jobs["ns/b"].copy())
    assert listing._listed is first is not shown
    assert list(map(id, shown.values())) == list(map(id, jobs.values()))


def test_later_events_change_no_snapshot_and_a_job_is_copied_once_after_each() -> None:
    """The job comes with its pod; its group and two more pods come later."""
    cluster = state(node("n1"), queue("default"), pod("a", group="g"), complete=False)
    made = cluster.jobs["default/g"]
    cluster.apply(Modified("PodGroup", from_value("PodGroup", pod_group("g"))))
    assert cluster.jobs["default/g"] is made
    first = cluster.snapshot()
    assert first.jobs["default/g"] is made
    cluster.apply(Modified("Pod", from_value("Pod", pod("b", group="g"))))
    copied = cluster.jobs["default/g"]
    assert copied is not made
    cluster.apply(Modified("Pod", from_value("Pod", pod("c", group="g"))))
    assert cluster.jobs["default/g"] is copied
    second = cluster.snapshot()
    cluster.apply(Deleted("Pod", from_value("Pod", pod("a", group="g"))))
    names = [[task.name for task in found.jobs["default/g"].tasks.values()] for found in (first, second)]
    assert names == [["a"], ["a", "b", "c"]]
    assert [task.name for task in cluster.snapshot().jobs["default/g"].tasks.values()] == ["b", "c"]

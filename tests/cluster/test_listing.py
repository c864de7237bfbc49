"""The listing of jobs: whatever comes, goes and changes, it shows what would be listed from scratch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cluster.listing import Listing
from stromboli.framework.books.phases import unsettled
from stromboli.model.job import Job, JobFacts

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
    group = msgspec.structs.replace(Job(uid).facts.group, created=step.created)
    return JobFacts(group, step.queue)


class _Jobs:
    """Jobs, and a listing that is told as a state tells it."""

    def __init__(self, there: Sequence[Step] = ()) -> None:
        """``there`` are jobs that nobody told of, as a record's beginning has them."""
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
            self._set(Job(uid, _facts(uid, step)))
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
            self._set(job)
            self.listing.move(uid)
        elif step.what == "replace":
            self._set(self.jobs[uid].copy())
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

"""A reach that one job leaves to the next says the same as one counted anew."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.framework.candidates import Candidates
from stromboli.framework.session import Session
from stromboli.model.job import Job
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench

REQUESTS = [np.array([cores * 1000, 0, 0, 0], dtype=np.int64) for cores in (1, 2, 3)]


def cluster() -> Bench:
    """Two nodes of three cores, on each a pod of ``a`` and one of ``b``."""
    nodes = [node(f"n{number}", cpu=3) for number in range(2)]
    groups = [pod_group(name, min_member=1, phase="Running") for name in "ab"]
    return Bench([*nodes, *groups, *(pod(f"{name}-{i}", group=name, on=f"n{i}") for name in "ab" for i in range(2))])


def of_a(job: Job) -> bool:
    return job.name == "a"


def fresh(session: Session) -> Candidates:
    return Candidates(session.snapshot, session.jobs, session.ledger)


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_reach_is_up_to_date_whoever_asked_for_it_before(request_: np.ndarray) -> None:
    with cluster().open() as session:
        first = session.candidates.reach(of_a)
        for asked in REQUESTS:
            first.hopeful(session.table, [0], asked)
        statement = session.statement()
        statement.evict(
            next(task for job in session.jobs.values() for task in job.tasks.values() if task.key == "default/a-0"), "t"
        )
        again, new = session.candidates.reach(of_a), fresh(session).reach(of_a)
        assert again is first
        assert again.count.tolist() == new.count.tolist() == [0, 1]
        assert again.freed.tolist() == new.freed.tolist()
        hopeful = again.hopeful(session.table, [0], request_)
        assert hopeful.tolist() == new.hopeful(session.table, [0], request_).tolist()
        assert session.candidates.reach(lambda job: True) is not first
        assert session.candidates.reach(of_a, bound=False) is not first
        statement.discard()
        assert session.candidates.reach(of_a).count.tolist() == [1, 1]

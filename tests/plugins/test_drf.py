from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.framework.extension.handlers import TaskEvent
from stromboli.model.job import ALLOCATED, PENDING, RUNNING
from stromboli.model.names import HIERARCHY, HIERARCHY_WEIGHTS
from stromboli.plugins.drf import Drf
from tests.plugins.support import GPU, FakeSession, make_job, make_queue, make_task, opened

TEN = {"cpu": 10, "memory": 1000, "pods": 100, GPU: 10}


def plugin_with(*jobs, total=TEN, **settings):
    session = FakeSession(total, jobs=jobs, **settings)
    return opened(Drf(), session), session


@pytest.mark.parametrize(
    ("asks", "count", "share"),
    [
        pytest.param({"cpu": 1}, 3, 0.3, id="cpu"),
        pytest.param({"cpu": 1, "memory": 200}, 3, 0.6, id="the-dominant-one"),
        pytest.param({"cpu": "100m"}, 3, 0.03, id="cpu-and-pods-alike"),
        pytest.param({}, 4, 0.04, id="pods-count"),
        pytest.param({"example.com/fpga": 1}, 2, 0.02, id="not-offered"),
        pytest.param({"cpu": 1}, 0, 0.0, id="nothing"),
    ],
)
def test_share(asks, count, share):
    job = make_job(tasks={"Running": count, "Pending": 2}, asks=asks)
    plugin, _ = plugin_with(job)
    assert plugin.share(job) == pytest.approx(share)


def test_pipelined_tasks_count():
    job = make_job(tasks={"Running": 1, "Pipelined": 1, "Releasing": 1})
    plugin, _ = plugin_with(job)
    assert plugin.share(job) == pytest.approx(0.2)


def test_poorer_jobs_first_as_placements_go_on():
    left, right = make_job("ns/l", {"Pending": 2}), make_job("ns/r", {"Running": 1})
    plugin, session = plugin_with(left, right)
    answers = []
    for task in [None, *left.tasks.values()]:
        if task:
            session.place(task)
        answers.append(plugin.poorer_first(session.jobs["ns/l"], session.jobs["ns/r"]))
    assert answers == [-1, 0, 1]
    session.place(task, PENDING)
    assert plugin.poorer_first(session.jobs["ns/l"], session.jobs["ns/r"]) == 0


def test_victims_are_those_without_which_their_job_is_no_poorer():
    """The worked example: total 10; the preemptor comes to .2; B's shares are .3, .2, .1, 0."""
    mine, theirs = make_job("ns/a", {"Running": 1, "Pending": 1}), make_job("ns/b", {"Running": 4})
    plugin, session = plugin_with(mine, theirs)
    preemptor, candidates = mine.tasks["ns/a/pending-0"], list(theirs.tasks.values())
    assert plugin.richer(preemptor, candidates) == candidates[:2]
    assert [told["preemptee_share"] for told in session.told("drf_refused")] == pytest.approx([0.1, 0.0])
    assert session.told("drf_victims") == [{"victims": ["ns/running-0", "ns/running-1"]}]


amounts = st.fixed_dictionaries({"cpu": st.integers(0, 3), GPU: st.integers(0, 2), "memory": st.integers(0, 300)})


@given(st.lists(amounts, min_size=1, max_size=4), st.lists(amounts, min_size=1, max_size=3), st.integers(0, 3))
def test_a_job_may_be_richer_where_one_of_its_tasks_alone_would_be_a_victim(theirs, mine, waits):
    """The bound is sharp: it is false exactly where no task could go, however few go with it."""
    tasks = [make_task(f"t{i}", "ns/b", PENDING if i < waits else RUNNING, asks=asks)
             for i, asks in enumerate(theirs)]  # fmt: skip
    own = [make_task(f"m{i}", "ns/a", RUNNING, asks=asks) for i, asks in enumerate(mine)]
    preemptor = make_task("p", "ns/a", asks=mine[0])
    job = make_job("ns/b", tasks=tasks)
    plugin, _ = plugin_with(job, make_job("ns/a", tasks=[*own, preemptor]))
    alone = [plugin.richer(preemptor, [task]) for task in tasks]
    assert plugin.may_be_richer(preemptor, job) is any(alone)
    assert any(alone) or plugin.richer(preemptor, tasks) == []


def test_a_share_that_is_smaller_by_no_more_than_the_tolerance_counts_as_equal():
    """One core in a million: 1e-6, against nothing."""
    mine, theirs = make_task("p", "ns/a", asks={"cpu": "1m"}), make_task("t", "ns/b", RUNNING, asks={"cpu": "1m"})
    job = make_job("ns/b", [theirs])
    plugin, _ = plugin_with(make_job("ns/a", [mine]), job, total={"cpu": 1000})
    assert plugin.richer(mine, [theirs]) == [theirs]
    assert plugin.may_be_richer(mine, job)


def test_candidates_not_chosen_are_taken_off_too():
    """The large task is refused, and yet the small one after it is looked at without it."""
    big, small = make_task("big", "ns/b", asks={"cpu": 4}), make_task("small", "ns/b", asks={"cpu": 1})
    rest = make_task("rest", "ns/b", asks={"cpu": 1})
    for task in (big, small, rest):
        task.status = ALLOCATED
    mine = make_job("ns/a", {"Running": 2, "Pending": 1})
    plugin, _ = plugin_with(mine, make_job("ns/b", [big, small, rest]))
    preemptor = mine.tasks["ns/a/pending-0"]
    assert plugin.richer(preemptor, [small]) == [small]
    assert plugin.richer(preemptor, [big, small]) == []


def test_orphans():
    orphan, job = make_task("o", "ns/gone"), make_job(tasks={"Running": 3})
    plugin, session = plugin_with(job)
    assert plugin.richer(orphan, list(job.tasks.values())) == []
    assert plugin.richer(next(iter(job.tasks.values())), [orphan]) == []
    assert plugin.may_be_richer(orphan, job) is False
    assert [told["what"] for told in session.told("orphan_skipped")] == ["preemptor", "preemptee"]


@pytest.mark.parametrize(
    ("hierarchy", "keys", "points"),
    [
        (False, (), {"job_order", "preemptable"}),
        (False, ("drf_allocated",), {"job_order", "preemptable", "on_allocate", "on_deallocate"}),
        (True, (), {"job_order", "preemptable", "queue_order", "reclaimable", "on_allocate", "on_deallocate"}),
    ],
    ids=["flat", "flat-and-told-on", "hierarchy"],
)
def test_hooks(hierarchy, keys, points):
    plugin, _ = plugin_with(hierarchy=hierarchy, keys=keys)
    assert {hook.point.name for hook, _ in plugin.hooks()} == points


def test_what_is_told():
    job = make_job(tasks={"Running": 2, "Pending": 1})
    plugin, session = plugin_with(job)
    task = session.jobs["ns/j"].tasks["ns/j/pending-0"]
    session.place(task)
    plugin.note_allocation(TaskEvent(task))
    session.place(task, PENDING)
    plugin.note_deallocations(task, [0])
    plugin.on_session_close(session)
    assert [
        told["share"] for key in ("drf_allocated", "drf_deallocated") for told in session.told(key)
    ] == pytest.approx([0.3, 0.2])
    assert session.told("metric.job_share") == [{"shares": {"ns/j": 0.2}}]
    assert len(session.told("drf_total")) == 1
    plugin.poorer_first(job, job)
    order = {"left": "ns/j", "left_share": 0.2, "right": "ns/j", "right_share": 0.2}
    assert session.told("drf_job_order") == [order]


def test_nothing_is_told_to_an_observer_that_wants_nothing():
    job = make_job(tasks={"Running": 1})
    plugin, session = plugin_with(job, keys=())
    assert plugin.poorer_first(job, job) == 0
    assert session.observer.counts.total() == 0


def test_without_a_hierarchy_no_queue_comes_first():
    plugin, session = plugin_with(queues=QUEUES)
    assert plugin.poorer_branch_first(*session.queues.values()) == 0


# ---------------------------------------------------------------------- hierarchy


def branch(name, path, weights):
    return make_queue(name, annotations={HIERARCHY: path, HIERARCHY_WEIGHTS: weights})


QUEUES = [branch("eng", "root/eng", "1/1"), branch("sci", "root/sci", "1/2")]


def tree_with(*jobs, queues=QUEUES):
    plugin, session = plugin_with(*jobs, queues=queues, hierarchy=True)
    return plugin, session, [session.queues[queue.name] for queue in queues]


def test_queues_are_ordered_along_their_paths_as_placements_go_on():
    eng, sci = (
        make_job("ns/e", {"Running": 1, "Pending": 8}, "eng"),
        make_job("ns/s", {"Running": 1, "Pending": 8}, "sci"),
    )
    plugin, session, (left, right) = tree_with(eng, sci)
    assert plugin.poorer_branch_first(left, right) == 1
    session.place(eng.tasks["ns/e/pending-0"])
    for number, answer in ((0, 1), (1, 1), (2, 0), (3, -1)):
        task = sci.tasks[f"ns/s/pending-{number}"]
        session.place(task)
        plugin.note_allocations(task, [0])
        plugin.note_allocation(TaskEvent(eng.tasks["ns/e/pending-0"]))
        assert (number, plugin.poorer_branch_first(left, right)) == (number, answer)


def test_undone_placements_count_no_more():
    eng, sci = (
        make_job("ns/e", {"Running": 2, "Pending": 9}, "eng"),
        make_job("ns/s", {"Running": 2, "Pending": 9}, "sci"),
    )
    plugin, session, (left, right) = tree_with(eng, sci)
    tasks = [sci.tasks[f"ns/s/pending-{number}"] for number in range(4)]
    answers = []
    for status, note in ((ALLOCATED, plugin.note_allocation), (PENDING, plugin.note_deallocation)):
        for task in tasks:
            session.place(task, status)
            note(TaskEvent(task))
        answers.append(plugin.poorer_branch_first(left, right))
    assert answers == [-1, 1]


def test_reclaiming_looks_at_each_candidate_alone():
    """eng has nothing and asks for 2 now and 1 later; sci holds 6 of weight 2: without any one task still 2.5 > 2."""
    eng = make_job("ns/e", [make_task("p", "ns/e", asks={"cpu": 2}), make_task("q", "ns/e")], "eng")
    sci = make_job("ns/s", {"Running": 6, "Pending": 9}, "sci")
    plugin, session, queues = tree_with(eng, sci)
    candidates = [task for task in sci.tasks.values() if task.status is not PENDING]
    before = plugin.poorer_branch_first(*queues)
    assert plugin.from_richer_branches(eng.tasks["ns/e/p"], candidates) == candidates
    assert len(session.told("hdrf_victims")[0]["victims"]) == 6
    assert plugin.poorer_branch_first(*queues) == before


@pytest.mark.parametrize(("running", "victims"), [(4, 0), (5, 0), (6, 6)], ids=["poorer", "equal", "richer"])
def test_only_from_strictly_richer_branches(running, victims):
    eng = make_job("ns/e", [make_task("p", "ns/e", asks={"cpu": 2}), make_task("q", "ns/e")], "eng")
    sci = make_job("ns/s", {"Running": running, "Pending": 9}, "sci")
    plugin, _, _ = tree_with(eng, sci)
    candidates = [task for task in sci.tasks.values() if task.status is not PENDING]
    assert len(plugin.from_richer_branches(eng.tasks["ns/e/p"], candidates)) == victims


def test_a_job_that_would_have_all_it_asks_for_takes_nothing():
    eng, sci = make_job("ns/e", [make_task("p", "ns/e")], "eng"), make_job("ns/s", {"Running": 6, "Pending": 9}, "sci")
    plugin, _, _ = tree_with(eng, sci)
    assert plugin.from_richer_branches(eng.tasks["ns/e/p"], [sci.tasks["ns/s/running-0"]]) == []


def test_where_nothing_is_left_what_a_job_holds_decides_though_it_is_all_that_it_asks_for():
    """sci holds all ten cores; without one of them and with what eng asks for none is left, without two one would."""
    eng, sci = make_job("ns/e", [make_task("p", "ns/e")], "eng"), make_job("ns/s", {"Running": 10, "Pending": 9}, "sci")
    plugin, _, _ = tree_with(eng, sci)
    candidates = [sci.tasks["ns/s/running-0"]]
    assert plugin.from_richer_branches(eng.tasks["ns/e/p"], candidates) == candidates


def test_what_is_tried_for_a_reclaimer_counts_no_more():
    eng = make_job("ns/e", [make_task("p", "ns/e", asks={"cpu": 2}), make_task("q", "ns/e")], "eng")
    sci = make_job("ns/s", {"Running": 3, "Pending": 9}, "sci")
    plugin, _, queues = tree_with(eng, sci)
    assert plugin.from_richer_branches(eng.tasks["ns/e/p"], [sci.tasks["ns/s/running-0"]]) == []
    assert plugin.poorer_branch_first(*queues) == -1


def test_candidates_of_one_branch_are_tried_one_without_the_other():
    """Without the first candidate sci counts for 2 + 2 of weight 2, without the second alone for 3 + 3."""
    eng = make_job("ns/e", [make_task("p", "ns/e", asks={"cpu": "2500m"}), make_task("q", "ns/e")], "eng")
    sci = [make_job(f"ns/{name}", {"Running": count, "Pending": 9}, "sci") for name, count in (("s", 3), ("t", 5))]
    plugin, _ = plugin_with(eng, *sci, queues=QUEUES, hierarchy=True, total={"cpu": 100, "pods": 1000})
    candidates = [job.tasks[f"{job.uid}/running-0"] for job in sci]
    assert plugin.from_richer_branches(eng.tasks["ns/e/p"], candidates) == candidates[1:]


def test_reclaiming_sees_what_has_moved_since_queues_were_last_compared():
    eng = make_job("ns/e", [make_task("p", "ns/e", asks={"cpu": 2}), make_task("q", "ns/e")], "eng")
    one, other = (make_job(f"ns/{name}", {"Running": 4, "Pending": 9}, "sci") for name in "st")
    plugin, session = plugin_with(eng, one, other, queues=QUEUES, hierarchy=True, total={"cpu": 100, "pods": 1000})
    preemptor, candidates = eng.tasks["ns/e/p"], [one.tasks["ns/s/running-0"]]
    assert plugin.from_richer_branches(preemptor, candidates) == candidates
    for number in range(4):
        task = other.tasks[f"ns/t/running-{number}"]
        session.place(task, PENDING)
        plugin.note_deallocation(TaskEvent(task))
    assert plugin.from_richer_branches(preemptor, candidates) == []


def test_a_job_that_holds_nothing_leaves_its_branch_at_nothing():
    plugin, _, queues = tree_with(make_job("ns/e", {"Pending": 1}, "eng"))
    assert plugin.poorer_branch_first(*queues) == 0


def test_reclaiming_without_a_job_takes_no_victims():
    sci = make_job("ns/s", {"Running": 6}, "sci")
    plugin, _, _ = tree_with(sci)
    candidates = list(sci.tasks.values())
    assert plugin.from_richer_branches(make_task("o", "ns/gone"), candidates) == []
    assert plugin.from_richer_branches(candidates[0], [make_task("o", "ns/gone")]) == []


@given(st.lists(st.tuples(st.sampled_from("es"), st.integers(0, 4), st.booleans()), max_size=12))
def test_the_tree_follows_every_placement(moves):
    """After any moves the order is that of a tree built from scratch."""
    jobs = make_job("ns/e", {"Running": 1, "Pending": 5}, "eng"), make_job("ns/s", {"Running": 2, "Pending": 5}, "sci")
    plugin, session, queues = tree_with(*jobs)
    for name, number, ask in moves:
        task = session.jobs[f"ns/{name}"].tasks[f"ns/{name}/pending-{number}"]
        session.place(task, PENDING if task.status is ALLOCATED else ALLOCATED)
        plugin.note_allocation(TaskEvent(task))
        if ask:
            plugin.poorer_branch_first(*queues)
    fresh = opened(Drf(), session)
    assert plugin.poorer_branch_first(*queues) == fresh.poorer_branch_first(*queues)
    assert plugin.hierarchy.tree.root.share == fresh.hierarchy.tree.root.share

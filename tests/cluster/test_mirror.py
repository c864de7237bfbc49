"""The mirror of a live cluster: what counts, what is old news, and what stands until it is confirmed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cluster import mirror as mirrors
from stromboli.cluster.audit import differences, inconsistencies
from stromboli.cluster.decoding.proofs import Proofs
from stromboli.cluster.events import Added, Deleted, Event, Modified
from stromboli.cluster.mirror import Mirror, Version
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.framework.books.plan import Bind, Eviction
from stromboli.model.reservation import Held, restated
from tests.support.live_world import KEY, group, node, picture, pod

BIND = Bind("u1", "ns/a", "ns/job", "n1")
EVICTION = Eviction("u1", "ns/a", "ns/job", "n1", "preempt")


def at(kind: str, made: dict[str, Any], version: int, uid: str = "u1", event: type[Event] = Modified) -> Event:
    """An event about ``made`` at a version."""
    meta = {**made["metadata"], "uid": uid, "resourceVersion": str(version)}
    return event(kind, from_value(kind, {**made, "metadata": meta}))


def a(version: int, uid: str = "u1", event: type[Event] = Modified, phase: str = "Pending", **spec: Any) -> Event:
    made = pod("a", "job", **spec)
    made["status"]["phase"] = phase
    return at("Pod", made, version, uid, event)


def mirror(*events: Event, **more: Any) -> Mirror:
    found = Mirror(ClusterState(), **more)
    found.take(at("Node", node("n1"), 1, "node"))
    found.take(at("PodGroup", group("job", 1), 2, "group"))
    for event in events:
        found.take(event)
    return found


def stands(found: Mirror) -> tuple[str, str] | None:
    task = found.state.tasks.get("ns/a")
    return None if task is None else (task.status.name, task.node_name)


def room(found: Mirror) -> int:
    """Thousandths of a core in use on the node."""
    used = found.state.nodes.entries()["n1"].used
    return used[0] if used else 0


# ---------------------------------------------------------------------- what counts, and what is old


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({}, True),
        ({"schedulerName": "default-scheduler"}, False),
        ({"schedulerName": "default-scheduler", "nodeName": "n1"}, True),
        ({"schedulerName": "second"}, True),
    ],
)
def test_pods_of_ours_and_pods_with_a_node_count(spec: dict[str, Any], counts: bool) -> None:
    found = mirror(a(10, **spec), schedulers=("volcano", "second"))
    assert (stands(found) is not None) is counts


def test_a_pod_that_no_longer_counts_is_gone() -> None:
    found = mirror(a(10), a(11, schedulerName="other"))
    assert stands(found) is None
    assert found.take(a(12))
    assert stands(found) == ("Pending", "")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([a(10), a(12, nodeName="n1"), a(11)], ("Bound", "n1")),
        ([a(10), a(12, nodeName="n1"), a(12, nodeName="n1")], ("Bound", "n1")),
        ([a(10), a(12, event=Deleted), a(11)], None),
        ([a(10), a(12, event=Deleted), a(10, event=Added)], None),
        ([a(12, event=Deleted), a(11)], None),
        ([a(10), a(12, event=Deleted), a(13, uid="u2")], ("Pending", "")),
        ([a(10), a(12, event=Deleted), a(13, uid="u2"), a(14, uid="u2", event=Deleted), a(10)], None),
        (
            [a(10), a(12, event=Deleted), a(13, uid="u2"), a(14, uid="u2", event=Deleted), a(15, uid="u3")],
            ("Pending", ""),
        ),
        ([a(10), a(13, uid="u2", nodeName="n1")], ("Bound", "n1")),
        ([a(10), a(13, uid="u2", nodeName="n1"), a(12, event=Deleted)], ("Bound", "n1")),
    ],
)
def test_old_news_changes_nothing(events: list[Event], expected: tuple[str, str] | None) -> None:
    assert stands(mirror(*events)) == expected


@pytest.mark.parametrize(
    ("events", "took", "stale"),
    [
        ([a(1)], [True], 0),
        ([a(1), a(1)], [True, False], 1),
        ([a(10), a(9, "u2")], [True, False], 1),
        ([a(10), a(10, "u2", Deleted)], [True, False], 1),
        ([a(10), a(11, "u2", Deleted)], [True, True], 0),
        ([a(10, event=Deleted)], [False], 0),
        ([a(10), a(20, event=Deleted), a(15, "u2")], [True, True, False], 1),
        ([a(10), a(0, event=Deleted), a(9, "u2")], [True, True, False], 1),
        ([a(0, event=Deleted), a(1, "u2")], [False, True], 0),
    ],
)
def test_what_is_taken_is_said_and_old_news_are_counted(events: list[Event], took: list[bool], stale: int) -> None:
    """A deletion of what was never there is no old news, and changes nothing either."""
    found = mirror()
    assert [found.take(event) for event in events] == took
    assert found.stale == stale


def test_as_many_deleted_objects_are_remembered_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "REMEMBERED", 2)
    found = mirror(a(12, event=Deleted))
    found.take(at("Node", node("n2"), 13, "n2", Deleted))
    assert not found.take(a(11))
    found.take(at("Node", node("n3"), 14, "n3", Deleted))
    assert found.take(a(11))


def test_objects_without_versions_are_always_believed() -> None:
    event = Modified("Pod", from_value("Pod", pod("a", "job")))
    assert mirror(event).take(event)


@pytest.mark.parametrize(("label", "there"), [("gpu", True), ("cpu", False)])
def test_nodes_that_are_not_selected_are_not_there(label: str, there: bool) -> None:
    found = Mirror(ClusterState(), node_selector=(" kind : gpu ", "broken", ":x", "y:"))
    found.take(at("Node", node("n1", kind="gpu"), 1))
    found.take(at("Node", node("n1", kind=label), 2))
    assert found.state.nodes.has("n1") is there


# ---------------------------------------------------------------------- decisions


def test_an_assumed_binding_stands_until_it_is_confirmed() -> None:
    found = mirror(a(10))
    assert found.assume_bound(BIND)
    assert (stands(found), room(found)) == (("Binding", "n1"), 1000)
    found.take(a(11))  # a change that does not know of it yet
    assert (stands(found), room(found)) == (("Binding", "n1"), 1000)
    found.take(a(12, nodeName="n1"))
    assert (stands(found), room(found), found.assumed) == (("Bound", "n1"), 1000, {})


@pytest.mark.parametrize("more", [{}, {"scheduling.volcano.sh/cards": "0"}])
def test_a_pod_has_the_annotations_of_its_binding_until_that_fails(more: dict[str, str]) -> None:
    found = mirror(a(10))
    before = dict(found.state.tasks["ns/a"].annotations)
    assert found.assume_bound(Bind("u1", "ns/a", "ns/job", "n1", annotations=more))
    assert found.state.tasks["ns/a"].annotations == before | more
    found.take(a(11, nodeSelector={"x": "y"}))
    assert found.state.tasks["ns/a"].annotations == before | more
    found.forget("ns/a", "u1")
    assert found.state.tasks["ns/a"].annotations == before


def test_a_binding_that_failed_gives_its_room_back() -> None:
    found = mirror(a(10))
    found.assume_bound(BIND)
    found.take(a(11))
    found.forget(BIND.key, BIND.uid)
    assert (stands(found), room(found), found.assumed) == (("Pending", ""), 0, {})


def test_a_binding_that_failed_leaves_the_pod_as_the_cluster_last_said() -> None:
    found = mirror(a(10))
    found.assume_bound(BIND)
    made = pod("a", "job")
    made["metadata"]["annotations"]["example.com/note"] = "new"
    found.take(at("Pod", made, 11))
    found.forget(BIND.key, BIND.uid)
    assert found.state.tasks["ns/a"].annotations.get("example.com/note") == "new"


def test_a_pod_whose_eviction_failed_asks_for_what_has_got_a_column_meanwhile() -> None:
    device = "example.com/device"
    asked = {"requests": {device: "2"}, "limits": {device: "2"}}
    container = {"name": "c", "image": "i", "resources": asked}
    found = mirror(a(10, phase="Running", nodeName="n1", containers=[container]))
    assert found.assume_evicted(EVICTION)
    other = node("n2")
    other["status"]["allocatable"][device] = "4"
    found.take(at("Node", other, 11, "other"))
    found.forget(EVICTION.key, EVICTION.uid)
    used = found.state.nodes.entries()["n1"].used
    assert used[found.state.axes.index[device]] == 2000
    assert used[found.state.axes.index["unoffered"]] == 0


@pytest.mark.parametrize(
    ("event", "expected", "used"),
    [
        (a(11, nodeName="n2"), ("Bound", "n2"), 0),
        (a(11, event=Deleted), None, 0),
        (a(11, phase="Failed"), ("Failed", ""), 0),
        (a(11, uid="u2"), ("Pending", ""), 0),
    ],
)
def test_what_the_cluster_says_overtakes_an_assumption(event: Event, expected: Any, used: int) -> None:
    found = mirror(a(10))
    found.assume_bound(BIND)
    found.take(event)
    assert (stands(found), room(found), found.assumed) == (expected, used, {})
    found.forget(BIND.key, BIND.uid)
    assert stands(found) == expected


@pytest.mark.parametrize(
    "event", [a(10, nodeName="n1"), a(10, uid="u2"), a(10, phase="Succeeded"), a(10, schedulerName="x")]
)
def test_nothing_is_assumed_of_a_pod_that_is_another_or_has_a_node(event: Event) -> None:
    assert not mirror(event).assume_bound(BIND)


def test_an_evicted_pod_is_on_its_way_out_until_it_is_confirmed_or_failed() -> None:
    found = mirror(a(10, nodeName="n1", phase="Running"))
    assert found.assume_evicted(EVICTION)
    assert not found.assume_evicted(EVICTION)
    found.take(a(11, nodeName="n1", phase="Running"))
    assert (stands(found), room(found)) == (("Releasing", "n1"), 1000)
    found.forget(EVICTION.key, EVICTION.uid)
    assert stands(found) == ("Running", "n1")


def test_a_pod_whose_eviction_fails_while_it_was_being_bound_stands_as_the_cluster_says() -> None:
    found = mirror(a(10))
    assert found.assume_bound(BIND)
    assert found.assume_evicted(EVICTION)
    assert (stands(found), room(found)) == (("Releasing", "n1"), 1000)
    found.forget(EVICTION.key, EVICTION.uid)
    assert (stands(found), room(found), found.assumed) == (("Pending", ""), 0, {})


def budget(version: int, allowed: int, event: type[Event] = Modified, uid: str = "b") -> Event:
    made = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    return at("PodDisruptionBudget", made, version, uid, event)


def web(version: int, event: type[Event] = Modified, **meta: str) -> Event:
    made = pod("a", "job", nodeName="n1")
    made["metadata"] |= {"labels": {"app": "web"}, **meta}
    made["status"]["phase"] = "Running"
    return at("Pod", made, version, "u1", event)


def allows(found: Mirror) -> list[int]:
    return [each.allowed for each in found.state.budgets.values()]


ENDING = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("events", "left"),
    [
        pytest.param([], [], id="at-once"),
        pytest.param([budget(12, 2), budget(14, 2)], [[1], [1]], id="news-that-may-be-older-than-the-eviction"),
        pytest.param([web(12, deletionTimestamp=ENDING), budget(14, 1)], [[1], [1]], id="the-pod-first"),
        pytest.param([budget(12, 1), web(14, deletionTimestamp=ENDING)], [[0], [1]], id="the-budget-first"),
        pytest.param([web(12, Deleted), budget(14, 1), budget(16, 2)], [[1], [1], [2]], id="gone-and-replaced"),
        pytest.param(
            [budget(12, 0, Deleted), web(14, Deleted), budget(16, 2, uid="c")], [[], [], [2]], id="a-new-budget"
        ),
    ],
)
def test_an_eviction_counts_against_budgets_until_their_status_tells_of_it(
    events: list[Event], left: list[list[int]]
) -> None:
    found = mirror(web(10), budget(11, 2))
    assert found.assume_evicted(EVICTION)
    assert allows(found) == [1]
    assert [allows(found) for event in events if found.take(event)] == left


def test_an_eviction_that_failed_gives_budgets_back_what_it_took() -> None:
    found = mirror(web(10), budget(11, 2))
    found.assume_evicted(EVICTION)
    found.take(budget(12, 3))
    assert allows(found) == [2]
    found.forget(EVICTION.key, EVICTION.uid)
    assert allows(found) == [3]


def test_what_is_not_confirmed_in_time_is_overdue() -> None:
    found = mirror(a(10))
    found.assume_bound(BIND)
    assert found.overdue(1e9) == []
    found.carried_out(BIND.key, BIND.uid, 5.0)
    assert (found.overdue(34.0), found.overdue(35.0)) == ([], [("ns/a", "u1")])


# ---------------------------------------------------------------------- laws


STORIES = [
    [a(10), a(20, nodeName="n1"), a(30, nodeName="n1", phase="Running"), a(40, nodeName="n1", phase="Succeeded")],
    [a(10), a(20, event=Deleted), a(30, uid="u2"), a(40, uid="u2", nodeName="n1")],
    [a(10), a(20, nodeName="n1"), a(30, nodeName="n1", event=Deleted)],
]


@given(st.sampled_from(STORIES), st.randoms(use_true_random=False), st.integers(0, 4))
def test_duplicates_and_delays_lead_to_the_same_state(story: list[Event], dice: random.Random, decisions: int) -> None:
    told: list[Event] = []
    for number, event in enumerate(story):
        told += [event, *(story[dice.randrange(number + 1)] for _ in range(dice.randrange(3)))]
    found = mirror()
    for number, event in enumerate(told):
        found.take(event)
        if number == decisions:
            found.assume_bound(BIND)
    found.forget(BIND.key, BIND.uid)
    assert picture(found.state) == picture(mirror(*story).state)
    assert not any(inconsistencies(found.state))


def test_nothing_piles_up_while_pods_come_and_go() -> None:
    found = mirror()
    most = 0
    for number in range(5000):
        spec: dict[str, Any] = {"nodeSelector": {"only": f"for-{number}"}}
        found.take(a(10 * number + 10, f"u{number}", **spec))
        found.assume_bound(Bind(f"u{number}", "ns/a", "ns/job", "n1"))
        found.take(a(10 * number + 11, f"u{number}", nodeName="n1", **spec))
        found.take(a(10 * number + 12, f"u{number}", Deleted, nodeName="n1", **spec))
        if number % 500 == 0:
            numbers = [template.number for template in found.state.snapshot().templates or ()]
            assert numbers == sorted(set(numbers))
        most = max(most, len(found.state.templates))
    assert most < 3000
    assert (found.state.tasks, found.assumed, found._real, room(found)) == ({}, {}, {}, 0)
    assert found.objects == 2


def test_nothing_is_evicted_that_is_another_or_gone() -> None:
    found = mirror(a(10, "u2", nodeName="n1"))
    assert not found.assume_evicted(EVICTION)
    assert not found.assume_evicted(Eviction("u1", "ns/none", "ns/job", "n1", "preempt"))
    assert (stands(found), found.assumed) == (("Bound", "n1"), {})


# ---------------------------------------------------------------------- reservations


def test_each_statement_has_a_number_above_the_one_before_though_the_clock_stands() -> None:
    proofs = Proofs()
    proofs.keys = (KEY,)
    numbers = []
    for node_name in ("n1", "n2", "n1"):
        held = Held(node_name)
        proof = proofs.sign("u1", held, 1000.0)
        assert proof is not None
        proofs.wrote("u1", held, proof)
        numbers.append(proof.number)
    assert numbers == [1_000_000, 1_000_001, 1_000_002]


@pytest.mark.parametrize(("held", "refused"), [(None, ["replayed"]), (Held("n1"), [])])
def test_a_statement_that_is_restored_unseen_counts_until_its_removal_is_known(
    held: Held | None, refused: list[str]
) -> None:
    """The pod is seen as it is after both, as in a new list, before the answer to the removal arrives."""
    proofs = Proofs()
    proofs.keys = (KEY,)
    found = mirror(a(10), proofs=proofs)
    proof = proofs.sign("u1", Held("n1"), 1000.0)
    made = pod("a", "job")
    made["metadata"]["annotations"] = restated(made["metadata"]["annotations"], Held("n1"), str(proof))
    found.take(at("Pod", made, 11))
    assert stands(found) == ("Pipelined", "n1")
    found.assume_reserved("ns/a", "u1", held)
    found.take(at("Pod", made, 13))
    found.reserved("ns/a", "u1", held)
    assert [each.reason for each in proofs.unproven.values()] == refused
    assert list(proofs.untold) == ["ns/a"] * len(refused)


@pytest.mark.parametrize(("uid", "held"), [("u2", Held("n1")), ("u1", Held("n2"))], ids=["another pod", "another node"])
def test_only_what_is_about_to_be_written_is_forgotten(uid: str, held: Held) -> None:
    found = mirror(a(10))
    found.forget_reservation("ns/a", "u1", Held("n1"))
    found.assume_reserved("ns/a", "u1", Held("n1"))
    found.forget_reservation("ns/a", uid, held)
    assert stands(found) == ("Pipelined", "n1")
    found.forget_reservation("ns/a", "u1", Held("n1"))
    assert stands(found) == ("Pending", "")


def test_what_a_pod_stated_means_nothing_once_it_is_gone_or_has_a_node() -> None:
    """Nor is anything kept of one that is gone."""
    for last in (a(12, event=Deleted), a(12, nodeName="n1"), a(12, schedulerName="other")):
        proofs = Proofs()
        proofs.keys = (KEY,)
        found = mirror(a(10), proofs=proofs)
        made = pod("a", "job")
        made["metadata"]["annotations"] = restated(made["metadata"]["annotations"], Held("n1"), "forged")
        found.take(at("Pod", made, 11))
        proofs.wrote("u1", Held("n1"), proofs.sign("u1", Held("n1"), 1000.0))
        found.assume_reserved("ns/a", "u1", Held("n1"))
        assert (list(proofs.unproven), list(proofs._newest), list(found.unwritten)) == (["ns/a"], ["u1"], ["ns/a"])
        found.take(last)
        assert (proofs.unproven, proofs.untold, proofs._newest) == ({}, {}, {})
        assert list(found.unwritten) == list(found.state.tasks)


def test_nothing_is_kept_of_a_pod_that_goes_while_it_is_being_bound() -> None:
    found = mirror(a(10))
    assert found.assume_bound(BIND)
    found.take(a(11, event=Deleted))
    assert (found.assumed, found._real, room(found)) == ({}, {}, 0)


# ---------------------------------------------------------------------- audit


@pytest.mark.parametrize(
    ("fresh", "problems"),
    [
        ({("ns", "a"): Version("u1", 10)}, []),
        ({("ns", "a"): Version("u1", 9)}, []),
        ({("ns", "a"): Version("u1", 11)}, ["is out of date: version 10, not 11"]),
        ({("ns", "a"): Version("u2", 11)}, ["is another object: version 10, not 11"]),
        ({}, ["is no longer there"]),
        ({("ns", "a"): Version("u1", 10), ("ns", "b"): Version("u3", 5)}, ["is missing"]),
    ],
)
def test_differences_from_a_fresh_list(fresh: dict[tuple[str, str], Version], problems: list[str]) -> None:
    found = mirror(a(10))
    assert [one.problem for one in differences("Pod", fresh, 10, found) if one] == problems
    newer = differences("Pod", {}, 9, found)
    assert not any(newer)


def test_a_pod_deleted_after_the_list_is_no_difference() -> None:
    found = mirror(a(10), a(12, event=Deleted))
    assert not any(differences("Pod", {("ns", "a"): Version("u1", 10)}, 10, found))


def test_sums_that_do_not_add_up_are_named() -> None:
    found = mirror(a(10, nodeName="n1"))
    found.state.nodes.entries()["n1"].used[0] += 1
    assert [difference.key for difference in inconsistencies(found.state) if difference] == ["n1"]


def test_a_pod_that_its_job_lacks_is_named_with_the_job() -> None:
    found = mirror(a(10))
    found.state.jobs["ns/job"].remove("u1")
    (said,) = [difference for difference in inconsistencies(found.state) if difference]
    assert (said.key, said.problem) == ("ns/a", "is missing in job ns/job")

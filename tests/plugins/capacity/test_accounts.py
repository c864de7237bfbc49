"""capacity's accounts of queues: what they claim, their place among siblings, limits, and what is shown of them."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.framework.session.session import Session
from stromboli.model.reservation import Held, stated
from stromboli.model.resources.resource import INFINITE
from stromboli.plugins.capacity.accounts import Account, ancestor_at, offered, shared_levels
from stromboli.testing.builders import Manifest, node, queue
from tests.acceptance.bench import GPU, Bench, conf, task_of
from tests.plugins.queue_jobs import job

TREE = conf("[{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true}]", actions="allocate")
FLAT = conf("gang", "predicates capacity", actions="allocate")


def accounts(session: Session) -> dict[str, Account]:
    plugin: Any = session.plugins["capacity"]
    found: dict[str, Account] = plugin.accounts
    return found


def opened(*objects: Manifest, text: str = TREE, compat: bool = False) -> Bench:
    nodes = node("n1", cpu=16, memory="16Gi", resources={GPU: 4})
    return Bench([nodes, queue("root"), *objects], text, compat=compat)


def below(name: str, parent: str, **spec: Any) -> Manifest:
    return queue(name, parent=parent, **spec)


@pytest.mark.parametrize(
    ("deserved", "compat", "names"),
    [
        ({"cpu": 2}, False, {"cpu"}),
        ({"cpu": 2, "memory": "1Gi"}, False, {"cpu", "memory"}),
        ({"memory": 0}, False, {"memory"}),
        ({"cpu": 2, GPU: 1}, False, {"cpu", GPU}),
        ({}, False, set()),
        ({"cpu": 2, GPU: 1}, True, {"cpu", GPU}),
        ({"cpu": 0, "memory": "1Gi", GPU: 1}, True, {"memory", GPU}),
    ],
)
def test_a_queue_may_hold_more_than_it_deserves_of_what_it_names(
    deserved: dict[str, Any], compat: bool, names: set[str]
) -> None:
    with opened(queue("q", deserved=deserved), text=FLAT, compat=compat).open() as session:
        relevant = set(accounts(session)["q"].relevant)
        assert relevant == {session.axes.column(name) for name in names}


def test_a_queue_with_others_below_it_keeps_its_place_among_its_siblings() -> None:
    """Where it stood as the session opened: what is placed meanwhile moves leaves alone."""
    objects = [queue("A", deserved={"cpu": 8}), below("A1", "A", deserved={"cpu": 4}), *job("j", "A1", 3, running=1)]
    with opened(*objects).open() as session:
        found = accounts(session)
        before = {name: found[name].turn() for name in ("A", "A1", "default")}
        with session.statement() as statement:
            statement.allocate(task_of(session, "j-1"), session.nodes["n1"])
            after = {name: found[name].turn() for name in ("A", "A1", "default")}
            assert found["A"].share() == 2 / 8
            statement.discard()
    assert before == {"A": (1 / 8, False), "A1": (1 / 4, False), "default": (1.0, True)}
    assert after == {**before, "A1": (2 / 4, False)}


def test_what_is_only_reserved_does_not_move_a_queue_with_others_below_it() -> None:
    """One pod runs and one has a reservation; a queue that deserves nothing comes as one that has all of it."""
    objects = [queue("A", deserved={"cpu": 8}), below("A1", "A"), queue("B"), below("B1", "B")]
    bench = opened(*objects, *job("j", "A1", 3, running=1))
    reserved = job("j", "A1", 3)[2]
    reserved["metadata"]["annotations"] |= stated(Held("n1"))
    bench.tell(reserved)
    with bench.open() as session:
        found = accounts(session)
        assert (found["A"].held[0], found["A1"].held[0]) == (2000, 2000)
        assert (found["A"].turn(), found["B"].turn()) == ((1 / 8, False), (1.0, True))


def test_of_what_came_before_a_resource_was_known_none_is_beyond_and_none_is_guaranteed() -> None:
    """The pod of ``old`` was read when nothing had named the widgets that its queue deserves and is guaranteed."""
    widgets = {"example.com/widget": 1}
    bench = Bench([node("n1", cpu=4), queue("old"), *job("o", "old", running=1)], FLAT)
    bench.tell(queue("old", deserved={"cpu": 2, **widgets}, guarantee={"resource": widgets}))
    bench.tell(queue("mine", deserved={"cpu": 2}), *job("m", "mine"))
    with bench.open() as session:
        found, task = accounts(session)["old"], task_of(session, "o-0")
        assert not found.exceeds(found.held, task.template.vector)
        assert found.exceeds([3000, *found.held[1:]], task.template.vector)
        assert session.ask.reclaimable(task_of(session, "m-0"), [task]) == [], "less widgets than it is guaranteed"


@pytest.mark.parametrize(("running", "share", "overused"), [(1, 0.5, False), (2, 1.0, False), (3, 1.5, True)])
def test_a_queue_is_shown_as_overused_beyond_what_it_deserves(running: int, share: float, overused: bool) -> None:
    objects = [queue("A"), below("q", "A", deserved={"cpu": 2}), *job("j", "q", 3, running=running)]
    with opened(*objects).open() as session:
        shown = accounts(session)["q"].metrics(session.axes, ())
        assert (shown.share, shown.overused) == (share, overused)


@pytest.mark.parametrize("compat", [False, True])
def test_the_root_limits_nothing_but_in_compat_mode(compat: bool) -> None:
    with opened(queue("A"), below("A1", "A"), compat=compat).open() as session:
        walks = {name: [each.name for each in one.walk] for name, one in accounts(session).items()}
    if compat:
        assert walks == {
            "root": ["root"],
            "A": ["A", "root"],
            "A1": ["A1", "A", "root"],
            "default": ["default", "root"],
        }
    else:
        assert walks == {"root": [], "A": ["A"], "A1": ["A1", "A"], "default": ["default"]}


def test_how_far_queues_are_related() -> None:
    names = [queue("A"), below("A1", "A"), below("A11", "A1"), below("A2", "A"), queue("B"), below("B1", "B")]
    with opened(*names).open() as session:
        found = accounts(session)
        levels = {pair: shared_levels(*(found[name] for name in pair)) for pair in RELATED}
        above = [ancestor_at(found["A11"], level) for level in (1, 2, 3, 4)]
        assert [one and one.name for one in above] == ["A1", "A", None, None]
        assert ancestor_at(found["root"], 1) is None
    assert levels == RELATED


RELATED = {("A11", "A11"): 2, ("A11", "A2"): 1, ("A11", "A1"): 1, ("A11", "B1"): 0, ("A", "B"): 0, ("root", "A"): 0}


@pytest.mark.parametrize(("compat", "memory"), [(False, INFINITE), (True, 0)])
def test_what_the_root_leaves_out_is_not_limited_but_in_compat_mode(compat: bool, memory: float) -> None:
    root = queue("root", capability={"cpu": 4})
    with Bench([node("n1", cpu=16), root, queue("A")], TREE, compat=compat).open() as session:
        found = accounts(session)["A"].quota.real_capability
        assert (found.milli_cpu, found.memory) == (4000, memory)


def test_what_nodes_list_without_having_any_is_named_in_one_order() -> None:
    """Whatever the order of a set, texts and records say the same."""
    names = [f"{letter}.com/gpu" for letter in "hgfedcba"]
    scene = [node("n1", resources=dict.fromkeys(names, 0)), queue("q", capability=dict.fromkeys(names, 1))]
    with Bench(scene, conf("gang", "predicates capacity")).open() as session:
        assert list(offered(session).scalars or ()) == ["pods", *sorted(names)]

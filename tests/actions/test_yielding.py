"""Before pods are evicted, holders that come after the job yield what it takes, and no more."""

from __future__ import annotations

from typing import Any

from stromboli.framework.extension.handlers import TaskEvent
from stromboli.model.reservation import Held
from stromboli.plugin import Plugin, on_allocate
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import conf
from tests.acceptance.fights import evicted, reserved, running
from tests.acceptance.stories import Story, ending, held_on, written

PREEMPT = conf("gang priority", "predicates", actions="allocate, preempt")


def holds(name: str, *on: str, cls: str = "low", cpu: Any = 4, **group: Any) -> list[Manifest]:
    """A gang whose pods hold room on a node each."""
    pods = [pod(f"{name}-{i}", group=name, cpu=cpu, memory=0, annotations=held_on(each)) for i, each in enumerate(on)]
    return [pod_group(name, min_member=len(on), priorityClassName=cls, **group), *pods]


def gang(*sizes: int, **group: Any) -> list[Manifest]:
    """A gang of the highest class, with pods of these sizes in this order."""
    pods = [pod(f"h-{i}", group="h", cpu=size, memory=0, priority=10) for i, size in enumerate(sizes)]
    return [pod_group("h", min_member=len(sizes), priorityClassName="high", **group), *pods]


def given_up(story: Story) -> list[str]:
    """The names of the pods that have lost their reservations, in order."""
    assert {each["reason"] for each in story.told("metric.pipelined_given_up")} <= {"higher_job"}
    return [str(each["task"]).partition("/")[2].partition(",")[0] for each in story.told("reservation_given_up")]


def only_n4(story: Story) -> Story:
    """The same without n3."""
    story.tell(node("n3", cpu=0))
    return story


def test_a_holder_of_room_that_is_of_no_use_keeps_it_and_nothing_is_reported() -> None:
    """The gang needs whole nodes, and m holds a core of n4."""
    story = Story(
        ending("e", "n1"), holds("l", "n1"), running("s", 1, "n4", cpu=3, cls="high"), ending("f", "n4", cpu=1),
        holds("m", "n4", cpu=1), running("v", 1, "n2", cpu=4), gang(4, 4), nodes=4, text=PREEMPT,
    )  # fmt: skip
    plan = only_n4(story).cycle()
    assert evicted(plan) == ["v-0"]
    assert written(plan) == {"l-0": None, "h-0": Held("n1"), "h-1": Held("n2", evicted=True)}
    assert given_up(story) == ["l-0"]


def test_all_that_are_in_the_way_yield_the_lowest_first() -> None:
    story = Story(
        ending("e", "n1"), ending("f", "n2"), holds("m", "n1", cls="mid"), holds("l", "n2"),
        running("v", 1, "n3", cpu=4), gang(4, 4, 4), nodes=3, text=PREEMPT,
    )  # fmt: skip
    plan = story.cycle()
    assert evicted(plan) == ["v-0"]
    assert written(plan) == {
        "l-0": None, "m-0": None, "h-0": Held("n1"), "h-1": Held("n2"), "h-2": Held("n3", evicted=True)
    }  # fmt: skip
    assert given_up(story) == ["l-0", "m-0"]


def shared(*holders: Manifest, more: str = "") -> Story:
    """The last pod of the gang takes one of two cores that become free on n4."""
    text = conf(f"gang priority {more}", "predicates", actions="allocate, preempt")
    return Story(
        ending("e", "n1"), running("s", 1, "n4", cpu=2, cls="high"), ending("f", "n4", cpu=2), holders,
        running("v", 1, "n2", cpu=4), gang(4, 4, 1), nodes=4, text=text, extra=[Objects],
    )  # fmt: skip


class Objects(Plugin):
    """Objects to each placement of a pod of m."""

    name = "objects"

    @on_allocate
    def came(self, event: TaskEvent) -> None:
        event.err = "not this one" if event.task.name.startswith("m-") else None


def test_where_room_for_one_is_left_the_higher_holder_keeps_it() -> None:
    story = only_n4(shared(*holds("w", "n1"), *holds("l", "n4", cpu=1), *holds("m", "n4", cpu=1, cls="mid")))
    plan = story.cycle()
    assert evicted(plan) == ["v-0"]
    assert given_up(story) == ["w-0", "l-0"]
    assert reserved(plan) == story.nodes_held() == {"m-0": "n4", "h-0": "n1", "h-1": "n2", "h-2": "n4"}


def test_what_a_gang_cannot_keep_whole_is_left_to_the_next() -> None:
    """m has a pod on n1, too, where the gang goes."""
    story = only_n4(shared(*holds("m", "n4", "n1", cpu=1, cls="mid"), *holds("l", "n4", cpu=1)))
    plan = story.cycle()
    assert evicted(plan) == ["v-0"]
    assert given_up(story) == ["m-0", "m-1"]
    assert story.nodes_held() == {"l-0": "n4", "h-0": "n1", "h-1": "n2", "h-2": "n4"}


def test_a_holder_that_may_not_be_placed_again_yields_as_well() -> None:
    """A plugin objects to it, which leaves its core to the next."""
    story = only_n4(
        shared(*holds("w", "n1"), *holds("m", "n4", cpu=1, cls="mid"), *holds("l", "n4", cpu=1), more="objects")
    )
    story.cycle()
    assert given_up(story) == ["w-0", "m-0"]
    assert story.nodes_held() == {"l-0": "n4", "h-0": "n1", "h-1": "n2", "h-2": "n4"}


def test_a_holder_whose_queue_the_gang_has_filled_yields_though_there_is_room() -> None:
    """The queue may have eight cores, and those are what the gang asks for."""
    text = conf("gang priority", "predicates capacity", actions="allocate, preempt")
    story = Story(
        [queue("q", capability={"cpu": 8})], running("v", 1, "n1", cpu=4, queue="q"), ending("e", "n2"),
        ending("f", "n3", cpu=1), holds("l", "n3", cpu=1, queue="q"), gang(4, 4, queue="q"), nodes=3, text=text,
    )  # fmt: skip
    story.tell(node("n3", cpu=1))
    assert evicted(story.cycle()) == ["v-0"]
    assert given_up(story) == ["l-0"]
    assert story.nodes_held() == {"h-0": "n2", "h-1": "n1"}

"""A shadow tells where the other scheduler decides otherwise, and why, and writes nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from stromboli.errors import ConfigError, LostLease
from stromboli.framework.books.plan import Bind, Eviction, Plan
from stromboli.kube.client import Client
from stromboli.kube.resources import PODS
from stromboli.live.process.flags import parse
from stromboli.live.process.process import Process
from stromboli.live.scheduler.configuration import Source
from stromboli.live.scheduler.extenders import Extenders
from stromboli.live.scheduler.outside import NoEvents
from stromboli.live.shadow.causes import BEYOND, RESTORABLE, Moment, has, why
from stromboli.live.shadow.differences import KEPT, Comparison, Decided, Difference, Pod, What
from stromboli.live.shadow.extender import EFFECTS
from stromboli.live.shadow.figures import PATH
from stromboli.live.shadow.shadow import Shadow, read_only
from stromboli.plugins.extender import Extender
from tests.support.live_world import LiveWorld, fetched, gang, pod
from tests.support.virtual import run

A, B = Pod("a", "ns/a", "ns/j"), Pod("b", "ns/b", "ns/j")


def plan(
    cycle: int, time: float, binds: dict[str, str] | None = None, evictions: dict[str, str] | None = None
) -> Decided:
    """A plan of ours; pods a and b wait, b runs as well for the sake of evictions."""
    return Decided(cycle, time, binds or {}, evictions or {}, {"a": A, "b": B}, {"b": "no room"}, {"b": B})


# ------------------------------------------------------------------ bookkeeping


def test_what_one_of_the_last_plans_has_is_the_same() -> None:
    found = Comparison(30)
    found.decided(plan(1, 0, {"a": "n1"}))
    found.decided(plan(2, 1, {"a": "n2"}))
    assert found.bound(A, "n1", 2) is None
    assert found.counts["agreed"] == 1


def test_another_node_and_a_pod_that_would_wait_are_differences() -> None:
    found = Comparison(30)
    found.decided(plan(1, 0, {"a": "n1"}))
    elsewhere, there = found.bound(A, "n3", 1), found.bound(B, "n1", 1)
    assert elsewhere is not None
    assert there is not None
    assert (elsewhere.what, elsewhere.there, elsewhere.here) == (What.elsewhere, "n3", "n1")
    assert (there.what, there.there, there.here) == (What.bound_there, "n1", "waits: no room")


def test_a_pod_that_no_plan_has_seen_is_counted_apart() -> None:
    found = Comparison(30)
    assert found.bound(A, "n1", 1) is None
    found.decided(plan(1, 2))
    assert found.bound(Pod("c", "ns/c", "ns/j"), "n1", 3) is None
    assert found.counts == {"unseen": 2}


def test_what_plans_go_on_wanting_is_told_once_after_the_patience() -> None:
    found = Comparison(30)
    for second in range(0, 100, 10):
        found.decided(plan(second, second, {"a": "n1"}, {"b": "reclaim"}))
        told = list(found.overdue(second, {"a": "waits: not admitted"}))
        assert len(told) == (2 if second == 30 else 0)
        if told:
            assert {(one.what, one.pod, one.there, one.here) for one in told} == {
                (What.bound_here, "ns/a", "waits: not admitted", "n1"),
                (What.evicted_here, "ns/b", "runs", "evicted: reclaim"),
            }


def test_a_wish_that_was_given_up_begins_again() -> None:
    found = Comparison(30)
    found.decided(plan(1, 0, {"a": "n1"}))
    found.decided(plan(2, 20))
    found.decided(plan(3, 25, {"a": "n1"}))
    assert list(found.overdue(40, {})) == []
    assert len(list(found.overdue(55, {}))) == 1


def test_evictions_are_the_same_or_told() -> None:
    found = Comparison(30)
    found.decided(plan(1, 0, {}, {"b": "preempt"}))
    assert found.evicted(B, "preempt", 1) is None
    told = found.evicted(A, "reclaim", 1)
    assert told is not None
    assert (told.what, told.there, told.here) == (What.evicted_there, "reclaim", "runs")


def test_only_the_last_differences_are_kept() -> None:
    found = Comparison(30)
    found.decided(plan(1, 0))
    for number in range(KEPT + 5):
        found.bound(A, f"n{number}", 1)
    assert len(found.found) == KEPT
    assert found.counts[What.bound_there] == KEPT + 5


@pytest.mark.parametrize(
    ("what", "there", "binds", "evicts", "expected"),
    [
        (What.elsewhere, "n1", {"a": "n1"}, [], True), (What.elsewhere, "n1", {"a": "n2"}, [], False),
        (What.bound_there, "n1", {"a": "n1"}, [], True), (What.bound_there, "n1", {}, [], False),
        (What.bound_here, "waits", {}, [], True), (What.bound_here, "waits", {"a": "n1"}, [], False),
        (What.evicted_there, "preempt", {}, ["a"], True), (What.evicted_there, "preempt", {}, ["b"], False),
        (What.evicted_here, "runs", {}, ["a"], False), (What.evicted_here, "runs", {}, ["b"], True),
    ],
)  # fmt: skip
def test_whether_a_plan_decides_as_the_other_scheduler_has(
    what: What, there: str, binds: dict[str, str], evicts: list[str], expected: bool
) -> None:
    found = Difference(what, "a", "ns/a", "ns/j", there, "", 0.0, 1)
    plan = Plan(
        binds=[Bind(uid, f"ns/{uid}", "ns/j", node) for uid, node in binds.items()],
        evictions=[Eviction(uid, f"ns/{uid}", "ns/j", "n1", "preempt") for uid in evicts],
    )
    assert has(plan, found) is expected


# ------------------------------------------------------------------ beside another scheduler


async def beside(
    world: LiveWorld, work: Callable[[Shadow], Coroutine[Any, Any, None]], conf: str = "", plugins: str = ""
) -> Shadow:
    """A shadow in a world while ``work`` is done; it has taken everything in by then."""
    given = {"may_write": lambda: False, "schedule_period": 0.2, "plugins": plugins}
    scheduler = world.scheduler(conf, read_only(world.server), **given)
    shadow = Shadow(scheduler, 10.0)
    running = asyncio.create_task(shadow.run())
    await asyncio.sleep(3)
    await work(shadow)
    await asyncio.sleep(2)
    shadow.stop()
    await running
    return shadow


def bind(world: LiveWorld, name: str, node: str) -> None:
    """What another scheduler does."""
    found = world.server.get("pods", name, "ns")
    world.server.put("pods", {**found, "spec": {**found["spec"], "nodeName": node}})


def test_a_shadow_tells_differences_with_their_reasons_and_writes_nothing() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=3)
        gang(world.server, "fits", 1)
        gang(world.server, "huge", 1, cpu=64)
        gang(world.server, "pair", 2, cpu=64)

        async def other(_shadow: Shadow) -> None:
            for name in ("huge-0", "pair-0", "pair-1"):
                bind(world, name, "n1")
            bind(world, "fits-0", "n2")

        shadow = await beside(world, other)
        told = {one.pod: one for one in shadow.comparison.found}
        assert told["ns/huge-0"].what is What.bound_there
        assert "1/1 tasks in gang unschedulable" in told["ns/huge-0"].here
        assert "no row" in told["ns/huge-0"].why
        assert told["ns/fits-0"].what is What.elsewhere
        assert "equally good" in told["ns/fits-0"].why
        assert [said["pod"] for said in world.told.of("shadow_differs")] == [
            "ns/huge-0", "ns/pair-0 and 1 more of job ns/pair", "ns/fits-0",
        ]  # fmt: skip
        assert shadow.plans > 5
        assert set(shadow.scheduler.client.sent) == {"GET"}

    run(main())


def test_a_shadow_agrees_with_a_scheduler_of_ours() -> None:
    async def main() -> None:
        world = LiveWorld()

        async def ours(_shadow: Shadow) -> None:
            gang(world.server, "g", 6)
            await asyncio.sleep(1)
            world.start(world.scheduler())
            await asyncio.sleep(4)

        shadow = await beside(world, ours)
        await world.end()
        assert shadow.comparison.counts == {"agreed": 6}

    run(main())


def test_evictions_of_the_other_are_compared() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1)
        gang(world.server, "runs", 4)
        for number in range(4):
            bind(world, f"runs-{number}", "n0")

        async def other(_shadow: Shadow) -> None:
            found = world.server.get("pods", "runs-0", "ns")
            text = "Pod is evicted, because of reclaim"
            condition = {"type": "Ready", "status": "False", "reason": "Evict", "message": text}
            world.server.put("pods", {**found, "status": {**found["status"], "conditions": [condition]}})

        shadow = await beside(world, other, "")
        (told,) = shadow.comparison.found
        assert (told.what, told.there, told.here) == (What.evicted_there, "reclaim", "runs")

    run(main())


PLUGINS = """
from stromboli.plugin import Plugin, Reason, predicate


class Guided(Plugin):
    'Places pods on the node that an object of the cluster names, and tells of it.'

    name = "guided"

    def on_session_open(self, session):
        self.node = session.kube_client.get("ConfigMap", "guide", "ns")["node"]
        session.recorder.record("ConfigMap", "ns/guide", "Normal", "Guided", f"to {self.node}")

    @predicate
    def is_the_node(self, task, node):
        return None if node.name == self.node else Reason("guided elsewhere")


class Grasping(Plugin):
    'Could write past the client of the run.'

    name = "grasping"

    def on_session_open(self, session):
        session.client_config.server
"""
ADDRESS = "http://user:hush@127.0.0.1:1/x"
EXTENDER = f"{{extender.urlPrefix: '{ADDRESS}', extender.predicateVerb: fits, extender.allocateFuncVerb: take}}"


def configured(folder: Path, *plugins: str) -> str:
    """The file of a configuration of plugins, some of which are in the folder."""
    (folder / "plugins.py").write_text(PLUGINS)
    conf = folder / "scheduler.conf"
    conf.write_text(f'actions: "enqueue, allocate"\ntiers:\n- plugins: [{", ".join(plugins)}]\n')
    return str(conf)


def test_what_is_not_asked_of_an_extender_is_known_for_each_of_its_verbs() -> None:
    verbs = {key.removeprefix("extender.") for one in Extender.arguments.values() if (key := one.key).endswith("Verb")}
    assert verbs == EFFECTS.keys()


def test_what_could_write_is_not_offered_and_what_is_left_out_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted: list[str] = []
    monkeypatch.setattr(Extenders, "post", lambda self, url, body, timeout: posted.append(url))
    named = ("{name: gang}", "{name: grasping}", "{name: predicates}", f"{{name: extender, arguments: {EXTENDER}}}")

    async def main() -> None:
        world = LiveWorld(nodes=3)
        gang(world.server, "huge", 1, cpu=64)

        async def other(_shadow: Shadow) -> None:
            bind(world, "huge-0", "n1")

        shadow = await beside(world, other, configured(tmp_path, *named), plugins=str(tmp_path))
        asked, *put_aside = [str(said["text"]) for said in world.told.of("shadow_leaves_out")]
        assert asked.startswith("extender http://(hidden)@127.0.0.1:1/x is not asked")
        assert asked.endswith("fits may refuse nodes, take would be told of placements, and may object")
        assert [text.partition(" asks for ")[2] for text in put_aside] == [
            f"{name}, which a shadow run does not offer, as it writes nothing, and this capability allows writes"
            for name in ("client_config", "extender")
        ], "once, however many plans are made"
        assert shadow.plans > 5
        assert shadow.left_out == (asked, *put_aside)
        (told,) = shadow.comparison.found
        assert f"or what the shadow leaves out makes it: {asked}" in told.why
        assert "hush" not in str([*world.told.of("shadow_leaves_out"), *world.told.of("shadow_differs")])

    run(main())
    assert posted == []


@pytest.mark.parametrize(("lacking", "quoted"), [(0, False), (5, True)])
def test_only_what_is_not_offered_is_left_out_and_a_reason_quotes_a_few(
    lacking: int, quoted: bool, tmp_path: Path
) -> None:
    """A plugin that fails is no capability that is missing."""
    classes = [
        f"class Fails{n}(Plugin):\n    name = 'fails{n}'\n\n    def on_session_open(self, session):\n        {does}\n"
        for n, does in enumerate(["raise ValueError('broken')", *["session.client_config"] * lacking])
    ]
    named = ["{name: gang}", "{name: predicates}", *(f"{{name: fails{n}}}" for n in range(lacking + 1))]

    async def main() -> None:
        world = LiveWorld(nodes=3)
        gang(world.server, "huge", 1, cpu=64)
        conf = configured(tmp_path, *named)
        (tmp_path / "plugins.py").write_text("\n\n".join(["from stromboli.plugin import Plugin", *classes]))

        async def other(shadow: Shadow) -> None:
            bind(world, "huge-0", "n1")
            await asyncio.sleep(1)

        shadow = await beside(world, other, conf, plugins=str(tmp_path))
        assert len(shadow.left_out) == lacking
        assert "broken" not in str(shadow.left_out)
        (told,) = shadow.comparison.found
        assert ("; and 2 more" in told.why, told.why.count("client_config")) == (quoted, min(lacking, 3))

    run(main())


def test_a_reason_quotes_what_the_plan_that_differs_was_made_without(tmp_path: Path) -> None:
    async def main() -> None:
        world = LiveWorld(nodes=3)
        gang(world.server, "huge", 1, cpu=64)

        async def other(shadow: Shadow) -> None:
            bind(world, "huge-0", "n1")
            made = shadow._made[shadow.plans]
            shadow._made[shadow.plans] = made._replace(left_out=("earlier",))

        shadow = await beside(world, other)
        (told,) = shadow.comparison.found
        assert told.why.endswith("or what the shadow leaves out makes it: earlier")
        assert shadow.left_out == ()

    run(main())


def test_a_search_that_takes_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stromboli.live.shadow.shadow.LONGEST", -1.0)

    async def main() -> None:
        world = LiveWorld(nodes=3)
        gang(world.server, "huge", 1, cpu=64)

        async def other(_shadow: Shadow) -> None:
            bind(world, "huge-0", "n1")

        shadow = await beside(world, other)
        assert [one.why for one in shadow.comparison.found] == [BEYOND]

    run(main())


def test_a_search_makes_no_plan_once_it_is_late() -> None:
    world = LiveWorld(nodes=3)
    gang(world.server, "fits", 1)
    config = Source("")
    found = Difference(What.elsewhere, "u", "ns/fits-0", "ns/fits", "n1", "n0", 0.0, 1)
    asked = iter([False, False, True])
    moment = Moment(world.fresh().snapshot(), config.load(), config.registry, 0.0, 0, late=lambda: next(asked))
    assert why(moment, found) == (BEYOND, ())
    assert next(asked, None) is None


class OneNode:
    """A client whose only object names a node."""

    def get(self, *_: str) -> dict[str, str]:
        return {"node": "n2"}


def test_reasons_are_sought_with_what_plugins_were_offered(tmp_path: Path) -> None:
    """Else the plugin would be put aside in the search, and a row would be blamed for what it does."""
    world = LiveWorld(nodes=3)
    gang(world.server, "fits", 1)
    config = Source(configured(tmp_path, "{name: gang}", "{name: guided}"), plugins=str(tmp_path))
    offered = {"kube_client": OneNode(), "recorder": NoEvents()}
    moment = Moment(world.fresh().snapshot(), config.load(), config.registry, 0.0, 0, offered)
    for plan in (moment.plan(), moment.plan(RESTORABLE), moment.plan(seed=1)):
        assert [one.node for one in plan.binds] == ["n2"]
        assert plan.inconsistencies == []


def test_nothing_but_reads_gets_through() -> None:
    async def main() -> None:
        world = LiveWorld()
        world.server.put("pods", pod("p"))
        client = Client(read_only(world.server))
        await client.get(PODS, "p", "ns")
        with pytest.raises(LostLease, match="a shadow writes nothing"):
            await client.bind("ns", "p", "", "n0", {})

    run(main())


def test_a_process_is_a_shadow_by_its_flag() -> None:
    with pytest.raises(ConfigError, match="leave one of them out"):
        Process(parse(["--shadow", "--controllers", "--master=http://127.0.0.1:1"]))
    process = Process(
        parse(["--shadow", "--enable-metrics", "--listen-address=127.0.0.1:0", "--master=http://127.0.0.1:1"])
    )
    assert isinstance(process.parts[0], Shadow)
    assert process.leadership.election is None
    assert not process.scheduler.may_write()

    async def shown() -> tuple[int, str]:
        await process.pages[0].start()
        try:
            return await fetched(process.pages[0].port, PATH)
        finally:
            await process.pages[0].stop()

    code, text = asyncio.run(shown())
    assert (code, json.loads(text)["plans"]) == (200, 0)

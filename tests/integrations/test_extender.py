"""extender: what is asked under each verb, what failures mean, cycles that repeat from the answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from stromboli.cluster.rim import Cut, Rim
from stromboli.cycle import run_cycle
from stromboli.errors import ExtenderError
from stromboli.framework.books.plan import Plan
from stromboli.journal import entries
from stromboli.journal.segments import Segment
from stromboli.plugins.extender import calls
from stromboli.plugins.extender.calls import Recorded
from stromboli.study.replay import Replay, SeenMoment
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import NOW, Bench, binds, conf

URL = "http://127.0.0.1:1/x/"
HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}


class Server:
    """Answers by verb: a body, an error, or what a function makes of the request."""

    def __init__(self, seconds: float = 0.01, **answers: Any) -> None:
        self.answers, self.seconds = answers, seconds
        self.asked: list[tuple[str, Any]] = []

    def post(self, url: str, body: bytes, timeout: float) -> tuple[float, bytes]:
        verb, request = url.removeprefix(URL), msgspec.json.decode(body)
        assert timeout <= 1.0
        self.asked.append((verb, request))
        answer = self.answers[verb](request) if callable(self.answers[verb]) else self.answers[verb]
        if isinstance(answer, Exception):
            raise answer
        return self.seconds, answer if isinstance(answer, bytes) else msgspec.json.encode(answer)


def bench(objects: list[Manifest], arguments: dict[str, Any], *verbs: str, actions: str = "enqueue, allocate") -> Bench:
    given = {"extender.urlPrefix": URL, **{f"extender.{verb}Verb": verb for verb in verbs}, **arguments}
    plugin = (
        f"[{{name: gang}}, {{name: extender, arguments: {msgspec.json.encode(given).decode()}}}, {{name: predicates}}]"
    )
    return Bench(objects, conf(plugin, actions=actions))


def cycle(found: Bench, server: object) -> Plan:
    return run_cycle(found.snapshot(), found.config, found.registry, NOW, 0, capabilities={"extender": server})


TWO = [node("n1"), node("n2"), pod_group("g", phase="Pending", minResources={"cpu": 1}), pod("p", group="g")]
FAILS = ExtenderError("", "no answer within 1 s")


def on_n2(request: Any) -> Any:
    return {"status": "" if request["node"]["Name"] == "n2" else "not there", "code": 2}


def prefers(name: str) -> Callable[[Any], Any]:
    return lambda request: {"nodeScore": {each["Name"]: 9.0 * (each["Name"] == name) for each in request["nodes"]}}


@pytest.mark.parametrize(
    ("verb", "answer", "ignorable", "found"),
    [
        *(("predicate", on_n2, ignorable, {"p": "n2"}) for ignorable in (False, True)),
        ("predicate", FAILS, False, {}),
        ("predicate", FAILS, True, {"p": "n1"}),
        ("predicate", b"not json", False, {}),
        ("prioritize", prefers("n2"), False, {"p": "n2"}),
        ("prioritize", {"nodeScore": None}, True, {"p": "n1"}),
        ("jobEnqueueable", {"status": -1}, False, {}),
        ("jobEnqueueable", {"status": 1}, False, {"p": "n1"}),
        ("jobEnqueueable", FAILS, False, {}),
        ("jobEnqueueable", FAILS, True, {"p": "n1"}),
        ("jobReady", {"status": False}, False, {}),
        ("jobReady", FAILS, False, {"p": "n1"}),
        ("jobReady", FAILS, True, {}),
        ("queueOverused", {"overused": True}, False, {}),
        ("queueOverused", FAILS, False, {}),
        ("queueOverused", FAILS, True, {"p": "n1"}),
        ("allocateFunc", {"errorMessage": "no licence"}, True, {}),
        ("allocateFunc", FAILS, False, {}),
        ("allocateFunc", FAILS, True, {"p": "n1"}),
        ("deallocateFunc", {}, False, {"p": "n1"}),
        ("jobEnqueued", FAILS, False, {"p": "n1"}),
        ("onSessionClose", FAILS, False, {"p": "n1"}),
    ],
)
def test_verbs_and_their_failures(verb, answer, ignorable, found):
    """The last two columns are what a failure means: counted against what was asked, or passed over."""
    server = Server(**{verb: answer})
    plan = cycle(bench(TWO, {"extender.ignorable": ignorable}, verb), server)
    assert (binds(plan), plan.replayable, plan.inconsistencies) == (found, True, [])
    assert [asked for asked, _ in server.asked] == [verb] * len(server.asked)
    assert server.asked or verb == "deallocateFunc"


def test_a_score_that_fails_keeps_later_tasks_waiting():
    objects = [*TWO[:2], pod_group("g", min_member=0), pod("a", group="g"), pod("b", group="g", cpu=2)]
    plan = cycle(bench(objects, {}, "prioritize"), Server(prioritize={"errorMessage": "no model"}))
    assert len(binds(plan)) == 1
    assert any("no model" in update.message for update in plan.pod_conditions)


@pytest.mark.parametrize(("ignorable", "found"), [(False, {"p": "n1"}), (True, {"p": "n2"})])
def test_a_session_that_cannot_be_opened_asks_nothing_more_unless_that_is_ignored(ignorable, found):
    server = Server(onSessionOpen=FAILS, predicate=on_n2)
    plan = cycle(bench(TWO, {"extender.ignorable": ignorable}, "onSessionOpen", "predicate"), server)
    assert binds(plan) == found
    opened = dict(server.asked)["onSessionOpen"]
    assert sorted(opened) == ["Jobs", "NamespaceInfo", "NodeList", "Nodes", "Queues", "RevocableNodes"]
    assert (list(opened["Nodes"]), list(opened["Jobs"])) == (["n1", "n2"], ["default/g"])


def test_what_is_said_of_queues_and_of_nodes_in_revocable_zones():
    objects = [*TWO, node("lent", labels={"volcano.sh/revocable-zone": "z"})]
    server = Server(onSessionOpen={}, queueOverused={"overused": False})
    cycle(bench(objects, {}, "onSessionOpen", "queueOverused"), server)
    said = dict(server.asked)
    assert list(said["onSessionOpen"]["RevocableNodes"]) == ["lent"]
    queue = said["queueOverused"]["queue"]
    assert (queue["Name"], queue["Weight"]) == ("default", 1)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("500ms", 0.5), ("0s", 1.0), ("20s", 20.0), ("2m", 30.0)],
    ids=["less", "0", "more", "most"],
)
def test_how_long_an_answer_may_take(written, seconds):
    waited: list[float] = []

    def post(_url: str, _body: bytes, timeout: float) -> tuple[float, bytes]:
        waited.append(timeout)
        return 0.01, b"{}"

    cycle(bench(TWO, {"extender.httpTimeout": written}, "onSessionOpen"), SimpleNamespace(post=post))
    assert waited == [seconds]


def test_an_eviction_is_told_and_another_queue_may_be_asked_for_room():
    low = [*(pod(name, group="low", on="n1") for name in "ab"), pod("p", group="g")]
    groups = [pod_group("low", min_member=0, queue="other"), pod_group("g")]
    answer: Callable[[Any], Any] = lambda asked: {"status": 1, "victims": asked["evictees"][-1:]}  # noqa: E731
    server = Server(reclaimable=answer, deallocateFunc={})
    objects = [node("n1", cpu=2), queue("default"), queue("other"), *groups, *low]
    found = bench(objects, {}, "reclaimable", "deallocateFunc", actions="enqueue, allocate, reclaim")
    [gone] = cycle(found, server).evictions
    asked = [(verb, request.get("task", {}).get("Name")) for verb, request in server.asked]
    assert ("deallocateFunc", gone.key.partition("/")[2]) in asked


def test_only_pods_with_managed_resources_are_asked_about():
    nodes = [*(node(name, resources={"nvidia.com/gpu": 4}) for name in ("n1", "n2"))]
    objects = [
        *nodes,
        pod_group("g", min_member=0),
        pod("p", group="g"),
        pod("q", group="g", requests={"nvidia.com/gpu": 1}),
    ]
    server = Server(predicate=on_n2, prioritize=prefers("n2"))
    plan = cycle(bench(objects, {"extender.managedResources": ["nvidia.com/gpu"]}, "predicate", "prioritize"), server)
    assert binds(plan) == {"p": "n1", "q": "n2"}
    assert {request["task"]["Name"] for _, request in server.asked} == {"q"}
    task = server.asked[0][1]["task"]
    assert (task["Resreq"]["ScalarResources"], task["Status"], task["Job"]) == (
        {"nvidia.com/gpu": 1000, "pods": 1},
        1,
        "default/g",
    )


@pytest.mark.parametrize(
    ("answer", "ignorable", "evicted"),
    [
        (lambda asked: {"status": 1, "victims": [{"UID": asked["evictees"][-1]["UID"]}]}, False, 1),
        ({"status": -1, "victims": []}, False, 0),
        ({"status": 0, "victims": []}, False, 1),
        (FAILS, False, 0),
        (FAILS, True, 0),
    ],
)
def test_victims(answer, ignorable, evicted):
    objects = [
        *(
            node("n1", cpu=2),
            HIGH,
            pod_group("low", min_member=0),
            pod_group("g", priorityClassName="high"),
        ),
        *(pod(name, group="low", on="n1") for name in "ab"),
        pod("p", group="g", priority=10, priorityClassName="high"),
    ]
    found = bench(objects, {"extender.ignorable": ignorable}, "preemptable", actions="enqueue, allocate, preempt")
    assert len(cycle(found, Server(preemptable=answer)).evictions) == evicted


def test_a_cycle_repeats_from_the_answers_in_its_plan():
    verbs = ("onSessionOpen", "predicate", "prioritize", "allocateFunc")
    server = Server(onSessionOpen={}, predicate={}, prioritize=FAILS, allocateFunc={})
    plan = cycle(bench(TWO, {}, *verbs), server)
    assert {answer.problem for answer in plan.answers} == {"", str(FAILS)}
    again = msgspec.json.decode(msgspec.json.encode(plan), type=Plan)
    assert cycle(bench(TWO, {}, *verbs), Recorded(again.answers)) == plan
    changed = bench([*TWO, pod("q", group="g")], {}, *verbs)
    [told] = cycle(changed, Recorded(plan.answers)).answers
    assert told.problem == f"extender {URL}onSessionOpen: no such call was recorded"


def test_calls_of_a_session_have_a_common_limit_and_answers_too(monkeypatch):
    objects = [*(node(f"n{number}") for number in range(9)), *TWO[2:]]
    monkeypatch.setattr(calls, "BUDGET", 2.0)
    slow = Server(0.75, predicate={})
    assert binds(cycle(bench(objects, {"extender.ignorable": True}, "predicate"), slow))
    assert len(slow.asked) == 3
    monkeypatch.setattr(calls, "MOST_RECORDED", 5)
    plan = cycle(bench(objects, {}, "predicate"), Server(predicate={}))
    assert (plan.answers, plan.replayable) == ([], False)


def test_a_run_without_a_way_out_puts_the_plugin_aside():
    plan = bench(TWO, {}, "predicate").cycle()
    assert binds(plan)
    assert any("plugin extender asks for extender" in text for text in plan.inconsistencies)


def test_a_recorded_cycle_is_replayed_with_what_was_answered():
    verbs = ("predicate", "prioritize")
    found = bench(TWO, {}, *verbs)
    plan = cycle(found, Server(predicate=on_n2, prioritize=prefers("n2")))
    written = entries.decode(entries.Batch([entries.Planned.of(plan)]).content())
    replay = Replay(found.registry)
    again = bench(TWO, {}, *verbs)
    at = Segment(Path("none")), 1, Cut(NOW, 0, 0), Rim(again.state), again.config
    moment = SeenMoment(*at, again.snapshot())
    replay._run(moment)
    [planned] = written
    assert isinstance(planned, entries.Planned)
    replay._compare(planned)
    assert (replay.equal, replay.outside, replay.difference) == (1, 0, None)


@pytest.mark.parametrize("body", [b'{"code": "\xff"}', b'{"code": ' + b"[" * 100_000])
def test_an_answer_that_is_no_text_is_an_error_as_any_other(body):
    """And what is recorded of it says the same when it is read again."""
    found: list[tuple[str, Any]] = []
    for sender in (SimpleNamespace(post=lambda *_: (0.1, body)), None):
        plan = Plan()
        asked = calls.Calls(sender or Recorded(found[0][1]), "http://localhost", 1.0, plan)
        with pytest.raises(ExtenderError) as error:
            asked.ask("predicate", {}, Numbered)
        found.append((str(error.value), plan.answers))
    assert found[0] == found[1]


class Numbered(msgspec.Struct):
    code: int = 0

"""What a shadow sees of the other scheduler's pods, and how it counts and shows what it has found."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from stromboli.cluster import kinds
from stromboli.cluster.objects import from_value
from stromboli.framework.config.compat import DIFFERENCES
from stromboli.kube.informer import Change
from stromboli.kube.informer import What as News
from stromboli.live.shadow import causes
from stromboli.live.shadow.differences import AGREED, Comparison, Difference, What
from stromboli.live.shadow.figures import PATH, ShadowFigures, shadow_page
from stromboli.live.shadow.shadow import Seen, Shadow, seen
from tests.support.live_world import LiveWorld, pod
from tests.support.virtual import run

EVICTED = {"type": "Ready", "status": "False", "reason": "Evict", "message": "Pod is evicted, because of preempt"}
LACKS = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes"}


def stored(*conditions: dict[str, str], node: str = "", uid: str = "u", scheduler: str = "volcano") -> kinds.Pod:
    body = pod("p", "job")
    body["metadata"]["uid"] = uid
    body["spec"] |= {"schedulerName": scheduler, **({"nodeName": node} if node else {})}
    body["status"]["conditions"] = list(conditions)
    return cast(kinds.Pod, from_value("Pod", body))


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (stored(), Seen("", "", "")),
        (stored(node="n"), Seen("n", "", "")),
        (stored(EVICTED, node="n"), Seen("n", "preempt", "")),
        (stored({**EVICTED, "message": "gone"}), Seen("", "gone", "")),
        (stored({**EVICTED, "message": ""}), Seen("", "Evict", "")),
        (stored({**EVICTED, "reason": "Other"}), Seen("", "", "")),
        (stored(LACKS), Seen("", "", "waits: 0/4 nodes")),
        (stored({**LACKS, "message": ""}), Seen("", "", "")),
        (stored({**LACKS, "status": "True"}), Seen("", "", "")),
    ],
)
def test_what_a_pod_shows_of_decisions(found: kinds.Pod, shown: Seen) -> None:
    assert seen(found) == shown


def news(what: News, found: kinds.Pod | None, uid: str = "u") -> Change[object]:
    return Change(what, ("ns", "p"), uid, "1", found)


def test_pods_are_remembered_until_they_are_gone() -> None:
    async def story() -> None:
        shadow = Shadow(LiveWorld().scheduler(), 30.0)
        shadow._heard(news(News.added, stored(uid="x", scheduler="other"), "x"))
        assert shadow._seen == {}, "others' pods are theirs"
        shadow._heard(news(News.added, stored()))
        shadow._heard(news(News.added, stored(uid="v"), "v"))
        shadow._heard(news(News.deleted, stored()))
        assert list(shadow._seen) == ["v"]
        shadow._heard(news(News.modified, None, "v"))
        assert shadow._seen == {}

    asyncio.run(story())


def test_as_many_plans_as_are_compared_are_kept() -> None:
    async def story() -> None:
        world = LiveWorld()
        scheduler = world.scheduler(may_write=lambda: False)
        world.start(scheduler)
        await scheduler.ready.wait()
        shadow = Shadow(scheduler, 30.0)
        for _ in range(8):
            await shadow.cycle()
        assert list(shadow._made) == [4, 5, 6, 7, 8], "those of the last five plans"
        await world.end()

    run(story())


def difference(what: What = What.elsewhere) -> Difference:
    return Difference(what=what, pod="ns/p", uid="u", job="ns/job", there="n1", here="n2", time=0.0, cycle=1)


def test_no_reason_is_sought_where_the_plan_is_gone_or_the_last_search_is_fresh() -> None:
    async def story() -> None:
        shadow = Shadow(LiveWorld().scheduler(), 30.0)
        assert await shadow._why(difference()) == causes.BEYOND
        shadow._made[1] = cast(Any, SimpleNamespace(moment=None, left_out=()))
        shadow._rested = asyncio.get_running_loop().time() + 60
        assert await shadow._why(difference()) == causes.BEYOND

    asyncio.run(story())


@pytest.mark.parametrize(
    ("what", "drawn", "rows", "text"),
    [
        (What.elsewhere, True, ("r",), causes.EQUAL),
        (What.elsewhere, False, (), causes.UNKNOWN),
        (What.bound_here, True, (), causes.UNKNOWN),
    ],
)
def test_a_reason_is_a_draw_or_rows_or_not_known(
    what: What, drawn: bool, rows: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(causes, "is_drawn", lambda *_: drawn)
    monkeypatch.setattr(causes, "rows_of", lambda *_: rows)
    assert causes.why(cast(Any, None), difference(what)) == (text, ())


def test_a_reason_quotes_the_rows_that_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(sorted(DIFFERENCES)[:2])
    monkeypatch.setattr(causes, "rows_of", lambda *_: rows)
    first, second = (f"{row}: {DIFFERENCES[row].ours}" for row in rows)
    assert causes.why(cast(Any, None), difference(What.bound_here)) == (f"{first}; {second}", rows)

    def late(*_: object) -> tuple[str, ...]:
        raise causes.TookTooLong

    monkeypatch.setattr(causes, "rows_of", late)
    assert causes.why(cast(Any, None), difference(What.bound_here)) == (causes.BEYOND, ())


def test_counts_of_every_outcome_are_shown_from_the_start() -> None:
    comparison = Comparison(30.0)
    comparison.counts[AGREED] += 3
    comparison.found.append(difference())
    shadow: Any = SimpleNamespace(comparison=comparison, plans=7, left_out=("an extender",))
    registry, pages = CollectorRegistry(), dict[str, Any]()
    ShadowFigures(registry, shadow)
    values = {one.labels.get("outcome", one.name): one.value for family in registry.collect() for one in family.samples}
    assert (values[AGREED], values[What.elsewhere]) == (3, 0)
    assert 7 in values.values()
    shadow_page(cast(Any, SimpleNamespace(add=pages.__setitem__)), shadow)
    response = pages[PATH]()
    body = json.loads(response.body)
    assert (body["plans"], body["counts"], body["leftOut"]) == (7, {AGREED: 3}, ["an extender"])
    assert [one["pod"] for one in body["differences"]] == ["ns/p"]
    assert response.content_type == "application/json"

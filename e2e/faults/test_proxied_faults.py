"""What may go wrong on the way to each kind of server, every write of a gang's story struck once, watches included."""

from __future__ import annotations

import random
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from e2e.dumps import differences
from e2e.objects import job
from e2e.proxy import Once, Proxy, Strike, let_pass
from e2e.stage import PATIENCE, TERMS, Stage, until
from stromboli.live.scheduler.feed import FOLLOWED, selected
from stromboli.live.scheduler.options import Options

SIZE: Final = 4
WATCHED: Final = len({*selected(FOLLOWED, Options().unwatched)} - {"UpstreamPodGroup", "Workload"})
"""Kinds that are followed and that both servers serve: upstream PodGroups are alpha."""
STRIKES: Final = {
    "conflict": Strike(409),
    "busy": Strike(429, after="1"),
    "error": Strike(500),
    "error-though-done": Strike(500, done=True),
    "broken": Strike(),
    "broken-though-done": Strike(done=True),
}


@pytest.fixture
def proxy(stage: Stage) -> Iterator[Proxy]:
    """A proxy before the server."""
    with Proxy(stage.login).running() as found:
        yield found


def bindings(proxy: Proxy) -> Counter[str]:
    """How often each pod was bound."""
    return Counter(one.path for one in proxy.asked if one.path.endswith("/binding") and one.status == 201)


def test_no_connection_outlasts_the_proxy(stage: Stage) -> None:
    """Not even where the server is too busy to answer TLS's close_notify."""
    process, login, before = stage.server.process, stage.login, len([*Path("/proc/self/fd").iterdir()])
    assert process is not None
    try:
        with Proxy(login).running() as proxy:
            headers = {"Authorization": f"Bearer {login.token}"}
            watch = urllib.request.Request(f"{proxy.url}/api/v1/pods?watch=true", headers=headers)
            with urllib.request.urlopen(watch, timeout=PATIENCE):
                until(lambda: proxy.watches, "the watch")
                process.send_signal(signal.SIGSTOP)
    finally:
        process.send_signal(signal.SIGCONT)
    assert len([*Path("/proc/self/fd").iterdir()]) <= before


def test_every_write_fails_once(stage: Stage, space: str, proxy: Proxy) -> None:
    """Those of the scheduler and of the controllers."""
    with stage.controllers(proxy.url), stage.scheduler("--audit-period=0", name="struck", through=proxy.url):
        for kind, strike in STRIKES.items():
            rule = proxy.rule = Once(strike)
            stage.create(job(space, kind, SIZE, command="sleep 1"))
            assert stage.until_phase(space, kind, "Completed")["succeeded"] == SIZE
            struck = [path for _, path, _ in rule.seen if f"/{space}/" in path]
            assert sum(path.endswith("/binding") for path in struck) == SIZE
            assert sum(path.endswith("/pods") for path in struck) == SIZE
            assert all(any(part in path for path in struck) for part in ("/podgroups/", "/jobs/", "/events"))
        proxy.rule = let_pass
        until(lambda: not differences(stage, "struck"), "the state equals a fresh list")
    assert len(bindings(proxy)) == SIZE * len(STRIKES)
    assert set(bindings(proxy).values()) == {1}


def test_watches_break_again_and_again(stage: Stage, space: str, proxy: Proxy) -> None:
    with stage.scheduler("--audit-period=0", name="cut", through=proxy.url):
        for number in range(5):
            stage.create(job(space, f"j{number}", SIZE, command="sleep 1"))
            until(lambda: proxy.watches >= WATCHED, "all watches are there")
            proxy.cut()
            time.sleep(0.1)
        for number in range(5):
            assert stage.until_phase(space, f"j{number}", "Completed")["succeeded"] == SIZE
        until(lambda: not differences(stage, "cut"), "the state equals a fresh list")
    assert set(bindings(proxy).values()) == {1}


def test_news_come_twice_and_late(stage: Stage, space: str, proxy: Proxy) -> None:
    proxy.confused = random.Random(5)
    with stage.scheduler("--audit-period=0", name="confused", through=proxy.url):
        for number in range(5):
            stage.create(job(space, f"j{number}", SIZE, command="sleep 1"))
            time.sleep(0.3)
        for number in range(5):
            assert stage.until_phase(space, f"j{number}", "Completed")["succeeded"] == SIZE
        until(lambda: not differences(stage, "confused"), "the state equals a fresh list")
    assert set(bindings(proxy).values()) == {1}


def test_clocks_jump(stage: Stage, space: str, proxy: Proxy) -> None:
    """Those of the scheduler that leads and of the controllers, an hour ahead and an hour back; the other waits."""
    with ExitStack() as stack:
        with stage.skewed() as jump:
            stack.enter_context(stage.controllers(proxy.url))
            stack.enter_context(stage.scheduler(*TERMS, "--audit-period=0", name="jumps", through=proxy.url))
            until(lambda: stage.led("jumps"), "it leads")
        stack.enter_context(stage.scheduler(*TERMS, name="waits"))
        for number, offset in enumerate((0.0, 3600.0, 0.0, -3600.0)):
            jump(offset)
            stage.create(job(space, f"j{number}", SIZE, command="sleep 1"))
            assert stage.until_phase(space, f"j{number}", "Completed")["succeeded"] == SIZE
        time.sleep(10)  # longer than a lease lasts
        stage.create(job(space, "last", SIZE, command="sleep 1"))
        assert stage.until_phase(space, "last", "Completed")["succeeded"] == SIZE
        until(lambda: not differences(stage, "jumps"), "the state equals a fresh list")
        assert not stage.led("waits")
    hours = {line["ts"][:13] for line in stage.logged("jumps")}
    assert len(hours) >= 3  # the clock did jump
    assert len(bindings(proxy)) == 5 * SIZE
    assert set(bindings(proxy).values()) == {1}


def test_a_leader_that_is_cut_off_ends_before_another_one_leads(stage: Stage, space: str, proxy: Proxy) -> None:
    with stage.scheduler(*TERMS, name="cut-off", through=proxy.url) as first:
        stage.create(job(space, "before", 2))
        stage.until_phase(space, "before", "Running")
        with stage.scheduler(*TERMS, name="other"):
            until(lambda: any(line["key"] == "waiting_for_lease" for line in stage.logged("other")), "the other waits")
            proxy.rule = lambda _method, _path, _body: Strike()
            proxy.cut()
            assert first.wait(PATIENCE) == 1
            until(lambda: stage.led("other"), "the other leads")
            (begun,) = [line["ts"] for line in stage.logged("other") if line["key"] == "leading"]
            assert max(line["ts"] for line in stage.logged("cut-off")) < begun
            stage.create(job(space, "after", SIZE))
            stage.until_phase(space, "after", "Running")
            until(lambda: not differences(stage, "other"), "the state equals a fresh list")
    assert set(bindings(proxy).values()) == {1}


def test_watches_that_stay_open_without_news_are_taken_up_again(stage: Stage, space: str, proxy: Proxy) -> None:
    """As behind a proxy whose server goes away and comes back: watches stay open, and requests fail meanwhile."""
    with stage.scheduler(*TERMS, name="muffled", through=proxy.url):
        stage.create(job(space, "before", 2))
        stage.until_phase(space, "before", "Running")
        until(lambda: proxy.watches >= WATCHED, "all watches are there")
        proxy.muffle()
        proxy.rule = lambda _method, _path, _body: Strike(503)
        time.sleep(2)
        proxy.rule = let_pass
        stage.create(job(space, "after", SIZE, command="sleep 1"))
        assert stage.until_phase(space, "after", "Completed", 30.0)["succeeded"] == SIZE
        until(lambda: not differences(stage, "muffled"), "the state equals a fresh list")
    assert not [line for line in stage.logged("muffled") if "no answer within" in line.get("msg", "")]

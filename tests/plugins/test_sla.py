from __future__ import annotations

import math

import pytest

from stromboli.plugins.sla import Sla
from tests.plugins.support import FakeSession, make_job, opened

HOUR = 3600


def plugin_at(now=0.0, argument=None):
    session = FakeSession(now=now)
    return opened(Sla({} if argument is None else {"sla-waiting-time": argument}), session), session


@pytest.mark.parametrize(
    ("argument", "seconds"),
    [
        pytest.param("2h30m", 150 * 60, id="S3-50"),
        pytest.param("1ns", 1e-9, id="the-shortest"),
        pytest.param(None, None, id="S3-51-neither"),
        pytest.param("abc", None, id="S3-51-abc"),
        pytest.param("-1h", None, id="S3-51-negative"),
        pytest.param("0s", None, id="S3-51-zero"),
        pytest.param(3600, None, id="S3-51-a-number"),
    ],
)
def test_global_waiting_time(argument, seconds):
    assert plugin_at(argument=argument)[0].limit == seconds


@pytest.mark.parametrize(
    ("argument", "key", "fields"),
    [
        ("1h", "sla_global_time", {"duration": "1h0m0s"}),
        ("1ns", "sla_global_time", {"duration": "1ns"}),
        ("0s", "sla_global_invalid", {"duration": "0s"}),
        ("-1h", "sla_global_invalid", {"duration": "-1h0m0s"}),
        ("abc", "sla_global_invalid", {"duration": "0s"}),
    ],
)
def test_what_it_says_of_the_argument(argument, key, fields):
    _, session = plugin_at(argument=argument)
    assert session.told(key) == [fields]
    assert len(session.told("sla_global_unreadable")) == (argument == "abc")


def test_the_jobs_own_time_counts_before_the_global_one():
    """S3-51."""
    plugin, _ = plugin_at(argument="2h")
    assert plugin.deadline(make_job(created=10, waiting=HOUR)) == 10 + HOUR
    assert plugin.deadline(make_job(created=10)) == 10 + 2 * HOUR
    assert plugin_at()[0].deadline(make_job(created=10)) == math.inf


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        pytest.param((10, 5), (0, 20), -1, id="S3-52-earlier-deadline"),
        pytest.param((0, None), (50, 99), 1, id="S3-52-with-deadline-first"),
        pytest.param((0, None), (50, None), 0, id="S3-52-neither"),
        pytest.param((10, 5), (5, 10), 0, id="S3-52-equal"),
    ],
)
def test_order(left, right, answer):
    plugin, _ = plugin_at()
    one, other = (make_job(created=created, waiting=wait) for created, wait in (left, right))
    assert plugin.earlier_deadline_first(one, other) == answer
    assert plugin.earlier_deadline_first(other, one) == -answer


@pytest.mark.parametrize(
    ("now", "waiting", "vote"),
    [(99.9, 90, 0), (100.0, 90, 1), (500.0, 90, 1), (500.0, None, 0)],
    ids=["S3-53-before", "S3-53-at-the-deadline", "S3-53-overdue", "no-limit"],
)
def test_overdue_jobs_may_enter_and_reserve(now, waiting, vote):
    plugin, _ = plugin_at(now)
    job = make_job(created=10, waiting=waiting)
    assert (plugin.may_enter(job), plugin.may_reserve(job)) == (vote, vote)


def test_it_says_when_it_comes_and_goes():
    plugin, session = plugin_at()
    plugin.on_session_close(session)
    assert (len(session.told("sla_entered")), len(session.told("sla_left"))) == (1, 1)

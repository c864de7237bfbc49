from __future__ import annotations

import pytest

from stromboli.model.queue import ResourceQuota
from stromboli.plugins.resourcequota import ResourceQuotas, inside
from tests.plugins.support import GPU, FakeSession, make_job, opened

PERMIT, REJECT = 1, -1


def quota(hard, used=None, name="q"):
    return ResourceQuota("ns", name, hard, used or {})


def plugin_with(*quotas, compat=False):
    session = FakeSession(quotas={"ns": {one.name: one for one in quotas}}, compat=compat)
    return opened(ResourceQuotas(), session), session


def pending(least, name="j"):
    return make_job(f"ns/{name}", phase="Pending", min_resources=least)


@pytest.mark.parametrize(
    ("quotas", "least", "vote"),
    [
        pytest.param([quota({"cpu": 1})], None, PERMIT, id="S3-47-no-minResources"),
        pytest.param([quota({"cpu": 1})], {GPU: 9}, PERMIT, id="S3-47-only-what-hard-names"),
        pytest.param([quota({"cpu": 9}), quota({"cpu": 1}, name="full")], {"cpu": 2}, REJECT, id="S3-47-all-must-hold"),
        pytest.param([quota({"cpu": 10}, {"cpu": 8})], {"cpu": 2}, PERMIT, id="exactly-full"),
        pytest.param([quota({"cpu": 10}, {"cpu": 8})], {"cpu": "2001m"}, REJECT, id="exact-arithmetic"),
        pytest.param([quota({"requests.cpu": 4})], {"requests.cpu": 5}, REJECT, id="keys-of-other-kinds"),
        pytest.param([quota({"count/pods": 4})], {"count/pods": 4}, PERMIT, id="counts"),
        pytest.param([quota({"cpu": 1}, {"cpu": 5})], {"memory": 1}, PERMIT, id="overused-but-not-asked-for"),
        pytest.param([], {"cpu": 5}, PERMIT, id="no-quotas"),
    ],
)
def test_every_quota_must_leave_room(quotas, least, vote):
    plugin, _ = plugin_with(*quotas)
    assert plugin.has_room(pending(least)) == vote


def test_unknown_namespace():
    """S3-47."""
    plugin, _ = plugin_with(quota({"cpu": 1}))
    job = make_job("other/j", phase="Pending", min_resources={"cpu": 5})
    assert plugin.has_room(job) == PERMIT
    plugin.admit(job)
    assert plugin.pending == {}


@pytest.mark.parametrize(("least", "vote"), [(2, PERMIT), (3, REJECT)], ids=["S3-48-fits", "S3-48-does-not"])
def test_what_was_let_in_counts(least, vote):
    plugin, _ = plugin_with(quota({"cpu": 10}, {"cpu": 6}))
    plugin.admit(pending({"cpu": 2}, "before"))
    assert plugin.has_room(pending({"cpu": least})) == vote


def test_the_vote_alone_counts_nothing():
    """S3-48: pending grows when all plugins have voted."""
    plugin, _ = plugin_with(quota({"cpu": 10}, {"cpu": 6}))
    assert [plugin.has_room(pending({"cpu": 4})) for _ in range(2)] == [PERMIT, PERMIT]


def test_event():
    """S3-49: the failing keys alone; used without what was let in."""
    plugin, session = plugin_with(
        quota({"cpu": 10, "memory": "1Gi", "pods": 9}, {"cpu": "6", "memory": "1Mi", "pods": 1})
    )
    plugin.admit(pending({"cpu": 3}, "before"))
    plugin.has_room(pending({"pods": 1, "memory": "2Gi", "cpu": 2}))
    shown = "requested: map[cpu:2 memory:2Gi], used: map[cpu:6 memory:1Mi], limited: map[cpu:10 memory:1Gi]"
    text = f"resource quota insufficient, {shown}"
    assert session.events == [("ns/j", "Normal", "Unschedulable", text)]
    assert session.told("quota_refused") == [{"job": "ns/j", "message": text}]


def test_what_is_weighed_is_the_first_quota_that_is_exceeded_in_what_it_lacks():
    hard = {"cpu": 10, GPU: 2, "requests.memory": 9, "pods": 9}
    enough = quota({"cpu": 99}, name="enough")
    small = quota(hard, {"cpu": 6, GPU: 0, "requests.memory": 4}, name="small")
    plugin, _ = plugin_with(enough, small)
    plugin.admit(pending({"cpu": 3, "requests.memory": 2}, "before"))
    found = plugin.weighed(pending({"cpu": 2, GPU: 3, "requests.memory": 4, "pods": 1}))
    assert found.numbers == {
        "request": {"cpu": 2000, GPU: 3000, "requests.memory": 4},
        "used": {"cpu": 6000, GPU: 0, "requests.memory": 4},
        "hard": {"cpu": 10_000, GPU: 2000, "requests.memory": 9},
        "admitted": {"cpu": 3000, "requests.memory": 2},
    }
    assert (found.limit, found.words) == ("hard", "limit {}")
    assert plugin.weighed(pending({"cpu": 1})).numbers == {"request": {"cpu": 1000}}


def test_event_as_the_reference_prints_it():
    plugin, session = plugin_with(quota({"cpu": 1}), compat=True)
    plugin.has_room(pending({"cpu": 2}))
    assert "requested: map[cpu:{{2 0} {<nil>} 2 DecimalSI}], used: map[], limited" in session.events[0][3]


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (2, "{{2 0} {<nil>} 2 DecimalSI}"),
        ("500m", "{{500 -3} {<nil>} 500m DecimalSI}"),
        ("1.5", "{{15 -1} {<nil>} 1.5 DecimalSI}"),
        ("4Gi", "{{4294967296 0} {<nil>} 4Gi BinarySI}"),
        ("1e3", "{{1000 0} {<nil>} 1e3 DecimalExponent}"),
    ],
)
def test_the_inside_of_a_quantity(amount, text):
    assert inside(amount) == text

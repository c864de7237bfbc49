"""Resource quotas: what is used of them, and pods that would exceed them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.server.admission import quotas
from stromboli.server.storage.store import Store
from tests.server.browser import PODS, Browser, pod

QUOTAS = "/api/v1/namespaces/default/resourcequotas"


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        hard = {"requests.cpu": "2", "memory": "4Gi", "pods": "3", "configmaps": "5", "count/jobs.batch": "1"}
        found.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        yield found


def _pod(name, cpu="1", memory="1Gi", **spec):
    return pod(name, container={"resources": {"requests": {"cpu": cpu, "memory": memory}}}, **spec)


def test_what_is_used_is_counted(browser):
    browser.post(PODS, _pod("a", cpu="500m"))
    init = [{"name": "first", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Ki"}}}]
    browser.post(PODS, _pod("b", cpu="250m", initContainers=init))
    status = browser.get(f"{QUOTAS}/q").body["status"]
    assert status["used"] == {
        "requests.cpu": "1500m", "memory": "2Gi", "pods": "2", "configmaps": "1", "count/jobs.batch": "0",
    }  # fmt: skip
    browser.patch(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
    assert browser.get(f"{QUOTAS}/q").body["status"]["used"]["pods"] == "1"


REFUSED = [
    (
        _pod("b", cpu="1500m"),
        "exceeded quota: q, requested: requests.cpu=1500m, used: requests.cpu=1, limited: requests.cpu=2",
    ),
    (_pod("b", memory="5Gi"), "exceeded quota: q, requested: memory=5Gi, used: memory=1Gi, limited: memory=4Gi"),
    (pod("b"), "failed quota: q: must specify memory for: main; requests.cpu for: main"),
    (
        {**pod("b"), "spec": {"containers": [{"image": "busybox"}]}},
        "failed quota: q: must specify memory for: ; requests.cpu for: ",
    ),
]


@pytest.mark.parametrize(("body", "why"), REFUSED)
def test_a_pod_beyond_the_quota_is_refused(browser, body, why):
    browser.post(PODS, _pod("a"))
    assert browser.post(PODS, body).text == f'pods "b" is forbidden: {why}'


def test_an_object_beyond_its_number_is_refused(browser):
    configs = "/api/v1/namespaces/default/configmaps"
    for name in "abcd":
        assert browser.post(configs, {"metadata": {"name": name}}).code == 201
    told = "exceeded quota: q, requested: configmaps=1, used: configmaps=5, limited: configmaps=5"
    assert browser.post(configs, {"metadata": {"name": "e"}}).text == f'configmaps "e" is forbidden: {told}'
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"containers": [{"name": "m", "image": "i"}], "restartPolicy": "Never"}}
    codes = [browser.post(jobs, {"metadata": {"name": n}, "spec": {"template": template}}).code for n in ("a", "b")]
    assert codes == [201, 403]


def _selector(operator, *values):
    term = {"scopeName": "PriorityClass", "operator": operator, **({"values": list(values)} if values else {})}
    return {"matchExpressions": [term]}


SCOPES = [
    ({"scopes": ["BestEffort"]}, ["bare"]),
    ({"scopes": ["NotBestEffort"]}, ["asks", "ends", "vip"]),
    ({"scopes": ["Terminating"]}, ["ends"]),
    ({"scopes": ["NotTerminating", "NotBestEffort"]}, ["asks", "vip"]),
    ({"scopes": ["PriorityClass"]}, ["vip"]),
    ({"scopeSelector": _selector("In", "high", "low")}, ["vip"]),
    ({"scopeSelector": _selector("NotIn", "high")}, ["bare", "asks", "ends"]),
    ({"scopeSelector": _selector("DoesNotExist")}, ["bare", "asks", "ends"]),
]


@pytest.mark.parametrize(("scope", "names"), SCOPES)
def test_a_quota_counts_the_pods_of_its_scope(scope, names):
    browser = Browser()
    with browser.runner:
        browser.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 9})
        made = browser.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": str(len(names))}, **scope}})
        assert made.code == 201
        pods = [pod("bare"), _pod("asks"), _pod("ends", activeDeadlineSeconds=9), _pod("vip", priorityClassName="high")]
        assert {browser.post(PODS, body).code for body in pods} == {201}
        assert browser.get(f"{QUOTAS}/q").body["status"]["used"] == {"pods": str(len(names))}
        codes = [browser.post(PODS, body | {"metadata": {"generateName": "again-"}}).code for body in pods]
        assert [body["metadata"]["name"] for body, code in zip(pods, codes, strict=True) if code == 403] == names


def test_what_is_used_is_kept_up_and_no_pod_costs_a_look_at_the_others(browser, monkeypatch):
    charged: list[object] = []
    made: list[object] = []
    charge, status = quotas.charge, quotas.Tally.status

    def noted(into, original):
        def noting(what):
            into.append(what)
            return original(what)

        return noting

    monkeypatch.setattr(quotas, "charge", noted(charged, charge))
    monkeypatch.setattr(quotas.Tally, "status", noted(made, status))
    browser.patch(f"{QUOTAS}/q", {"spec": {"hard": {"pods": "50", "requests.cpu": "50", "memory": "50Gi"}}})
    for number in range(30):
        charged.clear()
        made.clear()
        browser.post(PODS, _pod(f"p{number}"))
        assert (len(charged), len(made)) == (1, 1)
    charged.clear()
    made.clear()
    browser.patch(f"{PODS}/p1", {"metadata": {"labels": {"a": "b"}}})
    browser.patch(f"{PODS}/p1/status", {"status": {"phase": "Running"}})
    browser.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    assert (charged, made) == ([], [])
    browser.patch(f"{QUOTAS}/q", {"spec": {"hard": {"secrets": "7"}}})
    browser.delete(f"{PODS}/p1")
    status = browser.get(f"{QUOTAS}/q").body["status"]
    assert (status["used"]["pods"], status["used"]["secrets"], status["hard"]["memory"]) == ("29", "1", "50Gi")


def test_pods_that_have_ended_are_still_objects(browser):
    browser.post(QUOTAS, {"metadata": {"name": "objects"}, "spec": {"hard": {"count/pods": "2", "pods": "2"}}})
    browser.post(PODS, _pod("a"))
    browser.patch(f"{PODS}/a/status", {"status": {"phase": "Failed"}})
    assert browser.get(f"{QUOTAS}/objects").body["status"]["used"] == {"count/pods": "1", "pods": "0"}
    browser.post(PODS, _pod("b"))
    assert "exceeded quota: objects, requested: count/pods=1" in browser.post(PODS, _pod("c")).text


class Shelves:
    """A store as admissions see it."""

    def __init__(self, store):
        self.store = store

    def body(self, group, plural, namespace, name):
        raise AssertionError("the test reads no single object")

    def bodies(self, group, plural, namespace=""):
        return [entry.body for entry in self.store.of((group, plural)).sorted(namespace)]


NAMES = st.sampled_from("ab")
SPACES = st.sampled_from(["ns", "other"])
HARD = st.sets(
    st.sampled_from(["pods", "count/pods", "cpu", "requests.memory", "limits.cpu", "configmaps", "count/jobs.batch",
                     "count/resourcequotas", "requests.example.com/gpu"])
)  # fmt: skip
SCOPE: st.SearchStrategy[dict[str, object]] = st.just({}) | st.sampled_from([scope for scope, _ in SCOPES])


def _spec(requests, limits, **more):
    return {"containers": [{"name": "c", "resources": {"requests": requests, "limits": limits}}], **more}


SPECS = st.sampled_from([
    _spec({"cpu": "1", "memory": "2Gi"}, {}),
    _spec({"cpu": "500m", "example.com/gpu": "3"}, {"cpu": "1e3", "example.com/gpu": "3"}, priorityClassName="high"),
    _spec({}, {}, activeDeadlineSeconds=5),
    _spec({"memory": "1"}, {"cpu": "1m"}),
])  # fmt: skip
PHASE = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])
POD = st.builds(lambda spec, phase: {"spec": spec, "status": {"phase": phase}}, SPECS, PHASE)
QUOTA = st.builds(lambda hard, scope: {"spec": {"hard": dict.fromkeys(hard, "9"), **scope}}, HARD, SCOPE)
CONTENT = {("", "pods"): POD, quotas.COLLECTION: QUOTA, ("", "configmaps"): st.just({}), ("batch", "jobs"): st.just({})}
STEP = st.sampled_from([("", "pods"), ("", "pods"), *sorted(CONTENT)]).flatmap(
    lambda collection: st.tuples(st.just(collection), SPACES, NAMES, st.none() | CONTENT[collection])
)


def _steps(store, steps):
    for collection, namespace, name, content in steps:
        if content is None:
            store.drop(collection, (namespace, name))
        else:
            store.put(collection, {"metadata": {"name": name, "namespace": namespace, "uid": name}, **content})
        yield namespace


@given(QUOTA, st.lists(STEP, max_size=5), st.lists(STEP, min_size=8, max_size=25))
def test_what_is_kept_up_is_what_a_fresh_count_gives(quota, before, after):
    """Whatever comes, changes and goes, in whatever order; what was there before counting began is counted too."""
    store = Store()
    world = Shelves(store)
    quotas_there = [(quotas.COLLECTION, namespace, "a", quota) for namespace in ("ns", "other")]
    for _ in _steps(store, [*quotas_there, *before]):
        pass
    usage = quotas.Usage(store, world)
    for namespace in _steps(store, after):
        kept = {tally.quota["metadata"]["name"]: tally.used() for tally in usage.of(namespace)}
        found = world.bodies(*quotas.COLLECTION, namespace)
        assert kept == {one["metadata"]["name"]: quotas.Tally(one, world).used() for one in found}


def test_nothing_is_kept_of_a_namespace_whose_last_quota_is_gone(browser):
    browser.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    quotas = "/api/v1/namespaces/other/resourcequotas"
    for name in ("a", "b"):
        assert browser.post(quotas, {"metadata": {"name": name}, "spec": {"hard": {"pods": "1"}}}).code == 201
    usage = browser.api.keeper.usage
    browser.delete(f"{quotas}/a")
    assert (len(list(usage.of("other"))), sorted(usage._of)) == (1, ["default", "other"])
    browser.delete(f"{quotas}/b")
    assert (list(usage.of("other")), list(usage._of)) == ([], ["default"])

"""The cases of admission as writes to an API server: what it says to each, in a dry run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from stromboli.api.kinds import CRON_JOBS, PODS, QUEUES, RESOURCES
from stromboli.crds.admission.paths import ALL_PATHS
from stromboli.crds.cel.policies import POLICIES
from tests.support.admission_cases import CASES, WORLD, Case

Json = dict[str, Any]
Call = Callable[[str, str, Json | None, str], tuple[int, Json]]
"""Method, path, body and media type of a request, to the code and body of the answer."""

JSON, MERGE = "application/json", "application/merge-patch+json"
NAMESPACES = {"ns": {}, "team": {"scheduling.volcano.sh/queue-name": "low"}}

ELSEWHERE = frozenset({
    "changed queue 5", "queue state",  # states come by the status alone
    "deleted queue 4", *(f"queue factor {number}" for number in range(6)),  # these need flags of their own
})  # fmt: skip
"""Cases that do not come about by one write to a server with the usual flags."""
ONE_WRITE = tuple(
    case for name, case in CASES.items() if name not in ELSEWHERE and not name.startswith("kept ")
)  # fmt: skip
"""Those that do."""

_QUEUE = "whether the queue is there, open and a leaf"
_TEMPLATE = "pod templates; whole CPUs of tasks with a topology policy"
_PARENT, _SUMS = POLICIES[QUEUES].lost[:2]
_SCHEDULE, _ZONE = POLICIES[CRON_JOBS].lost
LOST = {
    **dict.fromkeys(("job queue", "job closed", "job inner"), _QUEUE),
    **dict.fromkeys(
        ("job numa half", "job no containers", "job container", "job restart policy", "job mount", "job port"),
        _TEMPLATE,
    ),
    "job pod name": "names of jobs and of their pods",
    "job waits for itself": "circles of dependsOn that take more than one task",
    "job mpi": "the master task of the plugin mpi",
    "changed job 13": "changes of volumes",
    **dict.fromkeys(("queue no parent", "queue too deep", "queue busy parent"), _PARENT),
    **dict.fromkeys(
        ("queue above the ancestor", "queue above the grandparent", "queue guarantees", "queue deserved"), _SUMS
    ),
    "changed queue 2": _SUMS,
    "deleted queue 2": "whether a queue that is deleted has children or holds pods",
    "queue path 4": "paths of annotations below one another",
    "pod group 3": "whether the queue is there and open",
    "flow circle": "circles that take more than one flow",
    "cron job 4": _SCHEDULE,
    "cron job 6": _ZONE,
}
"""Cases that the policies in CEL let pass, and which of the things that they say they do not check."""


def collection(resource: str, namespace: str = "") -> str:
    """The path of a collection."""
    if resource == PODS:
        return f"/api/v1/namespaces/{namespace}/pods"
    kind = RESOURCES[resource]
    scope = f"/namespaces/{namespace}" if kind.namespaced else ""
    return f"/apis/{kind.api_version}{scope}/{kind.plural}"


def whole(resource: str, value: Json) -> Json:
    """The object with its version and kind, as users write it."""
    if resource == PODS:
        return {"apiVersion": "v1", "kind": "Pod", **value}
    kind, found = RESOURCES[resource], copy.deepcopy(value)
    if resource == QUEUES and not found["spec"].get("parent", "root"):
        del found["spec"]["parent"]
    return {"apiVersion": kind.api_version, "kind": kind.kind, **found}


def furnishing() -> Iterator[tuple[str, str, Json, str]]:
    """The requests that make what the cases look at."""
    for name, notes in NAMESPACES.items():
        metadata = {"name": name, "annotations": notes}
        yield "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, JSON
    for found in WORLD.list(QUEUES):
        queue = whole(QUEUES, dict(found))
        yield "POST", collection(QUEUES), queue, JSON
        path = f"{collection(QUEUES)}/{queue['metadata']['name']}/status"
        yield "PATCH", path, {"status": queue.get("status") or {"state": "Open"}}, MERGE


def said_to(case: Case, call: Call) -> str:
    """What the server says to the write of a case; empty if it takes it."""
    value = case.value if case.value is not None else case.old or {}
    namespace, name = value["metadata"].get("namespace", "ns"), value["metadata"].get("name", "x")
    where = collection(case.resource, namespace)
    if case.operation == "CREATE":
        code, body = call("POST", f"{where}?dryRun=All", whole(case.resource, value), JSON)
    elif case.operation == "DELETE":
        code, body = call("DELETE", f"{where}/{name}?dryRun=All", None, JSON)
    else:
        made, _ = call("POST", where, whole(case.resource, case.old or {}), JSON)  # queues are there already
        _, found = call("GET", f"{where}/{name}", None, JSON)
        written = {**whole(case.resource, value), "metadata": {**found["metadata"], **value["metadata"]}}
        code, body = call("PUT", f"{where}/{name}?dryRun=All", written, JSON)
        if made < 400:
            call("DELETE", f"{where}/{name}", None, JSON)
    return str(body["message"]) if code >= 400 else ""


def wanted(case: Case) -> str:
    """What a server says that asks our webhooks, or how that begins: what is filled in may be wrong besides."""
    webhook = ALL_PATHS[f"/{case.resource.partition('.')[0]}/validate"].webhook
    return case.text and f'admission webhook "{webhook}" denied the request: {case.text}'


def is_refused_by_its_schema(case: Case, said: str) -> bool:
    """Whether a case that should be refused is, before a webhook is asked."""
    return bool(case.text) and " is invalid: " in said and "admission webhook" not in said


def unlike_its_webhook(case: Case, said: str) -> str:
    """What is wrong with a server that asks policies in the place of webhooks; empty if they refuse what is wrong."""
    is_refused = "ValidatingAdmissionPolicy" in said or is_refused_by_its_schema(case, said)
    wanted = bool(case.text) and case.name not in LOST
    return (
        "" if is_refused is wanted and bool(said) is is_refused else f"{case.name}: {case.text!r}, and it says {said!r}"
    )

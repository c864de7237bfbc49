"""The cases of admission as writes to an API server: what it says to each, in a dry run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from stromboli.crds.admission.paths import ALL_PATHS
from stromboli.crds.kinds import PODS, QUEUES, RESOURCES
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

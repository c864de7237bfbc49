"""What the cases of admission look at, on a server."""

from __future__ import annotations

import json
from functools import partial

from e2e.clusters import Json, Refused
from e2e.stage import Stage, until
from tests.support.admission_cases import Case
from tests.support.admission_writes import furnishing, said_to


def furnish(stage: Stage) -> None:
    """The queues and namespaces that the cases look at."""
    for method, path, body, media in furnishing():
        until(lambda: stage.api.call(method, path, body, media), path)  # noqa: B023  # asked at once
    stage.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "ns"}})


def answer(stage: Stage, method: str, path: str, body: Json | None, media: str) -> tuple[int, Json]:
    """Status and body of a request's answer, also of a refusal."""
    try:
        return 200, stage.api.call(method, path, body, media)
    except Refused as error:
        return error.code, json.loads(str(error).partition(": ")[2])


def said(stage: Stage, case: Case) -> str:
    """What the server says to the write of a case; empty if it takes it."""
    return said_to(case, partial(answer, stage))

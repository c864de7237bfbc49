"""The rules that CEL can say, as policies that a real API server evaluates: each refuses what its webhook refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.clusters import Real
from e2e.conftest import missing
from e2e.stage import Stage, begun, until
from e2e.webhooks.scene import furnish, said
from stromboli.crds.cel.policies import POLICIES, policies
from stromboli.crds.kinds import CRON_JOBS, QUEUES
from stromboli.crds.manifests import definitions
from tests.support.admission_cases import CASES
from tests.support.admission_writes import ONE_WRITE, is_refused_by_its_schema

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
"""Cases that policies let pass, and which of the things that they say they do not check."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with our kinds and policies, without webhooks, and with the queues of the cases."""
    if reason := missing("real"):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("policies")
    with begun(Real(folder / "server"), folder) as found:
        found.define(definitions())
        furnish(found)
        found.apply(policies(POLICIES))
        until(lambda: "denied request" in said(found, CASES["job minimum"]), "policies that are in effect")
        yield found


def test_policies_refuse_what_webhooks_refuse_but_for_what_they_say_they_cannot(stage: Stage) -> None:
    wrong = []
    for case in ONE_WRITE:
        told = said(stage, case)
        is_refused = "ValidatingAdmissionPolicy" in told or is_refused_by_its_schema(case, told)
        if is_refused is not (bool(case.text) and case.name not in LOST) or bool(told) is not is_refused:
            wrong.append((case.name, case.text, told))
    assert not wrong, "\n".join(map(str, wrong))


def test_what_policies_cannot_is_what_they_say(stage: Stage) -> None:
    for name, reason in LOST.items():
        assert reason in POLICIES[CASES[name].resource].lost, name

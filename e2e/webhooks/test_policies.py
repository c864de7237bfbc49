"""The rules that CEL can say, as policies that a real API server evaluates: each refuses what its webhook refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.clusters import Real
from e2e.conftest import missing
from e2e.stage import Stage, begun, until
from e2e.webhooks.scene import furnish, said
from stromboli.crds.cel.policies import POLICIES, policies
from stromboli.crds.manifests import definitions
from tests.support.admission_cases import CASES
from tests.support.admission_writes import LOST, ONE_WRITE, unlike_its_webhook


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A real server with our kinds and policies, without webhooks, and with the queues of the cases."""
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
    wrong = [one for case in ONE_WRITE if (one := unlike_its_webhook(case, said(stage, case)))]
    assert not wrong, "\n".join(wrong)


def test_what_policies_cannot_is_what_they_say(stage: Stage) -> None:
    for name, reason in LOST.items():
        assert reason in POLICIES[CASES[name].resource].lost, name

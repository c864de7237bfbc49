"""Failures of a webhook server are reported, and what was right before stays."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from stromboli.crds.admission.paths import ALL_PATHS
from stromboli.crds.admission.reviews import Response
from stromboli.live.process.events import Telling
from stromboli.live.webhooks import webhook_server
from stromboli.live.webhooks.conf_file import LOOK_EVERY, AdmissionFile
from stromboli.live.webhooks.sources import Files, Serving
from tests.support.virtual import run
from tests.support.webhook_world import Told, WebhookWorld

GROUPS = "resourceGroups: [{resourceGroup: gpu, object: {key: namespace, value: [a]}, labels: {kind: gpu}}]"


def test_a_bad_admission_file_is_told_once_and_the_last_good_one_counts(tmp_path: Path) -> None:
    path, told = tmp_path / "admission.yaml", Told()
    path.write_text(GROUPS)
    file = AdmissionFile(str(path), Telling(told))
    file.look()
    assert [group.name for group in file.groups] == ["gpu"]
    path.write_text("resourceGroups: 3")
    file.look()
    file.look()
    assert [group.name for group in file.groups] == ["gpu"]
    assert told.keys == ["admission_file_read", "admission_file_refused"]


def test_an_admission_file_is_looked_at_again_and_again(tmp_path: Path) -> None:
    path, told = tmp_path / "admission.yaml", Told()
    file = AdmissionFile(str(path), Telling(told))

    async def story() -> None:
        following = asyncio.ensure_future(file.follow())
        await asyncio.sleep(LOOK_EVERY + 0.1)
        assert told.keys == ["admission_file_refused"]
        path.write_text(GROUPS)
        await asyncio.sleep(LOOK_EVERY)
        following.cancel()

    run(story())
    assert [group.name for group in file.groups] == ["gpu"]


def test_a_certificate_that_is_not_there_keeps_a_server_unready_and_is_told_once(tmp_path: Path) -> None:
    async def story() -> None:
        world = WebhookWorld(look=0.05)
        world.register()
        missing = str(tmp_path / "tls.crt")
        replica = world.start(source=Files(missing, missing, ""))
        async with asyncio.timeout(30):
            while "certificate_trouble" not in replica.told.keys:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert missing in replica.server.unready()
        assert replica.told.keys.count("certificate_trouble") == 1
        await world.end()

    asyncio.run(story())


def test_a_source_that_fails_unexpectedly_ends_no_server() -> None:
    class Broken:
        async def current(self) -> Serving:
            raise ZeroDivisionError("a defect")

    async def story() -> None:
        world = WebhookWorld(look=0.05)
        world.register()
        replica = world.start(source=Broken())
        async with asyncio.timeout(30):
            while "certificate_trouble" not in replica.told.keys:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert "a defect" in replica.server.unready()
        assert replica.told.keys.count("certificate_trouble") == 1
        await world.end()

    asyncio.run(story())


def test_a_rule_that_fails_is_told_and_answered_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Response:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(webhook_server, "answer", broken)

    async def story() -> None:
        world = WebhookWorld()
        world.register()
        replica = world.start([ALL_PATHS["/jobs/validate"]])
        await replica.ready()
        async with asyncio.timeout(30):
            while not world.bundle("/jobs/validate"):
                await asyncio.sleep(0.01)
        body = (
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE",'
            b'"resource":{"group":"batch.volcano.sh","version":"v1alpha1","resource":"jobs"},'
            b'"namespace":"n","object":{"metadata":{"name":"j"},"spec":{"tasks":[]}}}}'
        )
        async with aiohttp.ClientSession() as session:
            status, text = await world.post(replica, "/jobs/validate", body, session)
        assert (status, b"the rules have failed" in text) == (500, True)
        assert "review_failed" in replica.told.keys
        await world.end()

    asyncio.run(story())

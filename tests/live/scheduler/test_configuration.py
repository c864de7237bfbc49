"""The configuration's file: when another one counts, and what is told of one that is refused."""

from __future__ import annotations

from pathlib import Path

from stromboli.live.process.events import Telling
from stromboli.live.scheduler.configuration import Configuration, Source
from stromboli.live.scheduler.recording import _without_secrets
from stromboli.narration.observe import Counting

ALLOCATE, ENQUEUE = "actions: allocate\n", 'actions: "enqueue, allocate"\n'


def test_only_another_file_that_can_be_used_is_another_configuration(tmp_path: Path) -> None:
    told, file = Counting(), tmp_path / "scheduler.conf"
    assert not Configuration(Source(), Telling(told)).refresh(), "the built-in one never changes"
    file.write_text(ALLOCATE)
    found = Configuration(Source(str(file)), Telling(told))
    assert not found.refresh()
    file.write_text(ENQUEUE)
    assert (found.refresh(), found.refresh(), list(found.current.actions)) == (True, False, ["enqueue", "allocate"])
    file.write_text("actions: [")
    assert (found.refresh(), found.is_refused) == (False, True)
    file.unlink()
    assert (found.refresh(), found.is_refused) == (False, True)
    file.mkdir()
    assert (found.refresh(), found.is_refused, told.counts["config_unreadable"]) == (False, True, 1)
    file.rmdir()
    file.write_text(ALLOCATE)
    assert (found.refresh(), found.is_refused, list(found.current.actions)) == (True, False, ["allocate"])


def test_a_secret_is_hidden_and_the_rest_stands_in_its_order() -> None:
    text = "tiers: []\nactions: allocate\nmetrics: {type: x, password: hush, address: y}\n"
    hidden = _without_secrets(text)
    assert "hush" not in hidden
    words = ("tiers", "actions", "metrics", "type", "password", "address")
    assert sorted(words, key=hidden.index) == list(words)
    assert _without_secrets("actions:   allocate # as it is\n") == "actions:   allocate # as it is\n"

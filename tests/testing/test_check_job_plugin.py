"""The kit for job plugins: ours pass, and each flaw is found."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from stromboli.job_plugins.plugin import AddEnv, Edit, JobPlugin, Place, Wanted, config_map
from stromboli.job_plugins.registry import BUILT_IN
from stromboli.testing.check_job_plugin import check_job_plugin

TASKS = ("worker", "ps", "head")


@pytest.mark.parametrize("plugin", BUILT_IN, ids=lambda one: one.name)
def test_ours_pass(plugin: type[JobPlugin]) -> None:
    check_job_plugin(plugin, tasks=TASKS)


class Sound(JobPlugin):
    """Does no wrong."""

    name = "sound"

    def objects(self) -> Iterable[Wanted]:
        yield config_map(f"{self.job.metadata.name}-sound", {"a": "b"})

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterable[Edit]:
        yield AddEnv(({"name": "N", "value": str(place.index)},))


COUNTER = itertools.count()


class Nameless(Sound):
    name = ""


class Chancy(Sound):
    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterable[Edit]:
        yield AddEnv(({"name": "N", "value": str(next(COUNTER))},))


class Remembers(Sound):
    made = 0

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterable[Edit]:
        self.made += 1
        yield AddEnv(({"name": "N", "value": str(self.made)},))


class ChangesPod(Sound):
    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterable[Edit]:
        pod["spec"]["hostname"] = "mine"
        return ()


class ChangesJob(Sound):
    def objects(self) -> Iterable[Wanted]:
        template: Any = self.job.spec.tasks[0].template
        template["spec"]["hostname"] = "mine"
        return ()


class Fixed(Sound):
    def objects(self) -> Iterable[Wanted]:
        yield config_map("mine", {})


class Twice(Sound):
    def objects(self) -> Iterable[Wanted]:
        return [config_map(f"{self.job.metadata.name}-x", {})] * 2


class Pods(Sound):
    def objects(self) -> Iterable[Wanted]:
        yield Wanted("pods", f"{self.job.metadata.name}-x", {})


class Restless(Sound):
    def objects(self) -> Iterable[Wanted]:
        yield config_map(f"{self.job.metadata.name}-x", {"n": 1.0, "m": b"x"})  # type: ignore[dict-item]


class Raises(Sound):
    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterable[Edit]:
        raise ValueError("no")


FLAWS: dict[type[JobPlugin], str] = {
    Nameless: "has no name",
    Chancy: "answers differently",
    Remembers: "answers differently",
    ChangesPod: "changes the pod itself",
    ChangesJob: "changes the job",
    Fixed: "wants ConfigMap mine for a job of another name",
    Twice: "wants ConfigMap j-x twice",
    Pods: "wants one of pods",
    Restless: "would be repaired again and again",
    Raises: "ValueError",
}


def test_a_sound_one_passes() -> None:
    check_job_plugin(Sound)


@pytest.mark.parametrize("plugin", FLAWS, ids=lambda one: one.__name__)
def test_a_flaw_is_found(plugin: type[JobPlugin]) -> None:
    with pytest.raises(AssertionError, match=FLAWS[plugin]):
        check_job_plugin(plugin)


def test_arguments_that_the_plugin_cannot_read_are_a_flaw_of_the_test() -> None:
    with pytest.raises(AssertionError, match="flag provided but not defined: -x"):
        check_job_plugin(Sound, ["--x"])

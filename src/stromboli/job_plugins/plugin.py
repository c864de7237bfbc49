"""What a job plugin is: everything that an author of one imports.

>>> class Greeting(JobPlugin):
...     '''Tells all containers a word.'''
...
...     name = "greeting"
...     word = flag("word", "hello")
...
...     def pod(self, pod, place):
...         yield AddEnv(({"name": "GREETING", "value": f"{self.word} {place.index}"},))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, overload

from stromboli.api.batch import Job, Task
from stromboli.job_plugins.edits import (
    AddEnv,
    AddInitContainer,
    AddPorts,
    AddVolume,
    Annotate,
    Edit,
    FillIn,
    SetCommand,
)
from stromboli.job_plugins.wanted import Wanted, config_map, network_policy, secret, service
from stromboli.model.values.go_flags import Value, parse_flags

__all__ = [
    "AddEnv",
    "AddInitContainer",
    "AddPorts",
    "AddVolume",
    "Annotate",
    "Edit",
    "FillIn",
    "Job",
    "JobPlugin",
    "Place",
    "SetCommand",
    "Task",
    "Wanted",
    "config_map",
    "flag",
    "network_policy",
    "secret",
    "service",
]

T = TypeVar("T", bound=Value)


@dataclass(frozen=True, slots=True)
class Place:
    """Which pod of a job: its task, and its number within the task."""

    task: Task
    index: int


class flag(Generic[T]):  # noqa: N801  # read as a word of the class that declares it
    """A flag that a job may give a plugin in ``spec.plugins``; its type is that of the default."""

    def __init__(self, name: str, default: T) -> None:
        self.name, self.default = name, default

    @overload
    def __get__(self, plugin: None, owner: type) -> flag[T]: ...
    @overload
    def __get__(self, plugin: JobPlugin, owner: type) -> T: ...
    def __get__(self, plugin: JobPlugin | None, owner: type) -> Any:
        """Its value for a plugin of a job; itself for the class."""
        return self if plugin is None else plugin.values[self.name]


class JobPlugin:
    """A plugin of one job, created again whenever the job's spec changes.

    What it answers follows from the job and the arguments alone: no clock, no chance, no memory of earlier questions.
    Whatever an instance raises, and whatever :meth:`problem` says, keeps the job from its pods, and the job is told.
    """

    name: ClassVar[str] = ""
    """As in ``spec.plugins``."""
    marks: ClassVar[bool] = True
    """Whether ``status.controlledResources`` names it."""

    def __init__(self, job: Job, arguments: Sequence[str] = ()) -> None:
        self.job = job
        self.values, problem = parse_flags(arguments, self.flags())
        self.flag_problem = f"flagset parse failed, err: {problem}" if problem else ""
        """What is wrong with an argument; those before it count, all others keep their defaults."""

    @classmethod
    def flags(cls) -> Mapping[str, Value]:
        """The flags that it takes, with their defaults."""
        declared = (value for base in reversed(cls.__mro__) for value in vars(base).values())
        return {one.name: one.default for one in declared if isinstance(one, flag)}

    def problem(self) -> str:
        """What keeps the job's pods from being made, empty if nothing does."""
        return ""

    def warnings(self) -> Iterable[str]:
        """What the job's author should know though the pods are made."""
        return ()

    def objects(self) -> Iterable[Wanted]:
        """The objects that the job needs in addition to its pods; all are created before the first pod."""
        return ()

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterable[Edit]:
        """What to change of ``pod``, a manifest that the plugins before this one have changed already."""
        return ()

    def task(self, name: str) -> Task | None:
        """The job's task of that name."""
        return next((task for task in self.job.spec.tasks if task.name == name), None)

"""The conformance kit for authors of job plugins: does a plugin keep what the controllers count on?"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

import msgspec

from stromboli.api.batch import Job
from stromboli.api.kinds import KINDS
from stromboli.api.read import read
from stromboli.errors import PluginError
from stromboli.job_plugins.edits import Json, apply, copied
from stromboli.job_plugins.hosts import pod_name
from stromboli.job_plugins.plugin import JobPlugin, Place
from stromboli.job_plugins.wanted import SORTS, Wanted

_OWNER: Final = {"apiVersion": KINDS["Job"].api_version, "kind": "Job", "name": "j", "uid": "u", "controller": True}
_MAIN: Final = {
    "name": "main",
    "image": "image",
    "env": [{"name": "A", "value": "b"}],
    "ports": [{"containerPort": 80}],
}
_MOUNTED: Final = {"name": "main", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
_SPECS: Final[tuple[Json, ...]] = (
    {"containers": [_MAIN]},
    {"containers": [_MAIN, {"name": "side"}], "initContainers": [{"name": "first"}]},
    {"containers": [_MOUNTED], "volumes": [{"name": "v", "emptyDir": {}}], "hostname": "h", "subdomain": "s"},
)
_TASKS: Final = (("master", 1), ("worker-a", 3), ("none", 0))
"""What the jobs are made of: these tasks, one more name of the author's choice, each with every spec."""


def check_job_plugin(
    plugin_class: type[JobPlugin], arguments: Sequence[str] = (), *, tasks: Sequence[str] = ("worker",)
) -> None:
    """Try a plugin on some jobs, with ``arguments`` as in ``spec.plugins``; ``tasks`` are names that it looks for.

    What it answers must be the same whenever it is asked, of whichever instance, and in whatever order pods are made;
    it must change neither job nor pod; its objects must be of sorts that the controllers keep, have names that no two
    jobs of a namespace share, and be at rest once they are stored.  Raises AssertionError with plugin, job, and what is
    wrong.
    """
    for number in range(len(_SPECS)):
        _check(plugin_class, tuple(arguments), _job("j", tasks, number), _job("k", tasks, number))


def _job(name: str, tasks: Sequence[str], number: int) -> Job:
    rows = [*_TASKS, *((task, 2) for task in tasks)]
    specs = (copy.deepcopy(_SPECS[(number + place) % len(_SPECS)]) for place in range(len(rows)))
    listed = [
        {"name": task, "replicas": count, "template": {"spec": spec}}
        for (task, count), spec in zip(rows, specs, strict=True)
    ]
    return read(Job, {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": {"tasks": listed}})


def _check(plugin_class: type[JobPlugin], arguments: tuple[str, ...], job: Job, other: Job) -> None:
    def fail(flaw: str) -> NoReturn:
        raise AssertionError(f"job plugin {plugin_class.name}: {flaw}\nfor example for this job: {_text(job)}")

    if not plugin_class.name:
        fail("has no name; set the class attribute name")
    before = _text(job)
    try:
        answers = [_answers(plugin_class(job, arguments), job, backwards=turn == 1) for turn in range(3)]
        names = _names(plugin_class(other, arguments))
    except PluginError as error:
        fail(f"cannot serve it: {error}")
    except Exception as error:
        raise AssertionError(f"job plugin {plugin_class.name}: raised {error!r}\nfor this job: {before}") from error
    if _text(job) != before:
        fail("changes the job")
    if answers[0] != answers[1] or answers[0] != answers[2]:
        fail("answers differently when it is asked again, or in another order")
    if problem := plugin_class(job, arguments).flag_problem:
        fail(problem)
    for flaw in _flaws(plugin_class(job, arguments), names):
        fail(flaw)


def _answers(plugin: JobPlugin, job: Job, *, backwards: bool) -> bytes:
    """All that a plugin says of a job; pods last to first, and objects after them, if ``backwards``."""
    places = [Place(task, index) for task in job.spec.tasks for index in range(task.replicas)]
    pods = {_name(place, job): _edited(plugin, place, job) for place in (reversed(places) if backwards else places)}
    objects = sorted(_text(one) for one in plugin.objects())
    said = (plugin.problem(), sorted(plugin.warnings()), objects, sorted(pods.items()))
    return msgspec.json.encode(said, order="sorted")


def _name(place: Place, job: Job) -> str:
    return pod_name(job.metadata.name, place.task.name, place.index)


def _edited(plugin: JobPlugin, place: Place, job: Job) -> Json:
    template: Any = place.task.template
    pod = copied({"metadata": {"name": _name(place, job), "namespace": "ns"}, "spec": template["spec"]})
    before = _text(pod)
    edits = tuple(plugin.pod(pod, place))
    if _text(pod) != before:
        raise PluginError(plugin.name, "changes the pod itself; edits say what is to be changed")
    apply(pod, edits)
    return pod


def _names(plugin: JobPlugin) -> set[tuple[str, str]]:
    return {(one.resource, one.name) for one in plugin.objects()}


def _flaws(plugin: JobPlugin, others: set[tuple[str, str]]) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for one in plugin.objects():
        if one.resource not in SORTS:
            yield f"wants one of {one.resource}; plugins may have {', '.join(SORTS)}"
        elif (one.resource, one.name) in seen:
            yield f"wants {one.sort.kind} {one.name} twice"
        elif (one.resource, one.name) in others:
            yield f"wants {one.sort.kind} {one.name} for a job of another name, too; put the job's name into it"
        elif _is_restless(one):
            yield f"{one.sort.kind} {one.name}: would be repaired again and again; write what the API server keeps"
        seen.add((one.resource, one.name))


def _is_restless(wanted: Wanted) -> bool:
    """Whether what is stored differs from what is wanted."""
    stored = msgspec.json.decode(_text(wanted.manifest("ns", _OWNER, {})))
    return bool(wanted.difference(stored, {}))


def _text(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()

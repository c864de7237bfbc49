"""The rules of jobs that CEL can say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stromboli.api.batch import JOB_PLUGINS
from stromboli.api.bus import JOB_ACTIONS
from stromboli.crds.admission.jobs import CANNOT_CHANGE, TOPOLOGY_CLASH
from stromboli.crds.admission.paths import CREATE, UPDATE
from stromboli.crds.admission.policies import POLICY_EVENTS
from stromboli.crds.cel.rule import Policy, Rule, clashes, listed, some
from stromboli.model.names import ROOT_QUEUE

_REPLICAS: Final = "(has({0}.replicas) ? {0}.replicas : 0)"
_NAME: Final = "(has({0}.name) ? {0}.name : '')"


def _of_tasks(problem: str, text: str) -> Rule:
    """That no task ``t`` has a problem; the text names the first that has."""
    first = f"variables.tasks.filter(t, {problem})[0]"
    told = f'"{text} in task: " + {_NAME.format(first)} + ", job: " + object.metadata.name + ";"'
    return Rule(f"!variables.tasks.exists(t, {problem})", text, told)


_PARTS: Final = "t.partitionPolicy"
_SUM: Final = f"{_PARTS}.totalPartitions * {_PARTS}.partitionSize"
_TASKS: Final = (
    _of_tasks(
        f"has(t.minAvailable) && t.minAvailable > {_REPLICAS.format('t')}", "'minAvailable' is greater than 'replicas'"
    ),
    Rule(
        "variables.tasks.all(t, !has(t.name) || variables.tasks.exists_one(u, has(u.name) && u.name == t.name))",
        "duplicated task name",
    ),
    _of_tasks(
        f"has({_PARTS}) && {_REPLICAS.format('t')} != {_SUM}",
        "'Replicas' are not equal to TotalPartitions*PartitionSize",
    ),
    _of_tasks(
        f"has({_PARTS}) && has({_PARTS}.minPartitions) && {_PARTS}.minPartitions > 0 && has(t.minAvailable)"
        f" && t.minAvailable != {_PARTS}.minPartitions * {_PARTS}.partitionSize",
        "'MinAvailable' is not equal to MinPartitions*PartitionSize",
    ),
    Rule(
        f"!variables.tasks.exists(t, has({_PARTS}) && has({_PARTS}.networkTopology)"
        f" && {clashes(_PARTS + '.networkTopology')})",
        TOPOLOGY_CLASH,
    ),
    Rule(
        "variables.tasks.all(t, !has(t.dependsOn) || !has(t.dependsOn.name) || t.dependsOn.name.all(n,"
        " n != t.name && variables.tasks.exists(u, has(u.name) && u.name == n)))",
        "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);",
    ),
)


def _of_policies(holds: str, text: str) -> Rule:
    """A rule of all lists of policies ``l``: the job's and those of its tasks."""
    return Rule(f"variables.lists.all(l, {holds})", text)


_EVENT: Final = "(has(p.event) || (has(p.events) && size(p.events) > 0))"
_ALL_EVENTS: Final = "((has(p.event) ? [p.event] : []) + (has(p.events) ? p.events : []))"
_LIFE: Final = (
    _of_policies(f"l.all(p, !({_EVENT} && has(p.exitCode)))", "must not specify event and exitCode simultaneously"),
    _of_policies(f"l.all(p, {_EVENT} || has(p.exitCode))", "either event and exitCode should be specified"),
    _of_policies(f"l.all(p, {_ALL_EVENTS}.all(e, e in {listed(POLICY_EVENTS)}))", "invalid policy event"),
    _of_policies(f"l.all(p, !{_EVENT} || p.action in {listed(JOB_ACTIONS)})", "invalid policy action"),
    _of_policies(
        f"l.all(p, {_ALL_EVENTS}.all(e, l.exists_one(p, e in {_ALL_EVENTS})))",
        "duplicate event across different policy",
    ),
    _of_policies("l.all(p, !has(p.exitCode) || p.exitCode != 0)", "0 is not a valid error code"),
    _of_policies(
        "l.all(p, !has(p.exitCode) || l.exists_one(q, has(q.exitCode) && q.exitCode == p.exitCode))",
        "duplicate exitCode",
    ),
    _of_policies(
        f"l.all(p, !({_ALL_EVENTS}.exists(e, e == '*')) || (size(l) == 1 && size({_ALL_EVENTS}) == 1))",
        "if there's * here, no other policy should be here",
    ),
)
_VOLUMES: Final = (
    Rule("variables.volumes.all(v, has(v.mountPath) && v.mountPath != '')", "mountPath is required;"),
    Rule(
        "variables.volumes.all(v, variables.volumes.exists_one(w, w.mountPath == v.mountPath))", "duplicated mountPath;"
    ),
    Rule(
        "variables.volumes.all(v, has(v.volumeClaim) || (has(v.volumeClaimName) && v.volumeClaimName != ''))",
        "either VolumeClaim or VolumeClaimName must be specified;",
    ),
    Rule(
        "variables.volumes.all(v, !(has(v.volumeClaim) && has(v.volumeClaimName) && v.volumeClaimName != ''))",
        "conflict: If you want to use an existing PVC, just specify VolumeClaimName",
        operations=(CREATE,),
    ),
)


def _same(field: str, empty: str) -> str:
    new, old = f"object.spec.{field}", f"oldObject.spec.{field}"
    if not empty:
        return f"(has({new}) == has({old}) && (!has({new}) || {new} == {old}))"
    return f"(has({new}) ? {new} : {empty}) == (has({old}) ? {old} : {empty})"


def _same_of_tasks(field: str, empty: str) -> str:
    made = f"map(t, has(t.{field}) ? t.{field} : {empty})" if empty else f"map(t, has(t.{field}) ? [t.{field}] : [])"
    return f"object.spec.tasks.{made} == oldObject.spec.tasks.{made}"


_FIXED: Final[Mapping[str, str]] = {
    "queue": "''",
    "schedulerName": "''",
    "maxRetry": "0",
    "plugins": "{}",
    "policies": "[]",
    "minSuccess": "",
    "networkTopology": "",
}
"""Fields that stay, each with the value that means the same as its absence, if there is one."""
_FIXED_OF_TASKS: Final[Mapping[str, str]] = {
    "name": "''",
    "template": "",
    "policies": "[]",
    "maxRetry": "0",
    "dependsOn": "",
    "partitionPolicy": "",
    "topologyPolicy": "''",
}
JOB: Final = Policy(
    "job-validation-policy",
    (
        Rule("size(variables.tasks) > 0", "No task specified in job spec"),
        Rule(
            f"!has(object.spec.networkTopology) || !({clashes('object.spec.networkTopology')})",
            TOPOLOGY_CLASH,
        ),
        *_TASKS,
        Rule(
            f"!has(object.spec.minAvailable) || object.spec.minAvailable <="
            f" variables.tasks.map(t, {_REPLICAS.format('t')}).sum()",
            "job 'minAvailable' should not be greater than total replicas in tasks;",
        ),
        *_LIFE,
        Rule(
            f"!has(object.spec.plugins) || object.spec.plugins.all(name, name in {listed(JOB_PLUGINS)})",
            "unable to find job plugin",
            operations=(CREATE,),
        ),
        *_VOLUMES,
        Rule(
            f"!has(object.spec.queue) || object.spec.queue != '{ROOT_QUEUE}'",
            "can not submit job to root queue;",
            operations=(CREATE,),
        ),
        Rule(
            "size(object.spec.tasks) == size(oldObject.spec.tasks)",
            "job updates may not add or remove tasks",
            operations=(UPDATE,),
        ),
        *(Rule(_same(*one), CANNOT_CHANGE, operations=(UPDATE,)) for one in _FIXED.items()),
        *(Rule(_same_of_tasks(*one), CANNOT_CHANGE, operations=(UPDATE,)) for one in _FIXED_OF_TASKS.items()),
    ),
    (
        "whether the queue is there, open and a leaf",
        "names of jobs and of their pods",
        "pod templates; whole CPUs of tasks with a topology policy",
        "circles of dependsOn that take more than one task",
        "the master task of the plugin mpi",
        "changes of volumes",
        "job plugins loaded by --job-plugins-dir, which are refused",
    ),
    {
        "tasks": some("object.spec.tasks"),
        "volumes": some("object.spec.volumes"),
        "lists": f"[{some('object.spec.policies')}] + variables.tasks.map(t, {some('t.policies')})",
    },
)
"""The rules of jobs."""

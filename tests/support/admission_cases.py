"""Every rule of admission as cases: an object, the world that it comes into, and the sentence that refuses it.

The same cases are put to the rules themselves, to the webhook server over TLS, and to API servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stromboli.api.kinds import CRON_JOBS, HYPER_NODES, JOB_FLOWS, JOBS, NAMESPACES, POD_GROUPS, PODS, QUEUES
from stromboli.crds.admission import DEFAULTS, Objects, Settings

Manifest = dict[str, Any]
CONTAINER: Manifest = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}


def queue(
    name: str, parent: str = "root", state: str = "Open", allocated: Manifest | None = None, **spec: Any
) -> Manifest:
    """A queue as it is stored."""
    status = {"state": state, "allocated": allocated or {}}
    return {"metadata": {"name": name}, "spec": {"parent": parent, **spec}, "status": status}


def task(name: str = "work", replicas: int = 2, container: Manifest = CONTAINER, **fields: Any) -> Manifest:
    template = {"spec": {"containers": [container], **fields.pop("pod", {})}}
    return {"name": name, "replicas": replicas, "template": template, **fields}


def job(*tasks: Manifest, name: str = "train", **spec: Any) -> Manifest:
    return {"metadata": {"name": name, "namespace": "ns"},
            "spec": {"queue": "default", "tasks": list(tasks or (task(),)), **spec}}  # fmt: skip


PATH, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
OTHER = queue("other")
OTHER["metadata"]["annotations"] = {PATH: "root/b/c", WEIGHTS: "1/1/1"}
WORLD = Objects(
    {
        QUEUES: [
            queue("root", ""),
            queue("default"),
            queue("shut", state="Closed"),
            queue("top", capability={"cpu": 10}, deserved={"cpu": 8}, guarantee={"resource": {"cpu": 4}}),
            queue("low", "top", deserved={"cpu": 6}, guarantee={"resource": {"cpu": 3}}),
            queue("full", allocated={"pods": "3"}),
            OTHER,
            *(queue(f"d{level}", f"d{level - 1}" if level > 1 else "root") for level in range(1, 6)),
        ],
        NAMESPACES: [{"metadata": {"name": "team", "annotations": {"scheduling.volcano.sh/queue-name": "low"}}}],
    }
)
PDB, PFAIL = {"event": "PodEvicted", "action": "RestartJob"}, {"event": "PodFailed", "action": "AbortJob"}
KNOWN = (
    "valid events are [* PodPending PodFailed PodEvicted Unknown TaskCompleted JobUpdated TaskFailed], valid actions"
    " are [AbortJob RestartJob RestartTask RestartPod RestartPartition TerminateJob CompleteJob ResumeJob];"
)


BOTH = {"highestTierAllowed": 1, "highestTierName": "rack"}
TOPOLOGY = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
PARTS = {"totalPartitions": 2, "partitionSize": 2}
NEW_JOBS = {
    "sound": (job(), ""),
    "no tasks": ({"metadata": {"name": "j"}, "spec": {}}, "No task specified in job spec"),
    "mpi": (job(plugins={"mpi": []}), "The specified mpi master task was not found"),
    "mpi named": (job(plugins={"mpi": ["--master=work"]}), ""),
    "topology": (job(networkTopology=BOTH), TOPOLOGY),
    "partition topology": (job(task(replicas=4, partitionPolicy={**PARTS, "networkTopology": BOTH})), TOPOLOGY),
    "minimum of a task": (
        job(task(replicas=1, minAvailable=2)), "'minAvailable' is greater than 'replicas' in task: work, job: train;"
    ),
    "same name": (job(task(), task()), "duplicated task name work;"),
    "minimum": (job(minAvailable=3), "job 'minAvailable' should not be greater than total replicas in tasks;"),
    "plugin": (job(plugins={"svc": [], "magic": []}), "unable to find job plugin: magic;"),
    "queue": (job(queue="none"), 'unable to find job queue: queue.scheduling.volcano.sh "none" not found;'),
    "closed": (job(queue="shut"), "can only submit job to queue with state `Open`, queue `shut` status is `Closed`;"),
    "root": (job(queue="root"), "can not submit job to root queue;"),
    "inner": (job(queue="top"), "can only submit job to leaf queue, queue `top` has 1 child queues;"),
    "pod name": (
        job(name="a" * 60),
        f"create pod with name {'a' * 60}-work-0 validate failed [name part must be no more than 63 bytes];",
    ),
    "parts": (
        job(task(replicas=3, partitionPolicy=PARTS)),
        "'Replicas' are not equal to TotalPartitions*PartitionSize in task: work, job: train",
    ),
    "part minimum": (
        job(task(replicas=4, minAvailable=4, partitionPolicy={**PARTS, "minPartitions": 1})),
        "'MinAvailable' is not equal to MinPartitions*PartitionSize in task: work, job: train",
    ),
    "no parts": (
        job(task(partitionPolicy={"totalPartitions": 0, "partitionSize": 1})),
        "'TotalPartitions' must be greater than 0 in task: work, job: train",
    ),
    "empty parts": (
        job(task(partitionPolicy={"totalPartitions": 1, "partitionSize": 0})),
        "'PartitionSize' must be greater than 0 in task: work, job: train",
    ),
    "waits for itself": (
        job(task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})),
        "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);",
    ),
    "waits for an unknown task": (
        job(task("a", dependsOn={"name": ["x"]})),
        "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);",
    ),
    "waits in order": (job(task("a", dependsOn={"name": ["b"]}), task("b")), ""),
    "numa": (job(task(topologyPolicy="restricted")), ""),
    "numa half": (
        job(task(topologyPolicy="restricted", container={**CONTAINER, "resources": {"limits": {"cpu": "1500m"}}})),
        "the cpu request isn't an integer in spec.task[0] container[0].",
    ),
    "mount twice": (
        job(volumes=[{"mountPath": "/a", "volumeClaimName": "x"}, {"mountPath": "/a", "volumeClaimName": "x"}]),
        "duplicated mountPath: /a;",
    ),
    "no claim": (job(volumes=[{"mountPath": "/a"}]), "either VolumeClaim or VolumeClaimName must be specified;"),
    "no path": (job(volumes=[{"mountPath": ""}]), "mountPath is required;"),
    "two claims": (
        job(volumes=[{"mountPath": "/a", "volumeClaimName": "x", "volumeClaim": {"a": 1}}]),
        ("conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new PVC,"
        " you do not need to specify VolumeClaimName"),
    ),
    "no containers": (
        job({"name": "work", "replicas": 1, "template": {}}),
        "spec.task[0].template.spec.containers: Required value.",
    ),
    "container": (
        job(task(container={"name": "A_b", "resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}})),
        ("spec.task[0].template.spec.containers[0].name: Invalid value: \"A_b\": a lowercase RFC 1123 label must"
        " consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"
        " (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')."
        " template.spec.containers[0].image: Required value. template.spec.containers[0].resources.requests: Invalid"
        ' value: "2": must be less than or equal to cpu limit of 1.'),
    ),
    "restart policy": (
        job(task(pod={"restartPolicy": "Sometimes"})),
        ('spec.task[0].template.spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always",'
        ' "Never", "OnFailure".'),
    ),
    "mount": (
        job(task(container={**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}]})),
        'spec.task[0].template.spec.containers[0].volumeMounts[0].name: Not found: "v".',
    ),
    "port": (
        job(task(container={**CONTAINER, "ports": [{"containerPort": 70000}]})),
        ("spec.task[0].template.spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and"
        " 65535, inclusive."),
    ),
    "two faults": (
        job(minAvailable=3, queue="root"),
        "job 'minAvailable' should not be greater than total replicas in tasks; can not submit job to root queue;",
    ),
}  # fmt: skip

POLICIES: list[Any] = [
    ([PDB, PFAIL], ""),
    ([{"exitCode": 3, "action": "RestartPod"}, {"exitCode": 4, "action": "AbortJob"}], ""),
    ([{**PDB, "exitCode": 3}], "must not specify event and exitCode simultaneously"),
    ([{"action": "AbortJob"}], "either event and exitCode should be specified"),
    ([{"event": "PodRunning", "action": "AbortJob"}],
     'spec.policies: Invalid value: "PodRunning": invalid policy event'),
    ([{"event": "PodFailed", "action": "SyncJob"}],
     'spec.policies: Invalid value: "SyncJob": invalid policy action'),
    ([PDB, {"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}],
     "duplicate event PodEvicted  across different policy"),
    ([{"exitCode": 0, "action": "AbortJob"}], "0 is not a valid error code"),
    ([{"exitCode": 3, "action": "AbortJob"}, {"exitCode": 3, "action": "AbortJob"}], "duplicate exitCode 3"),
    ([{"event": "*", "action": "AbortJob"}, PDB], "if there's * here, no other policy should be here"),
    ([{"event": "*", "action": "AbortJob"}], ""),
]  # fmt: skip


def changed(**changes: Any) -> Manifest:
    """The job with other values for fields of its spec; ``task_...`` for those of its task."""
    found = job()
    for key, value in changes.items():
        part = found["spec"]["tasks"][0] if key.startswith("task_") else found["spec"]
        part[key.removeprefix("task_")] = value
    return found


FIXED = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and"
    " `PriorityClassName`"
)
CHANGED_JOBS = [
    (changed(minAvailable=1, priorityClassName="high", task_replicas=5, task_minAvailable=4), ""),
    (changed(plugins={}), ""),
    (changed(task_replicas=-1), "'replicas' must be >= 0 in task: work"),
    (changed(task_minAvailable=-1), "'minAvailable' must be >= 0 in task: work"),
    (changed(task_minAvailable=3), "'minAvailable' must be <= 'replicas' in task: work"),
    (changed(minAvailable=3), "job 'minAvailable' must not be greater than total replicas"),
    (changed(minAvailable=-1), "job 'minAvailable' must be >= 0"),
    (changed(tasks=[task(), task("b")]), "job updates may not add or remove tasks"),
    (changed(networkTopology=BOTH), TOPOLOGY),
    (changed(task_partitionPolicy={"totalPartitions": 2, "partitionSize": 2}),
     "'Replicas' are not equal to TotalPartitions*PartitionSize in task: work, job: train"),
    (changed(queue="top"), FIXED),
    (changed(maxRetry=5), FIXED),
    (changed(task_template={"spec": {"containers": [{**CONTAINER, "image": "other"}]}}), FIXED),
    (changed(volumes=[{"mountPath": "/a", "volumeClaimName": "x"}]), FIXED),
]  # fmt: skip

SPEC = "requestBody.spec"
NEW_QUEUES = {
    "sound": (queue("q", deserved={"cpu": 2}, guarantee={"resource": {"cpu": 1}}, capability={"cpu": 2}), ""),
    "negative": (
        queue("q", capability={"cpu": "-1"}),
        f'{SPEC}.capability.cpu: Invalid value: "-1": must be greater than or equal to 0',
    ),
    "no deserved": (
        queue("q", guarantee={"resource": {"cpu": "1"}}),
        f'{SPEC}.deserved.cpu: Invalid value: "<nil>": deserved[cpu] must be >= guarantee[cpu]=1',
    ),
    "less deserved": (
        queue("q", deserved={"cpu": "500m"}, guarantee={"resource": {"cpu": "1"}}),
        f'{SPEC}.deserved.cpu: Invalid value: "500m": deserved[cpu]=500m must be >= guarantee[cpu]=1',
    ),
    "more deserved": (
        queue("q", deserved={"cpu": "3"}, capability={"cpu": "2"}),
        f'{SPEC}.deserved.cpu: Invalid value: "3": deserved[cpu]=3 must be <= capability[cpu]=2',
    ),
    "two faults": (
        queue("q", deserved={"cpu": "3", "memory": "3Gi"}, capability={"cpu": "2", "memory": "2Gi"}),
        (f'[{SPEC}.deserved.cpu: Invalid value: "3": deserved[cpu]=3 must be <= capability[cpu]=2, {SPEC}.deserved'
        '.memory: Invalid value: "3Gi": deserved[memory]=3Gi must be <= capability[memory]=2Gi]'),
    ),
    "state": (
        queue("q", state="Closing"),
        f'{SPEC}.state: Invalid value: "Closing": queue state must be in [Open Closed]',
    ),
    "own parent": (queue("q", "q"), "queue q cannot use itself as parent"),
    "no parent": (
        queue("q", "missing"),
        'failed to get parent queue missing of queue q: queue.scheduling.volcano.sh "missing" not found',
    ),
    "deep enough": (queue("q", "d4"), ""),
    "too deep": (queue("q", "d5"), "queue q exceeds the maximum allowed depth of 5"),
    "busy parent": (
        queue("q", "full"), "queue full cannot be the parent queue of queue q because it has allocated Pods: 3"
    ),
    "above the ancestor": (
        queue("q", "top", capability={"cpu": 11}), "queue q capability[cpu]=11 exceeds its ancestor's capability=10"
    ),
    "above the grandparent": (
        queue("q", "low", capability={"cpu": 11}), "queue q capability[cpu]=11 exceeds its ancestor's capability=10"
    ),
    "guarantees": (
        queue("q", "top", deserved={"cpu": 2}, guarantee={"resource": {"cpu": 2}}),
        ("parent queue top validation failed: sum of children's guarantee (cpu 5000.00, memory 0.00) exceeds parent's"
        " guarantee limit (cpu 4000.00, memory 0.00)"),
    ),
    "deserved": (
        queue("q", "top", deserved={"cpu": 3}),
        ("parent queue top validation failed: sum of children's deserved (cpu 9000.00, memory 0.00) exceeds parent's"
        " deserved limit (cpu 8000.00, memory 0.00)"),
    ),
    "fits": (queue("q", "top", deserved={"cpu": 2}, guarantee={"resource": {"cpu": 1}}, capability={"cpu": 10}), ""),
}  # fmt: skip

TOP = queue("top", capability={"cpu": 10}, deserved={"cpu": 8}, guarantee={"resource": {"cpu": 4}})
CHANGED_QUEUES: list[Any] = [
    (queue("root", "", deserved={"cpu": 1}), queue("root", ""),
     "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"),
    (queue("root", "", weight=3), queue("root", ""), ""),
    ({**TOP, "spec": {**TOP["spec"], "deserved": {"cpu": 5}}}, TOP,
     ("queue top validation failed: sum of children's deserved (cpu 6000.00, memory 0.00) exceeds parent's deserved"
     " limit (cpu 5000.00, memory 0.00)")),
    (queue("d2", "d1", capability={"cpu": 3}), queue("d2", "d1"), ""),
    (queue("low", "top", weight=3, deserved={"cpu": 6}), queue("low", "top", deserved={"cpu": 6}), ""),
    (queue("low", "top", state="Unknown"), queue("low", "top"),
     f'{SPEC}.state: Invalid value: "Unknown": queue state must be in [Open Closed]'),
]  # fmt: skip
PATHS = [
    ("root/a", "1/2", ""),
    ("root/a", "1", "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights"),
    ("root/a", "1/0", "0 in the 1/0 must be larger than 0"),
    ("root/a", "1/x", 'x in the 1/x is invalid number: strconv.ParseFloat: parsing "x": invalid syntax'),
    ("root/b", "1/1", "root/b is not allowed to be in the sub path of root/b/c of queue other"),
]
DELETED_QUEUES: list[Any] = [
    ("default", Settings(), "`default` queue can not be deleted"),
    ("root", Settings(), "`root` queue can not be deleted"),
    ("top", Settings(), "queue top can not be deleted because it has 1 child queues: low"),
    ("full", Settings(), ""),
    ("full", Settings(check_allocated_pods=True), "queue full cannot be deleted because it has allocated Pods: 3"),
    ("low", Settings(), ""),
]
NEW_POD_GROUPS: list[Any] = [
    ({"queue": "default"}, ""),
    ({}, ""),
    ({"queue": "root"}, ""),
    ({"queue": "none"}, 'unable to find queue: queue.scheduling.volcano.sh "none" not found'),
    ({"queue": "shut", "networkTopology": BOTH},
     "can only submit PodGroup to queue with state `Open`, queue `shut` status is `Closed`.; " + TOPOLOGY + "."),
    ({"subGroupPolicy": [{"name": "p", "networkTopology": BOTH}]}, f"in subGroupPolicy 'p': {TOPOLOGY}."),
]  # fmt: skip
MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
NEW_PODS: list[Any] = [
    ({MIN: "1"}, ""),
    ({MAX: "30%"}, ""),
    ({MIN: "0"}, f'invalid value <"0"> for {MIN}, it must be a positive integer'),
    ({MAX: "100%"}, f'invalid value <"100%"> for {MAX}, it must be a valid percentage which between 1% ~ 99%'),
    ({MAX: "some"}, f'invalid value strconv.Atoi: parsing "some": invalid syntax for {MAX}'),
    ({MIN: "1", MAX: "1"}, f"not allow configure multiple annotations <[{MIN} {MAX}]> at same time"),
]
_NOT_LOCAL = "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"
_LONG_NAME = "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)"
_NO_ZONE_INSIDE = "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
NEW_CRON_JOBS: list[Any] = [
    ({}, ""),
    ({"schedule": "@every 5m", "timeZone": "America/Argentina/ComodRivadavia"}, ""),
    ({"schedule": ""}, "schedule is required, but got empty"),
    ({"schedule": "TZ=UTC 0 0 * * *"}, _NO_ZONE_INSIDE),
    ({"schedule": "0 0 * * 7"}, "schedule is not a valid cron expression"),
    ({"timeZone": ""}, "timeZone must be nil or non-empty string, got empty string"),
    ({"timeZone": "Moon/Base"}, "invalid timeZone"),
    ({"timeZone": "../-x"}, "unknown timeZone unknown timeZone invalid timeZone"),
    ({"timeZone": "local"}, _NOT_LOCAL),
    ({"schedule": "", "timeZone": "Moon"}, "schedule is required, but got empty invalid timeZone"),
    ({"name": "n" * 53, "schedule": "0"},
     "schedule is not a valid cron expression; " + _LONG_NAME),
]  # fmt: skip


NEW_HYPER_NODES: dict[str, Any] = {
    "pattern": (
        {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}]},
        (
            'spec.members.selector.regexMatch.pattern: Invalid value: "(": member regexMatch pattern is invalid: error'
            " parsing regexp: missing closing ): `(`"
        ),
    ),
    "not RE2": (
        {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "(?=a)b"}}}]},
        (
            'spec.members.selector.regexMatch.pattern: Invalid value: "(?=a)b": member regexMatch pattern is invalid:'
            " error parsing regexp: invalid or unsupported Perl syntax: `(?=`"
        ),
    ),
    "RE2": (
        {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": r"\pL+[[:digit:]]"}}}]},
        "",
    ),
    "empty": ({"tier": 1}, "spec.members: Invalid value: []: member must have at least one member"),
    "selectors": (
        {
            "tier": 1,
            "members": [
                {"type": "Node", "selector": selector}
                for selector in ({}, {"exactMatch": {"name": "n"}, "labelMatch": {"matchLabels": {"a": "b"}}})
            ],
        },
        (
            '[spec.members[0].selector: Invalid value: "object": Either ExactMatch or RegexMatch or LabelMatch must be'
            ' specified, spec.members[1].selector: Invalid value: "object": Only one of ExactMatch, RegexMatch, or'
            " LabelMatch can be specified]"
        ),
    ),
    "sound": ({"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "n.*"}}}]}, ""),
}
NEW_JOB_FLOWS: dict[str, Any] = {
    "ordered": ([], ""),
    "circle": (["a"], "jobflow Flow is not DAG"),
    "unknown": (["x"], "jobflow Flow is not DAG: vertex is not defined: x"),
}


@dataclass(frozen=True)
class Case:
    """One question to the rules; ``value`` None is a deletion, ``old`` None a creation."""

    name: str
    resource: str
    value: Manifest | None
    text: str
    old: Manifest | None = None
    settings: Settings = DEFAULTS

    @property
    def operation(self) -> str:
        return "DELETE" if self.value is None else "CREATE" if self.old is None else "UPDATE"


def _named(name: str, **spec: Any) -> Manifest:
    return {"metadata": {"name": name}, "spec": spec}


def _in_ns(name: str, spec: Manifest) -> Manifest:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


def _job_cases() -> Iterator[Case]:
    for name, (value, text) in NEW_JOBS.items():
        yield Case(f"job {name}", JOBS, value, text)
    for number, (policies, text) in enumerate(POLICIES):
        told = f"1 error occurred:\n\t* {text}\n\n {KNOWN}" if text else ""
        yield Case(f"job policies {number}", JOBS, job(policies=policies), told)
    for number, (value, text) in enumerate(CHANGED_JOBS):
        yield Case(f"changed job {number}", JOBS, value, text, job())


FACTOR = "volcano.sh/overcommit-factor"
SCALED = Settings(scales_queues=True)
OFF = "it needs the feature gate QueueScopedOvercommit, which is off"
FACTORS = [
    ("1.5", {"cpu": 1}, SCALED, ""),
    ("1.5", {"cpu": 1}, Settings(), OFF),
    ("0.9", {"cpu": 1}, SCALED, "it must be a finite decimal of at least 1"),
    ("1e9", {"cpu": 1}, SCALED, "it must be a finite decimal of at least 1"),
    ("2", {}, SCALED, "it needs an amount in spec.deserved"),
    ("2", {"cpu": 0}, SCALED, "it needs an amount in spec.deserved"),
]


def _queue_cases() -> Iterator[Case]:
    for name, (value, text) in NEW_QUEUES.items():
        yield Case(f"queue {name}", QUEUES, value, text)
    for number, (value, old, text) in enumerate(CHANGED_QUEUES):
        yield Case(f"changed queue {number}", QUEUES, value, text, old)
    for number, (path, weights, text) in enumerate(PATHS):
        value = {"metadata": {"name": "q", "annotations": {PATH: path, WEIGHTS: weights}}, "spec": {}}
        shown = weights if "1/" in text else path
        told = f'requestBody.metadata.annotations: Invalid value: "{shown}": {text}' if text else ""
        yield Case(f"queue path {number}", QUEUES, value, told)
    for number, (name, settings, text) in enumerate(DELETED_QUEUES):
        yield Case(f"deleted queue {number}", QUEUES, None, text, dict(WORLD.get(QUEUES, name) or {}), settings)
    for number, (factor, deserved, settings, text) in enumerate(FACTORS):
        value = {"metadata": {"name": "q", "annotations": {FACTOR: factor}}, "spec": {"deserved": deserved}}
        told = f'requestBody.metadata.annotations[{FACTOR}]: Invalid value: "{factor}": {text}' if text else ""
        yield Case(f"queue factor {number}", QUEUES, value, told, settings=settings)
        yield Case(f"kept queue factor {number}", QUEUES, value, "", value, settings)


def _other_cases() -> Iterator[Case]:
    for number, (spec, text) in enumerate(NEW_POD_GROUPS):
        yield Case(f"pod group {number}", POD_GROUPS, _in_ns("g", spec), text)
    for number, (notes, text) in enumerate(NEW_PODS):
        pod = {
            "metadata": {"name": "p", "namespace": "ns", "annotations": notes},
            "spec": {"schedulerName": "volcano", "containers": [CONTAINER]},
        }
        yield Case(f"pod {number}", PODS, pod, text)
        yield Case(f"foreign pod {number}", PODS, {**pod, "spec": {**pod["spec"], "schedulerName": "other"}}, "")
    for name, (spec, text) in NEW_HYPER_NODES.items():
        yield Case(f"hyper node {name}", HYPER_NODES, _named("h", **spec), text)
    for name, (targets, text) in NEW_JOB_FLOWS.items():
        flows = [{"name": "a", "dependsOn": {"targets": ["b"]}}, {"name": "b", "dependsOn": {"targets": targets}}]
        yield Case(f"flow {name}", JOB_FLOWS, _in_ns("f", {"flows": flows}), text)
    many = [{"name": f"f{number}"} for number in range(1001)]
    told = "spec.flows: Too many: 1001: must have at most 1000 items"
    yield Case("flow too long", JOB_FLOWS, _in_ns("f", {"flows": many}), told)
    for number, (stated, text) in enumerate(NEW_CRON_JOBS):
        spec = {"schedule": "*/5 * * * mon-fri", "jobTemplate": {"spec": job()["spec"]}, **stated}
        yield Case(f"cron job {number}", CRON_JOBS, _in_ns(spec.pop("name", "c"), spec), text)
    wrong = (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
        " alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
        " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    )
    yield Case(
        "cron job name", CRON_JOBS, _in_ns("a b", {"schedule": "@daily"}), f'invalid cronJob name "a b": {wrong}'
    )


CASES = {case.name: case for case in (*_job_cases(), *_queue_cases(), *_other_cases())}
"""All cases by name."""

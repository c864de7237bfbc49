"""What admission fills in and refuses, with its texts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from stromboli.crds import admission
from stromboli.crds.admission import Objects, Settings
from stromboli.crds.kinds import CRON_JOBS, HYPER_NODES, JOB_FLOWS, JOBS, NAMESPACES, POD_GROUPS, PODS, QUEUES

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


WORLD = Objects(
    {
        QUEUES: [
            queue("root", ""),
            queue("default"),
            queue("shut", state="Closed"),
            queue("top", capability={"cpu": 10}, deserved={"cpu": 8}, guarantee={"resource": {"cpu": 4}}),
            queue("low", "top", deserved={"cpu": 6}, guarantee={"resource": {"cpu": 3}}),
            queue("full", allocated={"pods": "3"}),
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


# ---------------------------------------------------------------------- filling in


def test_a_job_is_completed() -> None:
    found: Any = admission.default(
        JOBS,
        {"metadata": {"name": "j"}, "spec": {"plugins": {"mpi": ["--master=m"]}, "tasks": [
            {"replicas": 3, "template": {"spec": {"hostNetwork": True}}},
            {"name": "m", "replicas": 4, "minAvailable": 1, "maxRetry": 7},
            {"replicas": 6, "partitionPolicy": {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}},
            {"replicas": 6, "partitionPolicy": {"totalPartitions": 3, "partitionSize": 2}},
        ]}},
        WORLD,
    )  # fmt: skip
    spec = found["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == (
        "default",
        "volcano",
        3,
        14,
    )
    assert [(row["name"], row["minAvailable"], row["maxRetry"]) for row in spec["tasks"]] == [
        ("default0", 3, 3), ("m", 1, 7), ("default2", 4, 3), ("default3", 6, 3),
    ]  # fmt: skip
    assert spec["tasks"][0]["template"]["spec"] == {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    assert spec["plugins"] == {"mpi": ["--master=m"], "svc": [], "ssh": []}


def test_what_is_stated_stays_and_the_object_given_is_not_changed() -> None:
    given = job(task(minAvailable=0, maxRetry=1), schedulerName="mine", maxRetry=9, minAvailable=1, plugins={"env": []})
    before = copy.deepcopy(given)
    found: Any = admission.default(JOBS, given, WORLD, Settings(scheduler_names=("first", "second")))
    assert given == before
    assert found == given
    bare: Any = admission.default(JOBS, {"spec": {}}, WORLD, Settings(scheduler_names=("first", "second")))
    assert bare["spec"]["schedulerName"] == "first"


def test_what_cannot_be_read_is_left_to_the_schema() -> None:
    given = {"spec": {"tasks": "none"}}
    assert admission.default(JOBS, given, WORLD) is given
    assert admission.default("widgets.example.com", given, WORLD) is given


@pytest.mark.parametrize(
    ("annotations", "path", "weights"),
    [
        ({"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "1/2"}, "root/a/b", "1/1/2"),
        ({"volcano.sh/hierarchy": "root/a", "volcano.sh/hierarchy-weights": "1/2"}, "root/a", "1/2"),
        ({"volcano.sh/hierarchy": "a"}, "a", None),
    ],
)
def test_a_queue_is_completed(annotations: dict[str, str], path: str, weights: str | None) -> None:
    found: Any = admission.default(QUEUES, {"metadata": {"name": "q", "annotations": annotations}, "spec": {}}, WORLD)
    assert found["spec"] == {"reclaimable": True, "weight": 1}
    assert found["metadata"]["annotations"]["volcano.sh/hierarchy"] == path
    assert found["metadata"]["annotations"].get("volcano.sh/hierarchy-weights") == weights


def test_a_queue_that_says_no_stays_so() -> None:
    found: Any = admission.default(
        QUEUES, {"metadata": {"name": "q"}, "spec": {"reclaimable": False, "weight": 4}}, WORLD
    )
    assert found["spec"] == {"reclaimable": False, "weight": 4}


@pytest.mark.parametrize(
    ("namespace", "asked", "gets"),
    [("team", "default", "low"), ("team", "top", "top"), ("other", "default", "default")],
)
def test_a_pod_group_goes_to_the_queue_of_its_namespace(namespace: str, asked: str, gets: str) -> None:
    group = {"metadata": {"name": "g", "namespace": namespace}, "spec": {"queue": asked}}
    found: Any = admission.default(POD_GROUPS, group, WORLD)
    assert found["spec"]["queue"] == gets


# ---------------------------------------------------------------------- new jobs

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
    "waits for nobody": (
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


@pytest.mark.parametrize(("value", "text"), NEW_JOBS.values(), ids=NEW_JOBS)
def test_new_jobs(value: Manifest, text: str) -> None:
    assert admission.validate(JOBS, value, None, WORLD) == ([text] if text else [])


@pytest.mark.parametrize(
    ("policies", "text"),
    [
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
    ],
)  # fmt: skip
def test_policies(policies: list[Manifest], text: str) -> None:
    found = admission.validate(JOBS, job(policies=policies), None, WORLD)
    assert found == ([f"1 error occurred:\n\t* {text}\n\n {KNOWN}"] if text else [])
    for_task = admission.validate(JOBS, job(task(policies=policies)), None, WORLD)
    assert bool(for_task) == bool(text)


# ---------------------------------------------------------------------- changes of jobs


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


@pytest.mark.parametrize(
    ("value", "text"),
    [
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
    ],
)  # fmt: skip
def test_changed_jobs(value: Manifest, text: str) -> None:
    assert admission.validate(JOBS, value, job(), WORLD) == ([text] if text else [])


def test_the_controller_may_name_the_claims_that_it_makes() -> None:
    before = job(volumes=[{"mountPath": "/a", "volumeClaim": {"storageClassName": "s"}}])
    after = job(volumes=[{"mountPath": "/a", "volumeClaim": {"storageClassName": "s"}, "volumeClaimName": "made"}])
    assert admission.validate(JOBS, after, before, WORLD) == []


# ---------------------------------------------------------------------- queues

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
        queue("q", "nobody"),
        'failed to get parent queue nobody of queue q: queue.scheduling.volcano.sh "nobody" not found',
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


@pytest.mark.parametrize(("value", "text"), NEW_QUEUES.values(), ids=NEW_QUEUES)
def test_new_queues(value: Manifest, text: str) -> None:
    assert admission.validate(QUEUES, value, None, WORLD) == ([text] if text else [])


TOP = queue("top", capability={"cpu": 10}, deserved={"cpu": 8}, guarantee={"resource": {"cpu": 4}})


@pytest.mark.parametrize(
    ("value", "old", "text"),
    [
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
    ],
)  # fmt: skip
def test_changed_queues(value: Manifest, old: Manifest, text: str) -> None:
    assert admission.validate(QUEUES, value, old, WORLD) == ([text] if text else [])


def test_a_queue_must_hold_what_its_descendants_may_use() -> None:
    world = Objects({QUEUES: [queue("a"), queue("b", "a"), queue("c", "b", capability={"cpu": 7, "memory": "2Gi"})]})
    text = "queue a capability[memory]=1Gi is smaller than its descendants' max capability=2Gi"
    assert admission.validate(QUEUES, queue("a", capability={"cpu": 7, "memory": "1Gi"}), queue("a"), world) == [text]


@pytest.mark.parametrize(
    ("path", "weights", "text"),
    [
        ("root/a", "1/2", ""),
        ("root/a", "1", "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights"),
        ("root/a", "1/0", "0 in the 1/0 must be larger than 0"),
        ("root/a", "1/x", 'x in the 1/x is invalid number: strconv.ParseFloat: parsing "x": invalid syntax'),
        ("root/b", "1/1", "root/b is not allowed to be in the sub path of root/b/c of queue other"),
    ],
)
def test_paths_of_queues(path: str, weights: str, text: str) -> None:
    other = {"metadata": {"name": "other", "annotations": {"volcano.sh/hierarchy": "root/b/c"}}}
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    found = admission.validate(
        QUEUES, {"metadata": {"name": "q", "annotations": annotations}}, None, Objects({QUEUES: [other]})
    )
    assert found[0].endswith(f": {text}") if text else not found, found


@pytest.mark.parametrize(
    ("name", "settings", "text"),
    [
        ("default", Settings(), "`default` queue can not be deleted"),
        ("root", Settings(), "`root` queue can not be deleted"),
        ("top", Settings(), "queue top can not be deleted because it has 1 child queues: low"),
        ("full", Settings(), ""),
        ("full", Settings(check_allocated_pods=True), "queue full cannot be deleted because it has allocated Pods: 3"),
        ("low", Settings(), ""),
    ],
)
def test_deleting_queues(name: str, settings: Settings, text: str) -> None:
    found = admission.validate(QUEUES, None, WORLD.get(QUEUES, name), WORLD, settings)
    assert found == ([text] if text else [])


# ---------------------------------------------------------------------- the others


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"queue": "default"}, ""),
        ({}, ""),
        ({"queue": "root"}, ""),
        ({"queue": "none"}, 'unable to find queue: queue.scheduling.volcano.sh "none" not found'),
        ({"queue": "shut", "networkTopology": BOTH},
         "can only submit PodGroup to queue with state `Open`, queue `shut` status is `Closed`.; " + TOPOLOGY + "."),
        ({"subGroupPolicy": [{"name": "p", "networkTopology": BOTH}]}, f"in subGroupPolicy 'p': {TOPOLOGY}."),
    ],
)  # fmt: skip
def test_new_pod_groups(spec: Manifest, text: str) -> None:
    value = {"metadata": {"name": "g"}, "spec": spec}
    assert admission.validate(POD_GROUPS, value, None, WORLD) == ([text] if text else [])
    assert admission.validate(POD_GROUPS, value, value, WORLD) == []


MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        ({MIN: "1"}, ""),
        ({MAX: "30%"}, ""),
        ({MIN: "0"}, f'invalid value <"0"> for {MIN}, it must be a positive integer'),
        ({MAX: "100%"}, f'invalid value <"100%"> for {MAX}, it must be a valid percentage which between 1% ~ 99%'),
        ({MAX: "some"}, f'invalid value strconv.Atoi: parsing "some": invalid syntax for {MAX}'),
        ({MIN: "1", MAX: "1"}, f"not allow configure multiple annotations <[{MIN} {MAX}]> at same time"),
    ],
)
def test_new_pods(annotations: dict[str, str], text: str) -> None:
    pod = {"metadata": {"name": "p", "annotations": annotations}, "spec": {"schedulerName": "volcano"}}
    assert admission.validate(PODS, pod, None, WORLD) == ([text] if text else [])
    assert admission.validate(PODS, {**pod, "spec": {"schedulerName": "other"}}, None, WORLD) == []


def test_hyper_nodes_and_flows() -> None:
    bad = {"spec": {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}]}}
    text = 'spec.members.selector.regexMatch.pattern: Invalid value: "(": member regexMatch pattern is invalid: '
    assert admission.validate(HYPER_NODES, bad, None, WORLD)[0].startswith(text)
    assert admission.validate(HYPER_NODES, {"spec": {"tier": 1}}, None, WORLD) == [
        "spec.members: Invalid value: []: member must have at least one member"
    ]
    both = {"exactMatch": {"name": "n"}, "labelMatch": {"matchLabels": {"a": "b"}}}
    odd = {"spec": {"tier": 1, "members": [{"type": "Node", "selector": selector} for selector in ({}, both)]}}
    assert admission.validate(HYPER_NODES, odd, None, WORLD) == [
        (
            '[spec.members[0].selector: Invalid value: "object": Either ExactMatch or RegexMatch or LabelMatch must be'
            ' specified, spec.members[1].selector: Invalid value: "object": Only one of ExactMatch, RegexMatch, or'
            " LabelMatch can be specified]"
        )
    ]
    good = {"spec": {"members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "n.*"}}}]}}
    assert admission.validate(HYPER_NODES, good, None, WORLD) == []
    for targets, text in (([], ""), (["a"], "jobflow Flow is not DAG"),
                          (["x"], "jobflow Flow is not DAG: vertex is not defined: x")):  # fmt: skip
        flow = {"spec": {"flows": [{"name": "a", "dependsOn": {"targets": ["b"]}},
                                   {"name": "b", "dependsOn": {"targets": targets}}]}}  # fmt: skip
        assert admission.validate(JOB_FLOWS, flow, None, WORLD) == ([text] if text else [])


def test_a_flow_may_not_have_too_many_jobs() -> None:
    flow = {"spec": {"flows": [{"name": f"f{number}"} for number in range(1001)]}}
    assert admission.validate(JOB_FLOWS, flow, None, WORLD) == [
        "spec.flows: Too many: 1001: must have at most 1000 items"
    ]


_NOT_LOCAL = "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"
_LONG_NAME = "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)"
_NO_ZONE_INSIDE = "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
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
    ],
)  # fmt: skip
def test_cron_jobs(spec: dict[str, str], problem: str) -> None:
    spec = {"schedule": "*/5 * * * mon-fri", **spec}
    found = {"metadata": {"name": spec.pop("name", "c")}, "spec": spec}
    for old in (None, found):
        assert admission.validate(CRON_JOBS, found, old, WORLD) == ([problem] if problem else [])
    bad = admission.validate(CRON_JOBS, {**found, "metadata": {"name": "a b"}}, None, WORLD)[0]
    assert 'invalid cronJob name "a b": name part must consist of' in bad


def test_a_refusal_reads_as_a_webhook_s() -> None:
    assert admission.denied(JOBS, ["no", "never"]) == (
        'admission webhook "validatejob.volcano.sh" denied the request: no; never'
    )
    assert admission.validate("widgets.example.com", {}, None, WORLD) == []


def test_what_cannot_be_read_is_refused_by_field() -> None:
    text = "Queue q, spec.weight: expected a whole number, got a text"
    assert admission.validate(QUEUES, {"metadata": {"name": "q"}, "spec": {"weight": "1"}}, None, WORLD) == [text]

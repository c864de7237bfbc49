"""Objects in which, taken together, every field of our kinds is given: as users write them, and their statuses."""

from __future__ import annotations

from typing import Any

import yaml

Json = dict[str, Any]

SPECS = yaml.load(
    """
Job:
- metadata: {name: whole, namespace: default}
  spec:
    schedulerName: volcano
    minAvailable: 3
    queue: default
    maxRetry: 5
    minSuccess: 2
    ttlSecondsAfterFinished: 60
    priorityClassName: high
    runningEstimate: 2h
    plugins: {env: [], svc: ["--publish-not-ready-addresses=true"]}
    networkTopology: {mode: hard, highestTierAllowed: 2}
    volumes:
    - {mountPath: /data, volumeClaimName: mine}
    - {mountPath: /scratch, volumeClaim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
    policies:
    - {action: RestartJob, event: PodEvicted, timeout: 10m}
    - {action: AbortJob, events: [PodFailed, Unknown]}
    - {action: TerminateJob, exitCode: 3}
    tasks:
    - name: main
      replicas: 1
      minAvailable: 1
      maxRetry: 4
      topologyPolicy: best-effort
      policies:
      - {action: CompleteJob, event: TaskCompleted, timeout: 1s}
      - {action: RestartTask, events: [TaskFailed]}
      - {action: RestartPod, exitCode: 7}
      template: &template
        metadata: {labels: {own: label}, annotations: {own: text}}
        spec:
          restartPolicy: Never
          containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
    - name: parts
      replicas: 4
      minAvailable: 2
      maxRetry: 3
      dependsOn: {name: [main], iteration: all}
      partitionPolicy:
        {totalPartitions: 2, partitionSize: 2, minPartitions: 1, networkTopology: {mode: soft, highestTierAllowed: 1}}
      template: *template
- metadata: {name: other, namespace: default}
  spec:
    schedulerName: volcano
    minAvailable: 2
    queue: default
    maxRetry: 3
    networkTopology: {mode: soft, highestTierName: rack}
    tasks:
    - name: parts
      replicas: 2
      minAvailable: 2
      maxRetry: 3
      partitionPolicy:
        {totalPartitions: 1, partitionSize: 2, minPartitions: 1, networkTopology: {mode: hard, highestTierName: rack}}
      template: *template
PodGroup:
- metadata: {name: whole, namespace: default}
  spec:
    minMember: 2
    minTaskMember: {a: 1, b: 1}
    queue: default
    priorityClassName: high
    minResources: {cpu: "2", memory: 4Gi, nvidia.com/gpu: 1}
    networkTopology: {mode: hard, highestTierAllowed: 1}
- metadata: {name: parts, namespace: default}
  spec:
    minMember: 4
    queue: default
    networkTopology: {mode: soft, highestTierName: rack}
    subGroupPolicy:
    - name: a
      subGroupSize: 2
      minSubGroups: 1
      matchLabelKeys: [volcano.sh/partition-id]
      networkTopology: {mode: soft, highestTierAllowed: 1}
      labelSelector:
        matchLabels: {volcano.sh/task-spec: a}
        matchExpressions: [{key: kind, operator: In, values: [x, y]}]
    - name: b
      subGroupSize: 2
      minSubGroups: 0
      matchLabelKeys: [part]
      networkTopology: {mode: hard, highestTierName: rack}
Queue:
- metadata: {name: whole}
  spec:
    weight: 3
    capability: {cpu: "20", memory: 40Gi}
    deserved: {cpu: "10", memory: 20Gi}
    guarantee: {resource: {cpu: "2"}}
    reclaimable: false
    parent: root
    priority: 7
    dequeueStrategy: fifo
    type: batch
    affinity:
      nodeGroupAffinity:
        requiredDuringSchedulingIgnoredDuringExecution: [gold]
        preferredDuringSchedulingIgnoredDuringExecution: [silver]
      nodeGroupAntiAffinity:
        requiredDuringSchedulingIgnoredDuringExecution: [lead]
        preferredDuringSchedulingIgnoredDuringExecution: [tin]
    extendClusters: [{name: far, weight: 2, capacity: {cpu: "100"}}]
HyperNode:
- metadata: {name: whole}
  spec:
    tier: 1
    tierName: rack
    members:
    - {type: Node, selector: {exactMatch: {name: n1}}}
    - {type: Node, selector: {regexMatch: {pattern: "n[2-4]"}}}
    - type: Node
      selector:
        labelMatch:
          matchLabels: {rack: a}
          matchExpressions: [{key: zone, operator: NotIn, values: [z]}]
    - {type: HyperNode, selector: {exactMatch: {name: h0}}}
Command:
- metadata: {name: whole, namespace: default}
  action: AbortJob
  reason: Asked
  message: a user asked for it
  target:
    {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j, uid: u, controller: true, blockOwnerDeletion: true}
""",
    yaml.CSafeLoader,
)
"""By kind, with the values that defaults would give them, so that they come back as they are."""

STATUSES = yaml.load(
    """
Job:
  state: {phase: Running, reason: R, message: M, lastTransitionTime: "2026-01-01T00:00:00Z"}
  minAvailable: 3
  taskStatusCount: {main: {phase: {Running: 1}}}
  pending: 1
  running: 2
  succeeded: 3
  failed: 4
  terminating: 5
  unknown: 6
  version: 7
  retryCount: 8
  runningDuration: 5m0s
  controlledResources: {plugin-env: env}
  conditions: [{status: Pending, lastTransitionTime: "2026-01-01T00:00:00Z", reason: R, message: M}]
PodGroup:
  phase: Running
  running: 1
  succeeded: 2
  failed: 3
  conditions:
  - type: Scheduled
    status: "True"
    transitionID: t
    lastTransitionTime: "2026-01-01T00:00:00Z"
    reason: tasks in gang are ready to be scheduled
    message: M
Queue:
  state: Open
  pending: 1
  running: 2
  unknown: 3
  inqueue: 4
  completed: 5
  reservation: {nodes: [n1], resource: {cpu: "4"}}
  allocated: {cpu: "3", pods: "2"}
  fault: F
HyperNode:
  nodeCount: 4
  conditions:
  - type: Ready
    status: "True"
    observedGeneration: 1
    lastTransitionTime: "2026-01-01T00:00:00Z"
    reason: Found
    message: M
""",
    yaml.CSafeLoader,
)


MAP = "status.taskStatusCount"
"""A map of objects."""


def paths(value: Any, path: str = "") -> set[str]:
    """The fields that an object gives, ``spec.tasks.name`` and so on; keys of most maps count as fields too."""
    if isinstance(value, list):
        return {found for entry in value for found in paths(entry, path)}
    if not isinstance(value, dict):
        return set()
    here = {f"{path}.{key}".lstrip("."): inner for key, inner in value.items()}
    if MAP in here:
        here[MAP] = list(here[MAP].values())
    return set(here) | {found for key, inner in here.items() for found in paths(inner, key)}


def given(kind: str) -> set[str]:
    """The fields of a kind that these objects give."""
    found = {path for value in SPECS[kind] for path in paths(value)}
    return found | paths({"status": STATUSES.get(kind, {})})

"""Where the controllers, and what is not offered yet, depart from the reference; rows of :mod:`.compat`'s table.

The controllers know no compat mode: none of these changes what a scheduling cycle decides.
"""

from __future__ import annotations

from functools import partial

from stromboli.framework.config.difference import Difference

_row = partial(Difference, restored=False)

CONTROLLERS = (
    _row(
        "retained-pods",
        "Pods that a finished job retains count in its status by their phase.",
        "They don't count.",
        "job controller",
        "A job that completed with one succeeded pod has succeeded 1.",
    ),
    _row(
        "job-version",
        "`status.version` rises when an action begins to take a job down, and when it finds pods to kill.",
        "It rises at every look at a job that is being taken down or is over, also when there is nothing to kill.",
        "job controller",
        "A version that rises without an event makes a write of every look. Older pods are stale either way.",
    ),
    _row(
        "scale-down",
        "Pods beyond a task's replicas are marked as the controller's own doing before they are deleted.",
        "They are deleted as they are, so that policies on PodEvicted act on them.",
        "job controller",
        "Scaling a job down should not restart it.",
    ),
    _row(
        "first-sight",
        "A pod that is seen for the first time is a PodPending event only if it is pending.",
        "Every pod is, so that after a restart of the controllers time limits on pending begin for pods that run.",
        "job controller, policies with a timeout",
        "A pod that runs is not late.",
    ),
    _row(
        "pending-timeout",
        "A time limit on pending is called off by the pod's start or end, and an action whose pod is pending no "
        "more when it is due is dropped.",
        "Any update of the pod calls it off, also the scheduler's word on why it waits.",
        "job controller, policies with a timeout",
        "A pod that is told each cycle why it waits would never be late.",
    ),
    _row(
        "task-failed",
        "A task that has used up its restarts is a TaskFailed event once for each further restart.",
        "It is one at every update of any of its pods.",
        "job controller, policies on TaskFailed",
        "One failure should be answered once.",
    ),
    _row(
        "volume-names",
        "Names of claims and volumes that a job's pods need follow from the job's uid and the mount path.",
        "They are drawn at random.",
        "job controller",
        "A controller that is killed between making a claim and noting its name finds the claim again. The form "
        "is the same.",
    ),
    _row(
        "running-jobs",
        "A job is Running once a pod of it has started, whatever its minimum; one that was stored without minimums "
        "is completed as admission would.",
        "One whose minimum is 0 is Running at once, without a pod.",
        "job controller",
        "A job that shows Running while nothing runs hides that it waits.",
    ),
    _row(
        "obstacles",
        "What keeps a job from its pods (a plugin, claim or queue that is missing, a template that is refused) "
        "stands in `status.state.reason` and `.message` and in the condition of its phase.",
        "It is told by events alone.",
        "job controller",
        "Events expire after an hour.",
    ),
    _row(
        "job-plugins",
        "A job plugin that is unknown, fails, or gets an argument that it cannot read keeps the job's pods back; an "
        "event PluginError and the job's status say so. So do lists of hosts that no ConfigMap or variable can hold.",
        "Unreadable arguments are logged, and what was not read keeps its default; a job with an unknown plugin is "
        "terminated after `--max-requeue-num` attempts.",
        "job controller",
        "Pods without what a plugin gives them would do something else than they were meant to.",
    ),
    _row(
        "plugin-objects",
        "What job plugins made is read again before pods are made, and every five minutes; what was changed or deleted "
        "is put right. The Secret of `ssh` keeps its keys, and its list of hosts follows the job's size.",
        "Objects are looked at once, when the job begins; a Secret whose list differs gets new keys.",
        "job plugins svc, ssh, ray",
        "Pods that run or restart still need them.",
    ),
    _row(
        "plugin-restarts",
        "When a task, a pod or a partition restarts, what job plugins made stays.",
        "It is deleted and made again, with other keys, while the other pods run.",
        "job plugins svc, ssh, ray",
        "The other pods would lose their names, and hold keys that no longer fit.",
    ),
    _row(
        "plugin-foreign-objects",
        "An object that bears the name of one that a job plugin needs and is not the job's is left alone: it serves if "
        "it says what is needed, else the job waits and says why.",
        "Services and NetworkPolicies are used whatever they say, ConfigMaps and Secrets overwritten, and all are "
        "deleted with the job.",
        "job plugins svc, ssh, ray",
        "What others made is not a job's to change.",
    ),
    _row(
        "plugin-order",
        "Job plugins change a pod in one order: env, svc, ssh, tensorflow, mpi, pytorch, ray, hcclrank.",
        "The order is random.",
        "job plugins",
        "It is one of the reference's, and pods of one job should not differ.",
    ),
    _row(
        "queue-refused",
        "A queue that cannot be opened under a closed parent says so at once, in one event.",
        "It is tried as often as `--max-requeue-num` says before an event says so.",
        "queue controller",
        "Trying again changes nothing as long as the parent is closed.",
    ),
    _row(
        "group-updates",
        "The PodGroup of plain pods stays as it was made.",
        "When their ReplicaSet or StatefulSet changes and its newest pod names no PodGroup yet, spec, labels and "
        "annotations follow that pod.",
        "pod group controller",
        "The PodGroup has pods of both revisions then, and what was let in for the old ones should not change "
        "under them.",
    ),
    _row(
        "idle-groups",
        "The PodGroup of an owner that is scaled to nothing goes when the last of its pods is ending.",
        "It goes at once.",
        "pod group controller",
        "News of the owner may be older than its pods; they would wait without a PodGroup for ever.",
    ),
    _row(
        "one-look",
        "What happens to one object within a tenth of a second is looked at together; a quarter while pods start.",
        "Every event is a look of its own.",
        "controllers",
        "A job of a thousand pods costs a few status writes instead of a thousand.",
    ),
    _row(
        "counted-together",
        "Pods that come or start are counted within two seconds in the status of their Job, within five in that of"
        " their PodGroup; a phase that changes is told within a quarter of a second.",
        "Each look and each cycle writes what it counts.",
        "controllers, scheduler",
        "The status of a job of fifty pods would be written five times while it starts; writes bound how fast pods"
        " are bound.",
    ),
    _row(
        "controllers-rate",
        "`--kube-api-qps` and `--kube-api-burst` of the controllers are 2000, as the scheduler's.",
        "They are 50 and 100.",
        "controllers",
        "Fifty requests a second are what bounds the start of large jobs. Both can be set.",
    ),
    _row(
        "cron-job-active",
        "`status.active` of a CronJob names all existing unfinished jobs of its slots.",
        "It names those whose creation and status write both succeeded; others are reported as `OrphanedJob`.",
        "cronjob controller",
        "A controller that ends between the two writes would let a forbidden second job start.",
    ),
    _row(
        "cron-job-missed",
        "Of the slots that were missed the latest runs, however irregular the schedule is.",
        "It runs where slots are as far apart as the first two that were missed; otherwise it may be left out.",
        "cronjob controller",
        "What was missed over a weekend is made good.",
    ),
    _row(
        "flow-probes",
        "A flow with a `probe` waits until it holds of the jobs in `targets`, or these have completed; `patch.jobSpec` "
        "changes what its template says.",
        "`probe` and `patch` are stored and never looked at; targets must have completed.",
        "jobflow controller",
        "Both are fields of the interface; a job may wait for a server that runs.",
    ),
    _row(
        "flow-jobs-done",
        "A flow's completed job counts when it is gone, and a flow that has succeeded makes no job again.",
        "What is gone is made again at the next event of the flow.",
        "jobflow controller",
        "With a time to live, jobs would be run over and over.",
    ),
    _row(
        "flow-missing-template",
        "A flow without its JobTemplate is told by an event; its job is made once the template is there.",
        "The JobFlow is retried as a whole and then given up; what comes after it in the list waits.",
        "jobflow controller",
        "Templates may be applied after the flow.",
    ),
    _row(
        "flow-size",
        "A JobFlow has at most 1000 flows.",
        "There is no limit.",
        "admission, jobflow controller",
        "Its status names every job and has to fit into one object.",
    ),
    _row(
        "early-cycle",
        "After a cycle that found nothing to do, the first pod or PodGroup that arrives is looked at within a tenth of"
        " a second; the next cycle comes when it was due.",
        "It waits for the next cycle, half a period in the mean.",
        "scheduler",
        "A job on a cluster with nothing to do starts a cycle sooner.",
    ),
    _row(
        "shard-handover",
        "A scheduler takes a node of its shard once its NodeShard says that it uses it; an unknown sharding mode is "
        "refused.",
        "It takes it at once and says so after the cycle; an unknown mode counts as none.",
        "scheduler",
        "Two schedulers would use one node for a cycle.",
    ),
    _row(
        "controllers-offered",
        "Jobs, their clean-up, CronJobs, JobFlows, JobTemplates, queues, PodGroups of plain pods, HyperNodes and their "
        "discovery, NodeShards; `--controllers` has no others.",
        "Colocation, too, chosen by `--controllers`.",
        "controllers",
        "It comes later; its kind is served and kept.",
    ),
    _row(
        "shard-division",
        "Nodes are divided all at once, in the order of their names, `maxNodes` counts for all nodes, and NodeShards "
        "change together; what is wrong with the ConfigMap leaves the configuration before, or that of the flags, "
        "and is told on it. Without `cpuUtilizationMax` nodes up to full use are taken, and `minNodes` needs "
        "no `maxNodes`.",
        "They are divided in batches of 50, in no order, and `maxNodes` counts for each batch; after a reload shards "
        "overlap for a minute. An empty ConfigMap at start deletes all NodeShards, an unknown policy takes every node.",
        "sharding controller",
        "Nodes would be in two shards, or none would be served.",
    ),
)

"""The rules that CEL can say of queues, PodGroups, pods, HyperNodes, JobFlows and CronJobs."""

from __future__ import annotations

from typing import Final

from stromboli.api.scheduling import QUEUE_CLOSED, QUEUE_OPEN
from stromboli.crds.admission.cron_jobs import LONGEST_NAME, NAME_TOO_LONG
from stromboli.crds.admission.job_flows import MOST_FLOWS
from stromboli.crds.admission.jobs import TOPOLOGY_CLASH
from stromboli.crds.admission.paths import CREATE, DELETE, UPDATE
from stromboli.crds.admission.queues import ROOT_FIXED
from stromboli.crds.cel.rule import Policy, Rule, clashes, listed, some
from stromboli.model.names import (
    DEFAULT_QUEUE,
    HIERARCHY,
    HIERARCHY_WEIGHTS,
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    ROOT_QUEUE,
    SCHEDULER_NAME,
)

_NOT_NEGATIVE: Final = "variables.{0}.all(r, quantity(string(variables.{0}[r])).compareTo(quantity('0')) >= 0)"
_AMOUNTS: Final = {"capability": "capability", "deserved": "deserved", "guarantee": "guarantee.resource"}


def _amounts(path: str, of: str = "object") -> str:
    """A list of amounts that may be absent, or whose parent may be."""
    first, _, rest = path.partition(".")
    there = f"has({of}.spec.{first})" + (f" && has({of}.spec.{path})" if rest else "")
    return f"({there}) ? {of}.spec.{path} : {{}}"


def _at_least(more: str, less: str, text: str, *, needed: bool = False) -> Rule:
    """That each amount of ``less`` is at most that of ``more``, which ``needed`` to be there."""
    absent = "false" if needed else "true"
    compared = f"quantity(string(variables.{less}[r])).compareTo(quantity(string(variables.{more}[r]))) <= 0"
    return Rule(f"variables.{less}.all(r, r in variables.{more} ? {compared} : {absent})", text)


_PATH: Final = f"variables.notes['{HIERARCHY}'].split('/')"
_WEIGHTS: Final = f"variables.notes['{HIERARCHY_WEIGHTS}'].split('/')"
_IN_PATH: Final = f"('{HIERARCHY}' in variables.notes) && ('{HIERARCHY_WEIGHTS}' in variables.notes)"
QUEUE: Final = Policy(
    "queue-validation-policy",
    (
        *(Rule(_NOT_NEGATIVE.format(name), "must be greater than or equal to 0") for name in _AMOUNTS),
        _at_least("deserved", "guarantee", "deserved must be >= guarantee", needed=True),
        _at_least("capability", "deserved", "deserved must be <= capability"),
        Rule(
            f"!has(object.status) || !has(object.status.state) || object.status.state in"
            f" {listed(('', QUEUE_OPEN, QUEUE_CLOSED))}",
            f"queue state must be in [{QUEUE_OPEN} {QUEUE_CLOSED}]",
        ),
        Rule(
            f"('{HIERARCHY}' in variables.notes) == ('{HIERARCHY_WEIGHTS}' in variables.notes)"
            f" && (!({_IN_PATH}) || size({_PATH}) == size({_WEIGHTS}))",
            f"{HIERARCHY} must have the same length with {HIERARCHY_WEIGHTS}",
        ),
        Rule(
            f"!({_IN_PATH}) || {_WEIGHTS}.all(w, w.matches('^[0-9]*[.]?[0-9]+$') && w.matches('[1-9]'))",
            "weights must be numbers larger than 0",
        ),
        Rule(
            "!has(object.spec.parent) || object.spec.parent != object.metadata.name",
            "queue cannot use itself as parent",
            '"queue " + object.metadata.name + " cannot use itself as parent"',
        ),
        Rule(
            f"object.metadata.name != '{ROOT_QUEUE}' || "
            + " && ".join(f"variables.{name} == variables.{name}_before" for name in _AMOUNTS),
            ROOT_FIXED,
            operations=(UPDATE,),
        ),
        Rule(
            f"!(request.name in {listed((DEFAULT_QUEUE, ROOT_QUEUE))})",
            "this queue can not be deleted",
            '"`" + request.name + "` queue can not be deleted"',
            (DELETE,),
        ),
    ),
    (
        "depth, and whether the parent is there and may be one",
        "sums of children against their parent, limits of ancestors and descendants",
        "whether a queue that is deleted has children or holds pods",
        "paths of annotations below one another",
        "an overcommit factor of its own",
    ),
    {
        **{name: _amounts(path) for name, path in _AMOUNTS.items()},
        **{f"{name}_before": _amounts(path, "oldObject") for name, path in _AMOUNTS.items()},
        "notes": "has(object.metadata.annotations) ? object.metadata.annotations : {}",
    },
)

POD_GROUP: Final = Policy(
    "podgroup-validation-policy",
    (
        Rule(
            f"!has(object.spec.networkTopology) || !({clashes('object.spec.networkTopology')})",
            f"{TOPOLOGY_CLASH}.",
            operations=(CREATE,),
        ),
        Rule(
            "!has(object.spec.subGroupPolicy) || object.spec.subGroupPolicy.all(p, !has(p.networkTopology)"
            f" || !({clashes('p.networkTopology')}))",
            f"in subGroupPolicy: {TOPOLOGY_CLASH}.",
            operations=(CREATE,),
        ),
    ),
    ("whether the queue is there and open",),
)

_BUDGETS: Final = listed((JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE))
POD: Final = Policy(
    "pod-validation-policy",
    (
        Rule(
            f"{_BUDGETS}.all(k, !(k in object.metadata.annotations)"
            " || object.metadata.annotations[k].matches('^([+]?0*[1-9][0-9]*|[+]?0*[1-9][0-9]?%)$'))",
            "it must be a positive integer, or a valid percentage which between 1% ~ 99%",
            operations=(CREATE,),
        ),
        Rule(
            f"!{_BUDGETS}.all(k, k in object.metadata.annotations)",
            f"not allow configure multiple annotations <[{JDB_MIN_AVAILABLE} {JDB_MAX_UNAVAILABLE}]> at same time",
            operations=(CREATE,),
        ),
    ),
    only=f"object.spec.schedulerName == '{SCHEDULER_NAME}' && has(object.metadata.annotations)",
)

HYPER_NODE: Final = Policy(
    "hypernode-validation-policy",
    (
        Rule("has(object.spec.members) && size(object.spec.members) > 0", "member must have at least one member"),
        Rule(
            "!has(object.spec.members) || object.spec.members.all(m, !has(m.selector.regexMatch)"
            " || ''.matches(m.selector.regexMatch.pattern) in [true, false])",
            "member regexMatch pattern is invalid",
        ),
    ),
)

_TARGETS: Final = "(has(f.dependsOn) && has(f.dependsOn.targets) ? f.dependsOn.targets : [])"
JOB_FLOW: Final = Policy(
    "jobflow-validation-policy",
    (
        Rule(f"size(variables.flows) <= {MOST_FLOWS}", f"must have at most {MOST_FLOWS} items"),
        Rule(
            f"variables.flows.all(f, {_TARGETS}.all(t, variables.flows.exists(g, g.name == t)))",
            "jobflow Flow is not DAG: vertex is not defined",
        ),
        Rule(f"variables.flows.all(f, !(f.name in {_TARGETS}))", "jobflow Flow is not DAG"),
    ),
    ("circles that take more than one flow",),
    {"flows": some("object.spec.flows")},
)

_ZONE: Final = "object.spec.timeZone"
CRON_JOB: Final = Policy(
    "cronjob-validation-policy",
    (
        Rule("object.spec.schedule != ''", "schedule is required, but got empty"),
        Rule(
            "!object.spec.schedule.contains('TZ')",
            "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field",
        ),
        Rule(
            "object.spec.schedule.matches('^(@(yearly|annually|monthly|weekly|daily|midnight|hourly|every .+)"
            "|[ ]*([^ ]+[ ]+){4}[^ ]+[ ]*)$')",
            "schedule is not a valid cron expression",
        ),
        Rule(f"!has({_ZONE}) || {_ZONE} != ''", "timeZone must be nil or non-empty string, got empty string"),
        Rule(
            f"!has({_ZONE}) || {_ZONE} == '' || {_ZONE}.split('/').all(p,"
            " p.matches('^[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}$') && p != '.' && p != '..')",
            "unknown timeZone",
        ),
        Rule(
            f"!has({_ZONE}) || {_ZONE}.lowerAscii() != 'local'",
            "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones",
        ),
        Rule(
            f"size(object.metadata.name) <= {LONGEST_NAME}",
            NAME_TOO_LONG,
        ),
    ),
    ("numbers in the fields of a schedule", "whether a time zone is known"),
)

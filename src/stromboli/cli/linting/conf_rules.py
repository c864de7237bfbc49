"""The rules for configurations, as one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stromboli.cli.linting.findings import Rule, Spot
from stromboli.cli.linting.setup import EVICTING, Entry, Setup
from stromboli.framework.config.config import HIERARCHY, PluginOption
from stromboli.framework.config.known_names import ACTIONS, PLUGINS
from stromboli.framework.extension.points import POINTS

ADMITTING: Final = ("overcommit", "proportion", "capacity", "resourcequota")
"""Plugins that refuse PodGroups at the enqueue action."""
PROTECTING: Final = ("conformance", "pdb")
"""Plugins that keep pods from being evicted, whichever plugin names them."""
SHARING: Final = ("proportion", "capacity")
"""Plugins that give queues their shares."""
NAMING_VICTIMS: Final = {
    "preempt": "preemptable",
    "reclaim": "reclaimable",
    "gangpreempt": "unified_evictable",
    "gangreclaim": "unified_evictable",
}
"""The point at which each evicting action asks for victims."""
HIERARCHICAL: Final = ("drf", "capacity", "nodegroup", "overcommit")
"""Plugins that read the hierarchy of queues."""

NOT_STARTED: Final = "The scheduler does not start with this file."
CORRECT: Final = "Correct the line."

# ---------------------------------------------------------------------- names, switches, arguments


def _refused(setup: Setup) -> Iterator[Spot]:
    for complaint in setup.config.complaints:
        if complaint.kind == "refused":
            yield Spot(complaint.told, complaint.line)


def _unknown_names(setup: Setup) -> Iterator[Spot]:
    for complaint in setup.config.complaints:
        if complaint.kind == "unknown":
            yield Spot(complaint.told, complaint.line)


def _missing_here(setup: Setup) -> Iterator[Spot]:
    for entry in setup.entries:
        name = entry.option.name
        if name in PLUGINS and name not in setup.registry.plugin_names:
            yield Spot(f"plugin {name} is the reference's, but this release does not have it", entry.option.line)
    for name in setup.config.actions:
        if name in ACTIONS and name not in setup.registry.action_names:
            yield Spot(f"action {name} is the reference's, but this release does not have it")


def _bad_arguments(setup: Setup) -> Iterator[Spot]:
    for complaint in setup.argument_complaints():
        if complaint.kind != "tolerated":
            yield Spot(f"{complaint.plugin}: {complaint.told}", complaint.line)


def _tolerated(setup: Setup) -> Iterator[Spot]:
    for complaint in (*setup.config.complaints, *setup.argument_complaints()):
        if complaint.kind == "tolerated":
            yield Spot(complaint.text, complaint.line)


def _switches_without_effect(setup: Setup) -> Iterator[Spot]:
    for entry in setup.entries:
        if setup.knows(entry.option):
            yield from _idle_switches(entry.option, setup.points(entry.option))


def _idle_switches(option: PluginOption, points: frozenset[str]) -> Iterator[Spot]:
    for switch, written in option.written.items():
        governed = [point for point in points if switch in POINTS[point].switches]
        if switch != HIERARCHY and not governed:
            yield Spot(f"{written.spelling} on {option.name} switches nothing", written.line)


def _hierarchy_ignored(setup: Setup) -> Iterator[Spot]:
    for entry in setup.entries:
        written = entry.option.written.get(HIERARCHY)
        if written is not None and written.value and entry.option.name not in HIERARCHICAL:
            yield Spot(f"{HIERARCHY} on {entry.option.name}, which has no hierarchy", written.line)


def _listed_twice(setup: Setup) -> Iterator[Spot]:
    seen: dict[str, Entry] = {}
    for entry in setup.entries:
        first = seen.setdefault(entry.option.name, entry)
        if first is not entry:
            yield Spot(
                f"{entry.option.name} stands in tier {first.tier} already (line {first.option.line})", entry.option.line
            )
    for number, name in enumerate(setup.config.actions):
        if name in setup.config.actions[:number]:
            yield Spot(f"action {name} is listed twice", severity="note")


def _configured_in_vain(setup: Setup) -> Iterator[Spot]:
    for one in setup.config.configurations:
        if one.name not in setup.config.actions:
            yield Spot(f"arguments for {one.name}, which is not among the actions", one.line)


# ---------------------------------------------------------------------- what is missing


def _nothing_is_placed(setup: Setup) -> Iterator[Spot]:
    if not setup.acts("allocate"):
        yield Spot("allocate is not among the actions")


def _no_backfill(setup: Setup) -> Iterator[Spot]:
    if setup.acts("allocate") and not setup.acts("backfill"):
        yield Spot("backfill is not among the actions")


def _no_gang(setup: Setup) -> Iterator[Spot]:
    if not setup.answering("job_ready"):
        entry = setup.find("gang")
        yield Spot("gang's enableJobReady is off" if entry else "no gang", entry.option.line if entry else 0)


def _no_predicates(setup: Setup) -> Iterator[Spot]:
    entry = setup.find("predicates")
    if entry is None or "predicate" not in _points(setup, entry):
        yield Spot(
            "predicates' enablePredicate is off" if entry else "no predicates", entry.option.line if entry else 0
        )


def _points(setup: Setup, entry: Entry) -> list[str]:
    return [point for point in setup.points(entry.option) if entry.option.enabled(POINTS[point])]


def _no_shares(setup: Setup) -> Iterator[Spot]:
    if setup.find(*SHARING) is None:
        yield Spot("neither proportion nor capacity")


def _no_priority(setup: Setup) -> Iterator[Spot]:
    if setup.find("priority") is None:
        yield Spot("no priority")


def _no_scores(setup: Setup) -> Iterator[Spot]:
    found = [*setup.answering("node_order"), *setup.answering("batch_node_order")]
    if all(entry.option.name == "predicates" for entry in found):  # it scores the alternatives of claims alone
        yield Spot("no plugin scores nodes")


# ---------------------------------------------------------------------- combinations that defeat each other


def _hierarchy_with_proportion(setup: Setup) -> Iterator[Spot]:
    drf, proportion = setup.find("drf"), setup.find("proportion")
    if drf is None or proportion is None or not drf.option.enable_hierarchy:
        return
    same = drf.tier == proportion.tier
    where = "in one tier: the file is refused" if same else f"(tiers {drf.tier} and {proportion.tier})"
    yield Spot(f"drf with {HIERARCHY} and proportion {where}", drf.option.line, severity="error" if same else "warning")


def _two_share_keepers(setup: Setup) -> Iterator[Spot]:
    proportion, capacity = setup.find("proportion"), setup.find("capacity")
    if proportion is not None and capacity is not None:
        yield Spot("proportion and capacity", max(proportion.option.line, capacity.option.line))


def _no_victims(setup: Setup) -> Iterator[Spot]:
    for action, point in NAMING_VICTIMS.items():
        if setup.acts(action) and not setup.answering(point):
            yield Spot(f"action {action}, but no plugin answers {point}")


def _no_starving_jobs(setup: Setup) -> Iterator[Spot]:
    if setup.acts(*EVICTING) and not setup.answering("job_starving"):
        yield Spot(f"action {_first_evicting(setup)}, but no plugin answers job_starving")


def _first_evicting(setup: Setup) -> str:
    return next(name for name in setup.config.actions if name in EVICTING)


def _surplus_never_starves(setup: Setup) -> Iterator[Spot]:
    if not setup.acts("preempt"):
        return
    starving = setup.answering("job_starving")
    for entry in starving:
        first = min(one.tier for one in starving)
        with_priority = any(one.option.name == "priority" and one.tier == entry.tier for one in starving)
        if entry.option.name == "gang" and entry.tier == first and with_priority:
            yield Spot("gang and priority both answer job_starving in one tier", entry.option.line)


def _minimum_is_never_preempted(setup: Setup) -> Iterator[Spot]:
    if not setup.acts("preempt"):
        return
    for entry in setup.answering("preemptable"):
        if entry.option.name == "gang":
            yield Spot("gang votes on victims (enablePreemptable is on)", entry.option.line)


def _share_guards_victims(setup: Setup) -> Iterator[Spot]:
    voting = setup.answering("preemptable") if setup.acts("preempt") else []
    for entry in voting:
        with_priority = any(one.option.name == "priority" and one.tier <= entry.tier for one in voting)
        if entry.option.name == "drf" and with_priority:
            yield Spot("drf votes on victims (enablePreemptable is on) together with priority", entry.option.line)


def _critical_pods_unguarded(setup: Setup) -> Iterator[Spot]:
    entry = setup.find("conformance")
    if entry is None and setup.acts(*EVICTING):
        yield Spot(f"action {_first_evicting(setup)} without conformance")
    for action, point in NAMING_VICTIMS.items():
        if (
            entry is not None
            and setup.acts(action)
            and not any(one.option.name == "conformance" for one in setup.answering(point))
        ):
            yield Spot(f"conformance is not asked at {point}, so not by action {action}", entry.option.line)


def _door_shut_to_preemptors(setup: Setup) -> Iterator[Spot]:
    if not setup.acts("enqueue") or not setup.acts(*EVICTING):
        return
    for entry in setup.answering("job_enqueueable"):
        if entry.option.name in ADMITTING and entry.option.name != "resourcequota":
            yield Spot(
                f"{entry.option.name} refuses jobs at enqueue that {_first_evicting(setup)} should help",
                entry.option.line,
            )


def _reclaim_without_shares(setup: Setup) -> Iterator[Spot]:
    if setup.acts("reclaim", "gangreclaim") and setup.find(*SHARING) is None:
        yield Spot("reclaim without proportion or capacity")


def _deadline_asked_too_late(setup: Setup) -> Iterator[Spot]:
    sla = setup.find("sla")
    if sla is None:
        return
    for entry in setup.answering("job_enqueueable"):
        if entry.option.name in ADMITTING and entry.tier <= sla.tier:
            text = f"sla in tier {sla.tier}, {entry.option.name} in tier {entry.tier}"
            yield Spot(text, sla.option.line)
            return


def _admission_without_enqueue(setup: Setup) -> Iterator[Spot]:
    if setup.acts("enqueue"):
        return
    for entry in setup.entries:
        points = setup.points(entry.option)
        if points and points <= {"job_enqueueable", "job_enqueued"}:
            yield Spot(f"{entry.option.name}, but no action enqueue", entry.option.line)


def _loads_without_source(setup: Setup) -> Iterator[Spot]:
    if not setup.config.metrics.get("type"):
        for name in ("usage", "rescheduling"):
            for line in setup.lines(name):
                yield Spot(f"{name}, but no metrics type", line)


def _moving(setup: Setup) -> list[Entry]:
    """The entries that name pods to be moved; those that only protect pods name none."""
    return [entry for entry in setup.answering("victim_tasks") if entry.option.name not in PROTECTING]


def _no_shuffle(setup: Setup) -> Iterator[Spot]:
    if not setup.acts("shuffle"):
        for entry in _moving(setup):
            yield Spot(f"{entry.option.name}, but no action shuffle", entry.option.line)


def _nothing_to_shuffle(setup: Setup) -> Iterator[Spot]:
    if setup.acts("shuffle") and not _moving(setup):
        yield Spot("shuffle, but no plugin names pods to be moved")


def _odd_order(setup: Setup) -> Iterator[Spot]:
    actions = setup.config.actions
    for first, second in (("enqueue", "allocate"), ("allocate", "backfill"), ("enqueue", "backfill")):
        if first in actions and second in actions and actions.index(second) < actions.index(first):
            yield Spot(f"{second} stands before {first}")


CONF_RULES: Final[tuple[Rule[Setup], ...]] = (
    Rule("refused", "error", _refused, NOT_STARTED, CORRECT),
    Rule("unknown-name", "error", _unknown_names,
         "A misspelt plugin, key or switch silently turns a policy off.",
         "Correct the spelling."),
    Rule("not-in-this-release", "error", _missing_here,
         "The scheduler does not start with a name that it does not know.",
         "Take it out, or use a release that has it."),
    Rule("bad-argument", "error", _bad_arguments,
         "An argument that is unknown or cannot be read keeps its default.",
         "Correct its name or value; `stromboli conf show` lists all arguments."),
    Rule("tolerated", "note", _tolerated,
         "The name is known from older releases or another spelling and has no effect here.",
         "Take it out."),
    Rule("switch-without-effect", "warning", _switches_without_effect,
         "The plugin answers nothing that this switch governs, so it changes nothing, on or off.",
         "Take it out, or set the switch on the plugin that is meant."),
    Rule("hierarchy-ignored", "warning", _hierarchy_ignored,
         "Only drf, capacity, nodegroup and overcommit read the hierarchy; elsewhere the switch changes nothing.",
         "Set it on one of these, or take it out."),
    Rule("listed-twice", "warning", _listed_twice,
         "The second listing replaces the first one's arguments, and its hooks are asked twice.",
         "Keep one."),
    Rule("configured-in-vain", "warning", _configured_in_vain,
         "The arguments of an action that does not run have no effect.",
         "Add the action, or take its arguments out."),
    Rule("nothing-is-placed", "error", _nothing_is_placed,
         "Only allocate places pods that request something.",
         'Add it: actions: "enqueue, allocate, backfill".'),
    Rule("no-backfill", "note", _no_backfill,
         "Pods that request nothing are placed by backfill alone, so they would wait for ever.",
         "Add backfill at the end of the actions, unless no pod goes without requests."),
    Rule("no-gang", "warning", _no_gang,
         "Without gang's job_ready every pod is bound as soon as it fits, so jobs start in part and block each other.",
         "Add gang to the first tier, enableJobReady on."),
    Rule("no-predicates", "warning", _no_predicates,
         "Taints, affinity, selectors, ports and the number of pods a node takes are not looked at.",
         "Add predicates."),
    Rule("no-shares", "warning", _no_shares,
         "Weight, capability, deserved and guarantee of queues have no effect.",
         "Add proportion (shares by weight) or capacity (shares by amount)."),
    Rule("no-priority", "note", _no_priority,
         "PriorityClasses do not order jobs or pods.",
         "Add priority to the first tier."),
    Rule("no-scores", "note", _no_scores,
         "Every node that fits is as good as any other: the first by name is taken.",
         "Add nodeorder, binpack, or both."),
    Rule("hierarchy-with-proportion", "warning", _hierarchy_with_proportion,
         "Both divide the cluster among queues, by rules that disagree; in one tier the loader refuses the file.",
         "Keep one: drf with the hierarchy, or proportion."),
    Rule("two-share-keepers", "error", _two_share_keepers,
         "Both decide what a queue may hold, and a pod needs the consent of both: the smaller share counts everywhere.",
         "Keep capacity for amounts and hierarchy, or proportion for weights."),
    Rule("nobody-can-be-evicted", "error", _no_victims,
         "An action that evicts needs a plugin that names victims; without one it never evicts a pod.",
         "Add priority, drf or gang for preempt, proportion or capacity for reclaim, and leave its switch on."),
    Rule("nobody-starves", "error", _no_starving_jobs,
         "Only starving jobs may preempt or reclaim; without a plugin that answers job_starving, no job starves.",
         "Add gang or priority, and leave enableJobStarving on."),
    Rule("surplus-never-starves", "warning", _surplus_never_starves,
         "Both must agree, and for gang a job that has its minMember does not starve: its other pods never preempt, "
         "however high its priority.",
         "Set enableJobStarving: false on gang, or leave it so if minMember is all that should be fought for."),
    Rule("minimum-never-preempted", "note", _minimum_is_never_preempted,
         "gang offers only pods beyond a job's minMember as victims, so a gang that has just its minimum cannot be "
         "preempted by any priority.",
         "Set enablePreemptable: false on gang to let priority decide alone."),
    Rule("share-guards-victims", "note", _share_guards_victims,
         "drf refuses victims whose job would then hold less than the preemptor, so priority alone does not decide.",
         "Set enablePreemptable: false on drf to let priority decide alone."),
    Rule("critical-pods-unguarded", "warning", _critical_pods_unguarded,
         "Pods of kube-system and of the system priority classes may be evicted.",
         "Add conformance to the first tier."),
    Rule("door-shut-to-preemptors", "warning", _door_shut_to_preemptors,
         "A job that is refused at enqueue stays Pending and never becomes a preemptor, so on a full cluster a job "
         "with minResources, however important, waits as if there were no preemption.",
         "Take enqueue out of the actions, set enableJobEnqueued: false on the plugin, or raise overcommit-factor."),
    Rule("reclaim-without-shares", "error", _reclaim_without_shares,
         "No plugin computes what a queue deserves, so no queue is over its share.",
         "Add proportion or capacity."),
    Rule("deadline-asked-too-late", "warning", _deadline_asked_too_late,
         "A refusal in the same or an earlier tier counts, so the permit of an overdue job comes too late.",
         "Put sla into a tier before the plugins that refuse at enqueue."),
    Rule("admission-without-enqueue", "warning", _admission_without_enqueue,
         "The plugin speaks only at the action enqueue, so it does nothing.",
         "Add enqueue as the first action, or take the plugin out."),
    Rule("loads-without-source", "warning", _loads_without_source,
         "Without measurements usage lets every node pass and scores it 0, and rescheduling moves no pod.",
         "Set metrics: type (prometheus, prometheus_adaptor, elasticsearch) and address."),
    Rule("moved-by-nobody", "warning", _no_shuffle,
         "The pods that the plugin wants elsewhere are evicted by the action shuffle alone.",
         "Add shuffle to the actions."),
    Rule("nobody-to-move", "warning", _nothing_to_shuffle,
         "shuffle evicts the pods that plugins name, and no plugin names any.",
         "Add rescheduling or tdm, or take shuffle out."),
    Rule("odd-order", "warning", _odd_order,
         "Actions run in the order of the file: what comes too early works on the state of the cycle before.",
         'The usual order is "enqueue, allocate, preempt, reclaim, backfill".'),
)  # fmt: skip
"""All rules for configurations."""

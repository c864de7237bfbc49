"""What holds for capacity and nodegroup in any cluster: limits, guarantees, and one answer in every form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.framework.config.gates import ADMISSION
from stromboli.plugins.capacity import Capacity
from stromboli.plugins.nodegroup import FITS, GROUP_REASONS, NodeGroup
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import GPU, Bench, conf

PARENTS = {"A": "root", "B": "root", "A1": "A", "A2": "A", "B1": "B"}
LEAVES = ("A1", "A2", "B1")
COLUMNS = {"cpu": 0, GPU: 3}

amounts = st.dictionaries(st.sampled_from(("cpu", GPU)), st.integers(0, 9), max_size=2)
specs = st.fixed_dictionaries({"capability": amounts, "deserved": amounts, "priority": st.integers(0, 1)})
DEEP = {"A": "root", "B": "root", "AA": "A", "AA1": "AA", "AA2": "AA", "AB": "A", "B1": "B"}
"""A tree with one queue that is three levels down."""


def leaves(parents):
    return [name for name in parents if name not in parents.values()]


def jobs(queues):
    """Queue, pods, running ones, cores and devices of each; the first queue has the most."""
    numbers = st.integers(1, 4), st.integers(0, 4), st.integers(0, 2), st.integers(0, 1)
    return st.lists(st.tuples(st.sampled_from([queues[0], *queues]), *numbers), min_size=1, max_size=6)


@st.composite
def clusters(draw, parents=PARENTS):
    """Objects of a tree of queues, whose guarantees fit into one another, and jobs in its leaves."""
    given = {name: draw(specs) for name in parents}
    for name in reversed(parents):  # a queue deserves what those below it do together, and perhaps more
        below = [given[child]["deserved"] for child, parent in parents.items() if parent == name]
        given[name]["deserved"] = {
            resource: amount + sum(each.get(resource, 0) for each in below)
            for resource, amount in given[name]["deserved"].items()
        }
    for name in leaves(parents):
        given[name]["guarantee"] = {"resource": {"cpu": draw(st.integers(0, 2))}}
    queues = [queue("root"), *(queue(name, parent=parents[name], **spec) for name, spec in given.items())]
    objects = [node("n1", cpu=12, resources={GPU: 4}), node("n2", cpu=12, resources={GPU: 4}), *queues]
    for i, (leaf, pods, running, cpu, gpu) in enumerate(draw(jobs(leaves(parents)))):
        asks = {GPU: gpu} if gpu else {}
        objects.append(pod_group(f"j{i}", queue=leaf, phase="Running" if running else "Inqueue", created=i + 1))
        objects += [
            pod(
                f"j{i}-w-{n}",
                group=f"j{i}",
                cpu=cpu,
                memory=0,
                requests=asks,
                on=f"n{1 + n % 2}" if n < running else "",
            )
            for n in range(pods)
        ]
    return objects


SPECS: dict[str, dict[str, Any]] = {"A": {"deserved": {"cpu": 1}}, "AA2": {"guarantee": {"resource": {"cpu": 1}}}}
SIBLINGS = [
    node("n1", cpu=12),
    queue("root"),
    *(queue(name, parent=parent, **SPECS.get(name, {})) for name, parent in DEEP.items()),
    pod_group("wants", queue="AA2", phase="Inqueue", created=1),
    pod("wants-0", group="wants", cpu=1, memory=0),
    pod_group("near", queue="AA1", phase="Running", created=2),
    pod("near-0", group="near", cpu=1, memory=0, on="n1"),
    pod_group("far", queue="AB", phase="Running", created=3),
    pod("far-0", group="far", cpu=1, memory=0, on="n1"),
]
"""Two victims of one job: the first one's parent is the job's own, the second one's is looked at."""


def text(tree, actions="allocate, backfill"):
    """Queues side by side (0), or a tree in which so many queues above, less one, are protected."""
    level = f", arguments: {{ancestorReclaimLevel: {tree - 1}}}" if tree > 1 else ""
    on = str(bool(tree)).lower()
    return conf(f"[{{name: predicates}}, {{name: capacity, enableHierarchy: {on}{level}}}]", actions=actions)


def queue_of(session, task):
    return session.jobs[task.job].queue


def accounts_of(session):
    plugin = session.plugins["capacity"]
    assert isinstance(plugin, Capacity)
    return plugin.accounts


@given(clusters(), st.sampled_from((0, 1)))
def test_placements_keep_every_limit(objects, tree):
    """What a queue held before may be beyond its limit; it gets nothing more of that."""
    bench = Bench(objects, text(tree))
    with bench.open() as session:
        accounts = accounts_of(session)
        before = {name: list(account.held) for name, account in accounts.items()}
        bench.act(session, "allocate")
        for name, account in accounts.items():
            limits = account.limits.limits
            for column in COLUMNS.values() if name != "root" else ():
                assert account.held[column] <= max(limits[column], before[name][column]), (name, column)


@given(clusters())
def test_what_is_above_holds_what_is_below(objects):
    bench = Bench(objects, text(1))
    with bench.open() as session:
        bench.act(session, "allocate")
        held = {name: info.branch for name, info in session.queues.items()}
        assert all(held[name] == session.queues[name].sums.held for name in LEAVES)
        for name in ("root", "A", "B"):
            children = [held[child] for child, parent in PARENTS.items() if parent == name]
            others = [session.queues["default"].branch] if name == "root" else []
            assert held[name] == [sum(column) for column in zip(*children, *others, strict=True)]


@given(clusters(), st.sampled_from((0, 1, 2)), st.randoms(use_true_random=False))
def test_queues_within_what_they_deserve_lose_nothing_and_guarantees_are_kept(objects, tree, random):
    """Whatever the order of the candidates, victims are of queues with more than they deserve of what these ask for."""
    with Bench(objects, text(tree)).open() as session:
        accounts = accounts_of(session)
        running = [task for job in session.jobs.peek() for task in job.tasks.values() if task.node_name]
        waiting = [task for job in session.jobs.peek() for task in job.tasks.values() if not task.node_name]
        random.shuffle(running)
        for reclaimer in waiting[:2]:
            own = queue_of(session, reclaimer)
            candidates = [task for task in running if queue_of(session, task) != own]
            left = {name: list(account.held) for name, account in accounts.items()}
            for victim in session.ask.reclaimable(reclaimer, candidates):
                account = accounts[queue_of(session, victim)]
                held, vector = left[account.name], victim.template.vector
                asked = [column for column, amount in enumerate(vector) if amount]
                deserved = account.deserved.limits
                named = [column for column in asked if column < len(deserved) and 0 < deserved[column] < 1 << 99]
                assert not named or any(held[column] > deserved[column] for column in asked)
                for column in asked:
                    held[column] -= vector[column]
                assert all(held[column] >= least for column, least in account.guarantee.floors)


@example(SIBLINGS, 1)
@given(clusters(DEEP), st.sampled_from((1, 2, 2, 3)))
def test_the_nearest_queues_above_a_victim_hold_more_than_they_deserve_too(objects, levels):
    """As many as ``ancestorReclaimLevel`` says, root and those that stand as near above the reclaimer left out.

    Queues that are left out lose nothing: the reclaimer, which is below them, too, gets what the victim had.
    """
    with Bench(objects, text(1 + levels)).open() as session:
        accounts = accounts_of(session)
        tasks = [task for job in session.jobs.peek() for task in job.tasks.values()]
        for reclaimer in [task for task in tasks if not task.node_name][:2]:
            own = queue_of(session, reclaimer)
            others = [task for task in tasks if task.node_name and queue_of(session, task) != own]
            left = {name: list(account.held) for name, account in accounts.items()}
            for victim in session.ask.reclaimable(reclaimer, others):
                vector, name = victim.template.vector, queue_of(session, victim)
                asked = [column for column, amount in enumerate(vector) if amount]
                for above in protected(name, own, levels):
                    deserved = accounts[above].deserved.limits
                    named = [column for column in asked if column < len(deserved) and 0 < deserved[column] < 1 << 99]
                    assert not named or any(left[above][column] > deserved[column] for column in asked), above
                for looked_at in (name, *protected(name, own, levels)):
                    for column in asked:
                        left[looked_at][column] -= vector[column]


def way_up(name):
    """The queues above, from the parent to below the root."""
    return [above, *way_up(above)] if (above := DEEP[name]) != "root" else []


def protected(name, own, levels):
    mine, theirs = way_up(name)[:levels], way_up(own)
    return [above for level, above in enumerate(mine) if above not in theirs[level : level + 1]]


@given(clusters(), st.sampled_from((0, 1)))
def test_many_at_once_are_placed_as_one_by_one(objects, tree):
    """With the gate on the plugin is asked for each task, as parts may be kept; no job opted in: nothing differs."""
    bench = Bench(objects, text(tree))
    together = bench.open()
    with together as session:
        bench.act(session, "allocate", "backfill")
    bench.config = replace(bench.config, features=frozenset({ADMISSION}))
    with bench.open() as session:
        bench.act(session, "allocate", "backfill")
    assert together.plan.binds == session.plan.binds
    assert together.plan.queues == session.plan.queues


@given(clusters(), st.sampled_from((0, 1)), st.integers(1, 5))
def test_times_is_how_often_the_plain_answer_stays_true(objects, tree, k):
    with Bench(objects, text(tree)).open() as session:
        accounts, forms = accounts_of(session), session.hooks.batch_forms["allocatable"]
        assert forms is not None
        for job in list(session.jobs.peek()):
            task = next(iter(job.tasks.values()))
            account = accounts[job.queue]
            saved = {each.name: list(each.held) for each in account.walk}
            expected = 0
            while expected < k and session.ask.allocatable(session.queues[job.queue], task):
                expected += 1
                for each in account.walk:
                    for column, amount in enumerate(task.template.vector):
                        each.held[column] += amount
            for each in account.walk:
                each.held[:] = saved[each.name]
            assert [say(session.queues[job.queue], task, k) for say in forms] == [expected]


groups = st.lists(st.sampled_from("abc"), max_size=3, unique=True)
rules = st.tuples(groups, groups, groups, groups)


def plainly(rule, group, strict):
    """The refusal of a group, as the description words it; empty if the group may be used."""
    required, preferred, forbidden, avoided = rule
    if not group:
        return "" if not strict and not any(rule) else GROUP_REASONS[1].text
    if not any(rule):
        return GROUP_REASONS[2].text
    allowed = group in required or group in preferred
    allowed = allowed and group not in forbidden
    allowed = allowed or group in avoided
    return "" if allowed else GROUP_REASONS[3].text


@given(rules, st.booleans(), st.booleans())
def test_groups_of_all_nodes_at_once_are_those_of_the_description(rule, strict, ordered):
    during = "DuringSchedulingIgnoredDuringExecution"
    required, preferred, forbidden, avoided = rule
    affinity = {"nodeGroupAffinity": {f"required{during}": required, f"preferred{during}": preferred},
                "nodeGroupAntiAffinity": {f"required{during}": forbidden, f"preferred{during}": avoided}}  # fmt: skip
    nodes = [node(f"n{group}", labels={"volcano.sh/nodegroup-name": group} if group else {}) for group in ("", *"abc")]
    arguments = f"{{strict: {str(strict).lower()}, enablePreferredOrder: {str(ordered).lower()}}}"
    setup = conf(f"[{{name: nodegroup, arguments: {arguments}}}]")
    objects = [*nodes, queue("q", affinity=affinity), pod_group("g", queue="q"), pod("p", group="g")]
    with Bench(objects, setup).open() as session:
        plugin, task = session.plugins["nodegroup"], session.jobs["default/g"].tasks["default/p"]
        assert isinstance(plugin, NodeGroup)
        masks, scores = plugin.may_use(task, session.table.view()), plugin.liked(task, session.table.view())
        for row, name in enumerate(session.table.statics.names):
            group = name[1:]
            bit = int(masks[row])
            assert ("" if bit == FITS else GROUP_REASONS[bit.bit_length() - 1].text) == plainly(rule, group, strict)
            place = preferred.index(group) if ordered and group in preferred else 0
            liked = 50 * (len(preferred) - place) / len(preferred) if group in preferred else 0
            expected = 0 if not group else -1 if group in avoided else 100 * (group in required) + liked
            assert scores[row] == np.float64(expected)

"""Laws of cards, claimed devices and volumes: nothing is given twice, undo leaves no trace, annotations say it all."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.errors import PlacementError
from stromboli.framework.books.plan import Plan
from stromboli.framework.session.session import Session
from stromboli.plugins.deviceshare.plugin import DeviceShare
from stromboli.plugins.predicates.claimed import Predicates
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench, binds, messages, task_of
from tests.support.device_objects import device, device_claim, device_class, resource_slice, storage_class, volume
from tests.support.device_objects import volume_claim as claim

V, IDS, REGISTER = "volcano.sh/vgpu-", "volcano.sh/vgpu-ids-new", "volcano.sh/node-vgpu-register"
CARD, SHARERS, ROOM = 10_000, 3, 100_000
CONF = """\
actions: "allocate, backfill"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - {name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack}}
"""


class Wish(NamedTuple):
    """What a pod asks for: memory and cores of a card, devices, and volumes of these sizes."""

    memory: int
    cores: int
    devices: int
    sizes: tuple[int, ...]


wishes = st.builds(
    Wish, st.sampled_from([0, 3000, 6000, 10_000]), st.sampled_from([0, 30, 100]), st.integers(0, 2),
    st.lists(st.sampled_from([1, 2, 4]), max_size=2).map(tuple),
)  # fmt: skip
gangs = st.lists(st.lists(wishes, min_size=1, max_size=2), min_size=1, max_size=3)
rooms = st.lists(
    st.tuples(st.integers(1, 2), st.integers(0, 3), st.lists(st.sampled_from([1, 2, 4]), max_size=3)),
    min_size=1, max_size=2,
)  # fmt: skip


def there(number: int, cards: int, devices: int, sizes: list[int]) -> list[Manifest]:
    """A node with its cards, devices and volumes."""
    name = f"n{number}"
    register = "".join(f"{name}-card{place},{SHARERS},{CARD},A100,true,hami-core:" for place in range(cards))
    offer = {f"{V}number": ROOM, f"{V}memory": ROOM, f"{V}cores": ROOM}
    made = [node(name, cpu=64, memory="64Gi", resources=offer, annotations={REGISTER: register})]
    made += [resource_slice(name, *(device(f"d{place}") for place in range(devices)))] if devices else []
    return [*made, *(volume(f"{name}-v{place}", name, f"{size}Gi") for place, size in enumerate(sizes))]


def asking(name: str, group: str, wish: Wish) -> list[Manifest]:
    """A pod with its claims."""
    amounts = {f"{V}number": 1, f"{V}memory": wish.memory, f"{V}cores": wish.cores} if wish.memory else {}
    claims = [device_claim(f"{name}-d{place}") for place in range(wish.devices)]
    disks = [claim(f"{name}-v{place}", size=f"{size}Gi") for place, size in enumerate(wish.sizes)]
    named = [{"name": one["metadata"]["name"], "resourceClaimName": one["metadata"]["name"]} for one in claims]
    mounts = [
        {"name": one["metadata"]["name"], "persistentVolumeClaim": {"claimName": one["metadata"]["name"]}}
        for one in disks
    ]
    more: Any = {"resourceClaims": named, "volumes": mounts}
    return [*claims, *disks, pod(name, group=group, cpu=1, memory="1Gi", requests=amounts, **more)]


def bench_of(rows: list[Any], jobs: list[list[Wish]]) -> Bench:
    """A cluster of such nodes with such gangs."""
    objects = [device_class(), storage_class("local"), *(one for i, row in enumerate(rows) for one in there(i, *row))]
    for number, members in enumerate(jobs):
        objects.append(pod_group(f"g{number}", min_member=len(members)))
        for place, wish in enumerate(members):
            objects += asking(f"p{number}-{place}", f"g{number}", wish)
    return Bench(objects, CONF)


def pieces(plan: Plan) -> list[tuple[str, str, int, int]]:
    """Pod, card, memory and cores of all shares that a plan gives."""
    found = [(bind.key, bind.annotations.get(IDS, "")) for bind in plan.binds]
    shares = [
        (key, part.split(",")) for key, text in found for row in text.split(";") for part in row.split(":") if part
    ]
    return [(key, card, int(memory), int(cores)) for key, (card, _, memory, cores) in shares]


def check_given_once(plan: Plan) -> None:
    """No card beyond its memory, cores and sharers; no device and no volume twice; all on the pod's own node."""
    nodes = {bind.key: bind.node for bind in plan.binds}
    memory, cores, sharers = Counter[str](), Counter[str](), Counter[str]()
    for key, card, part, percent in pieces(plan):
        assert card.startswith(nodes[key])
        memory[card] += part
        cores[card] += percent
        sharers[card] += 1
    assert max(memory.values(), default=0) <= CARD
    assert max(cores.values(), default=0) <= 100
    assert max(sharers.values(), default=0) <= SHARERS
    devices = [
        (bind.node, one.pool, one.device)
        for bind in plan.binds for given in bind.claims.values() for one in given.devices.results
    ]  # fmt: skip
    volumes = [(bind.node, what) for bind in plan.binds for what in bind.volumes.values()]
    assert all(where == pool for where, pool, _ in devices)
    assert all(what.startswith(f"pv:{where}") for where, what in volumes)
    assert len(set(devices)) == len(devices)
    assert len(set(volumes)) == len(volumes)


def cards_of(session: Session) -> DeviceShare:
    """The plugin that has the cards."""
    found = session.plugins["deviceshare"]
    assert isinstance(found, DeviceShare)
    return found


def shown(session: Session) -> object:
    """What cards, devices and volumes are taken, as the plugins of a session have it."""
    shares, filters = cards_of(session), session.plugins["predicates"]
    assert isinstance(filters, Predicates)
    cards = {name: [pool.cards() for pool in shares.pools_of(name)] for name in session.table.statics.names}
    claims, volumes = filters._claims._book, filters._volumes._book
    masks = [
        [None if found is None else found.tolist() for found in (claims.masks(task), volumes.binding(task))]
        for job in session.jobs.peek() for task in job.tasks.values()
    ]  # fmt: skip
    free = {name: [group.volumes for group in pool._groups.values()] for name, pool in volumes._pools.items()}
    return repr((cards, dict(sorted(claims._usage.whole.items())), claims._given, volumes._given, free, masks))


@pytest.mark.law("no card, device or volume is given twice, a gang has all or nothing, and annotations restore it")
@given(rooms, gangs)
def test_devices_are_given_once_and_restored(rows: list[Any], jobs: list[list[Wish]]) -> None:
    bench = bench_of(rows, jobs)
    plan = bench.cycle()
    check_given_once(plan)
    bound = Counter(name.partition("-")[0] for name in binds(plan))
    assert all(bound[f"p{number}"] in (0, len(members)) for number, members in enumerate(jobs))
    used = Counter[str]()
    for _, card, memory, _ in pieces(plan):
        used[card] += memory
    with bench.open() as session:
        pools = [pool for name in session.table.statics.names for pool in cards_of(session).pools_of(name)]
        assert {card.name: card.used for pool in pools for card in pool.cards() if card.used} == dict(used)


@pytest.mark.law("undo leaves no trace of cards, devices and volumes")
@given(rooms, gangs, st.randoms(use_true_random=False))
def test_undo_leaves_no_trace(rows: list[Any], jobs: list[list[Wish]], dice: Any) -> None:
    bench = bench_of(rows, jobs)
    with bench.open() as session:
        before = shown(session)
        tasks = [task for job in session.jobs.peek() for task in job.tasks.values()]
        dice.shuffle(tasks)
        statement = session.statement()
        for task in tasks:
            own = session.jobs[task.job].tasks[task.uid]
            nodes = [session.nodes[name] for name in session.table.statics.names]
            fitting = [one for one in nodes if session.ask.predicate(own, one) is None]
            if fitting:
                statement.allocate(own, dice.choice(fitting))
        statement.discard()
        assert shown(session) == before
    check_given_once(bench.cycle())


def test_S3_38_a_discarded_placement_frees_its_card() -> None:
    bench = bench_of([(1, 0, [])], [[Wish(10_000, 0, 0, ())], [Wish(10_000, 0, 0, ())]])
    with bench.open() as session:
        statement, [pool] = session.statement(), [*cards_of(session).pools_of("n0")]
        statement.allocate(task_of(session, "p0-0"), session.nodes["n0"])
        assert [card.used for card in pool.cards()] == [CARD]
        assert session.ask.predicate(task_of(session, "p1-0"), session.nodes["n0"]) is not None
        statement.discard()
        assert [card.used for card in pool.cards()] == [0]
    assert len(binds(bench.cycle())) == 1


def test_S3_39_a_device_that_is_gone_at_the_placement_is_told_and_the_pod_waits() -> None:
    bench = bench_of([(1, 0, [])], [[Wish(10_000, 0, 0, ())], [Wish(10_000, 0, 0, ())]])
    with bench.open() as session:
        statement = session.statement()
        statement.allocate(task_of(session, "p0-0"), session.nodes["n0"])
        with pytest.raises(PlacementError, match="allocation has been rolled back"):
            statement.allocate(task_of(session, "p1-0"), session.nodes["n0"])
        task = task_of(session, "p1-0")
        assert (task.status.name, task.node_name) == ("Pending", "")
        statement.discard()
    assert messages(bench.cycle(), "default/p1-0") != []

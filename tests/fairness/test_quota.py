"""What queues may have, as laws over random queues and trees."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.scheduling import Guarantee
from stromboli.fairness.quota import OURS, Reading, flat, is_device_class, overcommitments, tree
from stromboli.model.queue import Queue, QueueSpec
from stromboli.model.resources.resource import INFINITE, Resource

NAMES = ("root", "a", "b", "c", "d", "e")
amounts = st.dictionaries(st.sampled_from(("cpu", "memory", "nvidia.com/gpu")), st.integers(0, 20).map(str), max_size=3)
TOTAL = Resource(20_000, 20, {"nvidia.com/gpu": 20_000.0})


def queues_of(parents):
    def made(specs):
        return [
            Queue(name, spec=QueueSpec(parent=parents(name, of), capability=capability, deserved=deserved,
                                       guarantee=Guarantee(resource=guarantee)))
            for name, (of, capability, deserved, guarantee) in specs.items()
        ]  # fmt: skip

    one = st.tuples(st.sampled_from((*NAMES, "gone")), amounts, amounts, amounts)
    return st.fixed_dictionaries(dict.fromkeys(NAMES, one)).map(made)


anything = queues_of(lambda name, of: "" if name == "root" else of)
sound = queues_of(lambda name, of: "" if name == "root" else min(of, NAMES[NAMES.index(name) - 1], key=rank))


def rank(name):
    return NAMES.index(name) if name in NAMES else 99


def small(part, whole, names=("cpu", "memory", "nvidia.com/gpu")):
    return all(part.get(name) <= whole.get(name) for name in names)


@given(anything)
def test_every_queue_has_a_way_to_root_or_a_fault(queues):
    quotas = tree(queues, TOTAL)
    assert set(quotas) == set(NAMES)
    for name, quota in quotas.items():
        if quota.fault and not quota.ancestors:
            assert "invalid parent" in quota.fault or "cycle" in quota.fault
        elif name != "root":
            assert quota.ancestors[0] == "root"
            assert name in quotas[quota.parent].children
            assert quota.ancestors == (*quotas[quota.parent].ancestors, quota.parent)


@given(sound)
def test_no_queue_may_have_more_than_the_queue_above(queues):
    """Where guarantees fit into the queue above, and its scalars are known."""
    quotas = tree(queues, TOTAL)
    for quota in quotas.values():
        if not quota.parent:
            continue
        above = quotas[quota.parent]
        promised = Resource()
        for child in above.children:
            promised.add(quotas[child].guarantee)
        if small(promised, above.real_capability):
            assert small(quota.real_capability, above.real_capability)


@given(sound)
def test_what_children_are_promised_is_never_beyond_a_queue_without_fault(queues):
    quotas = tree(queues, TOTAL)
    blamed = {name for name, _ in overcommitments(quotas)}
    for name, quota in quotas.items():
        if name != "root" and not quota.fault and quota.children:
            assert name not in blamed
            for what in ("guarantee", "deserved"):
                own = getattr(quota, what)
                together = Resource()
                for child in quota.children:
                    together.add(getattr(quotas[child], what))
                assert small(together, own, own.names())
    for name in blamed:
        assert all(quotas[child].fault for child in (name, *quotas[name].children))


@given(sound)
def test_deserved_lies_between_guarantee_and_what_may_be_had(queues):
    for quota in flat(queues, TOTAL).values():
        assert small(quota.guarantee, quota.deserved)
        over = [name for name in quota.deserved.names() if quota.deserved.get(name) > quota.real_capability.get(name)]
        assert all(
            quota.deserved.get(name) == quota.guarantee.get(name) for name in over if name in quota.guarantee.names()
        )
        assert small(quota.real_capability, quota.capability or quota.real_capability, ("cpu", "memory"))


@given(sound)
def test_root_has_what_its_children_have_and_no_limit_of_its_own_unless_written(queues):
    quotas = tree([q for q in queues if q.name != "root"] + [Queue("root")], TOTAL)
    root = quotas["root"]
    assert root.real_capability.milli_cpu == root.real_capability.memory == INFINITE
    for what in ("guarantee", "deserved"):
        together = Resource()
        for child in root.children:
            together.add(getattr(quotas[child], what))
        assert getattr(root, what).milli_cpu == together.milli_cpu


def test_a_root_that_limits_one_thing_leaves_the_rest_open():
    """In the reference the rest is 0 then."""
    queues = [Queue("root", spec=QueueSpec(capability={"nvidia.com/gpu": "8"})), Queue("a")]
    assert tree(queues, TOTAL)["a"].real_capability.milli_cpu == INFINITE
    assert tree(queues, TOTAL, Reading(open_dimensions=False))["a"].real_capability.milli_cpu == 0


def test_names_of_device_classes_are_no_resources():
    names = ("deviceclass/gpu.example.com", "memory.deviceclass/gpu.example.com")
    assert [is_device_class(name) for name in (*names, "cpu", "example.com/deviceclass")] == [True, True, False, False]
    assert OURS.resource(dict.fromkeys(names, "1")).scalars is None
    assert Reading(device_scalars=True).resource({names[0]: "1"}).get(names[0]) == 1000

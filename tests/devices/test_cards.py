"""Cards that pods share: which shares fit, what is read of annotations, and what nodes are worth for them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from stromboli.model.resources.device_settings import DEFAULTS, Geometry, Instance, Models
from stromboli.model.spec import Container, NodeSpec, Resources
from stromboli.plugins.deviceshare.fragmentation import Fragmentation
from stromboli.plugins.deviceshare.gpushare import GpuShare
from stromboli.plugins.deviceshare.holdings import Holding, holdings
from stromboli.plugins.deviceshare.kind import CardUse, Need, amount, card_score, number, stated
from stromboli.plugins.deviceshare.mig import split
from stromboli.plugins.deviceshare.vgpu import Card, Demand, Piece, Share, VGpu, VGpuPool, group_of, matching
from stromboli.testing.builders import Manifest, pod
from stromboli.testing.builders import node as node_of
from tests.acceptance.bench import Bench, conf, task_of
from tests.cluster.objects import pod as made_pod

V = "volcano.sh/vgpu-"
REGISTER, IDS = "volcano.sh/node-vgpu-register", "volcano.sh/vgpu-ids-new"
OFFER: dict[str, Any] = {f"{V}number": 9, f"{V}memory": 9, f"{V}cores": 9}


def pool(*cards: str, policy: str = "", offer: dict[str, Any] = OFFER, **options: Any) -> VGpuPool | None:
    """Cards ``NAME,SHARES,MEMORY,TYPE,HEALTHY``."""
    register = ":".join(f"{card},hami-core" for card in cards)
    spec = NodeSpec("n", annotations={REGISTER: register}, allocatable=offer)
    return VGpu(policy, options.pop("rules", ()), **{"spread_scores": True, **options}).pool_of(spec)


def holding(name: str, ids: str = "", group: str = "", **more: Any) -> Any:
    """A pod that asks for a share, and holds what ``ids`` say."""
    notes = {IDS: ids, **({"scheduling.k8s.io/group-name": group} if group else {})}
    wanted = pod(name, annotations=notes, requests={f"{V}number": "1", f"{V}memory": "1"}, **more)
    return next(iter(Bench([node_of("n"), wanted]).state.tasks.values()))


@pytest.mark.parametrize(
    ("used", "share", "fits"),
    [
        ((0, 0, 0), Share(1, 1000, 100), True),
        ((0, 0, 0), Share(1, 1001, 0), False),
        ((400, 0, 1), Share(1, 600, 0), True),
        ((400, 0, 1), Share(1, 601, 0), False),
        ((0, 0, 1), Share(1, 1, 0), True),
        ((0, 0, 2), Share(1, 1, 0), False),
        ((0, 40, 1), Share(1, 1, 60), True),
        ((0, 41, 1), Share(1, 1, 60), False),
        ((0, 0, 1), Share(1, 1, 100), False),
        ((0, 0, 1), Share(1, 1, 99), True),
        ((0, 100, 1), Share(1, 1, 0), False),
        ((0, 99, 1), Share(1, 1, 0), True),
        ((500, 0, 1), Share(1, None, 0, 50), True),
        ((500, 0, 1), Share(1, None, 0, 51), False),
    ],
)
def test_when_a_card_has_room(used: tuple[int, int, int], share: Share, fits: bool) -> None:
    memory, cores, sharers = used
    card = Card("c", 0, 2, 1000, "T4", used_memory=memory, used_cores=cores, sharers=sharers)
    assert card.healthy
    assert card.has_room(share) is fits


@pytest.mark.parametrize(
    ("demand", "allowed"),
    [
        ({}, True),
        ({"uuids": ("c",)}, True),
        ({"uuids": ("d",)}, False),
        ({"uuids": ("c",), "other_uuids": ("c",)}, False),
        ({"other_uuids": ("d",)}, True),
        ({"types": ("t4",)}, True),
        ({"types": ("a100", "t4")}, True),
        ({"types": ("a100",)}, False),
        ({"other_types": ("t4",)}, False),
        ({"other_types": ("a100",)}, True),
        ({"types": ("t4",), "other_types": ("t4",)}, True),
        ({"apart_from": "default/g"}, False),
        ({"apart_from": "default/h"}, True),
        ({"rules": (1, 2)}, False),
        ({"rules": (2,)}, True),
    ],
)
def test_which_cards_a_pod_may_use(demand: dict[str, Any], allowed: bool) -> None:
    kind = VGpu("", ({"a": "1"}, {"b": "1"}, {"c": "1"}), spread_scores=True)
    card, holder = Card("c", 0, 2, 1000, "NVIDIA-T4"), kind.holder(holding("p", group="g", labels={"b": "1"}))
    card.take("u", holder, Piece("c", 100, 10, "c", 100))
    assert (card.used_memory, card.used_cores, card.sharers) == (100, 10, 1)
    assert card.allows(Demand((), **demand)) is allowed
    card.take("u", holder, Piece("c", 100, 10, "c", 100), -1)
    assert (card.used_memory, card.used_cores, card.sharers, card.holders) == (0, 0, 0, {})


def test_rules_hold_for_pods_with_all_of_their_labels() -> None:
    rules: tuple[dict[str, str], ...] = ({"a": "1"}, {}, {"a": "1", "b": "2"}, {"a": "2"})
    assert matching(rules, {"a": "1", "b": "2", "c": "3"}) == (0, 2)
    assert matching(rules, {}) == ()
    assert (group_of(holding("p", group="g")), group_of(holding("p"))) == ("default/g", "default/")


@pytest.mark.parametrize(
    ("policy", "order"), [("", ["c", "b", "a"]), ("binpack", ["b", "a", "c"]), ("spread", ["a", "c", "b"])]
)
def test_the_order_in_which_cards_are_tried(policy: str, order: list[str]) -> None:
    cards = [
        Card(name, at, 9, 100, "T", used_memory=10 * (name == "b"), sharers=name == "b")
        for at, name in enumerate("abc")
    ]
    assert [card.uuid for card in VGpu(policy, (), spread_scores=True).ordered(cards)] == order


@pytest.mark.parametrize(
    ("policy", "spread_scores", "sharers", "score"),
    [
        ("binpack", True, 1, 60),
        ("spread", True, 0, 100),
        ("spread", True, 1, 0),
        ("spread", False, 0, 0),
        ("", True, 0, 0),
    ],
)
def test_what_a_card_is_worth(policy: str, spread_scores: bool, sharers: int, score: float) -> None:
    card = Card("c", 0, 9, 1000, "T", used_memory=400, sharers=sharers)
    assert VGpu(policy, (), spread_scores=spread_scores).score_of(card, 200) == score
    assert card_score("binpack", 5, 0, 0) == 0


@pytest.mark.parametrize(
    ("offer", "is_offered"),
    [(OFFER, True), *(({**OFFER, name: 0}, False) for name in OFFER), *(({**OFFER, name: 1}, True) for name in OFFER)],
)
def test_a_node_must_offer_all_that_shares_are_made_of(offer: dict[str, Any], is_offered: bool) -> None:
    assert (pool("a,2,1000,T4,true", offer=offer) is not None) is is_offered


def test_two_containers_of_a_pod_do_not_get_the_same_room() -> None:
    found = pool("a,2,1000,T4,true", "b,2,1000,T4,true", policy="binpack")
    assert found is not None
    rows = [(600, 0, "ab"), (500, 0, "aa"), (100, 60, "ab"), (100, 50, "aa")]
    for memory, cores, cards in rows:
        pieces = found._pieces(Demand((Share(1, memory, cores),) * 2))
        assert pieces is not None
        assert "".join(piece.uuid for row in pieces for piece in row) == cards, (memory, cores)
    assert found._pieces(Demand((Share(1, 100, 0),) * 5)) is None, "each card has two shares"
    assert found.score(Demand((Share(1, 300, 0),) * 2)) == 30 + 60
    assert found.score(Demand((Share(3, 300, 0),))) == 0
    assert found.shortage(Demand((), mode="mig")) == (
        "pod required sharing mode mig is not the same as the node mode hami-core"
    )


def test_what_pods_hold_is_read_of_their_annotations_and_given_back() -> None:
    found = pool("a,2,1000,T4,true", "b,2,1000,T4,false")
    assert found is not None
    task = holding("p", "a,NVIDIA,300,20:b,NVIDIA,100,0:;gone,NVIDIA,1,1:a,NVIDIA,x,1:a,NVIDIA,1")
    found.restore(task)
    assert [(card.name, card.used, card.used_cores, card.free) for card in found.cards()] == [
        ("a", 300, 20, 700), ("b", 100, 0, 900)
    ]  # fmt: skip
    assert found.shortage(Demand((), uuids=("b",))) == (
        "free: a 700 of 1000 MB, 80 % of its cores, 1 of 2 shares (not allowed to this pod); "
        "b 900 of 1000 MB, 100 % of its cores, 1 of 2 shares (unhealthy)"
    )
    found.release(task)
    found.release(task)
    assert [(card.used, card.used_cores, card.is_full) for card in found.cards()] == [(0, 0, False)] * 2


def test_a_pod_that_asks_for_no_share_holds_none_whatever_it_says() -> None:
    found = pool("a,2,1000,T4,true")
    assert found is not None
    plain = pod("q", annotations={IDS: "a,NVIDIA,300,20:"})
    found.restore(next(iter(Bench([node_of("n"), plain]).state.tasks.values())))
    assert found.held == {}


SMALL = Geometry("small", (Instance("1g", 10, 3),))
MIXED = Geometry("mixed", (Instance("2g", 20, 1), Instance("1g", 10, 2)))


def halved(**options: bool) -> VGpu:
    """Nodes whose device plugin counts memory in units of 2 MB."""
    settings = replace(DEFAULTS.nvidia, gpu_memory_factor=2)
    return VGpu("", (), settings, spread_scores=True, **options)


def cut_card() -> Card:
    return Card("a", 0, 7, 20, "A100", geometries=(SMALL, MIXED))


def test_instances_of_a_card_are_taken_one_by_one_and_given_back() -> None:
    kind, card, share = halved(), cut_card(), Share(1, 4, 0)
    holder, pieces = kind.holder(holding("p")), list[Piece]()
    for position in range(3):
        piece = card.piece(share, kind)
        assert piece is not None
        assert (piece.slot, piece.memory, piece.booked) == (("small", position), 4, 5)
        card.take(f"u{position}", holder, piece)
        pieces.append(piece)
    assert card.piece(share, kind) is None
    assert (card.used_memory, card.slots) == (15, (("small", 0), ("small", 1), ("small", 2)))
    card.take("u1", holder, pieces[1], -1)
    assert (card.used_memory, card.slots) == (10, (("small", 0), ("small", 2)))
    assert card.piece(share, kind) == pieces[1]
    assert cut_card().piece(Share(1, 6, 0), kind) == Piece("a", 6, 0, "a[mixed-0]", 10)
    assert cut_card().piece(Share(1, 11, 0), kind) is None


@pytest.mark.parametrize(("same_slots", "names"), [(False, ["a[small-0]", "a[small-1]"]), (True, ["a[small-0]"] * 2)])
def test_containers_of_a_pod_get_instances_of_their_own(same_slots: bool, names: list[str]) -> None:
    """Not so in the reference."""
    found = VGpuPool("n", [cut_card()], "mig", halved(same_slots=same_slots))
    pieces = found._pieces(Demand((Share(1, 4, 0), Share(1, 4, 0))))
    assert pieces is not None
    assert [piece.name for row in pieces for piece in row] == names
    plain = halved()
    assert (plain.started_only, plain.same_slots) == (False, False)


def test_a_card_of_one_of_the_types_that_a_pod_avoids_is_not_for_it() -> None:
    card = Card("a", 0, 2, 1000, "NVIDIA-T4")
    assert not card.allows(Demand((), other_types=("a100", "t4")))
    assert card.allows(Demand((), other_types=("a100", "v100")))


@pytest.mark.parametrize(
    ("mode", "geometries", "is_cut"), [("mig", True, True), ("mig", False, False), ("hami-core", True, False)]
)
def test_cards_are_cut_where_their_mode_says_so_and_geometries_are_known(
    mode: str, geometries: bool, is_cut: bool
) -> None:
    known = (Models(("A100",), (SMALL,)),) if geometries else ()
    spec = NodeSpec("n", annotations={REGISTER: f"a,7,40,A100,true,{mode}"}, allocatable=OFFER)
    found = VGpu("", (), replace(DEFAULTS.nvidia, known_mig_geometries=known), spread_scores=True).pool_of(spec)
    assert found is not None
    assert bool(found.by_uuid["a"].geometries) is is_cut
    assert found.shortage(Demand((), mode="other")).endswith("mig" if is_cut else "hami-core")


def test_a_card_is_full_when_as_many_share_it_as_may() -> None:
    found = pool("a,1,1000,T4,true")
    assert found is not None
    found.restore(holding("p", "gone,NVIDIA,1,1:a,NVIDIA,300,20:"))
    assert [(card.used, card.is_full) for card in found.cards()] == [(300, True)]


@pytest.mark.parametrize(("cards", "are_read"), [(1024, True), (1025, False)])
def test_so_many_cards_of_a_node_are_read(cards: int, are_read: bool) -> None:
    assert (pool(*(f"{number},2,1000,T4,true" for number in range(cards))) is not None) is are_read


@pytest.mark.parametrize(
    ("memory", "number", "sizes"),
    [(16, 2, [8, 8]), (0, 2, None), (16, 0, None), (-1, 2, None), (1, 1, [1]), (5, 2, [2, 2])],
)
def test_gpus_of_a_node_are_of_equal_size(memory: int, number: int, sizes: list[int] | None) -> None:
    capacity: Any = {"volcano.sh/gpu-memory": memory, "volcano.sh/gpu-number": number}
    found = GpuShare(whole=False).pool_of(NodeSpec("n", capacity=capacity))
    assert (found and [card.memory for card in found.cards()]) == sizes


@pytest.mark.parametrize(("init", "asked"), [(None, 6), (5, 6), (7, 7)])
def test_an_init_container_may_ask_for_more_than_all_others(init: int | None, asked: int) -> None:
    name = "volcano.sh/gpu-memory"
    body = pod("p")
    rows = [{"name": f"c{number}", "resources": {"limits": {name: 3}, "requests": {name: 3}}} for number in range(2)]
    inits = [{"name": "i", "resources": {"limits": {name: init}, "requests": {name: init}}}] if init else []
    body["spec"] |= {"containers": rows, "initContainers": inits}
    [task] = Bench([body]).state.tasks.values()
    found = GpuShare(whole=False).demand_of(task)
    assert found is not None
    assert found.memory == asked


def test_amounts_and_numbers_that_are_read() -> None:
    row = Container(resources=Resources(requests={"a": 1, "b": 2}, limits={"a": 3}))
    assert [stated(row, name) for name in "abc"] == [3, 2, 0]
    assert amount({"a": "x"}, "a") == 0
    assert [number(text) for text in ("9" * 11, "9" * 12, "", "x", "-1", "\u0663")] == [99999999999, *[None] * 5]


@pytest.mark.parametrize(
    ("name", "found"),
    [("a[small-1]", ("a", "small", 1)), ("a", None), ("a[-1]", None), ("a[small-x]", None), ("a[small", None)],
)
def test_names_of_instances(name: str, found: tuple[str, str, int] | None) -> None:
    assert split(name) == found


def test_instances_that_pods_hold_are_read_of_their_annotations() -> None:
    found, task = (
        VGpuPool("n", [cut_card()], "mig", halved()),
        holding("p", "a[small-1],NVIDIA,4,0:a[mixed-9],NVIDIA,3,0:"),
    )
    before = found._pieces(Demand((Share(1, 4, 0),)))
    found.restore(task)
    card = found.by_uuid["a"]
    assert (card.used_memory, card.slots, card.sharers) == (8, (("small", 1), ("mixed", 9)), 2)
    found.release(task)
    assert (card.used_memory, card.slots, card.sharers) == (0, (), 0)
    assert found._pieces(Demand((Share(1, 4, 0),))) == before


@pytest.mark.parametrize(
    ("notes", "apart_from"),
    [
        ({}, ""),
        ({"volcano.sh/vgpu-podgroup-policy": "spread"}, "default/g"),
        ({"volcano.sh/vgpu-group-policy": "x"}, ""),
    ],
)
def test_pods_of_a_group_that_is_spread_keep_apart(notes: dict[str, str], apart_from: str) -> None:
    task = holding("p", group="g")
    task.annotations = {**task.annotations, **notes}
    demand = VGpu("", (), spread_scores=True).demand_of(task)
    assert demand is not None
    assert demand.apart_from == apart_from


@pytest.mark.parametrize(
    ("card", "free"),
    [
        (CardUse("c", "t", 1000, 400), 600),
        (CardUse("c", "t", 1000, 1400), 0),
        (CardUse("c", "t", 1000, 400, 100, 50), 500),
        (CardUse("c", "t", 1000, 400, 100, 10), 600),
        (CardUse("c", "t", 0, 0), 1000),
        (CardUse("c", "t", 0, 0, 100, 30), 700),
        (CardUse("c", "t", 1000, 0, 0, 0, True), 0),
        (CardUse("c", "t", 1000, 0, 100, 120), 0),
    ],
)
def test_how_much_of_a_card_is_free(card: CardUse, free: int) -> None:
    assert card.free == free


@pytest.mark.parametrize(
    ("need", "size", "share"),
    [
        (Need(1, 500), 1000, 500),
        (Need(1, 1), 3000, 1),
        (Need(1, 4), 3000, 2),
        (Need(1, 1001), 1000, 1001),
        (Need(1, 5000), 1000, 1001),
        (Need(1, 1), 0, 1000),
        (Need(1, None), 1000, 1000),
        (Need(1, None, 0, 25), 1000, 250),
        (Need(1, 100, 30), 1000, 300),
        (Need(1, 400, 30), 1000, 400),
    ],
)
def test_which_part_of_a_card_a_pod_needs(need: Need, size: int, share: int) -> None:
    assert need.share(size) == share


@pytest.mark.parametrize(
    ("shares", "need"),
    [
        ((Share(1, 100, 20), Share(2, 300, 10)), Need(3, 300, 20, 100)),
        ((Share(1, None, 0, 40), Share(1, None, 5, 60)), Need(2, None, 5, 60)),
        ((Share(1, None, 0, 40), Share(1, 200, 0)), Need(2, 200, 0, 100)),
    ],
)
def test_the_measure_of_a_demand(shares: tuple[Share, ...], need: Need) -> None:
    assert VGpu("", (), spread_scores=True).need(Demand(shares)) == need


@pytest.mark.parametrize(
    ("notes", "found"),
    [
        ({}, []),
        ({IDS: "a,NVIDIA,300,20:b,NVIDIA,x:;,T,1,1:"}, [Holding("a", 300, 20), Holding("b")]),
        ({"other-devices-allocated": "a,T,1,1"}, []),
        ({"other-devices-to-allocate": "a,T,1,1"}, []),
        ({"hami.io/vgpu-node": "n,T,1,1"}, []),
        ({"hami.io/b-devices-allocated": "d,A,5,0:", "hami.io/a-devices-allocated": "e,A,5,0:"},
         [Holding("e", 5), Holding("d", 5)]),
        ({"volcano.sh/gpu-index": "0,2"}, [Holding("GPU 0", 7), Holding("GPU 2", 7)]),
        ({"hami.io/Ascend310P-devices-allocated": "d,A,5,0:"}, [Holding("d", 5)]),
        ({"hami.io/Ascend310P-devices-to-allocate": "d,A,5,0:"}, [Holding("d", 5)]),
        ({"hami.io/Ascend310P-devices-to-allocate": "d,A,5,0:", "hami.io/Ascend310P-devices-allocated": "e,A,5,0:"},
         [Holding("e", 5)]),
    ],
)  # fmt: skip
def test_what_annotations_say_that_a_pod_holds(notes: dict[str, str], found: list[Holding]) -> None:
    asks = made_pod(requests={"volcano.sh/gpu-memory": 7}).spec
    assert list(holdings(notes, asks)) == found


def gpus(name: str, cards: int, cpu: int = 10) -> Manifest:
    offer = {f"{V}number": 10 * cards, f"{V}memory": 1000 * cards, f"{V}cores": 100 * cards}
    register = "".join(f"{name}-{i},10,1000,T4,true,hami-core:" for i in range(cards))
    return node_of(name, cpu=cpu, memory="64Gi", resources=offer, annotations={REGISTER: register})


@pytest.mark.parametrize(
    ("arguments", "scores"),
    [
        ({"policy": "best-fit"}, [17, 88, 67]),
        ({"policy": "best-fit", "weight": 3}, [51, 264, 201]),
        ({}, [50, 47, 50]),
    ],
)
def test_what_nodes_are_worth_by_what_is_left_of_their_cards(arguments: dict[str, Any], scores: list[float]) -> None:
    """The pod takes a core and half a card; of b one core is left, and a quarter of the only card."""
    given = ", ".join(f"fragmentation.{key}: {value}" for key, value in arguments.items())
    share = "{name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack}}"
    asks = {f"{V}number": "1", f"{V}memory": "500"}
    used = pod("used", on="b", cpu=8, requests={**asks, f"{V}memory": "250"}, annotations={IDS: "b-0,NVIDIA,250,0:"})
    objects = [gpus("a", 2), gpus("b", 1), gpus("c", 1, cpu=5), used, pod("p", group="p", cpu=1, requests=asks)]
    text = conf("gang", f"[{{name: predicates}}, {share}, {{name: fragmentation, arguments: {{{given}}}}}]")
    with Bench(objects, text).open() as session:
        plugin, task = session.plugins["fragmentation"], task_of(session, "p")
        assert isinstance(plugin, Fragmentation)
        list(plugin.hooks())
        before = plugin.score(task, session.table.view()).tolist()
        assert before == scores
        with session.statement() as trial:
            trial.pipeline(task, "b")
            assert plugin.score(task, session.table.view()).tolist() != before
        assert plugin.score(task, session.table.view()).tolist() == before


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"fragmentation.typical": 1}, ""),
        ({"fragmentation.typical": 100}, ""),
        ({"fragmentation.typical": 0}, "0 is no percentage from 1 to 100"),
        ({"fragmentation.typical": 101}, "101 is no percentage from 1 to 100"),
        ({"fragmentation.policy": "best-fit"}, ""),
        ({"fragmentation.policy": "x"}, "unknown policy x; known are gradient and best-fit"),
    ],
)
def test_arguments_of_fragmentation(arguments: dict[str, Any], problem: str) -> None:
    assert [problem in str(one) for one in Fragmentation(arguments).complaints] == ([True] if problem else [])

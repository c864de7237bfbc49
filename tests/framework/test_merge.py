"""How answers merge: the strategies' rules, one row a rule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.framework.extension.merge import (
    Agree,
    All,
    AnyOf,
    FirstAnswer,
    FirstOpinion,
    Only,
    Sum,
    SumByName,
    Tell,
    Union,
    Vote,
)


@dataclass(frozen=True)
class Item:
    uid: str


def items(uids):
    return [Item(uid) for uid in uids]


def uids(tasks):
    return "".join(task.uid for task in tasks)


def saying(tiers, make=lambda answer: answer):
    """A chain whose functions say what the table holds, whatever they are asked."""
    return tuple(tuple(lambda *_args, answer=answer: make(answer) for answer in tier) for tier in tiers)


@pytest.mark.parametrize(
    ("tiers", "tie", "expected"),
    [
        pytest.param([[-1], [1]], 1, -1, id="S0-26 the first tier overrides the second"),
        pytest.param([[0, 1], [-1]], -1, 1, id="S0-26 zero passes on within the tier"),
        pytest.param([[0], [-1]], 1, -1, id="S0-26 zero passes on to the next tier"),
        pytest.param([[0, 0], [0]], -1, -1, id="S0-27 all zero: the tie-breaker"),
        pytest.param([], 1, 1, id="S0-27 no plugin asked: the tie-breaker"),
    ],
)
def test_first_opinion(tiers, tie, expected):
    merge = FirstOpinion(tie=lambda _left, _right: tie)
    assert merge.compile(saying(tiers))("left", "right") == expected


def test_opinion_leaves_the_tie_breaker_out():
    merge = FirstOpinion(tie=lambda _left, _right: -1)
    assert merge.opinion(saying([[0], [0]]))("left", "right") == 0
    assert merge.opinion(saying([[0], [2]]))("left", "right") == 2


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers()), max_size=12))
def test_comparing_keys_equals_the_comparison(rows):
    def by(index):
        return lambda left, right: (left[index] > right[index]) - (left[index] < right[index])

    merge = FirstOpinion(tie=by(2), tie_key=lambda row: row[2])
    compare = merge.compile(((by(0),), (by(1),)))
    key = merge.compile_key([lambda row: row[0], lambda row: row[1]])
    assert sorted(rows, key=key) == sorted(rows, key=cmp_to_key(compare))


def test_no_key_form_where_the_tie_breaker_has_none():
    assert FirstOpinion(tie=lambda _left, _right: 1).compile_key([]) is None


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        pytest.param([[1, 0, -1]], False, id="S0-28 a reject wins over a permit of its tier"),
        pytest.param([[0, -1], [1]], False, id="S0-28 a reject after abstentions wins at once"),
        pytest.param([[1], [-1]], True, id="S0-29 a permit makes lower tiers irrelevant"),
        pytest.param([[0], [1], [-1]], True, id="S0-29 an abstaining tier passes on"),
        pytest.param([[0, 0], [0]], True, id="S0-29 only abstentions"),
        pytest.param([], True, id="S0-29 no plugin asked"),
    ],
)
def test_vote(tiers, expected):
    assert Vote().compile(saying(tiers))("job") is expected


def named(tiers):
    return saying(tiers, lambda answer: None if answer is None else items(answer))


AGREE = [
    pytest.param([["123", "234"]], "23", "23", id="S0-30 intersection within a tier"),
    pytest.param([["321", "123"]], "321", "321", id="S0-30 order of the first voter"),
    pytest.param([["12"], ["3"]], "12", "12", id="S0-30 the first tier with a result ends"),
    pytest.param([[None, "12"]], "12", "12", id="S0-30 None abstains"),
    pytest.param([[None], ["1"]], "1", "1", id="S0-30 a tier of abstentions passes on"),
    pytest.param([[""], ["1"]], "1", "1", id="S0-31 an empty list ends its tier, the next is asked"),
    pytest.param([["12", "", "2"], ["3"]], "3", "3", id="S0-31 an empty list ends its tier at once"),
    pytest.param([["1", "2", "12"]], "", "12", id="S0-32 empty intersection: none; the reference starts afresh"),
    pytest.param([["1", "2", "12"], ["3"]], "3", "12", id="S0-32 empty intersection: the next tier is asked"),
    pytest.param([["1", "2"], ["3"]], "3", "3", id="S0-32 empty intersection at the tier's end"),
    pytest.param([[None, None]], "", "", id="no plugin votes"),
    pytest.param([], "", "", id="no plugin asked"),
]


@pytest.mark.parametrize(("tiers", "ours", "reference"), AGREE)
def test_agree(tiers, ours, reference):
    assert uids(Agree().compile(named(tiers))("actor", items("1234"))) == ours
    assert uids(Agree(restart=True).compile(named(tiers))("actor", items("1234"))) == reference


def test_agree_shows_every_plugin_the_full_list():
    seen = []

    def first(_actor, candidates):
        seen.append(uids(candidates))
        return candidates[:1]

    Agree().compile(((first, first), (first,)))("actor", items("123"))
    assert seen == ["123", "123"]


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        pytest.param("24", "2", id="the refusal holds for a tier that never asked the guard"),
        pytest.param(None, "12", id="an abstaining guard spares no candidate"),
        pytest.param("", "", id="a guard that refuses every candidate ends the question"),
        pytest.param("9", "", id="a guard cannot add candidates"),
    ],
)
def test_agree_takes_the_guarded_out_first(guard, expected):
    def low(_actor, candidates):
        return [task for task in candidates if task.uid in "12"]

    (guards,) = named([[guard]])
    assert uids(Agree().compile(((low,),), guards)("actor", items("1234"))) == expected


def first_ones(most, of):
    """A guard, or a voter, that permits the first ``most`` of the candidates ``of``, and all others."""

    def answer(*asked):
        counted = [task for task in asked[-1] if task.uid in of]
        return [task for task in asked[-1] if task not in counted[most:]]

    return answer


@pytest.mark.parametrize(
    ("voters", "guards", "expected"),
    [
        pytest.param([first_ones(0, "ab")], [(1, "abcd")], "c", id="nothing is kept for a pod that voters spare"),
        pytest.param([first_ones(2, "abc")], [(1, "ab")], "acd", id="a refused pod leaves its place to another"),
        pytest.param([first_ones(1, "ab")], [(1, "bcd"), (0, "b")], "ac", id="nothing is kept for what another guards"),
        pytest.param([], [(1, "ab"), (1, "bc")], "acd", id="what a guard refuses costs another nothing"),
        pytest.param([first_ones(0, "abcd")], [(1, "ab")], "", id="no pod is named"),
    ],
)
def test_guards_count_only_named_victims(voters, guards, expected):
    made = [first_ones(most, of) for most, of in guards]
    assert uids(Agree().compile(((*made, *voters),), made)("actor", items("abcd"))) == expected


def test_a_guard_that_abstains_does_not_vote():
    def silent(_actor, _candidates):
        return None

    def low(_actor, candidates):
        return candidates[:1]

    assert uids(Agree().compile(((silent,), (low,)), [silent])("actor", items("ab"))) == "a"
    both = first_ones(2, "ab")
    assert uids(Agree().compile(((both,), (low,)), [both])("actor", items("ab"))) == "ab"


def test_the_next_tier_is_asked_where_guards_refuse_all_that_a_tier_of_a_union_names():
    chain = ((lambda _tasks: items("a"),), (lambda _tasks: items("ab"),))
    assert uids(Union().compile(chain, [first_ones(0, "a")])(items("ab"))) == "b"


@given(st.lists(st.lists(st.none() | st.text("abcd", max_size=4).map(set).map(sorted), max_size=4), max_size=3))
def test_victims_are_named_by_every_voter_of_one_tier(tiers):
    victims = uids(Agree().compile(named(tiers))("actor", items("abcd")))
    deciding = [[answer for answer in tier if answer is not None] for tier in tiers]
    assert not victims or any(all(set(victims) <= set(answer) for answer in tier) for tier in deciding if tier)


@pytest.mark.parametrize(
    ("merge", "tiers", "expected"),
    [
        pytest.param(All(), [[True], [False]], False, id="all: a no of any tier"),
        pytest.param(All(), [[True], [True]], True, id="all: only yes"),
        pytest.param(All(), [], True, id="all: no plugin asked"),
        pytest.param(All(silent=False, by_tier=True), [[], [True], [False]], True, id="first tier with a function"),
        pytest.param(All(silent=False, by_tier=True), [[True, False], [True]], False, id="all of that tier"),
        pytest.param(All(silent=False, by_tier=True), [[], []], False, id="no function anywhere"),
        pytest.param(AnyOf(), [[False], [True]], True, id="any: one yes"),
        pytest.param(AnyOf(), [[False]], False, id="any: only no"),
        pytest.param(AnyOf(), [], False, id="any: no plugin asked"),
        pytest.param(FirstAnswer(), [[None, "no"], ["never"]], "no", id="the first answer"),
        pytest.param(FirstAnswer(), [[None], [None]], None, id="no answer"),
        pytest.param(Only(lambda *_args: "silent"), [[], [None], ["b"]], None, id="only: the first that has the point"),
        pytest.param(Only(lambda *_args: "silent"), [[], []], "silent", id="only: no plugin asked"),
        pytest.param(Sum(), [[10], [20.5]], 30.5, id="sum over all tiers"),
        pytest.param(Sum(), [], 0.0, id="sum of nothing"),
        pytest.param(SumByName(), [[{"a": 1}], [{"b": 2, "a": 3}]], {"a": 4, "b": 2}, id="sum by name"),
        pytest.param(Tell(), [["dropped"]], None, id="no answer counts"),
    ],
)
def test_other_strategies(merge, tiers, expected):
    answer = merge.compile(saying(tiers))("asked")
    assert answer == expected
    assert type(answer) is type(expected)


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        pytest.param([["12", "23"], ["4"]], "123", id="joined within the first tier that names a candidate"),
        pytest.param([["", ""], ["4", "4"]], "4", id="an empty tier passes on"),
        pytest.param([[""]], "", id="no candidate"),
    ],
)
def test_union(tiers, expected):
    assert uids(Union().compile(saying(tiers, items))("tasks")) == expected


def test_an_exception_stops_the_sum():
    def broken(*_args):
        raise ValueError("no score")

    with pytest.raises(ValueError, match="no score"):
        Sum().compile(((lambda *_args: 1.0, broken),))("task", "node")


def test_all_and_any_stop_at_the_decision():
    asked = []

    def answers(value):
        def answer(*_args):
            asked.append(value)
            return value

        return answer

    All().compile(((answers(False), answers(True)),))("x")
    AnyOf().compile(((answers(True), answers(False)),))("x")
    assert asked == [False, True]


def test_all_handlers_are_called_in_order():
    told = []
    Tell().compile(((told.append,), (lambda event: told.append(event * 2),)))(3)
    assert told == [3, 6]


def test_guards_of_a_union_name_no_victims_and_permit_what_they_like():
    shown = []

    def guard(named):
        shown.append(uids(named))
        return [item for item in named if item.uid != "b"]

    def namer(letters):
        return lambda _candidates: items(letters)

    ask = Union().compile(((guard, namer("bc")), (namer("d"),)), [guard])
    assert uids(ask(items("abcd"))) == "c"
    assert uids(Union().compile(((guard,), (namer("bd"),)), [guard])(items("abcd"))) == "d"
    assert uids(Union().compile(((guard,),), [guard])(items("abcd"))) == ""
    # all together, then the refused one alone; and each one that is named besides
    assert shown[:2] == ["abcd", "b"]

"""Expressions in CEL: what is read from their text, what they may cost, and what their functions say."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cel import CelError, Program, program, unsupported
from stromboli.cel.cost import growth, products, reads
from stromboli.cel.functions import LONGEST_TEXT, MOST_PARTS

KNOWN = frozenset({"object", "variables"})


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param("object.a == 1", 0, id="no list"),
        pytest.param("object.a.all(x, x > 0)", 1, id="one"),
        pytest.param("object.a.all(x, x > 0) && object.b.all(y, y > 0)", 1, id="one after the other"),
        pytest.param("object.a.all(x, object.a.all(y, x != y))", 2, id="pairs"),
        pytest.param("object.a.all(x, x.all(y, y.all(z, z > 0)))", 1, id="parts of parts"),
        pytest.param("object.a.all(x, x.b.all(y, object.a.exists(z, z == y)))", 2, id="parts, and all again"),
        pytest.param("object.a.all(x, x.all(y, x.all(z, y != z)))", 2, id="pairs of parts"),
        pytest.param("object.a.all(x, (has(x.b) ? x.b : []).all(y, y > 0))", 1, id="parts in brackets"),
        pytest.param("object.a.all(x, object.b.all(y, object.c.all(z, x + y + z > 0)))", 3, id="triples"),
        pytest.param("object.a.filter(x, x > 0).map(x, x + 1)", 1, id="in a row"),
        pytest.param("object.s == '.all(x, .all(y, '", 0, id="in a text"),
        pytest.param("object.a.all(x, xs.all(y, y > 0))", 2, id="a name that begins alike"),
        pytest.param("object.a. all(x, object.b. all(y, x != y))", 2, id="blanks"),
        pytest.param("object.a.all(x, object.t[x.k].exists(y, y == x))", 2, id="what an entry points at"),
        pytest.param("object.a.all(x, (x > 0 ? object.b : []).all(y, y > 0))", 2, id="another list in brackets"),
        pytest.param("object.a.all(x, // don't\n object.b.all(y, x != y))", 2, id="a comment"),
    ],
)
def test_products_of_lists(text: str, count: int) -> None:
    assert products(text) == count


def test_names_and_functions_of_an_expression() -> None:
    found = program(
        "object.a[0].name.foo() && bar(1) && variables.v.all(x, x == 'y(z)') && has(q.r) && {'k': w}.k == null // no"
    )
    assert found.called == {"foo", "bar"}
    assert found.names == {"object", "variables", "q", "w"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("object.a == 1", ""),
        ("object.metadata.annotations.exists(k, k == 'authorizer')", ""),
        ("string(object.a) + 'x' == 'format(1)'", ""),
        ("type(object.a) == int", ""),
        ("authorizer.group('')", "authorizer"),
        ("object.s.format([1])", "format"),
        ("isURL(object.s)", "isURL"),
        ("sets.contains([1], [1])", "sets"),
        ("object.?a.orValue(1) == 1", "unsupported syntax"),
        ("object.a ==", ""),
        ("object.a == 1 // don't ask the authorizer.x()", ""),
        ("b'a' == b'a' && object. a > 0", ""),
        ("timestamp(object.t).getFullYear() > 2000", ""),
    ],
)
def test_what_is_not_supported(text: str, what: str) -> None:
    told = unsupported(text, KNOWN)
    assert bool(told) == bool(what)
    assert what in told


def test_a_mistake_is_a_problem_and_no_want() -> None:
    assert program("object.a ==").problem.startswith("CEL compile error")
    assert not program("object.a ==").is_unsupported
    assert program("object.?a").is_unsupported


@pytest.mark.parametrize(
    ("text", "given", "value"),
    [
        ("'a,b,c'.split(',', 2)", {}, ["a", "b,c"]),
        ("'hello'.split('', 2)", {}, ["h", "ello"]),
        ("'ab'.split('')", {}, ["a", "b"]),
        ("'ab'.split('', 0)", {}, []),
        ("['a', 'b'].join('-')", {}, "a-b"),
        ("'aXbX'.replace('X', '-', 1)", {}, "a-bX"),
        ("'hello'.substring(1, 3)", {}, "el"),
        ("'hello'.charAt(1)", {}, "e"),
        ("'hello'.charAt(5)", {}, ""),
        ("'hello'.lastIndexOf('l') + [1, 2, 1].lastIndexOf(1)", {}, 5),
        ("'hello'.indexOf('x') + [1, 2].indexOf(2)", {}, 0),
        ("'\u00c4B'.lowerAscii()", {}, "\u00c4b"),
        ("[3, 1].max() + [3, 1].min() + [3, 1].sum()", {}, 8),
        ("[1, 2].isSorted() && ![2, 1].isSorted()", {}, True),
        ("' a '.trim() + 'ab'.reverse()", {}, "aba"),
    ],
)
def test_functions(text: str, given: dict[str, Any], value: object) -> None:
    assert program(text).value(given) == value


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("a.all(x, x in a)", {"a": [1] * 1500}),
        ("a.all(x, x < most)", {"a": [1] * 12_000, "most": 5}),
        ("a.all(x, x.startsWith(b))", {"a": ["ab"] * 12_000, "b": "a"}),
        ("a.map(x, x + 1).all(x, x == 2)", {"a": [1] * 5_000}),
        ("a.all(x, x.n + 1 < 10)", {"a": [{"n": 1}] * 5_000, "text": "x" * (1 << 18)}),
        ("s + '-x' != ''", {"s": "x" * 1_000_000}),
    ],
)
def test_what_rules_do_with_large_objects_is_cheap_enough(text: str, given: dict[str, Any]) -> None:
    assert program(text).bounded(given) is True


@pytest.mark.parametrize(
    ("text", "given", "why"),
    [
        ("'hello'.substring(3, 9)", {}, "is no part"),
        ("s.split('')", {"s": "x" * (MOST_PARTS + 1)}, "more than 2000"),
        ("s.replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa')", {"s": "a" * (LONGEST_TEXT // 50)}, "characters"),
        ("[s, s].join('')", {"s": "a" * (LONGEST_TEXT // 2 + 1)}, "characters"),
        ("a.all(x, a.all(y, x + y > 0))", {"a": [1] * 2001}, "cost budget"),
        ("s.split('').all(x, s.split('').all(y, s.split('').all(z, true)))", {"s": "abc"}, "cost budget"),
        ("a.b", {"a": {}}, "no such key: b"),
        ("a.all(x, x in a)", {"a": [1] * 3000}, "cost budget"),
        ("a.all(x, a[0] == x)", {"a": [1] * 3000}, "cost budget"),
        ("a.all(x, s.contains('y'))", {"a": [1] * 3000, "s": "x" * 1_000_000}, "cost budget"),
        (" + ".join(["s"] * 300), {"s": "x" * 1_000_000}, "copy more"),
        (f"a.all(x, {' + '.join(['x'] * 200)} != '')", {"a": ["x" * 600_000]}, "copy more"),
        ("a.map(x, a).size() > 0", {"a": [1] * 500}, "cost budget"),
        ("a.filter(x, x > 0).size() > 0", {"a": [1] * 12_000}, "cost budget"),
        ("a.filter(x, true).size() > 0", {"a": [{"b": [1] * 50}] * 2_000}, "cost budget"),
        ("a.all(x, s + 'y' != '')", {"a": [1] * 3000, "s": "x" * 1_000_000}, "cost budget"),
        ("[1]" + ".map(x, [x, x])" * 30, {}, "cost budget"),
        ("s + s", {"s": "x" * LONGEST_TEXT}, "a text of"),
        ("a + a", {"a": [1] * 150_000}, "values are made"),
    ],
)
def test_what_would_cost_too_much_is_refused(text: str, given: dict[str, Any], why: str) -> None:
    with pytest.raises(CelError, match=why):
        program(text).bounded(given)


def test_what_devices_are_selected_by_makes_short_texts() -> None:
    """Tenants write such expressions, and a chain of replacements grows tenfold with each link."""
    assert Program("'a-b'.replace('-', '') == 'ab' && 'abc'.indexOf('c') == 2").value({})
    with pytest.raises(CelError, match="1000 characters is made, more than 256"):
        Program("'a'.replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa') == ''").value({})


NUMBERS = f"[{', '.join(map(str, range(300)))}]"


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        pytest.param("'a'.split('').all(x, 'a'.split('').all(y, x == y))", False, id="parts of parts"),
        pytest.param("'a'.split('').all(x, 'a'.split('').size() > 0)", False, id="split for each part"),
        pytest.param(f"{NUMBERS}.map(x, {NUMBERS}).size() > 0", False, id="a list for each entry"),
        pytest.param(f"{NUMBERS}.filter(x, x > 0).size() > 0", False, id="a list that is copied at each step"),
        pytest.param(rf"r'\' != '' && {NUMBERS}.map(x, {NUMBERS}).size() > 0 && '' == ''", False, id="raw text"),
        pytest.param("'a'.split('').all(x, x == 'a')", True, id="parts"),
        pytest.param(f"{NUMBERS}.exists(x, x == 3)", True, id="a walk"),
        pytest.param("['a', 'b'].exists(x, x in ['b', 'c'])", True, id="short lists"),
        pytest.param("['a', 'b'].map(x, x + 'c').exists(x, x == 'bc')", True, id="a short list made"),
    ],
)
def test_what_selectors_of_devices_may_cost(text: str, fine: bool) -> None:
    """Each is asked about each device: a few milliseconds are too many."""
    found = Program(text)
    assert found.value({}) is True if fine else "steps over lists" in found.problem


@pytest.mark.parametrize(
    ("text", "read"),
    [
        pytest.param("self.l.all(x, x in self.m.n)", {(1, ("self", "m", "n"))}, id="a list from outside"),
        pytest.param("self.l.all(x, x > 0)", set(), id="the entry itself"),
        pytest.param("self.l.all(x, x in [1, 2])", set(), id="constants"),
        pytest.param("self.l.all(x, self.m[0] == x)", {(1, ())}, id="an index"),
        pytest.param("self.l.all(x, self.m.all(y, y != x))", {(2, ()), (1, ("self", "m"))}, id="the entry around"),
        pytest.param("self.l.all(x, size(self.m) > x)", {(1, ("self", "m"))}, id="in a call"),
        pytest.param("size(self.m) > 0 && self.l.all(x, x > 0)", set(), id="outside"),
        pytest.param("self.l.all(x, self.m.contains(x))", {(1, ("self", "m"))}, id="called"),
    ],
)
def test_what_is_read_within_walks(text: str, read: set[tuple[int, tuple[str, ...]]]) -> None:
    assert {tuple(one) for one in reads(text)} == read


@pytest.mark.parametrize(
    ("text", "times"),
    [("a.map(x, x)", 1), ("a.map(x, x + x)", 2), ("a.map(x, [x, x, x]).map(x, x + x)", 6), ("a.all(x, x + x > 0)", 1)],
)
def test_how_much_maps_make(text: str, times: int) -> None:
    assert growth(text) == times

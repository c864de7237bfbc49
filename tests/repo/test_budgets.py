"""The budgets script finds what exceeds a budget, and only that."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools import budgets
from tools.allowances import FILE, MOST, Allowances
from tools.budgets import main
from tools.functions import functions
from tools.sizes import read_sources

FUNCTION = "def f():\n"


def value(number: int) -> str:
    """Spell an expression whose shape differs from that of every other number."""
    return f"{number:b}".replace("0", "-").replace("1", "+") + "1"


def lines(count: int) -> str:
    return FUNCTION + "".join(f"    x = {value(number)}\n" for number in range(count))


def branches(count: int) -> str:
    return "def f(x):\n" + "".join(f"    if x:\n        x = {value(number)}\n" for number in range(count))


def attributes(count: int) -> str:
    return "class C:\n" + "".join(f"    x{number} = {value(number)}\n" for number in range(count))


def small_functions(count: int) -> str:
    return "".join(f"def small{number}():\n    return {value(number)}\n" for number in range(count))


def rows(count: int) -> str:
    return "".join(f"x = {value(number)}\n" for number in range(count))


NEEDLESS = "needs its exception no longer"
CODE = "".join(f"    x{number} = call(x{number})\n" for number in range(9))
TWICE = f"def f():\n{CODE}def g():\n{CODE}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    return tmp_path


def put(project: Path, path: str, text: str) -> None:
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    (project / path).write_text(text)


def allow(project: Path, limit: str, values: dict[str, int], reason: str = "one table") -> None:
    """Write a list with exceptions from one limit; places under src/stromboli are spelled without it."""
    places = (f'"src/stromboli/{place}" = {value}\n' for place, value in values.items())
    text = f'[[exception]]\nlimit = "{limit}"\nreason = "{reason}"\n[exception.values]\n'
    put(project, FILE, text + "".join(places))


def breaches(project: Path) -> list[str]:
    return budgets.breaches(read_sources(project, budgets.TREES), Allowances.read(project))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    return 1", 1),
        ('    """One.\n\n    Two.\n    """\n    return 1', 1),
        ('    """One."""', 0),
        ("    x = 1\n\n    # why\n    return x", 4),
        ("    rows = [\n        1,\n        2,\n    ]\n    return rows", 2),
        ("    return {\n        'a': (1, -2),\n        'b': [\n            x.y,\n        ],\n    }", 1),
        ("    return [\n        g(1),\n        2,\n    ]", 4),
        ('    def g():\n        """One.\n\n        Two.\n        """\n        return 1\n    return g', 3),
    ],
)
def test_docstrings_and_rows_of_tables_do_not_count(body: str, expected: int) -> None:
    assert next(functions(ast.parse(FUNCTION + body))).lines == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    return 1", 1),
        ("    if a:\n        b\n    elif c:\n        d\n    else:\n        e", 3),
        ("    for a in b:\n        while c:\n            d", 3),
        ("    try:\n        a\n    except B:\n        c\n    except D:\n        e", 3),
        ("    match a:\n     case 1:\n         b\n     case 2:\n         c\n     case _:\n         d", 3),
        ("    def g():\n        if a:\n            b\n    return g", 3),
    ],
)
def test_complexity_counts_the_ways_through_a_function(body: str, expected: int) -> None:
    assert next(functions(ast.parse(FUNCTION + body))).complexity == expected


def test_methods_and_nested_functions_bear_their_owners_names() -> None:
    tree = ast.parse("class A:\n    def b(self):\n        def c():\n            return 1\n        return c\n")
    assert [function.name for function in functions(tree)] == ["A.b", "A.b.c"]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "src/stromboli/a.py",
            small_functions(1) + lines(61),
            "src/stromboli/a.py:3: f: function lines 61, at most 60",
        ),
        ("tests/test_a.py", lines(61), "tests/test_a.py:1: f: function lines 61, at most 60"),
        (
            "src/stromboli/a.py",
            branches(12) + small_functions(9),
            "src/stromboli/a.py:1: f: complexity 13, at most 12",
        ),
        ("src/stromboli/a.py", attributes(41), "src/stromboli/a.py: C: public names a class 41, at most 40"),
        ("src/stromboli/a.py", TWICE, "src: near-duplicates in a thousand lines 1000, at most 20"),
        ("src/stromboli/a.py", rows(401), "src/stromboli/a.py:1: file lines 401, at most 400"),
        ("tests/test_a.py", rows(601), "tests/test_a.py:1: file lines 601, at most 600"),
        ("src/stromboli/a.py", lines(7), "src: the median function has 7 lines, at most 6"),
        (
            "src/stromboli/a.py",
            lines(26) * 2 + small_functions(8),
            "src: every tenth function has more than 25 lines, at most 25",
        ),
        ("src/stromboli/model/utils.py", "", "the name 'utils' says nothing"),
        ("tests/helpers/test_a.py", "", "the name 'helpers' says nothing"),
    ],
)
def test_what_exceeds_a_budget_is_named(project: Path, path: str, text: str, expected: str) -> None:
    put(project, path, text)
    assert any(expected in line for line in breaches(project)), breaches(project)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/stromboli/a.py", lines(60) + branches(11) + small_functions(20)),
        ("src/stromboli/a.py", attributes(40)),
        ("tests/test_a.py", TWICE + attributes(41) + branches(20)),
        ("src/stromboli/a.py", rows(400)),
        ("tests/test_a.py", rows(600)),
        ("tests/test_a.py", lines(30)),
        ("src/stromboli/a.py", lines(6)),
    ],
)
def test_what_keeps_its_budget_passes(project: Path, path: str, text: str) -> None:
    put(project, path, text)
    assert breaches(project) == []


IMPURE = [
    ("import os\nx = os.environ['A']\n", "os.environ"),
    ("import os as o\nx = o.getenv('A')\n", "os.getenv"),
    ("from os import environ as e\nx = e\n", "os.environ"),
    ("import uuid\nx = uuid.uuid4()\n", "uuid.uuid4"),
    ("from uuid import uuid1\n", "uuid.uuid1"),
    ("from datetime import datetime as d\nx = d.now()\n", "datetime.datetime.now"),
    ("import datetime\nx = datetime.date.today()\n", "datetime.date.today"),
]


@pytest.mark.parametrize(("text", "name"), IMPURE)
@pytest.mark.parametrize("module", ["cycle.py", "model/a.py", "plugins/gang/a.py"])
def test_the_core_does_not_ask_its_surroundings(project: Path, module: str, text: str, name: str) -> None:
    put(project, f"src/stromboli/{module}", text)
    assert any(f"uses {name}: " in line for line in breaches(project))


@pytest.mark.parametrize(("text", "name"), IMPURE)
@pytest.mark.parametrize("path", ["src/stromboli/kube/a.py", "src/stromboli/cli/a.py", "tests/model/test_a.py"])
def test_what_stands_outside_may_ask(project: Path, path: str, text: str, name: str) -> None:
    put(project, path, text)
    assert breaches(project) == []


def test_pure_uses_of_the_same_modules_pass(project: Path) -> None:
    put(
        project,
        "src/stromboli/model/a.py",
        "import os, uuid, datetime\nx = uuid.uuid5, os.path, datetime.datetime.fromtimestamp\n",
    )
    assert breaches(project) == []


@pytest.mark.parametrize(
    ("package", "count"), [("yaml", 1), ("typer.testing", 1), ("numpy.linalg", 0), ("collections.abc", 0)]
)
def test_the_model_imports_few_packages(project: Path, package: str, count: int) -> None:
    put(project, "src/stromboli/model/a.py", f"import {package}\n")
    put(project, "src/stromboli/framework/a.py", f"import {package}\n")
    assert len(breaches(project)) == count


@pytest.mark.parametrize(("folder", "most"), [("src/stromboli/model", 20), ("tests/model", 30), ("tools", 20)])
def test_folders_hold_few_modules(project: Path, folder: str, most: int) -> None:
    for number in range(most):
        put(project, f"{folder}/m{number}.py", "")
    put(project, f"{folder}/__init__.py", "")
    assert breaches(project) == []
    put(project, f"{folder}/one_more.py", "")
    assert breaches(project) == [f"{folder}: modules a folder {most + 1}, at most {most}"]


def circle(project: Path, count: int) -> None:
    """Write modules that import each other in a ring."""
    for number in range(count):
        put(project, f"src/stromboli/m{number}.py", f"import stromboli.m{(number + 1) % count}\n")


def test_circles_of_imports_are_small(project: Path) -> None:
    circle(project, 3)
    assert breaches(project) == []
    circle(project, 4)
    assert breaches(project) == ["src: files a circle of imports 4, at most 3"]


@pytest.mark.parametrize(
    "text",
    ["from tests.model.test_a import x", "from tests.model import test_a", "def f():\n    import e2e.test_a"],
)
def test_no_module_imports_a_test_module(project: Path, text: str) -> None:
    put(project, "tests/model/test_b.py", text)
    assert any("imports the test module" in line for line in breaches(project))
    put(project, "tests/model/test_b.py", text.replace("test_a", "builders"))
    assert breaches(project) == []


GROWN = {"file lines": rows(500), "complexity": branches(14), "public names a class": attributes(50)}
PLACES = {"file lines": ("a.py", 500), "complexity": ("a.py f", 15), "public names a class": ("a.py C", 50)}


@pytest.mark.parametrize("limit", GROWN)
def test_an_exception_holds_what_it_names_at_its_present_value(project: Path, limit: str) -> None:
    place, value = PLACES[limit]
    put(project, "src/stromboli/a.py", GROWN[limit] + small_functions(10))
    value += limit == "file lines" and 20
    allow(project, limit, {place: value})
    assert breaches(project) == []
    allow(project, limit, {place: value - 1})
    (found,) = breaches(project)
    assert found.endswith(f"{limit} {value}, at most {budgets.LIMITS[limit]}, its exception {value - 1}")


def test_an_exception_for_circles_covers_the_largest(project: Path) -> None:
    circle(project, 5)
    put(project, FILE, '[[exception]]\nlimit = "files a circle of imports"\nreason = "x"\nvalues = { "src" = 5 }\n')
    assert breaches(project) == []
    circle(project, 6)
    assert breaches(project) == ["src: files a circle of imports 6, at most 3, its exception 5"]


def test_no_exception_lets_a_function_grow(project: Path) -> None:
    put(project, "src/stromboli/a.py", lines(61) + small_functions(20))
    allow(project, "function lines", {"a.py f": 61})
    assert "src/stromboli/a.py:1: f: function lines 61, at most 60" in breaches(project)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(branches(13), "is 14: lower its exception"), (branches(2), NEEDLESS)],
    ids=["lower", "needless"],
)
def test_an_exception_that_allows_too_much_is_asked_about_and_lowered(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str
) -> None:
    put(project, "src/stromboli/a.py", text + small_functions(10))
    allow(project, "complexity", {"a.py f": 15, "a.py gone": 14})
    assert main([str(project)]) == 0
    assert capsys.readouterr().out.startswith(
        f"{FILE}: complexity of src/stromboli/a.py f {expected}\n"
        f"{FILE}: complexity of src/stromboli/a.py gone {NEEDLESS}\n"
    )
    assert main([str(project), "--lower"]) == 0
    assert main([str(project)]) == 0
    assert FILE not in capsys.readouterr().out
    left = {("complexity", "src/stromboli/a.py f"): 14} if "lower" in expected else {}
    assert Allowances.read(project).values == left


def test_an_exception_is_lowered_under_its_own_limit(project: Path) -> None:
    put(project, "src/stromboli/a.py", branches(13) + small_functions(10))
    listed = [("complexity", 15), ("file lines", 500)]
    text = "".join(
        f'[[exception]]\nlimit = "{limit}"\nreason = "r"\n[exception.values]\n"src/stromboli/a.py f" = {value}\n'
        for limit, value in listed
    )
    put(project, FILE, text)
    assert main([str(project), "--lower"]) == 0
    assert Allowances.read(project).values == {("complexity", "src/stromboli/a.py f"): 14}


def test_every_exception_has_a_reason(project: Path) -> None:
    put(project, "src/stromboli/a.py", branches(13) + small_functions(10))
    allow(project, "complexity", {"a.py f": 14}, reason=" ")
    assert breaches(project) == [f"{FILE}: an exception from 'complexity' lacks a reason"]


def test_exceptions_are_counted(project: Path) -> None:
    allow(project, "complexity", {f"m{number}.py f": 14 for number in range(MOST + 1)})
    assert breaches(project) == [f"{FILE}: {MOST + 1} exceptions, at most {MOST}"]


def test_the_script_prints_what_is_over_and_answers_with_a_status(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(project, "src/stromboli/a.py", lines(2))
    assert main([str(project)]) == 0
    assert capsys.readouterr().out == "budgets: 0 over; 1 functions: median 2 lines, p90 2, longest 2\n"
    put(project, "src/stromboli/misc.py", "")
    assert main([str(project)]) == 1
    assert "src/stromboli/misc.py:1: the name 'misc'" in capsys.readouterr().out

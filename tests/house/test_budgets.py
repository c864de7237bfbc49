"""The budgets script finds what exceeds a budget, and only that."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.budgets import breaches, main
from tools.measure import functions

FUNCTION = "def f():\n"


def lines(count: int) -> str:
    return FUNCTION + "    x = 1\n" * count


def branches(count: int) -> str:
    return "def f(x):\n" + "    if x:\n        x = 1\n" * count


def small_functions(count: int) -> str:
    return "".join(f"def small{number}():\n    return 1\n" for number in range(count))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    return tmp_path


def put(project: Path, path: str, text: str) -> None:
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    (project / path).write_text(text)


def allow(project: Path, *entries: str) -> None:
    put(project, "tools/budget_exceptions.toml", "".join(f"[[exception]]\n{entry}\n" for entry in entries))


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
        ("src/stromboli/a.py", branches(10) + small_functions(9), "src/stromboli/a.py:1: f: complexity 11, at most 10"),
        ("src/stromboli/a.py", "x = 1\n" * 401, "src/stromboli/a.py:1: file lines 401, at most 400"),
        ("tests/test_a.py", "x = 1\n" * 601, "tests/test_a.py:1: file lines 601, at most 600"),
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
        ("src/stromboli/a.py", lines(60) + branches(9) + small_functions(20)),
        ("src/stromboli/a.py", "x = 1\n" * 400),
        ("tests/test_a.py", "x = 1\n" * 600),
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


def test_an_exception_lets_a_file_and_a_function_grow_to_the_last_limit(project: Path) -> None:
    put(project, "src/stromboli/a.py", "x = 1\n" * 500)
    put(project, "src/stromboli/b.py", branches(14) + small_functions(10))
    allow(
        project,
        'path = "src/stromboli/a.py"\nlimit = "file lines"\nreason = "one table"',
        'path = "src/stromboli/b.py"\nlimit = "complexity"\nfunction = "f"\nreason = "one rule"',
    )
    assert breaches(project) == []
    put(project, "src/stromboli/a.py", "x = 1\n" * 601)
    put(project, "src/stromboli/b.py", branches(15) + small_functions(10))
    assert [line.split(": ", 1)[1] for line in breaches(project)][:2] == [
        "file lines 601, at most 400",
        "f: complexity 16, at most 10",
    ]


def test_no_exception_lets_a_function_grow(project: Path) -> None:
    put(project, "src/stromboli/a.py", lines(61) + small_functions(20))
    allow(project, 'path = "src/stromboli/a.py"\nlimit = "function lines"\nfunction = "f"\nreason = "long"')
    assert "src/stromboli/a.py:1: f: function lines 61, at most 60" in breaches(project)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (['path = "src/a.py"\nlimit = "file lines"\nreason = "one table"'], "is needed no longer"),
        (['path = "src/a.py"\nlimit = "file lines"\nreason = " "'], "lacks a reason"),
        ([f'path = "src/{n}.py"\nlimit = "file lines"\nreason = "x"' for n in range(11)], "11 exceptions, at most 10"),
    ],
)
def test_the_list_of_exceptions_is_held_to_its_rules(project: Path, entries: list[str], expected: str) -> None:
    allow(project, *entries)
    assert any(expected in line for line in breaches(project))


def test_the_script_prints_what_is_over_and_answers_with_a_status(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(project, "src/stromboli/a.py", lines(2))
    assert main([str(project)]) == 0
    assert capsys.readouterr().out == "budgets: 0 over; 1 functions: median 2 lines, p90 2, longest 2\n"
    put(project, "src/stromboli/misc.py", "")
    assert main([str(project)]) == 1
    assert "src/stromboli/misc.py:1: the name 'misc'" in capsys.readouterr().out

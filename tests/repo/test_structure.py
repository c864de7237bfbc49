"""The figures of the structure: imports, folders, public names, code that stands twice."""

from __future__ import annotations

import ast
from pathlib import Path, PurePath

import pytest

from tools.functions import functions
from tools.measure import main
from tools.near_duplicates import near_duplicates
from tools.structure import circles, folders, import_graph, module_name, public_names


def trees(**texts: str) -> dict[str, ast.Module]:
    return {name.replace("_", "."): ast.parse(text) for name, text in texts.items()}


@pytest.mark.parametrize(
    ("path", "name"),
    [("src/a/b.py", "a.b"), ("src/a/__init__.py", "a"), ("tests/a.py", "tests.a")],
)
def test_a_module_is_named_by_its_path(path: str, name: str) -> None:
    assert module_name(PurePath(path)) == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b", {"a.b"}),
        ("from a import b", {"a", "a.b"}),
        ("from a.b import thing", {"a.b"}),
        ("def f():\n    import a.b", {"a.b"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a.b import T", {"a.b"}),
        ("import elsewhere", set()),
    ],
)
def test_imports_count_wherever_they_stand(text: str, expected: set[str]) -> None:
    graph = import_graph({"a": ast.parse(""), "a.b": ast.parse(""), "c": ast.parse(text)})
    assert graph["c"] == expected


def test_modules_that_reach_each_other_are_a_circle() -> None:
    found = circles(import_graph(trees(a="import b", b="import c", c="import a\nimport d", d="import e", e="import d")))
    assert found == [["a", "b", "c"], ["d", "e"]]


def test_a_module_that_is_reached_only_one_way_is_in_no_circle() -> None:
    assert circles(import_graph(trees(a="import b", b="import c", c=""))) == []


def test_the_modules_of_a_folder_are_counted_without_its_init() -> None:
    paths = [PurePath(path) for path in ("a/__init__.py", "a/b.py", "a/c.py", "a/d/__init__.py", "a/d/e.py")]
    assert folders(paths) == {PurePath("a"): 2, PurePath("a/d"): 1}


def test_public_names_are_declared_assigned_or_inherited() -> None:
    base = "class Base:\n    x: int = 0\n    def f(self): self.y = self._z = 1\n"
    own = "from base import Base\nclass Own(Base):\n    K = 1\n    @property\n    def g(self): return self.h\n"
    found = public_names(trees(base=base, own=own))
    assert found == {"base.Base": {"x", "f", "y"}, "own.Own": {"x", "f", "y", "K", "g"}}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a", 1),
        ("a and b or c", 3),
        ("a and b and c", 3),
        ("a if b else c", 2),
        ("[a for b in c]", 2),
        ("{a for b in c if d if e for f in b}", 5),
    ],
)
def test_conditions_inside_expressions_count_as_ways(expression: str, expected: int) -> None:
    (function,) = functions(ast.parse(f"def f():\n    return {expression}\n"))
    assert function.complexity == expected


CODE = "".join(f"    {name} = call({name}, {number})\n" for number, name in enumerate("abcdefghij"))
TABLE = "X = [\n" + "".join(f"    f({number}),\n" for number in range(12)) + "]\n"


def marked(*texts: str) -> tuple[int, int]:
    twins, total = near_duplicates((PurePath(f"{place}.py"), text) for place, text in enumerate(texts))
    return len(twins), total


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (f"def one():\n{CODE}", f"def two():\n{CODE.replace('call', 'other')}", 22),
        (f"def one():\n{CODE}", f"def two():\n{CODE.replace('call(', 'call[').replace(')', ']')}", 0),
        (f"def one():\n{CODE}", f"def two():\n{CODE[: len(CODE) // 2]}", 0),
        (TABLE, TABLE, 0),
        (f'"""{CODE}"""\n', f'"""{CODE}"""\n', 0),
    ],
)
def test_ten_lines_of_one_shape_stand_twice(first: str, second: str, expected: int) -> None:
    assert marked(first, second)[0] == expected


def test_the_share_is_of_lines_of_code() -> None:
    assert marked("import a\n\n# note\nx = 1\n") == (0, 1)


def test_every_figure_is_printed_with_its_worst_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "src" / "stromboli"
    package.mkdir(parents=True)
    (package / "session.py").write_text(
        "import stromboli.other\nclass Session:\n    def ask(self):\n        return 1\n"
    )
    (package / "other.py").write_text("import stromboli.session\nX = 1\n")
    monkeypatch.setattr("sys.argv", ["measure", str(tmp_path), "--worst", "1"])
    main()
    lines = capsys.readouterr().out.splitlines()
    figures = {name.strip(): value for name, value in (line.split("..", 1) for line in lines if ".." in line)}
    assert {name: value.strip(". ") for name, value in figures.items()} == {
        "files": "2",
        "lines": "6",
        "longest file": "4",
        "function lines: median/p90/max": "1/1/1",
        "complexity: median/p90/max": "1/1/1",
        "functions of complexity above 12": "0",
        "folders with modules": "1",
        "modules in the largest folder": "2",
        "largest import circle": "2",
        "public names of the largest class": "1",
        "public names of Session": "1",
        "near-duplicates": "0.0%",
    }
    assert "    2  stromboli.other stromboli.session" in lines

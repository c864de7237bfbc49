"""The mutation run: what it breaks, which tests it asks, and that it tells what is noticed from what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tools.mutants.campaign import Campaign, Known, Measure, at, known_in, sample, verdict_of
from tools.mutants.mutations import called_at_import, mutations
from tools.mutants.notes import NAME, Notes, compiled
from tools.mutants.recording import Ran, Record
from tools.mutants.trial import waited

ROOT = Path(__file__).parents[2]


def changed(text: str) -> set[str]:
    """The changed lines of all mutations of a module, stripped."""
    return {
        line[1:].strip() for each in mutations("m.py", text) for line in each.diff.splitlines() if line.startswith("+")
    }


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("return a < b", {"return a <= b", "return None"}),
        ("return a not in b", {"return a in b", "return None"}),
        ("return a is not b", {"return a is b", "return None"}),
        ("return a and b", {"return a or b", "return None"}),
        ("return not a", {"return a", "return None"}),
        ("return a + b", {"return a - b", "return None"}),
        ("return 3", {"return 4"}),
        ("return True", {"return False"}),
        ("if a: b()", {"if (not (a)): b()", "if a: pass"}),
        ("return [x for x in a if x]", {"return [x for x in a if (not (x))]", "return None"}),
        ("a.append(b)", {"pass"}),
        ("a.field = b", {"pass"}),
        ("a = b", set()),
        ("a += b", {"pass", "a -= b"}),
        ("raise ValueError(b)", {"pass"}),
        ("return sorted(a)", {"return list(a)", "return None"}),
        ("return any(a)", {"return all(a)", "return None"}),
        ('return f"{a} of {b}"', {"return None"}),
        ('"""A sentence with 3 words."""', set()),
        ("found: list[int] = a", set()),
    ],
)
def test_what_is_broken(line: str, broken: set[str]) -> None:
    assert changed(f"def f(a, b):\n    {line}\n    return b\n") - {"return None"} == broken - {"return None"}
    assert ("return None" in changed(f"def f(a, b):\n    {line}\n")) is ("return None" in broken)


@pytest.mark.parametrize(
    "text",
    [
        '__slots__ = ("a", 1)\n',
        "if TYPE_CHECKING:\n    LIMIT = 3\n",
        "class Asks(Protocol):\n    def f(self, a: int = 3) -> int: ...\n",
        "def f(self):\n    raise NotImplementedError\n",
        "def f(self):\n    '''Left to others.'''\n",
        "def f(a: Literal[3] | None) -> Literal[3]:\n    '''1'''\n",
        "Kinds = int | str\n",
        "def f(a, b):\n    for c in zip(a, b, strict=True):\n        g = c\n",
        "known: Final = lru_cache(maxsize=1 << 14)(resolve)\n",
    ],
)
def test_what_changes_nothing_is_left_alone(text: str) -> None:
    assert mutations("m.py", text) == []


def test_lines_stay_where_they_are() -> None:
    text = "def f(a):\n    a.append(\n        1,\n        2,\n    )\n    return a\n"
    assert {each.mutated.count("\n") for each in mutations("m.py", text)} == {6}
    assert all(each.compiles for each in mutations("m.py", text))
    assert {(each.line, each.lines, each.function) for each in mutations("m.py", text)} == {
        (2, (2, 5), 1), (3, (2, 5), 1), (4, (2, 5), 1), (6, (6, 6), 1),
    }  # fmt: skip


TEXTS = {"b.py": "def f(a):\n    return a + 1\n", "a.py": "LIMIT = 2\n\ndef g(a):\n    return a < LIMIT\n"}


def test_a_sample_is_of_its_seed_alone() -> None:
    first = [(each.where, each.diff) for each in sample(TEXTS, 2, 7, [])]
    assert first == [(each.where, each.diff) for each in sample(dict(reversed(TEXTS.items())), 2, 7, [])]
    assert len({tuple(each.where for each in sample(TEXTS, 2, seed, [])) for seed in range(9)}) > 2
    assert len({each.where for each in sample(TEXTS, 9, 7, [])}) == 3


def test_a_sample_stays_the_same_where_code_elsewhere_changes() -> None:
    lines = [f"def f{number}(a):\n    return a < {number}\n\n" for number in range(40)]
    first = [each.diff for each in sample({"a.py": "".join(lines)}, 10, 7, [])]
    changed = "".join(["LIMIT = 3\n\n", *lines[:20], "def g(a):\n    return a + 1\n\n", *lines[20:]])
    again = [each.diff for each in sample({"a.py": changed, "b.py": "LIMIT = 2\n"}, 13, 7, [])]
    assert [each for each in again if each in first] == first


def test_what_is_known_to_change_nothing_is_not_drawn() -> None:
    known = [Known("a.py", "LIMIT = 2", "LIMIT = 3", "any bound does")]
    assert {each.where for each in sample(TEXTS, 9, 7, known)} == {"a.py:4", "b.py:2"}
    assert list(at(TEXTS, ["a.py:1"], known)) == []
    assert [each.diff for each in at(TEXTS, ["a.py:1"], [])] == ["- LIMIT = 2\n+ LIMIT = 3"]


def test_a_known_one_may_be_of_one_function_alone() -> None:
    """The function is the outermost one, which begins with its decorators."""
    text = "@cache\ndef f(a):\n    return a + 1\ndef g(a):\n    def f():\n        return a + 1\n    return f\n"
    found = {
        name: list(
            at({"c.py": text}, ["c.py:3", "c.py:6"], [Known("c.py", "return a + 1", "return a - 1", "any", name)])
        )
        for name in ("f", "g", "")
    }
    left = {name: [each.line for each in some if "a - 1" in each.mutated] for name, some in found.items()}
    assert left == {"f": [6], "g": [3], "": []}


def test_a_known_one_may_be_one_of_the_equal_lines_of_its_function() -> None:
    text = "def f(a):\n    if a:\n        return 1\n    return 1\ndef g(a):\n    return 1\n"
    left = {}
    for nth in (0, 1, 2):
        known = [Known("c.py", "return 1", "return 2", "any", "f", nth)]
        found = at({"c.py": text}, ["c.py:3", "c.py:4", "c.py:6"], known)
        left[nth] = [each.line for each in found if each.diff.endswith("return 2")]
    assert left == {0: [6], 1: [4, 6], 2: [3, 6]}


def test_each_known_one_is_one_mutation_of_today_and_has_a_reason() -> None:
    for each in known_in(ROOT / "tools/mutants/equivalent.toml"):
        text = (ROOT / each.path).read_text(encoding="utf-8")
        meant = [mutation.where for mutation in mutations(each.path, text) if each.is_meant(mutation)]
        if isinstance(each, Measure):
            assert meant, f"{each} means nothing"
        else:
            assert len(meant) == 1, f"{each} means {meant}: name its function, or which of its lines"
            assert each.reason


def test_one_more_of_a_measure_is_not_drawn_and_anything_else_of_it_is() -> None:
    texts = {**TEXTS, "c.py": "FEW = 3\nPAUSE = 2 * 3\n"}
    known = [Measure("c.py", "FEW"), Measure("c.py", "PAUSE")]
    assert list(at(texts, ["c.py:1"], known)) == []
    assert [each.diff for each in at(texts, ["c.py:2"], known)] == ["- PAUSE = 2 * 3\n+ PAUSE = 2 + 3"]
    assert len(list(at(texts, ["c.py:2"], []))) == 3


def test_a_measure_that_is_reached_one_later_is_one_more_of_it() -> None:
    texts = {"c.py": "FEW = 3\ndef f(n):\n    return n >= FEW\ndef g(n):\n    return n >= FEWER or n == FEW\n"}
    known = [Measure("c.py", "FEW")]
    assert [each.diff for each in at(texts, ["c.py:3"], known)] == ["-     return n >= FEW\n+     return None"]
    assert len(list(at(texts, ["c.py:3"], [Measure("d.py", "FEW")]))) == 2
    left = {each.diff.splitlines()[1] for each in at(texts, ["c.py:5"], known)}
    assert "+     return n > FEWER or n == FEW" in left
    assert "+     return n >= FEWER or n != FEW" in left


def test_lines_are_followed_as_a_file_changes() -> None:
    record = Record({"slow": Ran(2.0, "", {"b.py": 0b110}), "quick": Ran(0.1, "", {"b.py": 0b100})}, dict(TEXTS))
    record.renew({"b.py": "import c\n\n\ndef f(a):\n    return a + 1\n"})
    assert record.executing("b.py", [4]) == {"slow"}
    assert record.executing("b.py", [5]) == {"slow", "quick"}


def test_the_quickest_tests_of_a_line_are_asked_first() -> None:
    ran = {"slow": Ran(2.0, "", {"b.py": 0b110}), "quick": Ran(0.1, "", {"b.py": 0b100})}
    record = Record({**ran, "other": Ran(0.1, "", {"a.py": 0b10000})}, dict(TEXTS))
    mutants = {each.where: record.tests_of(each) for text in TEXTS for each in mutations(text, TEXTS[text])}
    assert mutants == {"b.py:2": ["quick", "slow"], "a.py:4": ["other"], "a.py:1": ["other"]}


def test_of_what_runs_at_import_tests_of_importing_modules_are_asked_first() -> None:
    texts = {"src/a.py": "LIMIT = 2\n", "src/b.py": "LIMIT = 3\ndef g(a):\n    return a < LIMIT\n"}
    texts["src/c.py"] = "from pkg.a import LIMIT\ndef g(a):\n    return a < LIMIT\n"
    texts = {path.replace("src/", "src/pkg/"): text for path, text in texts.items()}
    record = Record({name: Ran(seconds, "", {f"src/pkg/{name}.py": 0b1000}) for name, seconds in (("b", 1), ("c", 2))})
    record.renew(texts)
    (mutation,) = mutations("src/pkg/a.py", texts["src/pkg/a.py"])
    assert record.tests_of(mutation) == ["c", "b"]


@pytest.mark.parametrize(("seconds", "count"), [(60.0, 30), (5.0, 2), (1.0, 1)])
def test_tests_without_a_record_are_as_many_as_fit_into_the_time(seconds: float, count: int) -> None:
    """Each is taken to need two seconds."""
    campaign = Campaign(Record({}, {}), ROOT, [], seconds)
    items = [SimpleNamespace(nodeid=f"t{at}", path=Path("test_a.py")) for at in range(99)]
    campaign.items = {item.nodeid: cast(pytest.Item, item) for item in items}
    (mutation, *_) = mutations("src/a.py", "LIMIT = 2\n")
    assert campaign.near(mutation) == [f"t{at}" for at in range(count)]


NOTED = """\
'''A module.'''
from __future__ import annotations

def f(a):
    '''A docstring, which stays the first statement.'''
    if a > 2:
        return (
            a
        )
    elif a:
        try:
            return 1 / (a - 1)
        except ZeroDivisionError:
            a = 7
        finally:
            a += 1
    for b in range(a):
        continue
    return a
"""


@pytest.mark.parametrize(
    ("given", "answer", "lines"),
    [(3, 3, {6, 7}), (2, 1, {6, 10, 11, 12, 16}), (1, 8, {6, 10, 11, 12, 14, 16, 17, 18, 19}), (0, 0, {6, 10, 17, 19})],
)
def test_statements_are_noted_by_their_first_lines(given: int, answer: int, lines: set[int]) -> None:
    notes = Notes()
    module: dict[str, Any] = {NAME: notes.noted}
    exec(compiled(NOTED, "m.py", notes, "src/m.py"), module)
    assert notes.taken() == {}
    assert module["f"](given) == answer
    assert module["f"].__doc__.startswith("A docstring")
    assert notes.taken() == {"src/m.py": sum(1 << line for line in lines)}
    assert notes.taken() == {}


SOURCE = """\
LIMIT = 2


def fits(amount):
    return amount <= LIMIT


def outer(amount):
    def inner(more):
        return amount + more
    return inner


def untested():
    return 1
"""
TESTS = """\
from pkg.limits import fits, outer

STATE = []

def test_fits():
    assert fits(1)

def test_limit():
    assert not fits(3)

def test_outer():
    assert outer(1)(2) == 3

def test_that_stands_on_another():
    assert STATE or fits(2)
    STATE.append(1)
"""
RUN = """\
import sys
from pathlib import Path
from tools.mutants.__main__ import Target, main
here = Path.cwd()
sys.exit(main(sys.argv[1:], Target(here, ("src/pkg",), ("tests",))))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, text in {"src/pkg/__init__.py": "", "src/pkg/limits.py": SOURCE, "tests/test_limits.py": TESTS,
                       "run.py": RUN, "pytest.ini": "[pytest]\npythonpath = src\n"}.items():  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_what_ran_in_a_process_of_its_own_does_not_disturb_what_runs_after_it(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\npythonpath = src\nfilterwarnings = error\n")
    result = run(project, "--at", "src/pkg/limits.py:1", "--at", "src/pkg/limits.py:10")
    assert "tried 3, caught 3" in result.stdout, result.stdout + result.stderr


def run(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{RUN}", *options]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def test_mutants_are_caught_by_tests_that_execute_them_and_survivors_are_shown(project: Path) -> None:
    result = run(project, "--count", "50")
    verdicts = {line.split()[2]: line.split()[1] for line in result.stderr.splitlines() if "/" in line.split()[0]}
    here = "src/pkg/limits.py"
    assert verdicts == {
        f"{here}:1": "caught", f"{here}:5": verdicts[f"{here}:5"], f"{here}:10": "caught", f"{here}:11": "caught",
        f"{here}:15": "SURVIVED",
    }  # fmt: skip
    assert result.returncode == 1
    assert f"{here}:15: no test executes it\n-     return 1\n+     return 2" in result.stdout
    assert "tried 5, caught" in result.stdout


def test_functions_are_broken_in_a_fork_even_if_the_objects_are_frozen(project: Path) -> None:
    (project / "tests/conftest.py").write_text("import gc\n\ndef pytest_collection_finish():\n    gc.freeze()\n")
    result = run(project, "--at", "src/pkg/limits.py:5")
    ways = {" ".join(line.split()[4:]) for line in result.stderr.splitlines() if " src/pkg" in line}
    assert ways, result.stderr
    assert "a process of its own" not in ways


def test_tests_that_name_a_value_bound_at_import_are_tried_even_if_no_recorded_line_is_theirs(project: Path) -> None:
    (project / "src/pkg/flags.py").write_text(
        "class Flags:\n    quick = True\n    slow = False\n\ndef f():\n    return 1\n"
    )
    test = "from pkg.flags import Flags\n\ndef test_{0}():\n    assert Flags.{0} is {1}\n"
    (project / "tests/test_flags.py").write_text(test.format("quick", "True"))
    result = run(project, "--at", "src/pkg/flags.py:2", "--at", "src/pkg/flags.py:3")
    verdicts = {line.split()[2][-1]: line.split()[1] for line in result.stderr.splitlines() if " src/pkg" in line}
    assert verdicts == {"2": "caught", "3": "SURVIVED"}, result.stderr


def test_what_runs_at_import_is_asked_of_files_that_name_it_outside_their_functions_or_speak_of_it_in_texts(
    project: Path,
) -> None:
    """The first names the constant in a table of its own, the second only the word that it has outside."""
    (project / "src/pkg/flags.py").write_text(
        "LIMIT = 2\nFLAGS = {\n    'a-flag': 3,\n    'another': 4,\n}\n\ndef f():\n    return 1\n"
    )
    (project / "src/pkg/all.py").write_text("from pkg import flags\n\nALL = {'limit': flags.LIMIT, **flags.FLAGS}\n")
    (project / "tests/test_table.py").write_text(
        "from pkg import flags\n\nTABLE = [flags.LIMIT, 2]\n\ndef test_table():\n    assert len(set(TABLE)) == 1\n"
    )
    (project / "tests/test_help.py").write_text(
        "from pkg.all import ALL\n\nHELP = {'a-flag': 3}  # flags\n\ndef test_help():\n    assert ALL | HELP == ALL\n"
    )
    result = run(project, *(f"--at=src/pkg/flags.py:{line}" for line in (1, 3, 4)))
    verdicts = {line.split()[2][-1]: line.split()[1] for line in result.stderr.splitlines() if " src/pkg" in line}
    assert verdicts == {"1": "caught", "3": "caught", "4": "SURVIVED"}, result.stderr


def test_a_test_that_fails_in_a_process_of_its_own_by_itself_has_noticed_nothing(project: Path) -> None:
    (project / "src/pkg/flags.py").write_text("LIMIT = 2\n")
    run(project, "--count", "0")
    test = "from pkg.flags import LIMIT\n\ndef test_{0}():\n    assert LIMIT {1} 2\n"
    (project / "tests/test_flags.py").write_text(test.format("flag", "<="))
    run(project, "--count", "0")
    (project / "tests/test_flags.py").write_text(test.format("flag", "<"))
    result = run(project, "--as-recorded", "--at", "src/pkg/flags.py:1")
    assert "tried 1, caught 0" in result.stdout, result.stdout + result.stderr


KINDS = """\
class Kind:
    least = 0

def _made():
    kind = Kind()
    kind.least = 4
    return kind

KIND = _made()
"""


def test_a_function_that_runs_at_import_alone_is_tried_by_tests_that_execute_its_module(project: Path) -> None:
    """Their files may have none of it: they use it by way of another module."""
    (project / "src/pkg/kinds.py").write_text(KINDS + "\ndef least():\n    return KIND.least\n")
    (project / "src/pkg/door.py").write_text("from pkg import kinds\n\ndef fits(a):\n    return a >= kinds.least()\n")
    test = "from pkg.door import fits\n\ndef test_fits():\n    assert fits(4)\n"
    (project / "tests/test_door.py").write_text(test)
    result = run(project, "--at", "src/pkg/kinds.py:6")
    assert "tried 2, caught 1" in result.stdout, result.stdout + result.stderr
    assert "+     pass" in result.stdout


def test_a_function_that_runs_at_import_too_is_tried_anew_where_its_calls_in_tests_notice_nothing(
    project: Path,
) -> None:
    (project / "src/pkg/sizes.py").write_text(
        "def size(a=1):\n    return 3 + a\n\nclass Box:\n    least = size()\n\ndef fits(a):\n    return a > Box.least\n"
    )
    test = "from pkg.sizes import Box, fits, size\n\ndef test_{0}():\n    assert {1}\n"
    (project / "tests/test_sizes.py").write_text(
        test.format("size", "size() > 1") + "\n\ndef test_box():\n    assert fits(5) and not fits(4)\n"
    )
    result = run(project, "--at", "src/pkg/sizes.py:2")
    assert "tried 3, caught 3" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a = f()", {"f"}),
        ("class A:\n    b = m.g(h())", {"g", "h"}),
        ("@f(1)\ndef g(a=h()):\n    return k()", {"f", "h"}),
        ("class A:\n    @f()\n    def g(self, *, a=h()):\n        return k()", {"f", "h"}),
        ("def g():\n    def h(a=f()):\n        k()", set()),
    ],
)
def test_what_is_called_at_import(text: str, names: set[str]) -> None:
    assert called_at_import(text) == names


def test_a_function_that_runs_at_import_alone_is_tried_by_tests_that_use_its_module(project: Path) -> None:
    test = (
        "from pkg.kinds import KIND, Kind\n\ndef test_kind():\n    assert isinstance(KIND, Kind) and KIND.least > 3\n"
    )
    (project / "src/pkg/kinds.py").write_text(KINDS)
    (project / "tests/test_kinds.py").write_text(test)
    result = run(project, "--at", "src/pkg/kinds.py:6")
    assert "tried 2, caught 1" in result.stdout, result.stdout + result.stderr
    assert "+     kind.least = 5" in result.stdout


def test_every_way_to_break_a_line_is_tried_when_asked(project: Path) -> None:
    result = run(project, "--at", "src/pkg/limits.py:10", "--at", "src/pkg/limits.py:1")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "tried 3, caught 3 (0 by time-out), survived 0: 100.0%" in result.stdout


@pytest.mark.parametrize(
    ("program", "seconds", "ended"), [("pass", 30, 0), ("sys.exit(1)", 30, 1), ("while True: pass", 0.5, -1)]
)
def test_a_mutant_that_does_not_end_is_ended(program: str, seconds: float, ended: int) -> None:
    child = subprocess.Popen([sys.executable, "-c", f"import sys\n{program}"], start_new_session=True)
    assert waited(child.pid, seconds) == ended
    assert verdict_of(ended, "", 1).caught is (ended != 0)
    child.poll()


def test_tests_that_have_changed_are_recorded_again(project: Path) -> None:
    run(project, "--count", "0")
    before = Record.read(project / ".mutants/record.json.gz").tests
    (project / "tests/test_more.py").write_text(
        "from pkg.limits import untested\n\ndef test_more():\n    assert untested() == 1\n"
    )
    result = run(project, "--at", "src/pkg/limits.py:15")
    assert result.returncode == 0, result.stdout + result.stderr
    after = Record.read(project / ".mutants/record.json.gz").tests
    assert set(after) - set(before) == {"tests/test_more.py::test_more"}
    assert all(after[name] == ran for name, ran in before.items())


def test_what_a_function_remembers_is_computed_again_for_each_test(project: Path) -> None:
    (project / "src/pkg/kept.py").write_text("from functools import cache\n\n@cache\ndef f():\n    return 1\n")
    test = "def test_{0}():\n    assert f() == 1\n"
    (project / "tests/test_kept.py").write_text("from pkg.kept import f\n" + test.format("a") + test.format("b"))
    run(project, "--count", "0")
    record = Record.read(project / ".mutants/record.json.gz")
    assert record.executing("src/pkg/kept.py", [5]) == {f"tests/test_kept.py::test_{name}" for name in "ab"}


def test_tests_without_a_record_that_use_the_module_are_asked_last(project: Path) -> None:
    run(project, "--count", "0")
    here = "src/pkg/limits.py:15"
    again = "from pkg.limits import untested\n\ndef test_more():\n    assert untested() == 1\n"
    other = "def test_of_other_things():\n    assert False\n"
    for text, caught in ((other, 0), (again, 1)):
        (project / "tests/test_more.py").write_text(text)
        result = run(project, "--as-recorded", "--at", here)
        assert f"tried 1, caught {caught} (0 by time-out)" in result.stdout, result.stdout + result.stderr
    assert "test_more" in result.stderr

"""The log prints the catalogue's lines in the reference's forms, up to the level that was asked for."""

from __future__ import annotations

import gc
import io
import json
import re
import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from stromboli.metrics.logs import Form, LogObserver
from stromboli.model.job import Job
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.resource import Resource
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task
from stromboli.narration.catalogue import LINES
from stromboli.narration.observe import AmountRows, OnAxes, Several, each, teller

NOW = 1_700_000_000.125
TASK = Task(uid="u", namespace="ns", name="a-0", template=None, status=TaskStatus.Pending, key="ns/a-0")  # type: ignore[arg-type]


class Written(io.StringIO):
    """A stream that counts how often it is written to."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


def observer(level: int = 5, form: Form = "text") -> tuple[LogObserver, Written]:
    stream = Written()
    return LogObserver(stream, level, form, clock=lambda: NOW, pid=4711), stream


def printed(key: str, **fields: object) -> str:
    log, stream = observer()
    log.tell(key, fields)
    log.flush()
    return stream.getvalue()


def parsed(key: str, **fields: object) -> dict[str, object]:
    log, stream = observer(form="json")
    log.tell(key, fields)
    log.flush()
    value: dict[str, object] = json.loads(stream.getvalue())
    return value


AMOUNT = Resource(1500, 1024, {"nvidia.com/gpu": 2000})
SHOWN = "cpu 1500.00, memory 1024.00, nvidia.com/gpu 2000.00"


@pytest.mark.parametrize(
    ("key", "fields", "text"),
    [
        ("queue_overused", {"queue": "q"}, "Queue <q> is overused, ignore it."),
        ("binding", {"task": TASK, "node": "n1"}, "Binding Task <ns/a-0> to node <n1>"),
        ("nodes_for_job", {"nodes": 3, "job": Job("ns/a")}, "There are <3> nodes for Job <ns/a>"),
        ("considering_resources", {"task": TASK, "node": "n1", "request": AMOUNT, "idle": AMOUNT},
         f"Considering Task <ns/a-0> on node <n1>: <{SHOWN}> vs. <{SHOWN}>"),
        ("snapshot_taken", {"jobs": 1, "queues": 2, "nodes": 3},
         '"SnapShot for scheduling" jobNum="1" QueueNum="2" NodeNum="3"'),
        ("no_solution", {"job": 'ns/"a"\n'}, '"Cannot find any solution for job" job="ns/\\"a\\"\\n"'),
        ("queue_overused", {"queue": "q>\nE0101 forged] \x1b[2J é"},
         "Queue <q>\\nE0101 forged] \\u001b[2J é> is overused, ignore it."),
        ("session_opened", {"session": "s", "jobs": 1, "queues": 2, "hyper_nodes_ready": False},
         "Open Session s with <1> Job and <2> Queues. HyperNodesReadyToSchedule: false"),
        ("action_entered", {"action": "Allocate"}, "Enter Allocate ..."),
        ("strategy_score",
         {"node": "n1", "task": TASK, "strategy": "ImageLocality", "weight": 2, "raw": 50, "score": 100.0},
         "Node: n1, task<ns/a-0> plugin ImageLocality weight 2, raw score: 50, weighted score: 100"),
        ("total_score", {"node": "n1", "task": TASK, "score": 12.5},
         "Nodeorder Total Score for task<ns/a-0> on node n1 is: 12.5"),
        ("batch_total_score", {"task": TASK, "scores": {"n2": 1.0, "n1": 2.0}},
         "Batch Total Score for task ns/a-0 is: map[n1:2 n2:1]"),
        ("queue_attributes",
         dict.fromkeys(("deserved", "real_capability", "allocated", "request", "elastic"), "r")
         | {"queue": "q", "plugin": "proportion", "share": 0.666},
         ("The attributes of queue <q> in proportion: deserved <r>, realCapability <r>, allocate <r>, request <r>, "
          "elastic <r>, share <0.67>")),
        ("queue_overused", {}, "Queue <(missing)> is overused, ignore it."),
    ],
)  # fmt: skip
def test_text_lines(key: str, fields: dict[str, object], text: str) -> None:
    stamp = time.strftime("%m%d %H:%M:%S", time.localtime(NOW))
    assert printed(key, **fields) == f"I{stamp}.125000 4711 {LINES[key].component}] {text}\n"


@pytest.mark.parametrize(
    ("key", "letter"),
    [("queue_missing", "E"), ("orphan_skipped", "W"), ("queue_overused", "I"), ("cycle_started", "I")],
)
def test_lines_begin_with_their_severity(key: str, letter: str) -> None:
    assert re.match(rf"{letter}\d{{4}} \d\d:\d\d:\d\d\.\d{{6}} 4711 \w+\] ", printed(key))


@pytest.mark.parametrize("key", LINES)
def test_every_line_prints_its_literal_text(key: str) -> None:
    line = LINES[key]
    fields = dict.fromkeys(line.fields, 0.5)
    text = printed(key, **fields).split("] ", 1)[1]
    told = "0.50" if any(line.formats) else "0.5"
    assert re.sub(re.escape(told), "0.5", text) == "0.5".join(line.literals) + "\n"
    assert parsed(key, **fields)["key"] == key


def test_json_lines() -> None:
    assert parsed("considering_resources", task=TASK, node="n1", request=AMOUNT, idle=AMOUNT) == {
        "ts": "2023-11-14T22:13:20.125000Z",
        "severity": "I",
        "v": 4,
        "component": "actions",
        "key": "considering_resources",
        "msg": f"Considering Task <ns/a-0> on node <n1>: <{SHOWN}> vs. <{SHOWN}>",
        "task": "ns/a-0",
        "node": "n1",
        "request": SHOWN,
        "idle": SHOWN,
    }


def test_structured_json_lines_have_the_message_and_its_own_names() -> None:
    line = parsed("allocate_job", queue="q", job=Job("ns/a"), hyper_node="", tasks=3)
    told = {"queue": "q", "job": "ns/a", "nominatedHyperNode": "", "taskNum": 3}
    assert line["msg"] == "Try to allocate resource"
    assert {name: line[name] for name in told} == told


def test_json_keeps_numbers_truth_and_lists() -> None:
    line = parsed("gang_job_order", left="ns/a", left_ready=True, right="ns/b", right_ready=False)
    assert (line["left_ready"], line["right_ready"]) == (True, False)
    assert parsed("preemptees", tasks=[TASK, "ns/b"])["tasks"] == ["ns/a-0", "ns/b"]
    assert parsed("queue_missing")["severity"] == "E"


def told_at(level: int) -> set[str]:
    """The texts that remain of one tell of every line."""
    log, stream = observer(level)
    for key, line in LINES.items():
        if say := teller(log, key):
            say(**dict.fromkeys(line.fields, "x"))
    log.flush()
    return {text.split("] ", 1)[1] for text in stream.getvalue().splitlines() if "] " in text}


def test_higher_levels_print_more_lines() -> None:
    sets = [told_at(level) for level in range(6)]
    assert all(less <= more for less, more in pairwise(sets))
    assert sets[2] < sets[3] < sets[4] < sets[5]
    skipped = "Job <x> Queue <x> skip allocate, reason: x"
    assert skipped in sets[4] - sets[3]
    assert "Failed to find Queue <x> for Job <x>" in sets[0]


def test_the_level_may_change_while_running() -> None:
    log, stream = observer(3)
    say = teller(log, "queue_overused")
    assert say is not None
    assert teller(log, "considering_job") is None
    say(queue="a")
    log.level = 2
    say(queue="b")
    log.level = 4
    say(queue="c")
    more = teller(log, "considering_job")
    assert more is not None
    more(job="ns/a")
    log.flush()
    assert re.findall("<(.*)>", stream.getvalue()) == ["a", "c", "ns/a"]


def test_figures_of_metrics_are_no_lines() -> None:
    log, stream = observer()
    assert not log.wants("metric.job_share")
    log.tell("metric.job_share", {"shares": {}})
    log.flush()
    assert stream.getvalue() == ""


def test_lines_are_held_back_until_there_are_many() -> None:
    log, stream = observer()
    for _ in range(10_000):
        log.tell("queue_overused", {"queue": "q" * 100})
    written = stream.getvalue().count("\n")
    assert 1000 <= written < 10_000
    assert stream.writes < written / 100
    log.flush()
    assert stream.getvalue().count("\n") == 10_000


@pytest.mark.parametrize("form", ["text", "json"])
def test_held_lines_read_as_each_alone_in_the_order_in_which_they_were_told(form: Form) -> None:
    told: list[tuple[str, dict[str, object]]] = [
        ("binding", {"task": TASK, "node": "n1"}),
        ("allocating", {}),
        ("binding", {"task": "a, of another type", "node": None}),
        ("binding", {"node": "n3"}),
        ("queue_overused", {"queue": "q"}),
        ("allocating", {}),
    ]
    (together, held), (alone, single) = observer(form=form), observer(form=form)
    for key, fields in told:
        together.tell(key, fields)
        alone.tell(key, fields)
        alone.flush()
    assert held.writes == 0
    together.flush()
    assert held.getvalue().splitlines() == single.getvalue().splitlines()
    assert len(held.getvalue().splitlines()) == len(told)


def test_lines_told_at_once_count_each() -> None:
    log, stream = observer()
    log.tell_all("allocating", 10_000, {})
    assert stream.getvalue().count("\n") == 10_000


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("key", LINES)
def test_many_lines_at_once_read_as_one_by_one(key: str, form: Form) -> None:
    names = dict.fromkeys(LINES[key].fields)
    columns = {name: (0.25,) if place % 3 == 1 else [0.5, float(place), 2.0] for place, name in enumerate(names)}
    (log, together), (other, apart) = observer(form=form), observer(form=form)
    log.tell_all(key, 3, columns)
    for fields in each(3, columns):
        other.tell(key, fields)
    log.flush()
    other.flush()
    assert together.getvalue() == apart.getvalue()
    assert together.getvalue().count("\n") == 3 + LINES[key].text.count("\n") * 3 * (form == "text")


AXES = Axes(["nvidia.com/gpu"])


@pytest.mark.parametrize(
    ("amounts", "texts"),
    [
        ([[1000, 2, 0, 0], [1000, 2, 0, 0]], ["cpu 1000.00, memory 2.00"] * 2),
        ([[1000, 2, 0, 0], [0, -2, 1, 5]],
         ["cpu 1000.00, memory 2.00", "cpu 0.00, memory -2.00, nvidia.com/gpu 5.00, pods 1.00"]),
    ],
)  # fmt: skip
def test_amounts_of_many_rows(amounts: list[list[int]], texts: list[str]) -> None:
    log, stream = observer()
    column = AmountRows(AXES, np.array(amounts, dtype=np.int64).T.copy().T)
    log.tell_all("considering_resources", 2, {"task": [TASK, TASK], "node": "ab", "request": ("r",), "idle": column})
    log.flush()
    assert re.findall("vs. <(.*)>", stream.getvalue()) == texts
    assert [str(amount) for amount in column] == texts


def test_rows_of_another_cluster_are_not_mixed_up() -> None:
    log, stream = observer()
    for axes in (AXES, Axes(["example.com/fpga"])):
        column = AmountRows(axes, np.array([[0, 0, 0, 7]] * 2, dtype=np.int64))
        log.tell_all("considering_resources", 2, {"task": ("t",), "node": ("n",), "request": ("r",), "idle": column})
    log.flush()
    assert re.findall(r"(\w+\.com/\w+)", stream.getvalue()) == ["nvidia.com/gpu"] * 2 + ["example.com/fpga"] * 2


def test_amounts_that_stand_side_by_side_read_as_each_alone() -> None:
    rows = [np.array([[1000 * k, place, 0, 7] for k in range(3)], dtype=np.int64) for place in range(3)]
    told: list[list[Sequence[object]]] = [
        [AmountRows(AXES, rows[0]), AmountRows(AXES, rows[1]), AmountRows(AXES, rows[2])],
        [AmountRows(AXES, rows[0]), AmountRows(AXES, rows[1]), AmountRows(AXES, rows[2][:1])],
        [AmountRows(AXES, rows[2]), ["0"] * 3, AmountRows(Axes(["example.com/fpga"]), rows[1])],
        [AmountRows(AXES, rows[2]), AmountRows(Axes(["example.com/fpga"]), rows[1]), AmountRows(AXES, rows[0][:, :2])],
    ]
    (log, together), (other, apart) = observer(), observer()
    for amounts in told:
        names = ("idle", "used", "releasing")
        columns = {"task": ["a", "b", "c"], "node": "xyz", **dict(zip(names, amounts, strict=True))}
        log.tell_all("after_allocated", 3, columns)
        for fields in each(3, columns):
            other.tell("after_allocated", fields)
    log.flush()
    other.flush()
    assert together.getvalue() == apart.getvalue()
    assert together.getvalue().count("\n") == 12


@pytest.mark.parametrize(
    ("forged", "escaped"),
    [("\nE0101 forged]", "\\nE0101 forged]"), ("\x1b[2J", "\\u001b[2J"), ("\x7f", "\\u007f"), ("\x9b", "\\u009b")],
)
def test_no_column_begins_another_line_or_commands_a_terminal(forged: str, escaped: str) -> None:
    log, stream = observer()
    for key in ("binding", "allocate_operation"):
        log.tell_all(key, 2, {"task": ["ns/a", f"ns/{forged}"], "node": (f"n{forged}",)})
    amounts = AmountRows(Axes([forged]), np.array([[0, 0, 0, 7], [1, 0, 0, 7]], dtype=np.int64))
    log.tell_all("after_allocated", 2, dict.fromkeys(("idle", "used"), amounts) | {"task": "ab", "node": "xy"})
    log.flush()
    lines = stream.getvalue().split("\n")[:-1]
    assert len(lines) == 6
    assert all(line.isprintable() for line in lines)
    assert lines[1].endswith(f"Binding Task <ns/{escaped}> to node <n{escaped}>")
    assert lines[5].count(escaped) == 2


def test_columns_of_other_lengths_are_refused() -> None:
    log, _ = observer()
    log.tell_all("binding", 3, {"task": ["a", "b"], "node": ("n",)})
    with pytest.raises(ValueError, match="size 2"):
        log.flush()
    log.tell("binding", {"task": "a", "node": "n"})
    log.flush()


@pytest.mark.parametrize("key", ["queue_missing", "orphan_skipped"])
def test_errors_and_warnings_are_written_at_once(key: str) -> None:
    log, stream = observer()
    log.tell("queue_overused", {"queue": "q"})
    assert stream.getvalue() == ""
    log.tell(key, {})
    assert stream.getvalue().count("\n") == 2


def test_a_cycle_that_ends_writes_its_lines() -> None:
    log, stream = observer()
    log.started("cycle", "")
    log.tell("queue_overused", {"queue": "q"})
    log.ended("action", "allocate")
    assert stream.getvalue() == ""
    log.ended("cycle", "")
    assert stream.getvalue().count("\n") == 1


def test_time_goes_on_between_lines() -> None:
    times = iter([NOW, NOW + 0.0004, NOW + 1])
    stream = io.StringIO()
    log = LogObserver(stream, 3, "json", clock=lambda: next(times))
    for _ in range(3):
        log.tell("queue_overused", {"queue": "q"})
    log.flush()
    stamps = [json.loads(line)["ts"][17:] for line in stream.getvalue().splitlines()]
    assert stamps == ["20.125000Z", "20.125000Z", "21.125000Z"]


def test_amounts_on_axes_print_what_they_are() -> None:
    axes = Axes(["nvidia.com/gpu"])
    amounts = [OnAxes(axes, (1000 * i, 1 << 30, 0, 0)) for i in range(3)]
    for i, amount in enumerate(amounts * 2):
        text = printed("total_resource", total=amount)
        assert text.endswith(f"<cpu {i % 3 * 1000}.00, memory 1073741824.00>\n")


def test_texts_of_amounts_are_kept_for_no_longer_than_a_session() -> None:
    """Every session has a numbering of its own: what one has told is never asked for again."""

    def alive() -> int:
        return sum(isinstance(one, Axes) for one in gc.get_objects())

    log, _ = observer()
    before = alive()
    for number in range(50):
        for vector in ((1000 * number, 1 << 30), (2000, 1 << 30)):
            log.tell("total_resource", {"total": OnAxes(Axes(), vector)})
        log.flush()
    assert alive() - before <= 1


def test_two_logs_listen_at_their_own_levels() -> None:
    (quiet, few), (loud, many) = observer(0), observer(4)
    both = Several([quiet, loud])
    for key in ("queue_overused", "queue_missing"):
        say = teller(both, key)
        assert say is not None
        say(queue="q", job="ns/a")
    loud.flush()
    assert (few.getvalue().count("\n"), many.getvalue().count("\n")) == (1, 2)


# ----------------------------------------------------------------------------------------------- what is not written


class Full(Written):
    """A stream on a disk that is full for a while."""

    full = True

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        return super().write(text)


def test_lines_that_cannot_be_written_fail_no_work_and_their_number_is_logged() -> None:
    stream = Full()
    log = LogObserver(stream, 5, clock=lambda: NOW, pid=1)
    log.tell("session_closed", {"session": "s"})
    log.tell_all("binding", 3, {"task": ["a", "b", "c"], "node": ["n"]})
    log.flush()
    log.tell("inconsistency", {"text": "urgent"})
    assert (log.lost, stream.getvalue()) == (5, "")
    stream.full = False
    log.tell("inconsistency", {"text": "again"})
    first, second = stream.getvalue().splitlines()
    assert first.startswith("W")
    assert first.endswith("5 log lines could not be written: [Errno 28] No space left on device")
    assert second.endswith("Inconsistent: again")
    log.flush()
    assert len(stream.getvalue().splitlines()) == 2
    stream.close()
    log.tell("inconsistency", {"text": "too late"})
    assert log.lost == 6

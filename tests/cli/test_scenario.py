"""`scenario run`: one answer a line, in order, whatever a line holds."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

from stromboli.cli.main import main
from stromboli.cli.scenario import answers
from tests.cli import manifests as m

CASES = Path("../shared/cases/generated")
CONF = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"


LOUD = """\
import sys
import stromboli.cli.main, stromboli.sim.runner as runner
quiet = runner.run_scenario
def loud(*arguments, **named):
    print("hello")
    return quiet(*arguments, **named)
runner.run_scenario = loud
sys.exit(stromboli.cli.main.main(["scenario", "run"]))
"""
"""A program whose scheduler prints while it runs."""


def scenario(name: str, **more: object) -> str:
    pods = m.gang("j", 2)
    base = {
        "name": name, "conf": CONF, "nodes": [m.node("n1")], "queues": [m.queue("default", state="Open")],
        "podGroups": pods[:1], "pods": pods[1:],
    }  # fmt: skip
    return json.dumps({**base, **more})


def run(lines: list[str], *arguments: str) -> tuple[list[dict[str, object]], str]:
    """The answers, and what else is said; what a process adds to it is tried below, where something prints."""
    given, out, said = TextIOWrapper(BytesIO("\n".join(lines).encode())), TextIOWrapper(BytesIO()), StringIO()
    with patch.object(sys, "stdin", given), redirect_stdout(out), redirect_stderr(said):
        assert main(["scenario", "run", *arguments]) == 0
    return [json.loads(line) for line in out.buffer.getvalue().splitlines()], said.getvalue()


def test_answers_come_in_order_and_a_bad_scenario_does_not_stop_the_next() -> None:
    lines = [
        scenario("good"),
        "nonsense",
        scenario("bad conf", conf="actions: nothing"),
        "",
        scenario("bad pods", pods={"a": 1}),
        "[]",
        '{"name": "empty"}',
        scenario("last", cycles=2),
    ]
    found, errors = run(lines)
    assert errors == ""
    assert [one["name"] for one in found] == ["good", "", "bad conf", "bad pods", "", "empty", "last"]
    assert ["error" in one for one in found] == [False, True, True, True, True, True, False]
    assert "failed to find Action nothing" in str(found[2]["error"])
    assert str(found[3]["error"]).startswith("pods")


def test_the_answer_has_outcome_and_timing_and_no_objects_of_ours() -> None:
    (found,), _ = run([scenario("good")])
    assert set(found) == {"name", "outcome", "timing"}
    outcome = found["outcome"]
    assert isinstance(outcome, dict)
    assert outcome["binds"] == {"ns/j-0": "n1", "ns/j-1": "n1"}
    assert "root" not in outcome["queues"]


def test_compat_is_lenient_where_volcano_is() -> None:
    text = scenario("odd", conf=CONF + "  - name: gagn\n")
    strict, _ = run([text])
    lenient, _ = run([text], "--compat", "volcano")
    assert "did you mean 'gang'" in str(strict[0]["error"])
    assert "outcome" in lenient[0]


def test_an_answer_is_written_before_the_next_scenario_is_read() -> None:
    told: list[str] = []

    def lines() -> list[bytes]:
        return [scenario("one").encode(), scenario("two").encode()]

    def watched():
        for line in lines():
            told.append("read")
            yield line

    for line in answers(watched(), compat=False):
        told.append(json.loads(line)["name"])
    assert told == ["read", "one", "read", "two"]


def test_what_is_printed_meanwhile_does_not_get_between_the_answers() -> None:
    command = [sys.executable, "-c", LOUD]
    done = subprocess.run(command, input=scenario("good"), capture_output=True, text=True, check=True)
    assert [json.loads(line)["name"] for line in done.stdout.splitlines()] == ["good"]
    assert done.stderr == "hello\n"


def test_a_recorded_case_is_answered_as_recorded() -> None:
    if not CASES.is_dir():
        return
    checked = 0
    for file in sorted(CASES.glob("gang/*.json"))[:20]:
        case = json.loads(file.read_text(encoding="utf-8"))
        if case["oracle"]["deterministic"]:
            answer = json.loads(next(answers([json.dumps(case["scenario"]).encode()], compat=True)))
            assert answer["outcome"]["binds"] == case["oracle"]["outcomes"][0]["outcome"].get("binds", {}), file.name
            checked += 1
    assert checked


def test_feature_gates_are_given_on_the_command_line() -> None:
    gated = m.gang("j", 2)
    for pod in gated[1:]:
        pod["spec"]["resources"] = {"requests": {"cpu": "1000"}}
    line = scenario("gates", podGroups=gated[:1], pods=gated[1:])
    binds = []
    for stated in ("PodLevelResources=true", "PodLevelResources=false"):
        (answer,), errors = run([line], "--feature-gates", f"CSIStorage=true,{stated}")
        assert "feature gate CSIStorage makes no difference" in errors
        binds.append(len(answer["outcome"]["binds"]))  # type: ignore[index]
    assert binds == [0, 2]


def test_what_changes_nothing_is_named() -> None:
    options = {"ignoredProvisioners": ["p"]}
    sharded = scenario("s", options=options, podTemplates=[{}, {}])
    one, other = (json.loads(line) for line in answers([sharded.encode(), scenario("t").encode()], compat=False))
    assert one["ignored"] == ["podTemplates: 2 objects of a kind that is not read"]
    assert "ignored" not in other

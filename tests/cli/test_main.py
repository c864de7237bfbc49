"""The command as a whole: help, exit codes, and messages in place of tracebacks."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stromboli.cli import running
from stromboli.cli.main import main
from tests.cli import manifests as m

HEAVY = ("numpy", "yaml", "msgspec", "stromboli.sim", "stromboli.framework", "stromboli.cluster", "prometheus_client")


def test_the_command_is_there_without_the_scheduler_being_loaded() -> None:
    code = "import sys; import stromboli.cli.main; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "stromboli.cli.main" in loaded
    assert [name for name in loaded if name.startswith(HEAVY)] == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["--help"], ("plan", "lint", "conf", "import", "scenario", "Exit codes")),
        (["plan", "--help"], ("--explain", "--cycles", "--exit-code", "Examples", "Exit codes")),
        (["lint", "--help"], ("--strict", "Examples", "Exit codes")),
        (["conf", "show", "--help"], ("--config", "Examples", "Exit codes")),
        (["import", "openb", "--help"], ("NODES.csv", "PODS.csv", "Example", "Exit codes")),
        (["import", "dlrm", "--help"], ("--memory-gib-per-cpu", "--at", "Example", "Exit codes")),
        (["scenario", "run", "--help"], ("--compat", "Example", "Exit codes")),
    ],
)
def test_help_has_examples_and_exit_codes(
    command: list[str], said: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 0
    out = capsys.readouterr().out
    assert [word for word in said if word not in out] == []


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("stromboli 0.")


BROKEN_YAML = "apiVersion: v1\nkind: Pod\nmetadata: {name: a\n"
BAD_QUANTITY = json.dumps(m.pod("a", cpu="abc"))
NO_KIND = "metadata: {name: a}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BROKEN_YAML, ("bad.yaml, document 1",)),
        (BAD_QUANTITY, ("bad.yaml, document 1, Pod ns/a", "spec.containers[0].resources.requests.cpu", "'abc'")),
        (NO_KIND, ("bad.yaml, document 1", "kind")),
        ("- 1\n", ("bad.yaml, document 1",)),
        ("\x00\x01", ("bad.yaml",)),
        ("", ("bad.yaml", "holds no object")),
    ],
)
def test_bad_manifests_are_named_by_place(
    text: str, told: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text(text, encoding="utf-8")
    assert main(["plan", str(tmp_path)]) == 2
    found = capsys.readouterr()
    assert [word for word in told if word not in found.err] == []
    assert "Traceback" not in found.err + found.out


def test_a_bad_object_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = m.write(tmp_path, [m.node("n1"), m.pod("good"), m.pod("bad", cpu="abc")])
    assert main(["plan", path, "-o", "json"]) == 2
    found = capsys.readouterr()
    answer = json.loads(found.out)
    assert answer["outcome"]["binds"] == {"ns/good": "n1"}
    assert len(answer["problems"]) == 1
    assert "Pod ns/bad" in found.err


def test_strict_stops_at_the_first_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = m.write(tmp_path, [m.node("n1"), m.pod("good"), m.pod("bad", cpu="abc")])
    assert main(["plan", path, "--strict", "-o", "json"]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert "Pod ns/bad" in found.err


def test_of_two_objects_of_one_name_the_later_counts_and_that_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = m.write(tmp_path, [m.node("n1", cpu="1"), m.node("n1", cpu="3"), m.pod("a", cpu="2")])
    assert main(["plan", path, "-o", "json"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["outcome"]["binds"] == {"ns/a": "n1"}
    assert "stood already" in found.err


@pytest.mark.parametrize(
    ("conf", "arguments", "code", "told"),
    [
        ("actions: allocat", (), 2, "scheduler.conf:1: failed to find Action allocat; did you mean 'allocate'?"),
        ("actions: allocate\ntiers:\n- plugins:\n  - name: gagn", (), 2, "scheduler.conf:4: unknown plugin gagn"),
        ("actions: allocate\ntiers:\n- plugins:\n  - name: gagn", ("--lenient-config",), 0, "unknown plugin gagn"),
        ("actions: allocate\ntiers:\n- plugins:\n  - name: gagn", ("--compat", "volcano"), 0, "unknown plugin gagn"),
        ("actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    arguments: {x: 1}", (), 0, "added"),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    arguments: {x: 1}",
            ("--strict",), 2, "scheduler.conf:5: unknown argument x",
        ),
        ("actions: allocat", ("--lenient-config",), 2, "scheduler.conf:1: failed to find Action allocat"),
        ("actions: [", (), 2, "scheduler.conf"),
    ],
)  # fmt: skip
def test_bad_configurations_are_told_by_line(
    conf: str, arguments: tuple[str, ...], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = m.write(tmp_path, [m.node("n1"), *m.gang("a", 1)])
    (tmp_path / "scheduler.conf").write_text(conf, encoding="utf-8")
    assert main(["plan", path, "--config", str(tmp_path / "scheduler.conf"), *arguments]) == code
    found = capsys.readouterr()
    assert told in found.err
    assert "Traceback" not in found.err


@pytest.mark.parametrize(
    "command",
    [
        ["plan", "{cluster}", "--config", "{file}"], ["plan", "{cluster}", "--usage", "{file}"],
        ["conf", "show", "--config", "{file}"], ["manifests", "--config", "{file}"],
        ["import", "openb", "{file}", "{file}", "-o", "{file}-d"],
    ],
    ids=lambda command: " ".join(command[:2]),
)  # fmt: skip
def test_files_that_are_no_utf8_are_bad_input(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, cluster = tmp_path / "latin.conf", m.write(tmp_path, [m.node("n1"), m.pod("a")])
    file.write_bytes("# gr\xfcn\nactions: allocate\n".encode("latin-1"))
    assert main([part.format(file=file, cluster=cluster) for part in command]) == 2
    told = capsys.readouterr().err
    assert "latin.conf: is no" in told
    assert "UTF-8" in told


@pytest.mark.parametrize(
    "command",
    [
        ["plan", "nowhere.yaml"],
        ["plan", "--config", "nowhere.conf", "nowhere.yaml"],
        ["conf", "show", "--config", "nowhere.conf"],
        ["lint", "--config", "nowhere.conf"],
        ["lint"],
        ["import", "openb", "nowhere.csv", "nowhere.csv", "-o", "out"],
        ["plan", "--plugins-dir", "nowhere", "nowhere.yaml"],
        ["plan", "--now", "yesterday", "nowhere.yaml"],
        ["plan", "--cycles", "0", "nowhere.yaml"],
        ["plan", "--no-such-option"],
        ["nothing"],
    ],
    ids=" ".join,
)
def test_bad_input_ends_with_2_and_a_sentence(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    found = capsys.readouterr()
    assert found.err.strip()
    assert "Traceback" not in found.err + found.out


def test_an_unexpected_error_is_a_sentence_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_arguments: object, **_named: object) -> None:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr("stromboli.sim.planning.Planning.load", fail)
    assert main(["plan", m.write(tmp_path, [m.node("n1")])]) == 3
    assert "ZeroDivisionError: by nought" in capsys.readouterr().err
    monkeypatch.setenv("STROMBOLI_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["plan", m.write(tmp_path, [m.node("n1")])])


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["plan"], "--now"),
        (["eta", "--record", "rec"], "--at"),
        (["replay", "rec"], "--from"),
        (["replay", "rec"], "--until"),
        (["diff", "rec", "--conf", ""], "--from"),
        (["diff", "rec", "--conf", "", "--closed-loop"], "--until"),
        (["job", "explain", "a", "--record", "rec"], "--from"),
        (["job", "explain", "a", "--record", "rec"], "--to"),
    ],
)
def test_a_wrong_time_is_told_of_its_option(
    command: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, option, "soon"]) == 2
    assert f"Invalid value for {option}: 'soon' is no time" in " ".join(capsys.readouterr().err.split())


def test_an_interrupt_that_no_command_hears_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "command_of", interrupted)
    assert main(["lint"]) == 130


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    path = m.write(tmp_path, [m.node("n1"), *(m.pod(f"p-{number}") for number in range(300))])
    command = f"{sys.executable} -m stromboli.cli.main plan {path} -o json | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True, env=dict(os.environ))
    assert done.stdout.splitlines() == ["{", "0"]
    assert "Traceback" not in done.stderr


PLUGIN = """\
from stromboli.plugin import Plugin, Reason, predicate

class Never(Plugin):
    name = "never"

    @predicate
    def refuse(self, task, node):
        {body}
"""


@pytest.mark.parametrize(
    ("body", "binds", "told"),
    [
        ("return Reason('node(s) are mine')", {}, ""),
        ("raise RuntimeError('oh')", {"ns/a": "n1"}, "plugin never: RuntimeError: oh"),
    ],
)
def test_plugins_come_from_a_directory_and_a_broken_one_is_put_aside(
    body: str, binds: dict[str, str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "never.py").write_text(PLUGIN.format(body=body), encoding="utf-8")
    (tmp_path / "scheduler.conf").write_text(m.CHART + "  - name: never\n", encoding="utf-8")
    path = m.write(tmp_path, [m.node("n1"), m.pod("a")])
    command = ["plan", path, "--config", str(tmp_path / "scheduler.conf"), "--plugins-dir", str(folder), "-o", "json"]
    assert main(command) == 0
    found = capsys.readouterr()
    answer = json.loads(found.out)
    assert answer["outcome"]["binds"] == binds
    assert told in found.err
    if not binds:
        assert "1 node(s) are mine" in answer["reasons"]["ns/podgroup-a"]["message"]


def test_the_log_goes_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = m.write(tmp_path, [m.node("n1"), m.pod("a")])
    assert main(["plan", path, "-v", "3", "--log-format", "json", "-o", "json"]) == 0
    found = capsys.readouterr()
    lines = [json.loads(line) for line in found.err.splitlines() if line.startswith("{")]
    assert "Binding Task <ns/a> to node <n1>" in [line["msg"] for line in lines]
    assert json.loads(found.out)["outcome"]["binds"] == {"ns/a": "n1"}


def test_manifests_come_from_standard_input(tmp_path: Path) -> None:
    text = Path(m.write(tmp_path, [m.node("n1"), m.pod("a")])).read_text(encoding="utf-8")
    for files in (["-"], []):
        command = [sys.executable, "-m", "stromboli.cli.main", "plan", *files, "-o", "json", "--exit-code"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["outcome"]["binds"] == {"ns/a": "n1"}


def test_colours_only_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = m.write(tmp_path, [m.node("n1"), m.pod("a")])
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    command = [sys.executable, "-m", "stromboli.cli.main", "plan", path]
    piped = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    assert "\x1b[" not in piped
    assert "\x1b[" in on_a_terminal(command, {**environment, "TERM": "xterm-256color"})
    plain = on_a_terminal(command, {**environment, "TERM": "xterm-256color", "NO_COLOR": "1"})
    assert not [code for code in re.findall(r"\x1b\[([0-9;]*)m", plain) if re.search(r"(^|;)3[0-9]", code)]


def on_a_terminal(command: list[str], environment: dict[str, str]) -> str:
    """What a command prints on a pseudo-terminal."""
    master, slave = pty.openpty()
    with subprocess.Popen(command, stdout=slave, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(slave)
        text = b""
        with contextlib.suppress(OSError):  # Linux ends a pseudo-terminal's reading with an error
            while part := os.read(master, 4096):
                text += part
        process.wait()
    os.close(master)
    return text.decode()


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_a_configuration_is_shown_without_its_secrets(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scheduler.conf"
    file.write_text(
        'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n    arguments: {gang.apiToken: hunter2}\n'
        "metrics: {type: elasticsearch, address: 'https://me:hunter2@es:9200', elasticsearch.username: reader,\n"
        "  elasticsearch.password: hunter2}\n"
    )
    assert main(["conf", "show", "--config", str(file), "-o", form]) == 0
    told = capsys.readouterr()
    assert "hunter2" not in told.out + told.err
    assert "(hidden)" in told.out
    assert "reader" in told.out


def test_help_begins_with_what_stromboli_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "A batch scheduler for Kubernetes in Volcano's place: schedule a live cluster" in text
    assert "without a cluster" not in text


def test_a_short_file_with_a_long_table_is_shown_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiers = "\n".join(["- &tier", "  plugins: [{name: priority}, {name: gang}]", *["- *tier"] * 200])
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(f'actions: "allocate"\ntiers:\n{tiers}\n')
    assert main(["conf", "show", "--config", str(path)]) == 0
    told = capsys.readouterr().out
    assert "more rows: -o json shows all" in told
    assert len(told.splitlines()) < 2_100
    path.write_text(f'actions: "allocate"\ntiers:\n- plugins:\n  - name: sla\n    arguments: {{x: {"a" * 70_000}}}\n')
    assert main(["conf", "show", "--lenient-config", "--config", str(path)]) == 0
    assert "a..." in capsys.readouterr().out.replace("\n", "")

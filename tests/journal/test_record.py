"""Recording live schedulers, and replaying what was recorded: every plan once more, bit by bit."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from stromboli.cli.main import main
from stromboli.cluster.rim import Applied, Cut, Decided, Learned, Reserved, Rim, StatusSet
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.errors import ConfigError, RecordError
from stromboli.framework.books.plan import Plan
from stromboli.journal.entries import Configured, Planned
from stromboli.journal.segments import Segment, segments, surplus
from stromboli.live.process.events import Telling
from stromboli.live.process.flags import parse
from stromboli.live.process.process import Process
from stromboli.live.scheduler.configuration import Configuration, Source
from stromboli.live.scheduler.recording import USUAL, Configurations, Limits, Recorder, record
from stromboli.narration.observe import SILENT, Counting
from stromboli.study.past import planning_of
from stromboli.study.replay import Entry, Moment, Reading, Replay, entries, standings
from stromboli.testing import builders
from stromboli.testing.builders import state
from tests.support.contested import Contested
from tests.support.live_world import PREEMPTING, gang, node, pod
from tests.support.virtual import run

HOUR = 3600.0
PERIOD = 30.0
SECRET = "hunter2-planted"


class Hour(Contested):
    """An hour of a cluster: jobs and nodes come and go, faults, evictions, two schedulers that lead in turn."""

    def __init__(self, conf: Path, folder: Path) -> None:
        super().__init__(conf)
        self.folder, self.leader = folder, 0
        self.dice = random.Random(7)
        self.recorders: list[object] = []

    def leading(self, number: int) -> asyncio.Task[None]:
        scheduler = self.mortal(may_write=lambda: self.leader == number, schedule_period=PERIOD)
        self.recorders.append(record(scheduler, self.folder / f"s{number}", Limits(segment_seconds=900)))
        return self.start(scheduler)

    async def churn(self) -> None:
        for number in range(60):
            await asyncio.sleep(self.dice.uniform(20, 80))
            match number % 5:
                case 0:
                    self.server.put("nodes", node(f"extra{number}", 4, zone=str(number)))
                case 1 if number > 5:
                    self.server.drop("nodes", f"extra{number - 6}")
                case 2:
                    gang(self.server, f"job{number}", self.dice.randint(1, 6), least=1)
                case 3:
                    self.fail(number)
                case 4:
                    secret = {"example.com/token": SECRET, "kubectl.kubernetes.io/last-applied-configuration": SECRET}
                    lone = pod(f"lone{number}", cpu=self.dice.randint(1, 3))
                    lone["metadata"]["annotations"] |= secret
                    lone["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
                    self.server.put("pods", lone)

    def fail(self, number: int) -> None:
        """The watches end, and pods that run are done."""
        self.server.cut()
        for found in self.server.all("pods"):
            if found["status"]["phase"] == "Running" and self.dice.random() < 0.4:
                self.server.drop("pods", found["metadata"]["name"], "ns")


def recorded_hour(tmp_path: Path) -> Path:
    async def story() -> None:
        world = Hour(tmp_path / "conf.yaml", tmp_path / "rec")
        first = world.leading(0)
        world.leading(1)
        await asyncio.sleep(60)
        world.contend()
        await asyncio.sleep(120)
        churn = asyncio.create_task(world.churn())
        await asyncio.sleep(HOUR / 3)
        world.leader = 1
        await asyncio.sleep(HOUR / 3)
        first.cancel()
        world.leader = 2
        world.leading(2)
        await asyncio.sleep(HOUR / 3)
        churn.cancel()
        await world.end()
        for one in world.recorders:
            one.close()  # type: ignore[attr-defined]

    run(story())
    return tmp_path / "rec"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and sentences on one line, whatever the terminal of the tests."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stromboli.live.scheduler.scheduler.LOOK_EVERY", PERIOD / 2)
        yield recorded_hour(tmp_path_factory.mktemp("hour"))


def replayed(folder: Path) -> Replay:
    replay = Replay()
    for segment in segments(folder):
        if not replay.read(segment):
            break
    return replay


def test_an_hour_with_faults_and_changes_of_leaders_is_replayed_bit_by_bit(hour: Path) -> None:
    found = {folder.name: replayed(folder) for folder in sorted(hour.iterdir())}
    assert {name: one.difference for name, one in found.items()} == dict.fromkeys(("s0", "s1", "s2"))
    assert all(one.equal > 30 for one in found.values())
    assert sum(one.equal for one in found.values()) > 0.9 * HOUR / PERIOD
    made = [one.change for file in hour.rglob("*.stj") for one in entries(Segment(file)) if isinstance(one, Entry)]
    assert {type(change) for change in made} >= {Applied, Decided, Reserved, StatusSet, Learned, Cut, Planned}
    assert any(isinstance(change, Planned) and change.evictions for change in made)


def test_nothing_that_was_planted_is_in_the_record(hour: Path) -> None:
    content = b"".join(frame.content for file in hour.rglob("*.stj") for frame in Segment(file).frames())
    assert b"lone" in content
    assert SECRET.encode() not in content
    assert {file.stat().st_mode & 0o777 for file in hour.rglob("*.stj")} == {0o600}


def small(hour: Path) -> Path:
    return min((hour / "s2").glob("*.stj"), key=lambda file: file.stat().st_size)


def failure(segment: Segment, read: list[tuple[int, bytes]]) -> RecordError | None:
    """What is wrong with a segment; ``read`` gets the places and kinds of the frames before."""
    try:
        read.extend((frame.at, frame.kind) for frame in segment.frames())
    except RecordError as error:
        return error
    return None


def damaged(content: bytes, dice: random.Random) -> bytes:
    """A record cut short, with a bit turned over, a part gone or twice there, or two parts in each other's place."""
    a, b, c = sorted(dice.randrange(len(content) + 1) for _ in range(3))
    flipped = bytearray(content)
    flipped[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    parts = (content[:a], content[:a] + content[b:], content[:b] + content[a:], bytes(flipped))
    return dice.choice((*parts, content[:a] + content[b:c] + content[a:b] + content[c:]))


def test_a_damaged_record_is_read_up_to_the_damage_which_is_named(hour: Path, tmp_path: Path) -> None:
    content = small(hour).read_bytes()
    whole = [(frame.at, frame.kind) for frame in Segment(small(hour)).frames()]
    file, dice = tmp_path / "rec-1-0.stj", random.Random(11)
    refused = 0
    for _ in range(200):
        file.write_bytes(broken := damaged(content, dice))
        segment, read = Segment(file), list[tuple[int, bytes]]()
        error = failure(segment, read)
        assert error is None or (error.file == str(file) and 0 <= error.place <= len(broken))
        assert read == whole[: len(read)]
        assert error is not None or segment.cut_off or broken == content or not segment.closed
        refused += error is not None
    assert refused > 50


def frames(file: Path) -> list[bytes]:
    content = file.read_bytes()
    begins = [frame.at for frame in Segment(file).frames()]
    return [content[a:b] for a, b in zip(begins, [*begins[1:], len(content)], strict=True)]


@pytest.mark.parametrize("order", [(0, 1, 3, 2), (0, 1, 2, 2), (0, 1, 3), (0, 2, 1, 3), (1, 0, 2)])
def test_frames_that_are_missing_or_elsewhere_are_refused(hour: Path, tmp_path: Path, order: tuple[int, ...]) -> None:
    found = frames(small(hour))
    file = tmp_path / "rec-1-0.stj"
    file.write_bytes(b"".join(found[number] for number in order))
    result = main(["record", "verify", str(file)])
    assert result == (0 if order == (1, 0, 2) else 2)


def test_it_is_replayed_under_another_hash_seed(hour: Path) -> None:
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    asked = [sys.executable, "-m", "stromboli.cli.main", "replay", str(small(hour))]
    done = subprocess.run(
        asked, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert " equal" in done.stdout


def test_another_plan_is_shown_where_it_stands(
    hour: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def another(*given: object) -> Plan:
        plan = run_cycle(*given)  # type: ignore[arg-type]
        plan.binds = []
        return plan

    monkeypatch.setattr("stromboli.study.replay.run_cycle", another)
    assert main(["replay", str(hour / "s0"), "--job", "ns/high"]) == 1
    out, told = capsys.readouterr()
    assert "is another one now" in told
    assert "binds ns/" in told
    assert "now none" in told
    assert "ns/high" not in out or "cycle" in out


def test_a_disk_that_is_full_ends_the_record_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> int:
        raise OSError(28, "No space left on device")

    async def story() -> None:
        world = Contested(tmp_path / "conf.yaml")
        scheduler = world.mortal()
        recorder = record(scheduler, tmp_path / "rec")
        with monkeypatch.context() as patch:
            patch.setattr("stromboli.live.scheduler.recording.segments.write", full)
            world.start(scheduler)
            while not recorder.failures:
                await asyncio.sleep(1)
                await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0.001)
        world.contend()
        await asyncio.sleep(100)
        assert all(world.high())
        await world.end()
        recorder.close()
        assert recorder.failures == 1
        assert world.told.counts["record_stopped"] == 1

    run(story())
    assert replayed(tmp_path / "rec").equal > 20


def test_the_oldest_segments_are_removed_first_and_the_newest_never() -> None:
    files = [(Path(str(number)), 100, 1000.0 * number) for number in range(5)]
    assert [path.name for path in surplus(files, 250, 0.0)] == ["0", "1", "2"]
    assert [path.name for path in surplus(files, 10_000, 1500.0)] == ["0", "1"]
    assert [path.name for path in surplus(files, 0, 9000.0)] == ["0", "1", "2", "3"]


def test_flags_say_where_is_recorded_and_how_much(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--master=http://127.0.0.1:1", "--leader-elect=false", f"--record={tmp_path / 'rec'}"]
    process = Process(parse([*flags, "--record-max-size=1Mi", "--record-max-age=1h"]))
    assert process.recorder is not None
    assert process.recorder.limits[3:] == (1 << 20, 3600.0)
    process.scheduler.mirror.rim.do(Cut(1_800_000_000.0, 0, 0))
    process.scheduler.when_planned(Plan())
    process.recorder.close()
    assert b"stromboli_record_bytes_total" in generate_latest(process.registry)
    (segment,) = segments(tmp_path / "rec")
    assert [frame.kind for frame in segment.frames()] == [b"A", b"C", b"E", b"Z"]
    assert main(["record", "info", str(tmp_path / "rec")]) == 0
    assert "2027-01-15T08:00:00Z" in capsys.readouterr().out
    usual = Process(parse(flags)).recorder
    assert usual is not None
    assert usual.limits == USUAL
    with pytest.raises(ConfigError, match="--record-max-size=much"):
        Process(parse([*flags, "--record-max-size=much"]))


def test_the_configuration_is_recorded_without_its_secrets(tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    metrics = f"metrics: {{type: elasticsearch, address: 'http://u:{SECRET}@h', elasticsearch.password: {SECRET}}}\n"
    conf.write_text(f"{PREEMPTING}{metrics}")
    entry = Configurations(Configuration(Source(str(conf)), Telling(SILENT)))()
    assert "elasticsearch.password" in entry.text
    assert SECRET not in entry.text


def test_what_cannot_be_recorded_ends_the_record_and_not_the_cycle(tmp_path: Path) -> None:
    def gone() -> Configured:
        raise OSError(2, "No such file or directory")

    told, rim = Counting(keep=10), Rim(ClusterState())
    recorder = Recorder(tmp_path, rim, gone, Telling(told), lambda: 1000.0)
    rim.do(Cut(1000.0, 0, 0))
    recorder.planned(Plan())
    recorder.close()
    (fields,) = told.of("record_stopped")
    assert "No such file or directory" in str(fields["error"])


def test_a_thousand_segments_of_one_moment_share_a_folder_and_no_more(tmp_path: Path) -> None:
    conf, told = Configured("", False, False, [], None), Counting(keep=10)
    for number in range(999):
        (tmp_path / f"rec-00000001000000-{number:03d}.stj").touch()
    for more in (0, 1):
        rim = Rim(ClusterState())
        recorder = Recorder(tmp_path, rim, lambda: conf, Telling(told), lambda: 1000.0)
        for cut in range(2000 * more + 1):
            if not told.of("record_stopped"):  # the writer has a thread of its own
                rim.do(Cut(1000.0, cut, 0))
                time.sleep(0.001)
        recorder.close()
        assert len(list(tmp_path.iterdir())) == 1000
    (fields,) = told.of("record_stopped")
    assert "has a thousand segments of this moment" in str(fields["error"])


def test_no_cycle_is_far_from_the_beginning_of_its_segment(tmp_path: Path) -> None:
    rim, conf = Rim(ClusterState()), Configured("", False, False, [], None)
    recorder = Recorder(tmp_path, rim, lambda: conf, Telling(SILENT), lambda: 1000.0, Limits(segment_entries=10))
    for number in range(20):
        rim.do(Cut(1000.0 + number, 0, 0))
        rim.do(Learned({"p": {"a": float(number)}}))
        recorder.planned(Plan())
    recorder.close()
    found = segments(tmp_path)
    assert [sum(isinstance(one, Entry) for one in entries(segment)) for segment in found] == [10] * 6 + [7]
    stood = [(now, state.memory.get("p")) for segment in found for state, _, now in standings(segment, 1018.0)]
    assert stood == [(1000.0 + number, {"a": float(number)}) for number in range(19)]


def test_a_segment_holds_at_least_two_entries_for_each_pod(tmp_path: Path) -> None:
    rim, conf = Rim(state(*(builders.pod(f"p{n}") for n in range(10)))), Configured("", False, False, [], None)
    recorder = Recorder(tmp_path, rim, lambda: conf, Telling(SILENT), lambda: 1000.0, Limits(segment_entries=1))
    for number in range(20):
        rim.do(Cut(1000.0 + number, 0, 0))
        recorder.planned(Plan())
    recorder.close()
    counts = [sum(isinstance(one, Entry) for one in entries(segment)) for segment in segments(tmp_path)]
    assert counts == [21, 21]  # a segment begins with a cycle, once the last one has 20


def test_another_policy_is_compared_cycle_by_cycle(
    hour: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same, other = tmp_path / "same.conf", tmp_path / "other.conf"
    same.write_text(PREEMPTING)
    other.write_text(PREEMPTING.replace("enqueue, allocate, preempt, backfill", "enqueue, backfill"))
    first = str(min((hour / "s0").glob("*.stj")))
    assert main(["diff", first, "--conf", str(same)]) == 0
    assert capsys.readouterr().out.startswith("0 differences in ")
    assert main(["diff", first, "--conf", str(other)]) == 1
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:-1]]
    evicted = [row for row in rows if row[1] == "evict"]
    assert evicted, rows
    assert {row[5] for row in evicted} == {"-"}
    assert {row[2] for row in evicted} == {"ns/low"}


PAGE = Path(__file__).parents[2] / "docs" / "insight.md"


def test_the_page_leads_from_a_record_to_a_policy_diff_in_five_commands(
    hour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = min((hour / "s0").glob("*.stj"))
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec" / segment.name).write_bytes(segment.read_bytes())
    (tmp_path / "new.conf").write_text(PREEMPTING.replace("allocate, preempt", "allocate"))
    monkeypatch.chdir(tmp_path)
    block = PAGE.read_text(encoding="utf-8").split("```sh\n")[2].split("```")[0]
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert [main(command[1:]) for command in commands] == [0, 0, 0, 0, 1]
    out = capsys.readouterr().out
    assert "1 of 1 segment whole" in out
    assert "0 of 2 pods on nodes" in out
    assert "2 of 2 pods on nodes" in out
    assert "evict  ns/low" in out


def test_a_past_wait_is_explained_with_its_numbers(hour: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = str(min((hour / "s0").glob("*.stj")))
    assert main(["job", "explain", "high", "-n", "ns", "--record", segment]) == 0
    out = capsys.readouterr().out
    spans, *explanations = out.split("\n\n")
    assert "0 of 2 pods on nodes" in spans
    assert "2 of 2 pods on nodes" in spans
    assert len(explanations) >= 2
    waiting = next(text for text in explanations if "0 of 2 pods on nodes" in text)
    assert "job ns/high: waits: 2 pods without a node, 2 needed at once" in waiting
    assert "idle cpu 0" in waiting
    assert main(["job", "explain", "missing", "-n", "ns", "--record", segment]) == 2


def test_the_cycle_that_is_explained_is_the_recorded_one(hour: Path) -> None:
    begun: list[Moment] = []
    digests: list[tuple[bytes, bytes]] = []
    again: list[Plan] = []
    reading = Reading()

    def begin(moment: Moment) -> None:
        begun.append(moment)
        again[:] = planning_of(moment, reading.registry).plans if len(begun) % 9 == 4 else []

    def planned(entry: Planned) -> None:
        digests.extend((entry.digest, Planned.of(plan).digest) for plan in again)

    reading.read(segments(hour / "s0")[0], begin, planned)
    assert len(digests) >= 2
    assert all(then == now for then, now in digests)

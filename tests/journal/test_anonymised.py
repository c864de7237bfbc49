"""A record with other names: nothing that users have named is in it, and it decides the same."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from stromboli.builtin import full_registry
from stromboli.cli.main import main
from stromboli.cluster.rim import Change, GatesSet, Learned, Measured
from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.journal import segments as segments_module
from stromboli.journal.entries import Planned, decode
from stromboli.journal.pseudonyms import Pseudonyms
from stromboli.journal.segments import Segment, segments
from stromboli.model.objects.shard import MODES
from stromboli.model.usage import NodeUsage
from stromboli.study.anonymised import Anonymised
from stromboli.study.replay import Entry, entries
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.support.filled_record import filled_record as filled_record
from tests.support.written_record import WrittenRecord

REGISTRY = full_registry("")
CHIPS = """\
actions: "allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - {name: deviceshare, arguments: {deviceshare.AscendMindClusterVNPUEnable: true}}
"""
ROOT = Path(__file__).parents[2] / "src" / "stromboli"


def test_equalities_stay_and_the_order_of_nodes() -> None:
    names = Pseudonyms()
    texts = ["ns/train-b-2", "ns/train-a-10", "node2", "node10", "gpu-4", "gpu-10", "cpu", "12Gi", "a b c"]
    names.seen(texts, nodes=["node10", "node2", "gpu-4", "gpu-10", "gpu"])
    names.settle()
    b, a, two, ten, four, more, *kept, prose = names.told(texts)
    assert a < b, "by text"
    assert (a.endswith("-10"), b.endswith("-2")) == (True, True)
    assert a.partition("/")[0] == b.partition("/")[0]
    assert four < more < two < ten, "nodes by number"
    assert kept == ["cpu", "12Gi"]
    assert prose == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("volcano.sh/queue-name", "volcano.sh/queue-name"),
        ("volcano.sh/secret-merger", "volcano.sh/x000001"),
        ("secret.k8s.io/queue", "x000002/queue"),
        ("batch.volcano.sh/v1alpha1", "batch.volcano.sh/v1alpha1"),
        ("node.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        ("node.kubernetes.io/secret-merger", "node.kubernetes.io/x000001"),
        ("hugepages-2Mi", "hugepages-2Mi"),
        ("hugepages-secret", "x000000"),
    ],
)
def test_known_keys_are_kept_and_what_users_put_behind_known_domains_is_not(text: str, expected: str) -> None:
    names = Pseudonyms()
    names.seen(["secret.k8s.io", "secret-merger", "hugepages-secret", text])
    names.settle()
    assert names.told(text) == expected


def test_every_key_that_the_source_names_is_known() -> None:
    """Those that tenants or controllers read and write on what is recorded; what is made of parts is named here."""
    domain = r"(?:[a-z0-9-]+\.)*(?:k8s\.io|kubernetes\.io|volcano\.sh|hami\.io|stromboli\.dev)"
    found = {
        key
        for package in ("model", "cluster", "plugins", "filters", "framework", "study", "reservations")
        for file in (ROOT / package).rglob("*.py")
        for key in re.findall(f'"({domain}/[A-Za-z0-9._-]*[A-Za-z0-9])"', file.read_text(encoding="utf-8"))
    }
    names = Pseudonyms()
    assert len(found) > 80
    assert {key for key in found if not names._is_kept(key)} == set()


def test_every_value_that_the_source_compares_annotations_with_is_known() -> None:
    """As it is written there, or as a constant of the module; those that are compared later are named here."""
    compared = re.compile(r"(?:annotations|labels|notes)\.get\([^()]*\) (?:==|!=) (_?[A-Z][A-Z_]*\b|\"[^\"]*\")")
    found = {"none", "hard", "soft", "true", "false", "MostAllocated", "LeastAllocated", "same", "apart", "pack",
             "spread", "restricted", "best-effort", "single-numa-node", "hami-core", "mig", "*",
             "allocating"}  # fmt: skip
    count = 0
    for package in ("model", "cluster", "plugins", "filters", "framework", "study", "reservations", "allocation"):
        for file in (ROOT / package).rglob("*.py"):
            for word in compared.findall(file.read_text(encoding="utf-8")):
                name = ".".join(file.relative_to(ROOT.parent).with_suffix("").parts)
                found.add(word[1:-1] if word[0] == '"' else getattr(importlib.import_module(name), word))
                count += 1
    assert count >= 6
    names = Pseudonyms()
    assert {value for value in found if not names._is_kept(value)} == set()


@pytest.mark.parametrize("mode", MODES)
def test_shards_stay_what_they_are(mode: str, tmp_path: Path) -> None:
    record = WrittenRecord(tmp_path / "rec")
    record.rim.state.nodes.shards.set_mode(mode, "mine")
    record.apply(node("n1"))
    record.begin(0)
    before = record.rim.state.snapshot()
    assert anonymised(record, tmp_path / "out").left_out == 0
    (segment,) = segments(tmp_path / "out")
    (after,) = (one[0].snapshot() for one in entries(segment) if not isinstance(one, Entry))
    assert (after.shard, [*map(nameless, after.inconsistencies)]) == (
        before.shard, [*map(nameless, before.inconsistencies)],
    )  # fmt: skip


def nameless(text: str) -> str:
    return re.sub("mine|x[0-9]{6}", "NAME", text)


def test_keys_of_a_plugins_memory_get_the_names_of_what_they_are_about() -> None:
    names = Pseudonyms()
    plain = [{"stromboli/reservations": {"held uid-a node1": 5.0}}, "uid-a", "held uid-a"]
    names.seen(plain, nodes=["node1"])
    names.settle()
    memory, pod, said = names.told(plain)
    assert memory == {"stromboli/reservations": {f"held {pod} n000000": 5.0}}
    assert said == ""


def test_a_record_is_given_away_without_names(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "out"
    assert main(["record", "anonymise", str(filled_record), "--into", str(into)]) == 0
    said = capsys.readouterr().out.split()
    assert said[0] == said[3], "all cycles decide the same"
    content = b"".join(frame.content for file in into.glob("*.stj") for frame in Segment(file).frames())
    for name in (b"later-", b"early", b"urgent", b"pressing", b"more"):
        assert name not in content, name
    assert {file.stat().st_mode & 0o777 for file in into.glob("*.stj")} == {0o600}
    assert main(["replay", str(into)]) == 0
    assert main(["record", "anonymise", str(filled_record), "--into", str(into)]) == 2


def anonymised(record: WrittenRecord, into: Path) -> Anonymised:
    record.close()
    found = Anonymised(record.folder, into, REGISTRY)
    found.write()
    return found


def changes(folder: Path) -> list[Change]:
    return [one.change for segment in segments(folder) for one in entries(segment) if isinstance(one, Entry)]


def test_a_plan_that_cannot_be_made_by_the_other_names_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was planned by the real ones is never written instead."""
    record = WrittenRecord(tmp_path / "rec")
    record.begin(0)
    record.apply(queue("default"), node("secret-node"), pod_group("secret"), pod("secret-0", group="secret"))
    record.cycle(0)
    record.apply(pod_group("other"), pod("other-0", group="other"))
    record.cycle(1)
    record.close()
    run, made = run_cycle, list[None]()

    def failing(*given: Any) -> Plan:
        made.append(None)
        if len(made) == 1:
            raise ValueError("no such name")
        return run(*given)

    monkeypatch.setattr("stromboli.study.anonymised.run_cycle", failing)
    assert main(["record", "anonymise", str(tmp_path / "rec"), "--into", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("1 cycle written, 1 of them decide the same")
    assert "note: the plans of 1 cycle are left out" in said.err
    assert "ValueError: no such name" in said.err
    content = b"".join(frame.content for file in (tmp_path / "out").iterdir() for frame in Segment(file).frames())
    assert b"secret" not in content
    assert len([one for one in changes(tmp_path / "out") if isinstance(one, Planned)]) == 1
    assert main(["replay", str(tmp_path / "out")]) == 0


def test_a_plan_about_a_pod_that_no_state_has_is_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    record = WrittenRecord(tmp_path / "rec")
    record.begin(0)
    record.apply(queue("default"), node("n1"), pod_group("a"), pod("a-0", group="a"))
    plan = record.cycle(0)
    elsewhere = WrittenRecord(tmp_path / "other")
    elsewhere.begin(0)
    elsewhere.apply(queue("default"), node("n1"), pod_group("b"), pod("stranger-0", group="b"))
    record.note(Planned.of(elsewhere.cycle(0)))
    assert plan.binds
    record.close()
    elsewhere.close()
    assert main(["record", "anonymise", str(tmp_path / "rec"), "--into", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "a plan names 'stranger', which no state has" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("key", [b"\x01\x02", b"\xa2\xff\xfe", b"\x91" * 5000], ids=["two", "no text", "deep"])
def test_a_checkpoint_with_bytes_that_cannot_be_read_is_damage(
    key: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    record = WrittenRecord(tmp_path / "rec")
    record.apply(queue("default"), node("n1"), pod_group("a"), pod("a-0", group="a"))
    known = record.rim.state.templates._known
    [template] = known.values()
    known.clear()
    known[key] = template
    record.begin(0)
    record.close()
    assert main(["record", "anonymise", str(tmp_path / "rec"), "--into", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "bytes in it are no MessagePack" in said
    assert "Traceback" not in said


def test_each_segment_begins_with_its_own_checkpoint(tmp_path: Path) -> None:
    """What happened while nothing was recorded is in the next one; gates, loads and memory are, too."""
    record = WrittenRecord(tmp_path / "rec")
    record.rim.do(GatesSet(["InPlacePodVerticalScaling"]))
    record.rim.do(Measured({"n1": NodeUsage(0.5, {"10m": 0.25})}))
    record.rim.do(Learned({"sla": {"kept": 1.0}}))
    record.apply(queue("default"), node("n1"))
    record.begin(0)
    record.apply(pod_group("a"), pod("a-0", group="a"))
    assert len(record.cycle(0).binds) == 1
    record.close()
    record.apply(node("n2"), pod_group("b"), pod("b-0", group="b", cpu=4))  # not recorded
    record.begin(60)
    assert [bind.node for bind in record.cycle(60).binds] == ["n2"]
    found = anonymised(record, tmp_path / "out")
    assert (found.cycles, found.alike, found.left_out) == (2, 2, 0)
    plans = [one for one in changes(tmp_path / "out") if isinstance(one, Planned)]
    assert [[bind.node for bind in plan.binds] for plan in plans] == [["n000000"], ["n000001"]]
    first, second = (
        next(one[0] for one in entries(segment) if not isinstance(one, Entry)) for segment in segments(tmp_path / "out")
    )
    assert first.templates.gates.in_place_resize
    assert list(first.usage) == ["n000000"]
    assert list(first.memory) == ["sla"]
    assert len(second.tasks) == 2


def test_frames_stay_as_small_as_the_recorder_makes_them(tmp_path: Path) -> None:
    record = WrittenRecord(tmp_path / "rec")
    record.begin(0)
    for at in range(3):
        record.apply(*(node(f"n{at}-{number}") for number in range(segments_module.FRAME // 2)))
        record.flush()
    record.apply(*(node(f"m{number}") for number in range(2 * segments_module.FRAME)))
    anonymised(record, tmp_path / "out")
    (segment,) = segments(tmp_path / "out")
    frames = [decode(frame.content) for frame in segment.frames() if frame.kind == segments_module.ENTRIES]
    assert [len(one) for one in frames] == [501, 500, 500, 1000, 1000]
    assert len(changes(tmp_path / "out")) == 3501


def chips(name: str, key: str, report: Any, namespace: str = "kube-system") -> Any:
    meta = {"name": name, "namespace": namespace, "labels": {"mx-consumer-cim": "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {key: json.dumps(report)}}


def test_what_mind_cluster_reports_of_chips_is_kept(tmp_path: Path) -> None:
    """In the checkpoint and in later reports: what pods have, and which chips are left, is the same."""
    core, lists = "huawei.com/npu-core", {"huawei.com/Ascend310P": "Ascend310P-0,Ascend310P-1", "secret": "secret"}
    labels = {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8"}
    record = WrittenRecord(tmp_path / "rec", CHIPS)
    nodes = [node(f"secret-{n}", resources={core: 16}, labels=labels) for n in (1, 2)]
    runs = pod("a-0", group="a", on="secret-1", requests={core: "4"},
               annotations={core: "0-vir04_3c", "huawei.com/AscendReal": "Ascend310P-4c.3cpu-100-0_1"})  # fmt: skip
    first = chips("mindx-dl-deviceinfo-secret-1", "DeviceInfoCfg", {"DeviceInfo": {"DeviceList": lists}})
    record.apply(queue("default"), *nodes, pod_group("a"), runs, first)
    record.begin(0)
    record.apply(pod_group("b"), pod("b-0", group="b", requests={core: "4"}))
    second = {"DeviceInfo": {"DeviceList": {"huawei.com/Ascend310P": "Ascend310P-0"}, "Fault": "secret " * 99}}
    apart = chips("mindx-dl-nodeinfo-secret-1", "NodeInfo", {"NodeInfo": {"NodeStatus": "PreSeparate"}}, "mindx-dl")
    made = [record.cycle(0).binds]
    record.apply(chips("mindx-dl-deviceinfo-secret-2", "DeviceInfoCfg", second), apart)
    record.apply(pod_group("c"), pod("c-0", group="c", requests={core: "4"}))
    made.append(record.cycle(1).binds)
    assert [[(bind.node, bind.annotations[core]) for bind in binds] for binds in made] == [
        [("secret-1", "0-vir04_3c")], [("secret-2", "0-vir04_3c")],
    ]  # fmt: skip
    found = anonymised(record, tmp_path / "out")
    assert (found.cycles, found.alike, found.left_out) == (2, 2, 0)
    plans = [one for one in changes(tmp_path / "out") if isinstance(one, Planned)]
    assert [[(bind.node, bind.annotations[core]) for bind in plan.binds] for plan in plans] == [
        [("n000000", "0-vir04_3c")], [("n000001", "0-vir04_3c")],
    ]  # fmt: skip
    content = b"".join(frame.content for file in (tmp_path / "out").glob("*.stj") for frame in Segment(file).frames())
    assert b"secret" not in content


@pytest.mark.parametrize(
    ("key", "text"),
    [("DeviceInfoCfg", "secret"), ("DeviceInfoCfg", "{}"), ("NodeInfo", '{"NodeInfo": {"NodeStatus": "secret"}}')],
)
def test_reports_that_say_nothing_of_chips_are_left_out(key: str, text: str) -> None:
    names = Pseudonyms()
    names.settle()
    assert names.told({key: text}) == {key: ""}

"""The published traces from end to end: imported, planned, and the plan judged by the independent checker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stromboli.cli.main import main
from tests.cli import manifests as m
from tests.cli.manifests import Obj
from tests.support.checker import check_plan

TRACES = Path(__file__).parent.parent.parent.parent / "shared" / "traces"
NODES, PODS = TRACES / "openb_node_list_all_node.csv", TRACES / "openb_pod_list_default.csv"
SMALL_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-1,8000,16384,2,T4\nn-2,16000,32768,0,\n"
SMALL_PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p-1,4000,8192,1,1000,T4,LS,Running,0,10,5\n"
    "p-2,4000,8192,2,1000,,BE,Pending,1,10,5\n"
    "p-3,12000,8192,0,0,,BE,Pending,2,10,5\n"
)

SHARING = "  - name: predicates\n  - name: deviceshare\n    arguments: {deviceshare.VGPUEnable: true}\n"
"""GPUs are shared by a plugin: in place of predicates alone."""


def manifests_in(directory: Path) -> Iterator[Obj]:
    for file in sorted(directory.glob("*.yaml")):
        with file.open(encoding="utf-8") as stream:
            yield from (one for one in yaml.load_all(stream, Loader=yaml.CSafeLoader) if one)


def planned(directory: Path, conf: Path, capsys: pytest.CaptureFixture[str]) -> Obj:
    conf.write_text(m.CHART.replace("  - name: predicates\n", SHARING), encoding="utf-8")
    assert main(["plan", str(directory), "--config", str(conf), "-o", "json"]) == 0
    answer: Obj = json.loads(capsys.readouterr().out)
    return answer


@pytest.fixture
def openb(tmp_path: Path) -> tuple[Path, Path]:
    """The lists of nodes and of pods: the published ones, or where they are missing a few rows of their kind."""
    if TRACES.is_dir():
        return NODES, PODS
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(SMALL_NODES, encoding="utf-8")
    pods.write_text(SMALL_PODS, encoding="utf-8")
    return nodes, pods


@pytest.mark.slow
def test_openb_is_imported_planned_and_found_lawful(
    openb: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "openb"
    assert main(["import", "openb", *map(str, openb), "-o", str(directory)]) == 0
    assert "Nodes" in capsys.readouterr().out
    answer = planned(directory, tmp_path / "scheduler.conf", capsys)
    manifests = list(manifests_in(directory))
    pods = sum(one["kind"] == "Pod" for one in manifests)
    waiting = sum(len(reason.get("waiting", ())) for reason in answer["reasons"].values())
    assert len(answer["outcome"]["binds"]) + waiting == pods
    assert len(answer["outcome"]["binds"]) > pods / 2
    assert check_plan(manifests, answer) == []


def test_a_small_trace_is_imported_and_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes.csv").write_text(SMALL_NODES, encoding="utf-8")
    (tmp_path / "pods.csv").write_text(SMALL_PODS, encoding="utf-8")
    directory = tmp_path / "small"
    files = [str(tmp_path / "nodes.csv"), str(tmp_path / "pods.csv")]
    assert main(["import", "openb", *files, "-o", str(directory)]) == 0
    capsys.readouterr()
    answer = planned(directory, tmp_path / "scheduler.conf", capsys)
    assert set(answer["outcome"]["binds"]) == {"default/p-2", "default/p-3"}
    assert "hami-vgpuDeviceSharing error" in answer["reasons"]["default/p-1"]["message"]
    assert check_plan(list(manifests_in(directory)), answer) == []


def test_the_dlrm_trace_takes_its_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,16,n-1\n", encoding="utf-8")
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
        "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
        "i-1,CN,app,4,4,0,0,0,0,8,8,0,0,-1,0,1,50\n"
        "i-2,CN,app,4,4,0,0,0,0,8,8,0,0,-1,100,101,\n",
        encoding="utf-8",
    )
    directory = tmp_path / "out"
    command = [
        "import",
        "dlrm",
        str(trace),
        str(nodes),
        "-o",
        str(directory),
        "--at",
        "120",
        "--memory-gib-per-cpu",
        "4",
    ]
    assert main(command) == 0
    assert "1 Node" in capsys.readouterr().out
    objects = list(manifests_in(directory))
    assert [one["metadata"]["name"] for one in objects if one["kind"] == "Pod"] == ["i-2"]
    offers = [one["status"]["allocatable"]["memory"] for one in objects if one["kind"] == "Node"]
    assert offers == ["64Gi"]


def test_a_bad_row_is_named_by_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes.csv").write_text(SMALL_NODES.replace("8000", "eight"), encoding="utf-8")
    (tmp_path / "pods.csv").write_text(SMALL_PODS, encoding="utf-8")
    files = [str(tmp_path / "nodes.csv"), str(tmp_path / "pods.csv")]
    assert main(["import", "openb", *files, "-o", str(tmp_path / "out")]) == 2
    assert "nodes.csv" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

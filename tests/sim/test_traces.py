"""Importing traces: what a row becomes, which rows are refused and where, and the published files themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli.errors import ManifestError
from stromboli.sim.traces.traces import FILES, import_dlrm, import_openb, write_manifests

TRACES = Path(__file__).resolve().parents[2].parent / "shared" / "traces"

OPENB_NODES = """\
sn,cpu_milli,memory_mib,gpu,model
openb-node-0000,32000,262144,0,
openb-node-0001,96000,393216,8,V100M16
"""
OPENB_PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0
openb-pod-0001,6000,12288,1,460,V100M16|V100M32,BE,Running,86400,,86401
openb-pod-0002,500,0,0,0,,LS,Pending,90061,90100,
"""
DLRM_NODES = """\
gpu_model,gpu_capacity_num,cpu_num,node_name
A100-SXM4-80GB,8,128,0
A10,1,126,1
"""
DLRM_HEADER = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
)
DLRM = (
    DLRM_HEADER
    + """\
instance_0,HN,app_0,12,12,1,1,25,25,120.0,120.0,640.0,800.0,8,,,
instance_1,CN,app_0,0.5,0.5,0,0,1,1,37.5,37.5,85.0,100.0,-1,,,100.0
instance_2,CN,app_1,64,64,0,0,10,10,320.0,320.0,255.0,300.0,1,200.00000000000003,201.0,300.0
instance_3,CN,app_0,64,64,0,0,0,0,320.0,320.0,255.0,300.0,-1,250.0,250.0,
"""
)


@pytest.fixture
def openb(tmp_path: Path) -> Callable[[str, str], list[dict[str, Any]]]:
    """Imports two texts as the openb files."""

    def run(nodes: str, pods: str) -> list[dict[str, Any]]:
        (tmp_path / "nodes.csv").write_text(nodes)
        (tmp_path / "pods.csv").write_text(pods)
        return list(import_openb(tmp_path / "nodes.csv", tmp_path / "pods.csv"))

    return run


@pytest.fixture
def dlrm(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Imports two texts as the DLRM files."""

    def run(nodes: str, trace: str, **options: float) -> list[dict[str, Any]]:
        (tmp_path / "nodes.csv").write_text(nodes)
        (tmp_path / "trace.csv").write_text(trace)
        return list(import_dlrm(tmp_path / "trace.csv", tmp_path / "nodes.csv", **options))

    return run


Importer = Callable[..., list[dict[str, Any]]]


def named(manifests: Iterable[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    [found] = [one for one in manifests if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def requests(pod: dict[str, Any]) -> dict[str, str]:
    wanted: dict[str, str] = pod["spec"]["containers"][0]["resources"]["requests"]
    return wanted


# ---------------------------------------------------------------- openb


def test_openb_order(openb: Importer) -> None:
    names = [(one["kind"], one["metadata"]["name"]) for one in openb(OPENB_NODES, OPENB_PODS)]
    assert names == [
        ("Node", "openb-node-0000"),
        ("Node", "openb-node-0001"),
        ("Queue", "ls"),
        ("PriorityClass", "ls"),
        ("PodGroup", "openb-pod-0000"),
        ("Pod", "openb-pod-0000"),
        ("Queue", "be"),
        ("PriorityClass", "be"),
        ("PodGroup", "openb-pod-0001"),
        ("Pod", "openb-pod-0001"),
        ("PodGroup", "openb-pod-0002"),
        ("Pod", "openb-pod-0002"),
    ]


def test_openb_nodes(openb: Importer) -> None:
    manifests = openb(OPENB_NODES, OPENB_PODS)
    plain, gpu = (named(manifests, "Node", f"openb-node-000{i}") for i in (0, 1))
    assert plain["metadata"]["labels"] == {"kubernetes.io/hostname": "openb-node-0000"}
    assert plain["status"]["allocatable"] == {"cpu": "32000m", "memory": "262144Mi", "pods": "110"}
    assert gpu["metadata"]["labels"]["nvidia.com/gpu.product"] == "V100M16"
    assert gpu["status"]["allocatable"] == {
        "cpu": "96000m", "memory": "393216Mi", "pods": "110",
        "volcano.sh/vgpu-number": "8000", "volcano.sh/vgpu-memory": "8000", "volcano.sh/vgpu-cores": "800",
    }  # fmt: skip


def test_a_share_of_a_gpu_is_memory_in_thousandths(openb: Importer) -> None:
    pod = named(openb(OPENB_NODES, OPENB_PODS), "Pod", "openb-pod-0001")
    share = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "460"}
    assert requests(pod) == {"cpu": "6000m", "memory": "12288Mi", **share}
    assert pod["spec"]["containers"][0]["resources"]["limits"] == share


def test_a_whole_gpu_has_no_share_and_no_gpu_no_request(openb: Importer) -> None:
    manifests = openb(OPENB_NODES, OPENB_PODS)
    whole, none = (named(manifests, "Pod", f"openb-pod-000{i}") for i in (0, 2))
    assert requests(whole)["volcano.sh/vgpu-memory"] == "1000"
    assert requests(none) == {"cpu": "500m"}


def test_gpu_spec_becomes_required_node_affinity(openb: Importer) -> None:
    manifests = openb(OPENB_NODES, OPENB_PODS)
    affinity = named(manifests, "Pod", "openb-pod-0001")["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["V100M16", "V100M32"]}
    ]
    assert "affinity" not in named(manifests, "Pod", "openb-pod-0000")["spec"]


def test_qos_is_queue_and_priority(openb: Importer) -> None:
    manifests = openb(OPENB_NODES, OPENB_PODS)
    group = named(manifests, "PodGroup", "openb-pod-0001")
    assert group["spec"] == {"minMember": 1, "queue": "be", "priorityClassName": "be"}
    assert named(manifests, "Pod", "openb-pod-0001")["spec"]["priorityClassName"] == "be"
    assert named(manifests, "PriorityClass", "ls")["value"] > named(manifests, "PriorityClass", "be")["value"]


def test_times_and_membership_are_annotations(openb: Importer) -> None:
    manifests = openb(OPENB_NODES, OPENB_PODS)
    second, third = (named(manifests, "Pod", f"openb-pod-000{i}") for i in (1, 2))
    assert second["metadata"]["creationTimestamp"] == "2023-01-02T00:00:00Z"
    assert second["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "openb-pod-0001",
        "stromboli.io/recorded-phase": "Running",
        "stromboli.io/creation-time": "86400",
        "stromboli.io/scheduled-time": "86401",
    }
    assert third["metadata"]["creationTimestamp"] == "2023-01-02T01:01:01Z"
    assert third["metadata"]["annotations"]["stromboli.io/deletion-time"] == "90100"
    assert (third["status"], third["spec"]["schedulerName"]) == ({"phase": "Pending"}, "volcano")


def test_a_list_that_tells_only_sizes_has_pods_of_any_gpu_at_best_effort(openb: Importer) -> None:
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nopenb-pod-0001,6000,12288,1,460\n"
    manifests = openb(OPENB_NODES, pods)
    assert [one["kind"] for one in manifests[2:]] == ["Queue", "PriorityClass", "PodGroup", "Pod"]
    group, found = manifests[-2:]
    assert group["spec"] == {"minMember": 1, "queue": "be", "priorityClassName": "be"}
    assert found["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "openb-pod-0001"}
    assert "affinity" not in found["spec"]
    assert found["spec"]["containers"][0]["resources"]["limits"]["volcano.sh/vgpu-memory"] == "460"


def test_equal_times_keep_the_order_of_the_file(openb: Importer) -> None:
    rows = [f"pod-{i},1,1,0,0,,BE,Running,7,8,7\n" for i in (10, 9, 100)]
    pods = [
        one for one in openb(OPENB_NODES, OPENB_PODS.splitlines()[0] + "\n" + "".join(rows)) if one["kind"] == "Pod"
    ]
    ordered = sorted(pods, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["uid"]))
    assert [one["metadata"]["name"] for one in ordered] == ["pod-10", "pod-9", "pod-100"]


POD_HEADER = OPENB_PODS.splitlines()[0] + "\n"


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        ("p,x,1,0,0,,LS,Running,0,,\n", "pods.csv, line 2, column cpu_milli: 'x' is not a number"),
        ("p,1.5,1,0,0,,LS,Running,0,,\n", "pods.csv, line 2, column cpu_milli: '1.5' is not a whole number"),
        ("p,1,-1,0,0,,LS,Running,0,,\n", "pods.csv, line 2, column memory_mib: '-1' is less than 0"),
        ("p,1,1,0,500,,LS,Running,0,,\n", "column gpu_milli: '500' is a share of a GPU, but num_gpu is 0"),
        ("p,1,1,1,0,,LS,Running,0,,\n", "column gpu_milli: '0' is no share of a GPU; write 1 to 1000"),
        ("p,1,1,1,1001,,LS,Running,0,,\n", "column gpu_milli: '1001' is no share of a GPU; write 1 to 1000"),
        ("p,1,1,2,500,,LS,Running,0,,\n", "'500' is a share of one GPU, but num_gpu is 2; write 1000"),
        ("p,1,1,0,0,,,Running,0,,\n", "line 2, column qos: '' cannot name a Kubernetes object"),
        ("p q,1,1,0,0,,LS,Running,0,,\n", "line 2, column name: 'p q' cannot name a Kubernetes object"),
        ("p,1,1,1,1000,A|,LS,Running,0,,\n", "line 2, column gpu_spec: 'A|' is no value for a label"),
        ("p,1,1,0,0,,LS,Running,99999999999,,\n", "column creation_time: '99999999999' is more than"),
        ("p,1,1,0,0,,LS,Running,nan,,\n", "line 2, column creation_time: 'nan' is not a number"),
        ("p,1,1,0,0,,LS,Running,0\n", "line 2, column deletion_time: the row ends before it"),
        ("p,1,1,0,0,,LS,Running,0,,,7\n", "pods.csv, line 2: the row has more cells than the header names"),
        (
            "p,1,1,0,0,,LS,Running,0,,\nP,1,1,0,0,,LS,Running,0,,\n",
            "pods.csv, line 3, column name: 'P' names two things: line 2 has it already",
        ),
    ],
)
def test_a_bad_row_is_refused_with_its_place(openb: Importer, pods: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        openb(OPENB_NODES, POD_HEADER + pods)
    assert message in str(caught.value)


def test_a_list_that_tells_more_than_sizes_has_all_columns(openb: Importer) -> None:
    with pytest.raises(ManifestError, match=r"pods\.csv, line 1, column creation_time: the header lacks it"):
        openb(OPENB_NODES, OPENB_PODS.replace("creation_time", "creation_tim"))


def test_a_missing_column_is_named(openb: Importer) -> None:
    with pytest.raises(ManifestError) as caught:
        openb("sn,cpu_milli,memory_mib,gpu\nn,1,1,1\n", OPENB_PODS)
    assert str(caught.value) == (
        "nodes.csv, line 1, column model: the header lacks it; it names sn, cpu_milli, memory_mib, gpu"
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "the header lacks it; it names nothing"),
        (b"sn,cpu_milli\n\xff,1\n", "is no CSV file in UTF-8"),
        (b'sn,cpu_milli,memory_mib,gpu,model\n"n"x,1,1,1,\n', "is no CSV file in UTF-8"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "nodes.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ManifestError) as caught:
        list(import_openb(path, path))
    assert problem in str(caught.value)


# ---------------------------------------------------------------- DLRM


def test_dlrm_nodes(dlrm: Importer) -> None:
    manifests = dlrm(DLRM_NODES, DLRM)
    assert named(manifests, "Node", "node-0")["status"]["allocatable"] == {
        "cpu": "128", "memory": "1024Gi", "nvidia.com/gpu": "8", "rdma/hca": "100", "ephemeral-storage": "8192Gi",
        "pods": "110",
    }  # fmt: skip
    assert named(manifests, "Node", "node-1")["metadata"]["labels"]["nvidia.com/gpu.product"] == "A10"


def test_dlrm_memory_of_the_nodes_is_an_option(dlrm: Importer) -> None:
    manifests = dlrm(DLRM_NODES, DLRM, memory_gib_per_cpu=0.25)
    memory = [named(manifests, "Node", name)["status"]["allocatable"]["memory"] for name in ("node-0", "node-1")]
    assert memory == ["32Gi", "32256Mi"]


@pytest.mark.parametrize("memory", [0, -1, float("nan"), float("inf")])
def test_dlrm_refuses_memory_that_no_node_has(dlrm: Importer, memory: float) -> None:
    with pytest.raises(ManifestError, match="is no size of a node"):
        dlrm(DLRM_NODES, DLRM, memory_gib_per_cpu=memory)


@pytest.mark.parametrize(
    ("options", "gangs"),
    [
        ({}, {"app-0": (2, 3), "app-1": (1, 1)}),
        ({"at": 0}, {"app-0": (2, 2)}),
        ({"at": 100}, {"app-0": (1, 1)}),
        ({"at": 250}, {"app-0": (2, 2), "app-1": (1, 1)}),
        ({"at": 300}, {"app-0": (2, 2)}),
    ],
)
def test_a_gang_is_what_is_alive(dlrm: Importer, options: dict[str, float], gangs: dict[str, tuple[int, int]]) -> None:
    manifests = dlrm(DLRM_NODES, DLRM, **options)
    members = Counter(
        one["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for one in manifests if one["kind"] == "Pod"
    )
    groups = {one["metadata"]["name"]: one["spec"]["minMember"] for one in manifests if one["kind"] == "PodGroup"}
    assert {name: (least, members[name]) for name, least in groups.items()} == gangs


def test_dlrm_instances(dlrm: Importer) -> None:
    manifests = dlrm(DLRM_NODES, DLRM)
    gpu, small = (named(manifests, "Pod", f"instance-{i}") for i in (0, 1))
    assert requests(gpu) == {
        "cpu": "12", "memory": "120Gi", "nvidia.com/gpu": "1", "rdma/hca": "25", "ephemeral-storage": "640Gi",
    }  # fmt: skip
    assert requests(small) == {"cpu": "500m", "memory": "38400Mi", "rdma/hca": "1", "ephemeral-storage": "85Gi"}
    assert small["spec"]["containers"][0]["resources"]["limits"] == {"rdma/hca": "1"}
    assert gpu["metadata"]["labels"] == {"app": "app-0", "volcano.sh/task-spec": "hn"}
    assert gpu["metadata"]["annotations"]["volcano.sh/task-spec"] == "hn"
    assert (
        named(manifests, "PodGroup", "app-0")["spec"]["queue"] == named(manifests, "Queue", "dlrm")["metadata"]["name"]
    )


def test_a_limit_of_one_per_node_is_anti_affinity(dlrm: Importer) -> None:
    manifests = dlrm(DLRM_NODES, DLRM)
    several, none, one = (named(manifests, "Pod", f"instance-{i}") for i in (0, 1, 2))
    key = "stromboli.io/max-instances-per-node"
    assert [pod["metadata"]["annotations"].get(key) for pod in (several, none, one)] == ["8", None, "1"]
    assert ["affinity" in pod["spec"] for pod in (several, none, one)] == [False, False, True]
    [term] = one["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {"labelSelector": {"matchLabels": {"app": "app-1"}}, "topologyKey": "kubernetes.io/hostname"}


def test_dlrm_times(dlrm: Importer) -> None:
    manifests = dlrm(DLRM_NODES, DLRM)
    before, within = (named(manifests, "Pod", f"instance-{i}")["metadata"] for i in (0, 2))
    assert before["creationTimestamp"] == "2023-01-01T00:00:00Z"
    assert not any(key.endswith("-time") for key in before["annotations"])
    assert within["creationTimestamp"] == "2023-01-01T00:03:20Z"
    times = {key: value for key, value in within["annotations"].items() if key.endswith("-time")}
    assert times == {
        "stromboli.io/creation-time": "200",
        "stromboli.io/scheduled-time": "201",
        "stromboli.io/deletion-time": "300",
    }
    assert named(manifests, "PodGroup", "app-1")["metadata"]["creationTimestamp"] == "2023-01-01T00:03:20Z"


def test_a_bad_instance_is_refused_with_its_place(dlrm: Importer) -> None:
    with pytest.raises(ManifestError) as caught:
        dlrm(DLRM_NODES, DLRM.replace("37.5,37.5", "much,37.5"))
    assert str(caught.value) == "trace.csv, line 3, column memory_request: 'much' is not a number"


# ---------------------------------------------------------------- writing


def read(directory: Path) -> dict[str, list[Any]]:
    """Documents of every file by kind."""
    return {
        kind: list(yaml.load_all((directory / name).read_text(), Loader=yaml.CSafeLoader))
        for kind, name in FILES.items()
    }


def test_manifests_come_back_as_they_were(openb: Importer, tmp_path: Path) -> None:
    manifests = openb(OPENB_NODES, OPENB_PODS)
    counts = write_manifests(manifests, tmp_path / "new" / "folder")
    assert counts == {"Node": 2, "Queue": 2, "PriorityClass": 2, "PodGroup": 3, "Pod": 3}
    found = read(tmp_path / "new" / "folder")
    assert found == {kind: [one for one in manifests if one["kind"] == kind] for kind in FILES}
    assert "&" not in (tmp_path / "new" / "folder" / "nodes.yaml").read_text()


def test_a_second_import_leaves_nothing_of_the_first(openb: Importer, dlrm: Importer, tmp_path: Path) -> None:
    write_manifests(openb(OPENB_NODES, OPENB_PODS), tmp_path / "out")
    write_manifests(dlrm(DLRM_NODES, DLRM), tmp_path / "out")
    found = {
        file.name: len(list(yaml.load_all(file.read_text(), yaml.CSafeLoader))) for file in (tmp_path / "out").iterdir()
    }
    assert found == {"nodes.yaml": 2, "queues.yaml": 1, "podgroups.yaml": 2, "pods.yaml": 4}


def test_an_error_half_way_leaves_the_directory_as_it_was(openb: Importer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_manifests(openb(OPENB_NODES, OPENB_PODS), out)
    before = {file.name: file.read_text() for file in out.iterdir()}
    (tmp_path / "pods.csv").write_text(OPENB_PODS + "p,x,1,0,0,,LS,Running,0,,\n")
    with pytest.raises(ManifestError, match=r"pods\.csv, line 5, column cpu_milli"):
        write_manifests(import_openb(tmp_path / "nodes.csv", tmp_path / "pods.csv"), out)
    assert {file.name: file.read_text() for file in out.iterdir()} == before


def test_a_kind_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="Secret: no file takes this kind"):
        write_manifests([{"kind": "Secret"}], tmp_path)
    with pytest.raises(ManifestError):
        write_manifests([{"kind": "Secret"}], tmp_path / "new" / "folder")
    assert not (tmp_path / "new").exists()


# ---------------------------------------------------------------- the published files

if TRACES.is_dir():

    def test_the_published_openb_trace(tmp_path: Path) -> None:
        nodes, pods = TRACES / "openb_node_list_all_node.csv", TRACES / "openb_pod_list_default.csv"
        counts = write_manifests(import_openb(nodes, pods), tmp_path)
        assert counts == {"Node": 1523, "Queue": 4, "PriorityClass": 4, "PodGroup": 8152, "Pod": 8152}
        gpus = [
            int(requests(one).get("volcano.sh/vgpu-number", "0"))
            for one in import_openb(nodes, pods)
            if one["kind"] == "Pod"
        ]
        assert Counter(gpus) == {1: 6989, 0: 1088, 8: 44, 2: 16, 4: 15}
        with (tmp_path / "pods.yaml").open() as file:
            assert sum(line == "---\n" for line in file) == 8152

    def test_the_published_dlrm_trace() -> None:
        trace, nodes = TRACES / "disaggregated_DLRM_trace.csv", TRACES / "spot_gpu_2026_nodes.csv"
        whole: list[Any] = list(import_dlrm(trace, nodes))
        assert Counter(one["kind"] for one in whole) == {"Node": 4278, "Queue": 1, "PodGroup": 156, "Pod": 23871}
        moment: list[Any] = list(import_dlrm(trace, nodes, at=0))
        assert Counter(one["kind"] for one in moment) == {"Node": 4278, "Queue": 1, "PodGroup": 122, "Pod": 7280}
        assert sum(one["spec"]["minMember"] for one in moment if one["kind"] == "PodGroup") == 7280

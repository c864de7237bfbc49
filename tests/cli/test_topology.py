"""``stromboli topology``: the tree of domains as a table, as JSON and as a heat map."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from stromboli.cli.main import main

GPU = "nvidia.com/gpu"


def node(name: str, gpus: int = 8) -> dict[str, Any]:
    offer = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi", GPU: str(gpus)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": offer, "capacity": offer}}  # fmt: skip


def pod(name: str, on: str, gpus: int) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "16Gi", GPU: str(gpus)}
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    spec = {"schedulerName": "volcano", "nodeName": on, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": spec, "status": {"phase": "Running"}}  # fmt: skip


def hyper_node(name: str, tier: int, members: list[str]) -> dict[str, Any]:
    kind = "Node" if tier == 1 else "HyperNode"
    rows = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name},
            "spec": {"tier": tier, "members": rows}}  # fmt: skip


CLUSTER = [
    *(node(f"n{number}") for number in range(5)),
    hyper_node("rack-a", 1, ["n0", "n1"]),
    hyper_node("rack-b", 1, ["n2", "n3"]),
    hyper_node("block", 2, ["rack-a", "rack-b", "rack-gone"]),
    pod("p", "n0", 6),
]


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.dump_all(CLUSTER, Dumper=yaml.CSafeDumper))
    return str(file)


def test_the_tree_shows_what_is_free_in_each_domain(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", cluster]) == 0
    lines = [re.split(r"  +", line.strip()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["DOMAIN", "TIER", "NODES", "EMPTY", "CPU FREE", "MEMORY FREE", "NVIDIA.COM/GPU FREE", "IN USE"]
    assert [line[:7] for line in lines[1:]] == [
        ["block", "2", "4", "3", "120 / 128", "496Gi / 512Gi", "26 / 32"],
        ["rack-a", "1", "2", "1", "56 / 64", "240Gi / 256Gi", "10 / 16"],
        ["rack-b", "1", "2", "2", "64 / 64", "256Gi / 256Gi", "16 / 16"],
    ]


def test_json_names_domains_nodes_and_their_use(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", cluster, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rack = next(domain for domain in found["domains"] if domain["name"] == "rack-a")
    assert (rack["parent"], rack["depth"], rack["emptyNodes"]) == ("block", 1, 1)
    assert rack["room"][GPU] == {"free": "10", "total": "16", "used": 0.375}
    assert {row["name"]: (row["domain"], row["used"]) for row in found["nodes"]} == {
        "n0": ("rack-a", 0.75), "n1": ("rack-a", 0), "n2": ("rack-b", 0), "n3": ("rack-b", 0),
        "n4": ("(in no HyperNode)", 0),
    }  # fmt: skip


def test_the_heat_map_has_a_cell_for_each_node(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", cluster, "-o", "svg"]) == 0
    picture = ET.fromstring(capsys.readouterr().out)
    space = "{http://www.w3.org/2000/svg}"
    cells = {
        str(cell.findtext(f"{space}title")): cell.get("fill") for cell in picture.iter(f"{space}rect") if len(cell)
    }
    assert list(cells) == [f"n{number}: {'75' if number == 0 else '0'}% in use" for number in range(5)]
    assert cells["n0: 75% in use"] == "rgb(64,112,173)"
    titles = [text.findtext(f"{space}title") for text in picture.iter(f"{space}text") if len(text)]
    assert titles == ["block › rack-a", "block › rack-b", "(in no HyperNode)"]
    x_of_rack_b = next(
        cell.get("x") for cell in picture.iter(f"{space}rect") if cell.findtext(f"{space}title") == "n2: 0% in use"
    )
    assert float(x_of_rack_b or 0) > float(picture.get("width", 0)) / 4, "boxes lie side by side"


def test_a_cluster_without_hypernodes_says_where_they_come_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nodes.yaml").write_text(yaml.dump_all([node("n0")], Dumper=yaml.CSafeDumper))
    assert main(["topology", str(tmp_path)]) == 0
    assert "1 node, and no HyperNode: docs/hypernodes.md" in capsys.readouterr().err


def test_a_tree_that_is_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = [node("n0"), hyper_node("a", 2, ["b"]), hyper_node("b", 2, ["a"])]
    (tmp_path / "cluster.yaml").write_text(yaml.dump_all(objects, Dumper=yaml.CSafeDumper))
    assert main(["topology", str(tmp_path)]) == 2
    assert "cyclic dependency detected" in capsys.readouterr().err

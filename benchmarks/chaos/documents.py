"""Broken files: manifests, configurations, traces and dumps that were sound before they were broken."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from benchmarks.chaos.samples import SAMPLES
from benchmarks.chaos.values import ODD, WORDS, broken

_HERE: Final = Path(__file__).parent
QUICKSTART: Final = _HERE.parents[1] / "examples" / "quickstart"
_CONFIGURATION: Final[Any] = yaml.load((_HERE / "scheduler.conf").read_text(), yaml.CSafeLoader)
_OBJECTS: Final[list[Any]] = [
    *SAMPLES.values(),
    *(one for path in sorted(QUICKSTART.glob("*.yaml")) for one in yaml.load_all(path.read_text(), yaml.CSafeLoader)),
]
_OPENB_NODES: Final = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,96000,393216,8,V100M16\n"
_OPENB_PODS: Final = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,12000,16384,1,1000,,LS,Running,0,12537496,0\np1,6000,12288,1,460,V100M16|V100M32,BE,Pending,86400,,86401\n"
)
_DLRM_NODES: Final = "gpu_model,gpu_capacity_num,cpu_num,node_name\nA100-SXM4-80GB,8,128,0\nA10,1,126,1\n"
_DLRM: Final = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
    "i0,HN,a0,12,12,1,1,25,25,120.0,120.0,640.0,800.0,8,,,\ni1,CN,a0,0.5,0.5,0,0,1,1,37.5,37.5,85.0,100.0,-1,,,100.0\n"
)

Command = Sequence[str]
Trial = Callable[[Random, Path], Command]
"""Writes broken files into a folder and answers the arguments of ``stromboli`` that read them."""


def command(dice: Random, folder: Path) -> Command:
    """Broken files in ``folder``, and what is to be done with them."""
    return dice.choice(_KINDS)(dice, folder)


def _text(values: Sequence[Any], dice: Random) -> str:
    if dice.random() < 0.3:
        return json.dumps(values[0] if len(values) == 1 else {"kind": "List", "apiVersion": "v1", "items": values})
    return yaml.dump_all(values, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False)


_SWAPS: Final = ((b" ", b"\t"), (b":", b""), (b"- ", b"-"), (b"\n", b"\r"), (b"'", b'"'), (b"a", b"\x00"))


def _written(path: Path, text: str, dice: Random) -> None:
    """Write the text, which may not be what its bytes say."""
    content = text.encode(errors="surrogatepass")
    match dice.randrange(12):
        case 0:
            content = content[: dice.randrange(len(content) + 1)]
        case 1:
            at = dice.randrange(len(content) + 1)
            content = content[:at] + dice.randbytes(dice.choice((1, 3, 40))) + content[at:]
        case 2:
            lines = content.splitlines(keepends=True)
            dice.shuffle(lines)
            content = b"".join(lines)
        case 3:
            content = text.encode(dice.choice(("utf-16", "utf-8-sig", "utf-32", "utf-7")), errors="replace")
        case 4:
            old, new = dice.choice(
                ((b" ", b"\t"), (b":", b""), (b"- ", b"-"), (b"\n", b"\r"), (b"'", b'"'), (b"a", b"\x00"))
            )
            content = content.replace(old, new, dice.choice((1, 5, -1)))
        case 5:
            content = str(dice.choice((*WORDS["no YAML"], *ODD))).encode() + b"\n" + content
    path.write_bytes(content)


def _manifests(dice: Random, folder: Path) -> Command:
    found = [broken(one, dice, dice.choice((0, 1, 1, 2))) for one in dice.sample(_OBJECTS, dice.randrange(1, 6))]
    path = folder / dice.choice(("a.yaml", "a.json", "a.yml"))
    _written(path, _text(found, dice), dice)
    return dice.choice((
        ["lint", str(path)], ["lint", str(path), "-o", "json", "--strict"], ["plan", str(path)],
        ["plan", str(path), "-o", dice.choice(("wide", "json", "yaml"))], ["plan", str(path), "--explain", "pg"],
        ["plan", str(path), "--strict", "--compat", "volcano"], ["plan", str(path), "--cycles", "2"],
        ["plan", str(path), "--config", str(_HERE / "scheduler.conf"), "--lenient-config"],
    ))  # fmt: skip


def _cluster(dice: Random, folder: Path) -> Command:
    """A whole cluster of which few objects are broken, so that there is something to plan."""
    found = list(_OBJECTS)
    for _ in range(dice.randrange(1, 5)):
        at = dice.randrange(len(found))
        found[at] = broken(found[at], dice, 1)
    path = folder / f"snapshot-{dice.randrange(100)}.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": found}))
    rest = dice.choice(([], ["-o", "wide"], ["--compat", "volcano"], ["--explain", "default/pg"], ["-v", "5"]))
    conf = dice.choice(([], ["--config", str(_HERE / "scheduler.conf"), "--lenient-config"]))
    return ["plan", str(path), *rest, *conf] if dice.random() < 0.7 else ["lint", str(path), *conf[:2]]


def _configuration(dice: Random, folder: Path) -> Command:
    path = folder / "volcano-scheduler.conf"
    text = yaml.safe_dump(broken(_CONFIGURATION, dice, dice.choice((1, 1, 2, 4))), allow_unicode=True, sort_keys=False)
    if dice.random() < 0.2:
        body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "data": {path.name: text}}
        text = yaml.safe_dump(broken(body, dice, 1))
    _written(path, text, dice)
    return dice.choice((
        ["conf", "show", "--config", str(path)], ["conf", "show", "--config", str(path), "-o", "json"],
        ["conf", "show", "--config", str(path), "--lenient-config"], ["lint", "--config", str(path)],
        ["conf", "show", "--config", str(path), "--compat", "volcano", "-o", "yaml"],
        ["plan", str(QUICKSTART), "--config", str(path)],
        ["plan", str(QUICKSTART), "--config", str(path), "--lenient-config"],
    ))  # fmt: skip


_CELLS: Final = (*ODD, *("nan", "inf", "1e400", "0x10", "1_000", '"', "a\nb"), *range(-1, 9), 2.5, 1e6, 12537496)


def _rows(text: str, dice: Random) -> str:
    rows = list(csv.reader(io.StringIO(text)))
    for _ in range(dice.choice((1, 1, 2, 5))):
        row = dice.choice(rows)
        match dice.randrange(4):
            case 0:
                rows.append(list(row))
            case 1:
                row.insert(dice.randrange(len(row) + 1), "1")
            case 2 if row:
                del row[dice.randrange(len(row))]
            case _ if row:
                row[dice.randrange(len(row))] = str(dice.choice(_CELLS))
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def _trace(dice: Random, folder: Path) -> Command:
    kind, first, second = dice.choice((("openb", _OPENB_NODES, _OPENB_PODS), ("dlrm", _DLRM, _DLRM_NODES)))
    for name, text in (("first.csv", first), ("second.csv", second)):
        _written(folder / name, _rows(text, dice), dice)
    rest = dice.choice(([], ["--at", dice.choice(("0", "-1", "nan", "1e300", "x"))], ["--memory-gib-per-cpu", "0"]))
    paths = [str(folder / "first.csv"), str(folder / "second.csv")]
    return ["import", kind, *paths, "-o", str(folder / "out"), *(rest if kind == "dlrm" else [])]


def _usage(dice: Random, folder: Path) -> Command:
    path = folder / "usage.yaml"
    usage = {"node-1": {"cpu": 50, "memory": 20}, "n": {"cpu": "10%", "memory": 1.5}}
    _written(path, yaml.safe_dump(broken(usage, dice, 2), allow_unicode=True), dice)
    return [
        "plan",
        str(QUICKSTART),
        "--usage",
        str(path),
        "--config",
        str(_HERE / "scheduler.conf"),
        "--lenient-config",
    ]


_WEIGHTS: Final[dict[Trial, int]] = {_manifests: 6, _cluster: 4, _configuration: 5, _trace: 3, _usage: 1}
_KINDS: Final = tuple(kind for kind, weight in _WEIGHTS.items() for _ in range(weight))

"""The page on job plugins: its table is the code's, its examples work."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from stromboli.api.kinds import JOBS, QUEUES
from stromboli.crds import admission
from stromboli.job_plugins.registry import BUILT_IN, JobPlugins
from stromboli.testing.check_job_plugin import check_job_plugin

PAGE = (Path(__file__).parents[2] / "docs/job-plugins.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \|(.*?)\|", PAGE, re.MULTILINE))
BLOCKS = {kind: re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) for kind in ("yaml", "python")}


def test_every_plugin_has_a_row_with_its_flags() -> None:
    assert list(ROWS) == [one.name for one in BUILT_IN]
    for one in BUILT_IN:
        assert re.findall(r"`([\w-]+)`(?!\))", ROWS[one.name]) == list(one.flags()), one.name


def test_the_job_can_be_created() -> None:
    [text] = BLOCKS["yaml"]
    queue = {"metadata": {"name": "default"}, "spec": {}, "status": {"state": "Open"}}
    world = admission.Objects({QUEUES: [queue]})
    job = admission.default(JOBS, yaml.load(text, yaml.CSafeLoader), world)
    assert admission.validate(JOBS, job, None, world) == []


def test_the_plugin_keeps_its_promises(tmp_path: Path) -> None:
    plugin, check = BLOCKS["python"]
    (tmp_path / "greeting.py").write_text(plugin)
    known = JobPlugins()
    known.add_directory(tmp_path)
    exec(check, {"Greeting": known.find("greeting")})
    assert check_job_plugin.__name__ in check

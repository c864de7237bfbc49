"""The import contracts refuse what they are there to refuse."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.purity import CORE

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {contract["id"]: contract for contract in CONFIG["tool"]["importlinter"]["contracts"]}
FOLDERS = [
    "model", "narration", "framework", "reservations", "allocation", "preemption", "fairness", "filters", "plugins",
    "actions", "cluster", "cli", "metrics", "testing",
]  # fmt: skip
FILES = {
    "errors.py",
    "plugin.py",
    "plugins/gang.py",
    "plugins/drf.py",
    "actions/allocate.py",
    "sim/run.py",
    "kube/api.py",
}
PURE = [name.removeprefix("stromboli.") for name in CONTRACTS["pure"]["source_modules"]]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Make a package of empty modules in the project's layers."""
    package = tmp_path / "stromboli"
    modules = {f"{name}.py" for name in PURE if name not in FOLDERS}
    for name in modules | FILES | {f"{folder}/__init__.py" for folder in [".", "sim", "kube", *FOLDERS]}:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return package


def lint(package: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    return subprocess.run(command, cwd=package.parent, env=environment, capture_output=True, text=True, check=False)


def test_a_package_that_keeps_to_its_layers_passes(package: Path) -> None:
    (package / "plugins/gang.py").write_text("import stromboli.framework, stromboli.model, stromboli.plugin\n")
    (package / "actions/allocate.py").write_text("import stromboli.framework, stromboli.filters\n")
    (package / "cli/__init__.py").write_text(
        "import stromboli.sim.run, stromboli.plugins.drf, stromboli.metrics, time\n"
    )
    (package / "sim/run.py").write_text("import stromboli.cluster, asyncio\n")
    result = lint(package)
    assert result.returncode == 0, result.stdout


def test_each_breach_is_named(package: Path) -> None:
    breaches = {
        "model/__init__.py": "stromboli.framework",
        "framework/__init__.py": "stromboli.plugins.gang",
        "plugins/gang.py": "stromboli.plugins.drf",
        "preemption.py": "stromboli.plugins.drf",
        "allocation.py": "stromboli.filters",
        "actions/allocate.py": "stromboli.plugins.drf",
        "preemption/__init__.py": "stromboli.plugins.drf",
        "reservations/__init__.py": "stromboli.fairness",
        "cluster/__init__.py": "socket",
        "sim/run.py": "stromboli.kube.api",
        "metrics/__init__.py": "stromboli.kube",
        "testing/__init__.py": "stromboli.sim",
    }
    for path, module in breaches.items():
        (package / path).write_text(f"import {module}\n")
    (package / "stray.py").write_text("")
    result = lint(package)
    assert result.returncode == 1
    assert result.stdout.count(" BROKEN") == len(CONTRACTS)
    assert "- stromboli.stray" in result.stdout
    for chain in [
        "stromboli.plugins.gang -> stromboli.plugins.drf (l.1)",
        "stromboli.actions.allocate -> stromboli.plugins.drf (l.1)",
        "stromboli.preemption -> stromboli.plugins.drf (l.1)",
        "stromboli.reservations -> stromboli.fairness (l.1)",
        "stromboli.cluster -> socket (l.1)",
    ]:
        assert chain in result.stdout, result.stdout


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("model/__init__.py", "stromboli.framework"),
        ("filters/__init__.py", "stromboli.framework"),
        ("framework/__init__.py", "stromboli.plugins.gang"),
        ("narration/__init__.py", "stromboli.framework"),
        ("allocation/__init__.py", "stromboli.preemption"),
        ("sim/run.py", "stromboli.kube.api"),
        ("testing/__init__.py", "stromboli.sim"),
        ("kube/api.py", "stromboli.metrics"),
    ],
)
def test_imports_go_one_way(package: Path, path: str, module: str) -> None:
    (package / path).write_text(f"import {module}\n")
    result = lint(package)
    assert result.returncode == 1
    assert (
        f"stromboli.{path.partition('/')[0]} is not allowed to import stromboli.{module.split('.')[1]}" in result.stdout
    )


@pytest.mark.parametrize("name", CORE)
def test_every_part_of_the_core_stands_in_the_contract_of_purity(name: str) -> None:
    package = ROOT / "src/stromboli"
    exists = (package / name).is_dir() or (package / f"{name}.py").is_file()
    assert exists <= (name in PURE)

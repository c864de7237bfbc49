"""Helm itself, built from its Go module, as a user runs it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from e2e.programs.go_build import built

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = Path(__file__).parent / "helm_module"
BINARY: Final = ROOT / "build" / "e2e" / "helm"
CHART: Final = ROOT / "charts" / "volcano"
_MODULE: Final = "helm.sh/helm/v3"
_KUBERNETES: Final = ("1", "36")
"""The version that templates are made for where no server is asked."""


class HelmFailed(Exception):
    """Helm ended with an error; its text is what it wrote."""


def missing() -> str:
    """Why Helm cannot be had on this machine; empty when it can."""
    return "" if BINARY.exists() or shutil.which("go") else "Go is not on this machine, and it takes Go to build Helm"


def build() -> Path:
    """Helm's binary, made where it is missing or older than its source.  Raises BuildFailed."""
    found = re.search(rf"{re.escape(_MODULE)} (v\S+)", (SOURCE / "go.mod").read_text())
    major, minor = _KUBERNETES
    values = {"internal/version.version": found[1] if found else ""}
    for package in ("pkg/lint/rules", "pkg/chartutil"):
        values |= {f"{package}.k8sVersionMajor": major, f"{package}.k8sVersionMinor": minor}
    flags = " ".join(["-s -w", *(f"-X {_MODULE}/{name}={value}" for name, value in values.items())])
    return built(BINARY, SOURCE, flags, [f"{_MODULE}/cmd/helm"])


def helm(*words: str, kubeconfig: Path | None = None, home: Path | None = None) -> str:
    """What Helm prints.  Raises HelmFailed."""
    environment = {"HOME": str(home or BINARY.parent), "PATH": "/usr/bin:/bin"}
    if kubeconfig is not None:
        environment["KUBECONFIG"] = str(kubeconfig)
    done = subprocess.run([str(build()), *words], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise HelmFailed(done.stderr[-4000:])
    return done.stdout


def rendered(values: dict[str, Any], folder: Path, release: str = "volcano", *words: str) -> list[Any]:
    """The objects that a release of the chart consists of, with ``values`` as the user's."""
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    out = helm("template", release, str(CHART), "--namespace=volcano-system", f"--values={file}", *words)
    return [one for one in yaml.load_all(out, Loader=yaml.CSafeLoader) if one]

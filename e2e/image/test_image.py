"""What is in the image: our programs under Volcano's names, and nothing unneeded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stromboli import __version__
from tools.image import scan

ROOT = Path(__file__).parents[2]
Image = tuple[Path, dict[str, Any]]


def test_the_image_runs_without_root_and_its_labels_name_its_version(image: Image) -> None:
    _, config = image
    assert (config["User"], config["Entrypoint"]) == ("65532:65532", ["/opt/stromboli/bin/stromboli"])
    labels = {name.rpartition(".")[2]: value for name, value in config["Labels"].items()}
    assert (labels["title"], labels["version"], labels["licenses"]) == ("Stromboli", __version__, "Apache-2.0")


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False, cwd=ROOT)


def test_it_says_which_revision_it_is_made_of(image: Image) -> None:
    """That of this repository, or an older one, which is a skip that is listed."""
    head = git("rev-parse", "HEAD")
    if head.returncode:
        pytest.skip("there is no repository of git to compare with")
    revision = image[1]["Labels"]["org.opencontainers.image.revision"]
    if revision == head.stdout.strip():
        return
    assert git("merge-base", "--is-ancestor", revision, "HEAD").returncode == 0, revision
    pytest.skip("the image is of an older revision: make image")


def test_it_holds_nothing_that_is_not_needed(image: Image) -> None:
    assert list(scan.surplus(image[0])) == []


def test_nothing_is_compiled_at_a_start(image: Image) -> None:
    """The standard library neither: base images leave out what it compiles to."""
    assert list(scan.uncompiled(image[0])) == []


def test_a_module_that_is_not_compiled_is_found(tmp_path: Path) -> None:
    library = tmp_path / "usr/lib/python3.11"
    (library / "__pycache__").mkdir(parents=True)
    for name in ("a.py", "b.py", f"__pycache__/a.{sys.implementation.cache_tag}.pyc"):
        (library / name).touch()
    assert list(scan.uncompiled(tmp_path)) == [
        "/usr/lib/python3.11/b.py is compiled at each start, as the root is read-only"
    ]


def test_a_file_that_is_not_needed_is_found(tmp_path: Path) -> None:
    for name in ("bin/sh", "usr/bin/pip3", "lib/x/tests/t.py", "writable", "plain"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        file.chmod(0o777 if name != "plain" else 0o644)
    found = " ".join(scan.surplus(tmp_path))
    for part in ("/bin/sh is a shell", "/usr/bin/pip3 is a tool", "tests/t.py is opened", "/writable can be written"):
        assert part in found
    assert "plain" not in found


@pytest.mark.parametrize(
    "program",
    [
        "/vc-scheduler",
        "/vc-controller-manager",
        "/vc-hypernode-controller-manager",
        "/vc-webhook-manager",
        "/opt/stromboli/bin/vcctl",
    ],
)
def test_its_programs_start_without_root(image: Image, program: str) -> None:
    jail = ["chroot", "--userspec=65532:65532", str(image[0])]
    word = "--help" if program.endswith("vcctl") else "--version"
    done = subprocess.run([*jail, program, word], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"stromboli {__version__}") or "Usage" in done.stdout


def test_copied_arguments_are_taken(image: Image) -> None:
    """Those of the reference's own Deployment, the redirection included."""
    words = ["/vc-scheduler", "--logtostderr", "--scheduler-conf=/none", "--enable-healthz=true", "-v=3", "2>&1"]
    jail = ["chroot", "--userspec=65532:65532", str(image[0])]
    done = subprocess.run([*jail, *words, "--nonsense"], capture_output=True, text=True, check=False)
    assert "unknown flag --nonsense" in done.stderr  # all others are known

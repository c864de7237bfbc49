"""Prepare a release: `python -m tools.release VERSION` (`make release VERSION=1.2.0`).

It sets the version, closes the changelog's section, builds wheel and sdist into dist/, looks into both, and installs
the wheel into an empty environment, where the quickstart must plan.  Nothing is committed, tagged or uploaded: the
commands for that are printed at the end.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

PROJECT = Path(__file__).parent.parent
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
UNRELEASED = "## [Unreleased]"
STATED = {"pyproject.toml": r'(?m)^version = "(.+)"$', "src/stromboli/__init__.py": r'__version__ = "(.+)"'}
"""Where the version stands, and as what."""

IN_WHEEL = ("stromboli/py.typed", "stromboli/cycle.py", "entry_points.txt", "LICENSE", "NOTICE")
IN_SDIST = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "NOTICE",
    "src/stromboli/cycle.py",
    "docs/index.md",
)
"""Ends of paths that each must hold; the sdist is also what packagers run the tests from."""


class ReleaseError(Exception):
    """What stands in the way of a release."""


def with_version(text: str, pattern: str, version: str) -> str:
    """Answer a file's text with `version` where `pattern` has it.  ReleaseError if it stands there never or twice."""
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        raise ReleaseError(f"the version stands {len(found)} times where {pattern} should find it once")
    return text[: found[0].start(1)] + version + text[found[0].end(1) :]


def closed(changelog: str, version: str, day: str) -> str:
    """Answer the changelog with what was unreleased under `version`, and an empty section above it.

    ReleaseError if nothing is unreleased or the version is there already.
    """
    head, mark, rest = changelog.partition(UNRELEASED)
    if f"## [{version}]" in changelog:
        raise ReleaseError(f"CHANGELOG.md has a section for {version} already")
    if not mark or not rest.split("\n## [")[0].strip():
        raise ReleaseError(f"CHANGELOG.md has nothing under {UNRELEASED}")
    return f"{head}{UNRELEASED}\n\n## [{version}] - {day}{rest}"


def missing(names: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Name those of `wanted` that no archive member ends with."""
    members = list(names)
    return [end for end in wanted if not any(name.endswith(f"/{end}") or name == end for name in members)]


def set_version(project: Path, version: str, day: str) -> None:
    """Write the version and the changelog's section; nothing if any of it is refused."""
    texts = {name: (project / name).read_text(encoding="utf-8") for name in (*STATED, "CHANGELOG.md")}
    new = {name: with_version(texts[name], pattern, version) for name, pattern in STATED.items()}
    new["CHANGELOG.md"] = closed(texts["CHANGELOG.md"], version, day)
    for name, text in new.items():
        (project / name).write_text(text, encoding="utf-8")


def build(project: Path, folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist into `folder`, and answer their paths.  ReleaseError if one lacks what it must hold."""
    run(sys.executable, "-m", "hatchling", "build", "--directory", str(folder), where=project)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as members:
        lacks = missing(members.namelist(), IN_WHEEL)
    with tarfile.open(sdist) as archive:
        lacks += missing(archive.getnames(), IN_SDIST)
    if lacks:
        raise ReleaseError(f"not in what was built: {', '.join(lacks)}")
    return wheel, sdist


def try_out(project: Path, wheel: Path, version: str) -> None:
    """Install a wheel into an empty environment, with the pinned dependencies, and plan the quickstart with it."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python, stromboli = Path(folder, "bin", "python"), Path(folder, "bin", "stromboli")
        install = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*install, "--require-hashes", "--requirement", str(project / "requirements" / "run.txt"), where=project)
        run(*install, "--no-deps", str(wheel), where=project)
        if version not in run(str(stromboli), "--version", where=Path(folder)):
            raise ReleaseError(f"the installed command does not say that it is {version}")
        quickstart = project / "examples" / "quickstart"
        run(
            str(stromboli),
            "plan",
            str(quickstart),
            "--config",
            str(quickstart / "volcano-scheduler.conf"),
            where=project,
        )


def run(*command: str, where: Path) -> str:
    """Answer what a command prints; ReleaseError with all that it said if it fails."""
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> int:
    """Make a release of the version given; 1 if something stands in its way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", help="such as 1.2.0 or 1.2.0rc1")
    version = parser.parse_args().version
    try:
        if not VERSION.fullmatch(version):
            raise ReleaseError(f"{version!r} is no version such as 1.2.0 or 1.2.0rc1")
        set_version(PROJECT, version, f"{datetime.now(UTC):%Y-%m-%d}")
        wheel, sdist = build(PROJECT, PROJECT / "dist" / version)
        try_out(PROJECT, wheel, version)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"{wheel.name} and {sdist.name} are in dist/{version}/, and the wheel plans the quickstart. What is left:")
    print(f'  git commit --all --message "Release {version}"\n  git tag --annotate v{version} --message {version}')
    return 0


if __name__ == "__main__":
    sys.exit(main())

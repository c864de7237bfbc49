"""Make the container image with buildah, on bases of Debian packages: `python -m tools.image.build [OPTIONS]`.

It takes root (chroot isolation, no daemon, no user namespaces) and leaves `build/image/stromboli.tar`, an OCI archive.
`--base` and `--runtime` name other images to build on, as a build elsewhere does; `--target` makes the image of one
program.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.image import bases

PROJECT: Final = Path(__file__).parents[2]
FOLDER: Final = PROJECT / "build" / "image"
ARCHIVE: Final = FOLDER / "stromboli.tar"
NAME: Final = "stromboli"
_SECRETS: Final = (("pip", "PIP_CONFIG_FILE", "/etc/pip.conf"), ("certificates", "SSL_CERT_FILE", ""))
"""What a build may need of this machine to reach a package index, where there is such."""


def buildah(*words: str) -> str:
    """What buildah prints; its store lies in the build folder, so that nothing of this machine's is touched."""
    store = (f"--root={FOLDER / 'store'}", f"--runroot={FOLDER / 'run'}", "--storage-driver=vfs")
    policy = FOLDER / "policy.json"
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    pulls = (f"--signature-policy={policy}",) if words[0] in ("build", "from", "push", "pull") else ()
    command = ["buildah", *store, words[0], *pulls, *words[1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=PROJECT)
    if done.returncode:
        sys.exit(f"{' '.join(command[:6])} .. ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout.strip()


def _archive(kind: str) -> Path:
    """Where the root file system of a base of ours is kept."""
    return FOLDER / f"base-{kind}.tar"


def imported(kind: str) -> str:
    """The image of a base of ours."""
    name = f"localhost/base-{kind}:{bases.RELEASE}"
    archive = _archive(kind)
    if archive.exists() and buildah("images", "--quiet", "--noheading", "--filter", f"reference={name}"):
        return name
    bases.make(kind, archive)
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, str(archive), "/")
    buildah("commit", "--quiet", container, name)
    buildah("rm", container)
    return name


def _secrets() -> Iterator[str]:
    for name, variable, usual in _SECRETS:
        path = os.environ.get(variable) or usual
        if path and Path(path).exists():
            yield f"--secret=id={name},src={path}"


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False, cwd=PROJECT).stdout.strip()


def build(base: str, runtime: str, target: str, archive: Path) -> None:
    """Make the image and write it to ``archive``."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    base, runtime = base or imported("build"), runtime or imported("runtime")
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    values = {"BASE": base, "RUNTIME": runtime, "VERSION": version, "REVISION": _git("rev-parse", "HEAD") or "unknown"}
    arguments = [f"--build-arg={name}={value}" for name, value in values.items()]
    at = _git("log", "-1", "--format=%ct") or "0"
    fixed = (f"--timestamp={at}", "--isolation=chroot", "--pull-never", "--layers", "--quiet", "--format=oci")
    image = f"localhost/{target}:{version}"
    buildah("build", *fixed, *_secrets(), *arguments, f"--target={target}", "--tag", image, ".")
    archive.unlink(missing_ok=True)
    buildah("push", "--quiet", image, f"oci-archive:{archive}:{target}:{version}")
    print(f"{archive.relative_to(PROJECT)}: {target} {version}, {archive.stat().st_size / 2**20:.0f} MiB")


def main() -> None:
    """Make the image that the arguments describe."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="", help="image with Python 3.11, venv and pip; ours unless given")
    parser.add_argument("--runtime", default="", help="image with the same Python; ours unless given")
    parser.add_argument("--target", default=NAME, help="stromboli or one of the programs, such as vc-scheduler")
    parser.add_argument("--archive", type=Path, default=ARCHIVE, help="where the OCI archive is written")
    asked = parser.parse_args()
    try:
        needed = [kind for kind, given in (("build", asked.base), ("runtime", asked.runtime)) if not given]
        if not all(_archive(kind).exists() for kind in needed):
            bases.mirrors()  # what a base lacks is said before anything is made
        build(asked.base, asked.runtime, asked.target, asked.archive)
    except bases.NoBase as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

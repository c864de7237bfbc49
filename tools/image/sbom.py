"""What the image is made of, as CycloneDX: `python -m tools.image.sbom`, after `make image`.

Python's packages are told by cyclonedx-py from the pinned requirements, with their hashes; Debian's are added from the
records that the image itself holds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any, Final

from tools.image.build import ARCHIVE, FOLDER, PROJECT
from tools.image.unpack import layers

FILE: Final = FOLDER / "sbom.json"
RECORDS: Final = "var/lib/dpkg/status.d/"
_TOOL: Final = PROJECT / "build" / "sbom" / "bin" / "cyclonedx-py"


def debian(archive: Path) -> Iterator[dict[str, Any]]:
    """A component for each Debian package that an image records."""
    for layer in layers(archive):
        with tarfile.open(fileobj=layer) as members:
            for member in members:
                if member.isfile() and member.name.removeprefix("./").startswith(RECORDS):
                    text = members.extractfile(member)
                    yield _component(text.read().decode() if text else "")


def _component(text: str) -> dict[str, Any]:
    """What a package's own record says, as a component."""
    said = Parser().parsestr(text)
    name, version, machine = said["Package"], said["Version"], said["Architecture"]
    place = f"pkg:deb/debian/{name}@{version}?arch={machine}"
    return {"type": "library", "name": name, "version": version, "purl": place, "bom-ref": place}


def main() -> int:
    """Write the file, and say how much is in it."""
    requirements = PROJECT / "requirements" / "run.txt"
    about = ("--pyproject", str(PROJECT / "pyproject.toml"), "--mc-type", "application", "--output-reproducible")
    done = subprocess.run(
        [str(_TOOL), "requirements", str(requirements), *about], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return 1
    found = json.loads(done.stdout)
    python, packages = len(found["components"]), list(debian(ARCHIVE))
    found["components"] += packages
    FILE.write_text(json.dumps(found, indent=2) + "\n")
    print(f"{FILE.relative_to(PROJECT)}: {python} packages of Python, {len(packages)} of Debian")
    return 0


if __name__ == "__main__":
    sys.exit(main())

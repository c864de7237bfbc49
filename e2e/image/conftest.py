"""The image that `make image` has made, unpacked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tools.image.build import ARCHIVE
from tools.image.unpack import unpack


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The root file system of the image, and its settings."""
    if not ARCHIVE.exists():
        pytest.skip("there is no image: make image")
    if os.geteuid():
        pytest.skip("only root may change into the root of an image")
    root = tmp_path_factory.mktemp("image") / "root"
    config: dict[str, Any] = unpack(ARCHIVE, root)["config"]
    for path in (*root.parents, root):
        if path.is_relative_to(tmp_path_factory.getbasetemp().parent):
            path.chmod(0o755)
    return root, config

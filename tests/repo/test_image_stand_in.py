"""What ends the stand-in for a cluster, which runs the image's pods, is raised and not lost with its thread."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from e2e.image import kubelet


def test_what_ends_its_thread_is_raised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kubelet, "_EVERY", 0.0)
    monkeypatch.setattr(kubelet, "Login", Mock())
    monkeypatch.setattr(kubelet, "Api", lambda _: Mock(call=Mock(side_effect=ZeroDivisionError("a defect"))))
    with (
        pytest.raises(ZeroDivisionError, match="a defect"),
        kubelet.Deployments(Mock(), "ns", tmp_path, tmp_path) as it,
    ):
        it._thread.join(30)

"""The notebook of the example, run from its first cell to its last."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLE = Path(__file__).parents[2] / "examples" / "simulation"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_from_a_trace_to_a_report(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "there")
    notebook = nbformat.read(EXAMPLE / "study.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path / "there")}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    told = [out["data"]["text/plain"] for cell in notebook.cells for out in cell.get("outputs", ()) if "data" in out]
    assert told[-1].startswith("'8 simulations")
    assert told[2] == "[0.0, 0.0, 80.0, 0.0, 0.0]"
    assert (tmp_path / "there" / "report.html").read_text(encoding="utf-8").count("<svg") == 7

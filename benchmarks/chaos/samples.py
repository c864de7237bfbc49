"""Objects as people write them, one or more of each kind that the embedded server keeps."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import yaml

Obj = dict[str, Any]

_FILE: Final = Path(__file__).with_name("samples.yaml")
_ALL: Final[Obj] = yaml.load(_FILE.read_text(encoding="utf-8"), yaml.CSafeLoader)
SAMPLES: Final[dict[str, Obj]] = _ALL["objects"]
"""By the address of their collection."""


def definition(plural: str, kind: str) -> Obj:
    """A definition of a kind of its own."""
    body: Obj = deepcopy(_ALL["definition"])
    body["metadata"]["name"] = f"{plural}.example.com"
    names = {"plural": plural, "kind": kind, "singular": kind.lower(), "listKind": f"{kind}List"}
    body["spec"]["names"] = {**names, "shortNames": [plural[:2]]}
    return body

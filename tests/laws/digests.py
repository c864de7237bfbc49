"""Names of the plans of some scenes, for another process: scenes as JSON on standard input, one digest a line."""

from __future__ import annotations

import json
import sys

from tests.laws.scenes import Scene, digest

if __name__ == "__main__":
    for objects, conf in json.load(sys.stdin):
        print(digest(Scene(objects, conf).plan()))  # noqa: T201 - the answer

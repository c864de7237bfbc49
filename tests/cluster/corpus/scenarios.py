"""Scenarios that are refused as a whole: (name, text, the part that is named)."""

from __future__ import annotations

SCENARIOS = [
    ("empty", b"", ""),
    ("a word", b'"x"', ""),
    ("a list", b"[]", ""),
    ("not JSON", b"nodes: []", ""),
    ("not closed", b'{"nodes": [', ""),
    ("two values", b"{} {}", ""),
    ("deep", b'{"conf": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", ""),
    ("name is a number", b'{"name": 5}', "name"),
    ("conf is a mapping", b'{"conf": {}}', "conf"),
    ("conf is not UTF-8", b'{"conf": "\xff"}', "conf"),
    ("cycles is a text", b'{"cycles": "2"}', "cycles"),
    ("negative cycles", b'{"cycles": -1}', "cycles"),
    ("too many cycles", b'{"cycles": 1000000000000000000000000}', "cycles"),
    ("nodes is a mapping", b'{"nodes": {}}', "nodes"),
    ("pods is a text", b'{"pods": "x"}', "pods"),
    ("options is a list", b'{"options": []}', "options"),
    (
        "an option of the wrong type",
        b'{"options": {"percentageOfNodesToFind": "all"}}',
        "options.percentageOfNodesToFind",
    ),
    ("usage of the wrong type", b'{"options": {"nodeUsage": {"n": {"cpu": "high"}}}}', "options.nodeUsage"),
    ("events is a mapping", b'{"events": {}}', "events"),
    ("an event of the wrong type", b'{"events": [{"beforeCycle": 1, "deletePods": [5]}]}', "events[0].deletePods[0]"),
]

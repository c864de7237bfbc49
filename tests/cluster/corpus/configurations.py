"""Configurations that are refused: (name, text, line that the message names)."""

from __future__ import annotations

TIERS = 'actions: "enqueue, allocate"\ntiers:\n'

CONFIGURATIONS = [
    ("tab", "actions:\n\t- allocate\n", 2),
    ("not closed", 'actions: "allocate\n', 1),
    ("a word", "allocate", 1),
    ("a list", "- allocate\n", 1),
    ("actions is a mapping", "actions: {a: b}\n", 1),
    ("unknown action", 'actions: "enqueue, alocate"\n', 1),
    ("tiers is a text", 'actions: "allocate"\ntiers: gang\n', 2),
    ("tier is a text", TIERS + "- gang\n", 3),
    ("plugins is a text", TIERS + "- plugins: gang\n", 3),
    ("plugin is a text", TIERS + "- plugins:\n  - gang\n", 4),
    ("plugin without a name", TIERS + "- plugins:\n  - enableJobOrder: true\n", 4),
    ("unknown plugin", TIERS + "- plugins:\n  - name: gagn\n", 4),
    ("unknown switch", TIERS + "- plugins:\n  - name: gang\n    enableJobOdrer: true\n", 5),
    ("switch of the wrong type", TIERS + "- plugins:\n  - name: gang\n    enableJobOrder: 5\n", 5),
    ("deep", "a: " + "[" * 10_000 + "]" * 10_000, 1),
    ("bomb", "a: &a [x]\n" + "".join(f"b{i}: &b{i} [{','.join(['*a'] * 50_000)}]\n" for i in range(5)), 3),
    ("alias of nothing", "actions: *x\n", 1),
    ("control character", "actions: a\x07\n", 0),
]

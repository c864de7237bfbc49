"""Exit codes of all commands, and the words for them in every ``--help``."""

from __future__ import annotations

from typing import Final

OK: Final = 0
WAITING: Final = 1
"""``plan --exit-code``: something waits."""
FOUND: Final = 1
"""``lint``: errors, with ``--strict`` warnings too."""
TROUBLED: Final = 1
"""``up``: it ran, and something in it told of errors."""
BAD_INPUT: Final = 2
BROKEN: Final = 3
"""An unexpected error."""
INTERRUPTED: Final = 130
"""Ctrl-C."""

EPILOG: Final = "Exit codes: 0 done, 1 findings (lint, plan --exit-code), 2 bad input, 3 a fault of Stromboli."

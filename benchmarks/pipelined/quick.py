"""Runs one of our commands with a shorter usual grace period: ``python -m benchmarks.pipelined.quick COMMAND …``.

What takes longer than usual to end is slow.  Where everything goes :data:`SPEED` times as fast that has to as well.
"""

from __future__ import annotations

import sys
from typing import Final

SPEED: Final = 20
"""Seconds of a workload in a second of the clock."""

if __name__ == "__main__":
    from stromboli.model import task

    vars(task).update(GRACE=task.GRACE / SPEED)

    from stromboli.cli.main import main  # only now, as what it brings takes hold of that at once

    sys.exit(main())

"""Runs one of our commands with a clock that is as many seconds off as the file says that is named first.

It stands for a machine whose clock is set while processes run: what counts seconds since 1970 jumps, what measures
how long something takes does not.  ``python -m e2e.skewed FILE COMMAND [ARGUMENTS…]``
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

if __name__ == "__main__":
    offset, right = Path(sys.argv.pop(1)), time.time
    time.time = lambda: right() + float(offset.read_text())

    from stromboli.cli.main import main  # only now, as much of what it brings takes hold of the clock at once

    sys.exit(main())

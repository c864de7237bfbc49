"""How large a YAML text may grow when it is read, in files, configurations and requests alike."""

from __future__ import annotations

from typing import Final

DEEPEST: Final = 200
"""Most mappings and lists inside each other, of JSON and protobuf in requests too."""
MOST_ALIASED: Final = 100_000
"""Most values that the aliases of one document may stand for, all together."""
LONGEST_WORD: Final = 400
"""Characters; a longer scalar is a text, whatever its form."""

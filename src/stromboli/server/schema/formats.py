"""Whether a value of one of Kubernetes' own types can be read as Go reads it: ranges of integers, times, base64."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from typing import Final

from stromboli.server.schema.schema import Schema

_RANGES: Final = {"int32": 1 << 31, "int64": 1 << 63}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"


def go_type(schema: Schema) -> str:
    """What Go calls the type of an integer."""
    return "int64" if schema.raw.get("format") == "int64" else "int32"


def in_range(schema: Schema, value: int) -> bool:
    """Whether an integer fits into its type."""
    bound = _RANGES.get(schema.raw.get("format", ""))
    return bound is None or -bound <= value < bound


def unreadable(schema: Schema, value: str) -> str:
    """What Go says of a text that is none of its format; empty for one that is."""
    match schema.raw.get("format"):
        case "date-time":
            return "" if _is_time(value) else _no_time(value, micro=schema.name.endswith("MicroTime"))
        case "byte":
            return _no_base64(value)
    return ""


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _no_time(text: str, *, micro: bool) -> str:
    layout = _MICRO_LAYOUT if micro else _LAYOUT
    return f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"'


def _no_base64(text: str) -> str:
    plain = text.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError):
        at = next(
            (index for index, one in enumerate(plain) if not (one.isascii() and (one.isalnum() or one in "+/="))),
            len(plain),
        )
        return f"illegal base64 data at input byte {at}"
    return ""

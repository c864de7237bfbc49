"""Spans that are announced at every placement: an observer may prepare what announces them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from stromboli.narration.observe import Observer

Span = tuple[Callable[[], None], Callable[[], None]]
"""What announces the beginning and the end of one span."""


def span(observer: Observer, kind: str, name: str) -> Span:
    """What announces to ``observer`` that a span begins, and that it is over."""
    prepared: Callable[[str, str], Span] | None = getattr(observer, "span", None)
    if prepared is not None:
        return prepared(kind, name)
    return partial(observer.started, kind, name), partial(observer.ended, kind, name)

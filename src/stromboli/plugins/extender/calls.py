"""The calls of one session: bounded in time, each with its answer in the plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

import msgspec

from stromboli.errors import ExtenderError, StromboliError
from stromboli.framework.books.plan import Answer, Plan

T = TypeVar("T")

BUDGET: Final = 60.0
"""Seconds that calls of one session may take together; later ones fail at once."""
MOST_RECORDED: Final = 64 << 20
"""Bytes of answers that a plan keeps; beyond them it is not replayable."""


class Sender(Protocol):
    """What carries calls out: the capability ``extender`` of a session."""

    def post(self, url: str, body: bytes, timeout: float) -> tuple[float, bytes]:
        """Seconds that the call took, and the body of its answer.  Raises StromboliError."""
        ...


class Calls:
    """Asks the server at ``prefix``; an answer that does not come in ``timeout`` seconds is an error."""

    def __init__(self, sender: Sender, prefix: str, timeout: float, plan: Plan) -> None:
        self._sender, self._prefix, self._timeout, self._plan = sender, prefix.rstrip("/"), timeout, plan
        self.spent, self._recorded = 0.0, 0

    def ask(self, verb: str, body: object, answer: type[T]) -> T:
        """The answer to ``body``.  Raises StromboliError."""
        request, url = msgspec.json.encode(body), f"{self._prefix}/{verb}"
        left = BUDGET - self.spent
        if left <= 0:
            raise ExtenderError(url, f"the calls of this session have taken {BUDGET:g} s")
        found, problem = b"", ""
        try:
            took, found = self._sender.post(url, request, min(self._timeout, left))
        except StromboliError as error:
            took, problem = min(self._timeout, left), str(error)
        self.spent += took
        said = found.decode("utf-8", "replace")  # what is recorded is what is read, then and later
        self._record(Answer(url, digest(request), said, problem, took))
        if problem:
            raise ExtenderError(url, problem)
        try:
            return msgspec.json.decode(said or "{}", type=answer)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ExtenderError(url, f"the answer cannot be read: {error}") from None

    def _record(self, answer: Answer) -> None:
        self._recorded += len(answer.body)
        if self._recorded > MOST_RECORDED:
            self._plan.replayable = False
            self._plan.answers.clear()
        else:
            self._plan.answers.append(answer)


class Recorded:
    """Answers as an earlier plan holds them, in the order in which they were given: a cycle repeats with them."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        for answer in answers:
            self._answers.setdefault((answer.url, answer.request), []).append(answer)

    def post(self, url: str, body: bytes, timeout: float) -> tuple[float, bytes]:
        """See :class:`Sender`; what was not asked then has no answer."""
        found = self._answers.get((url, digest(body)), [])
        if not found:
            raise ExtenderError(url, "no such call was recorded")
        answer = found.pop(0)
        if answer.problem:
            raise ExtenderError("", answer.problem)
        return answer.seconds, answer.body.encode()


def digest(request: bytes) -> str:
    """What names a request in a plan."""
    return hashlib.sha256(request).hexdigest()

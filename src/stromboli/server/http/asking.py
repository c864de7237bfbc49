"""Asking a webhook: one request over TLS to an address of this machine, for a bounded time and answer."""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Callable
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
from yarl import URL

from stromboli.cluster.body import encode
from stromboli.server.admission.registered import Answers, Question, Reply, Unanswered

T = TypeVar("T")
MOST_BYTES: Final = 3 << 20
"""The longest answer that is read."""
_BROKEN: Final = (
    aiohttp.ClientError, OSError, TimeoutError, ValueError, binascii.Error, msgspec.DecodeError,
)  # fmt: skip


async def answered(work: Callable[[], T], answers: Answers) -> T:
    """What ``work`` gives once the webhooks have said what they have to say.  Raises ApiFailure where one refuses."""
    while True:
        try:
            with answers.used():
                return work()
        except Unanswered as asked:
            answers.known[asked.question.key] = await ask(asked.question)


async def ask(question: Question) -> Reply:
    """The answer of a webhook, or why there is none."""
    try:
        answer = await _posted(question)
        response = answer.get("response")
        if not isinstance(response, dict) or response.get("uid") != question.review["request"]["uid"]:
            return Reply({}, "its answer is no AdmissionReview with a response for the request's uid")
        return Reply(response)
    except TimeoutError:
        return Reply({}, f"it did not answer within {question.seconds} s")
    except _BROKEN as error:
        return Reply({}, f"{type(error).__name__}: {error}"[:512])


async def _posted(question: Question) -> dict[str, Any]:
    place = question.place
    trust = ssl.create_default_context(cadata=base64.b64decode(question.authorities).decode() or None)
    trust.verify_flags &= ~ssl.VERIFY_X509_STRICT  # many authorities lack extensions that are optional
    where = URL(f"https://{f'[{place.host}]' if ':' in place.host else place.host}:{place.port}{place.path}")
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.post(
            where.update_query(timeout=f"{question.seconds}s"), data=encode(question.review), headers=headers,
            ssl=trust, server_hostname=place.server_name, allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=question.seconds),
        ) as response,
    ):  # fmt: skip
        body = await response.content.read(MOST_BYTES + 1)
        while len(body) <= MOST_BYTES and (more := await response.content.read(MOST_BYTES)):
            body += more
        if response.status != 200 or len(body) > MOST_BYTES:
            raise ValueError(f"it answered with status {response.status} and {len(body)} bytes")
    return msgspec.json.decode(body, type=dict[str, Any])


__all__ = ["answered", "ask"]

"""Which certificate the webhook server shows and which authorities vouch for it: what is due when, as pure functions.

A new certificate comes with an authority of its own, in three steps with a pause after each, so that at any time all
replicas show a certificate that all API servers trust, even if some have not seen the last step yet:

1. the next pair is made; both authorities are trusted, the old certificate is still shown;
2. the next pair is shown; both authorities are trusted;
3. the old authority is dropped.
"""

from __future__ import annotations

import datetime as dt
from typing import Final, NamedTuple

from stromboli.server.http.certificates import Bearer, Pair, bears, count, ends, fits, make_pair, signers

RENEWED: Final = 30 * 86_400.0
"""Seconds before its end at which a certificate is replaced; of short-lived ones, a third of their lifetime."""

AUTHORITY: Final = "stromboli-webhooks-ca"


class Terms(NamedTuple):
    """The subject of certificates, their lifetime, and the pause between the steps; in seconds."""

    bearer: Bearer
    valid: float = 365 * 86_400.0
    pause: float = 300.0


class Held(NamedTuple):
    """What replicas share: the pair that is shown, all authorities to be trusted, and the pair that comes next, if any.

    ``since`` is when the last step was taken, in seconds since 1970; ``asked`` whether a new certificate is requested.
    """

    certificate: bytes
    key: bytes
    authorities: bytes
    next: tuple[bytes, bytes] | None = None
    since: float = 0.0
    asked: bool = False

    def __repr__(self) -> str:
        return "Held(...)"


def first(now: float, terms: Terms) -> Held:
    """What stands there in the beginning."""
    fresh = _made(now, terms)
    return Held(fresh.certificate, fresh.key, fresh.authority, since=now)


def due(held: Held, now: float, terms: Terms) -> Held | None:
    """What is to stand in the place of ``held`` now (seconds since 1970); None where that is good as it is."""
    if not is_usable(held, now, terms):
        return first(now, terms)
    rested = now >= held.since + terms.pause
    if held.next is not None and not is_usable(held._replace(certificate=held.next[0], key=held.next[1]), now, terms):
        return held._replace(next=None, since=now)
    if held.next is not None:
        return held._replace(certificate=held.next[0], key=held.next[1], next=None, since=now) if rested else None
    if rested and (held.asked or _ends_soon(held.certificate, now, terms)):
        fresh = _made(now, terms)
        authorities = held.authorities.rstrip() + b"\n" + fresh.authority
        return held._replace(authorities=authorities, next=(fresh.certificate, fresh.key), since=now, asked=False)
    if rested and count(held.authorities) > 1:
        return held._replace(authorities=signers(held.certificate, held.authorities), since=now)
    return None


def is_usable(held: Held, now: float, terms: Terms) -> bool:
    """Whether the certificate can be shown, as its key is there, and API servers accept it.

    They do in time, for our names, and signed by an authority that is trusted.
    """
    try:
        in_time = ends(held.certificate).timestamp() > now
        named = bears(held.certificate, (*terms.bearer.names, *terms.bearer.addresses))
        return (
            in_time and named and fits(held.certificate, held.key) and bool(signers(held.certificate, held.authorities))
        )
    except ValueError:
        return False


def _made(now: float, terms: Terms) -> Pair:
    return make_pair(terms.bearer, AUTHORITY, dt.datetime.fromtimestamp(now, dt.UTC), dt.timedelta(seconds=terms.valid))


def _ends_soon(certificate: bytes, now: float, terms: Terms) -> bool:
    return ends(certificate).timestamp() - now < min(RENEWED, terms.valid / 3)

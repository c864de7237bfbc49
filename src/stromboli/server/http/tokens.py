"""Users by their tokens: the administrator, or a service account with one that was issued to it for a while."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from stromboli.cluster.body import Body, decode, encode, meta, part, stamp
from stromboli.server import status_errors
from stromboli.server.admission.admission import World

ISSUER: Final = "https://kubernetes.default.svc"
_HEAD: Final[Mapping[str, str]] = {"alg": "HS256", "typ": "JWT"}
_HOUR: Final = 3600
_SHORTEST: Final = 600
_LONGEST: Final = 1 << 32


class User(NamedTuple):
    """A user with a name and groups, as reviews report them."""

    name: str
    groups: tuple[str, ...]

    @property
    def body(self) -> Body:
        """As a UserInfo."""
        return {"username": self.name, "groups": list(self.groups)}


ADMINISTRATOR: Final = User("stromboli-admin", ("system:masters", "system:authenticated"))


def service_account(namespace: str, name: str) -> User:
    """The user that a service account is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(f"system:serviceaccount:{namespace}:{name}", groups)


class _Request:
    """What texts call a request for a token."""

    title = "tokenrequests.authentication.k8s.io"
    group, plural, kind = "authentication.k8s.io", "tokenrequests", "TokenRequest"


class Tokens:
    """Tokens of one server.  Those it issues are signed with ``secret``, the administrator's own, and kept nowhere.

    ``clock`` gives seconds since 1970.  A token is good until its time is over or its service account is gone.
    """

    def __init__(self, secret: str, world: World, clock: Callable[[], float]) -> None:
        self._secret = secret
        self._world = world
        self._clock = clock
        self._parts: dict[str, User] = {}

    def of_part(self, user: User) -> str:
        """A token of a part of this very process, good as long as it runs; its user need not be known as an account."""
        token = secrets.token_urlsafe()
        self._parts[token] = user
        return token

    def user_of(self, token: str) -> User | None:
        """The user that ``token`` belongs to; None when it is unknown."""
        if not self._secret or not token:
            return None
        if hmac.compare_digest(token.encode(), self._secret.encode()):
            return ADMINISTRATOR
        if (part_of_us := self._parts.get(token)) is not None:
            return part_of_us
        signed, _, signature = token.rpartition(".")
        genuine = hmac.compare_digest(signature.encode(), self._signature(signed))
        return self._account(decode(_unpacked(signed.partition(".")[2]))) if genuine else None

    def _account(self, claims: Body) -> User | None:
        told = part(claims, "kubernetes.io") or {}
        namespace, name = told.get("namespace", ""), part(told, "serviceaccount", "name") or ""
        account = self._world.body("", "serviceaccounts", namespace, name)
        known = account is not None and meta(account).get("uid") == part(told, "serviceaccount", "uid")
        if not known or claims["exp"] <= self._clock():
            return None
        return service_account(namespace, name)

    def issue(self, account: Body, request: Body) -> Body:
        """The answer to a TokenRequest about a service account."""
        spec = request.get("spec") or {}
        seconds = spec.get("expirationSeconds") or _HOUR
        if not _SHORTEST <= seconds <= _LONGEST:
            told = "less than 10 minutes" if seconds < _SHORTEST else "larger than 2^32 seconds"
            cause = status_errors.wrong("spec.expirationSeconds", seconds, f"may not specify a duration {told}")
            raise status_errors.invalid(_Request, meta(account)["name"], [cause])
        if spec.get("boundObjectRef"):
            raise status_errors.bad_request("tokens that are bound to objects are not issued here")
        audiences, now = spec.get("audiences") or [ISSUER], int(self._clock())
        claims = _claims(account, audiences, now, seconds)
        status = {"token": self._signed(claims), "expirationTimestamp": stamp(now + seconds)}
        return {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "metadata": {"name": meta(account)["name"], "namespace": meta(account)["namespace"]},
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": None}, "status": status,
        }  # fmt: skip

    def _signed(self, claims: Body) -> str:
        signed = f"{_packed(encode(_HEAD))}.{_packed(encode(claims))}"
        return f"{signed}.{self._signature(signed).decode()}"

    def _signature(self, signed: str) -> bytes:
        return _packed(hmac.digest(self._secret.encode(), signed.encode(), "sha256")).encode()


def _claims(account: Body, audiences: Sequence[str], now: int, seconds: int) -> dict[str, Any]:
    namespace, name = meta(account)["namespace"], meta(account)["name"]
    return {
        "aud": audiences, "exp": now + seconds, "iat": now, "nbf": now, "iss": ISSUER,
        "sub": f"system:serviceaccount:{namespace}:{name}",
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": meta(account)["uid"]}},
    }  # fmt: skip


def _packed(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

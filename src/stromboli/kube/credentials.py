"""Proving our identity: tokens, passwords and certificates, from texts, from files that change, and from plugins."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from stromboli.errors import AccessError
from stromboli.kube.tls import ClientCertificate

Clock = Callable[[], float]
"""Seconds since 1970."""

EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Versions of the plugins' API that are spoken."""

LOOK_EVERY: Final = 1.0
"""Seconds between looks at files that may have changed."""

RENEW_BEFORE: Final = 10.0
"""Seconds before its end at which a plugin's answer is asked for again."""

PLUGIN_TIME: Final = 60.0
"""Seconds that a plugin may take."""


class Login(NamedTuple):
    """What a request shows: headers, and the certificate that its connection appears with."""

    headers: Mapping[str, str] = {}
    certificate: ClientCertificate | None = None

    def __repr__(self) -> str:
        return f"Login({', '.join(self.headers)})"


class Credentials(Protocol):
    """Where logins come from."""

    async def current(self) -> Login:
        """The login to use now.  Raises AccessError."""

    def refused(self) -> None:
        """The server has answered 401: look for another login."""


def bearer(token: str) -> dict[str, str]:
    """The header that shows ``token``; none for an empty one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def basic(user: str, password: str) -> dict[str, str]:
    """The header of a name and a password."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class Fixed:
    """One login that never changes."""

    def __init__(self, login: Login) -> None:
        self._login = login

    async def current(self) -> Login:
        """The login."""
        return self._login

    def refused(self) -> None:
        """There is no other one."""


class Files:
    """A token, or a certificate and its key, in files that are renewed from outside.

    They are looked at once a second at most, and read again when their times have changed or a login was refused.
    ``rest`` is what does not come from files.
    """

    def __init__(
        self, token: str = "", certificate: str = "", key: str = "", rest: Login | None = None,
        clock: Clock = time.monotonic,
    ) -> None:  # fmt: skip
        self._token, self._certificate, self._key = token, certificate, key
        self._rest = rest or Login()
        self._clock = clock
        self._looked = float("-inf")
        self._times: tuple[int, ...] = ()
        self._login = Login()

    async def current(self) -> Login:
        """The login in the files as they stand."""
        now = self._clock()
        if now - self._looked >= LOOK_EVERY:
            self._look()
            self._looked = now
        return self._login

    def refused(self) -> None:
        """Read the files at the next request."""
        self._looked, self._times = float("-inf"), ()

    def _look(self) -> None:
        try:
            times = tuple(Path(file).stat().st_mtime_ns for file in self._files())
            if times != self._times:
                self._login = self._read()
                self._times = times
        except OSError as error:
            if not self._times:  # once read, a file that is just being replaced may be missing for a moment
                raise AccessError(error.strerror or str(error), file=str(error.filename)) from error

    def _files(self) -> list[str]:
        return [file for file in (self._token, self._certificate, self._key) if file]

    def _read(self) -> Login:
        headers, certificate = self._rest
        if self._token:
            headers = bearer(Path(self._token).read_text(encoding="utf-8").strip())
        if self._certificate:
            certificate = ClientCertificate(Path(self._certificate).read_bytes(), Path(self._key).read_bytes())
        return Login(headers, certificate)


class _Variable(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class ExecConfig(msgspec.Struct, frozen=True, rename="camel"):
    """``exec`` of a kubeconfig's user: the plugin, and how it wants to be called."""

    command: str
    api_version: str = ""
    args: list[str] = []
    env: list[_Variable] = []
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False


class _Issued(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    status: _Issued | None = None
    kind: str = ""


class Plugin:
    """A program that issues tokens or certificates, asked again shortly before they end or when one was refused.

    ``cluster`` describes the API server to a plugin that wants to know; ``interactive`` says whether a user sits at
    the terminal.  Its errors go to standard error; what it issues appears nowhere.
    """

    def __init__(
        self, config: ExecConfig, cluster: Mapping[str, Any] | None = None, *, interactive: bool | None = None,
        clock: Clock = time.time,
    ) -> None:  # fmt: skip
        if config.api_version not in EXEC_VERSIONS:
            raise AccessError(f"{config.api_version!r} is none of {', '.join(EXEC_VERSIONS)}", path="exec.apiVersion")
        self._config, self._cluster, self._clock = config, cluster, clock
        terminal = sys.stdin is not None and sys.stdin.isatty() if interactive is None else interactive
        self._interactive = terminal and config.interactive_mode != "Never"
        if config.interactive_mode == "Always" and not terminal:
            raise AccessError(f"{config.command} needs a terminal, and there is none", path="exec.interactiveMode")
        self._login: Login | None = None
        self._ends = float("inf")
        self._asking = asyncio.Lock()

    async def current(self) -> Login:
        """What the plugin has issued; at most one plugin runs at a time."""
        async with self._asking:
            if self._login is None or self._clock() >= self._ends - RENEW_BEFORE:
                self._login, self._ends = self._usable(await self._run())
            return self._login

    def refused(self) -> None:
        """Ask the plugin at the next request."""
        self._login = None

    async def _run(self) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                self._config.command,
                *self._config.args,
                env=self._environment(),
                stdin=None if self._interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"; {self._config.install_hint}" if self._config.install_hint else ""
            raise AccessError(f"{error.strerror}{hint}", file=self._config.command) from error
        return await self._answer_of(process)

    async def _answer_of(self, process: asyncio.subprocess.Process) -> bytes:
        try:
            async with asyncio.timeout(None if self._interactive else PLUGIN_TIME):
                answer, _ = await process.communicate()
        except TimeoutError:
            raise self._failed(f"gave no answer within {PLUGIN_TIME:g} s") from None
        finally:
            if process.returncode is None:  # its time is over, or that of its waiter
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._failed(f"ended with {process.returncode}")
        return answer

    def _environment(self) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": self._interactive}
        if self._config.provide_cluster_info:
            spec["cluster"] = self._cluster or {}
        info = {"apiVersion": self._config.api_version, "kind": "ExecCredential", "spec": spec}
        own = {variable.name: variable.value for variable in self._config.env}
        return {**os.environ, **own, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}

    def _usable(self, answer: bytes) -> tuple[Login, float]:
        try:
            found = msgspec.json.decode(answer, type=_ExecCredential)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._failed("gave no ExecCredential") from error
        if found.api_version != self._config.api_version:
            raise self._failed(f"speaks {found.api_version!r:.60}, not {self._config.api_version}")
        issued = found.status
        if issued is None or not (issued.token or issued.client_certificate_data):
            raise self._failed("issued neither a token nor a certificate")
        if bool(issued.client_certificate_data) != bool(issued.client_key_data):
            raise self._failed("issued a certificate without its key, or a key without its certificate")
        return Login(bearer(issued.token), _certificate(issued)), self._end(issued.expiration_timestamp)

    def _end(self, text: str) -> float:
        try:
            return datetime.fromisoformat(text).timestamp() if text else float("inf")
        except ValueError as error:
            raise self._failed(f"names {text!r:.60} as the end, which is no time") from error

    def _failed(self, problem: str) -> AccessError:
        return AccessError(f"the credential plugin {problem}", file=self._config.command)


def _certificate(issued: _Issued) -> ClientCertificate | None:
    if not issued.client_certificate_data:
        return None
    return ClientCertificate(issued.client_certificate_data.encode(), issued.client_key_data.encode())


class Impersonating:
    """Another login, with headers that say on whose behalf."""

    def __init__(self, inner: Credentials, headers: Mapping[str, str]) -> None:
        self._inner, self._headers = inner, headers

    async def current(self) -> Login:
        """The login with the headers."""
        login = await self._inner.current()
        return Login({**login.headers, **self._headers}, login.certificate)

    def refused(self) -> None:
        """Tell the other one."""
        self._inner.refused()

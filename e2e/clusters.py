"""API servers that stories can take away and bring back: the embedded one and a real kube-apiserver."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from e2e import real

Json = dict[str, Any]

STROMBOLI: Final = (sys.executable, "-m", "stromboli.cli.main")
MERGE: Final = "application/merge-patch+json"
_READY_SECONDS: Final = 120.0
_PASSING: Final = frozenset({429, 500, 503, 504})
_INITIALIZING: Final = "storage is (re)initializing"
"""What a server says of objects of a definition, with code 429, for a moment after its start."""
_AUDIT: Final = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, users: ["system:apiserver", "admin"]}
- {level: Metadata}
"""
"""Each request, its client and its outcome; the administrator's requests are those of the stories themselves."""


class Refused(Exception):
    """The API server answered with an error; ``code`` is the HTTP status, ``is_final`` that it would be again."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.is_final = code not in _PASSING and "not yet ready" not in text


class NotReady(Exception):
    """A server did not start."""


@dataclass(frozen=True)
class Login:
    """What a kubeconfig says."""

    url: str
    token: str
    authority: str

    @classmethod
    def of(cls, kubeconfig: Path) -> Login:
        """Read a kubeconfig with one cluster and one user who has a token."""
        found = yaml.safe_load(kubeconfig.read_text())
        cluster, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
        data = cluster.get("certificate-authority-data")
        authority = base64.b64decode(data).decode() if data else Path(cluster["certificate-authority"]).read_text()
        return cls(cluster["server"], user["token"], authority)


class Api:
    """Requests of an administrator."""

    def __init__(self, login: Login) -> None:
        self.login = login
        self._trust = ssl.create_default_context(cadata=login.authority)

    def call(self, method: str, path: str, body: Json | None = None, media: str = "application/json") -> Json:
        """One request, repeated while the server prepares itself for it, as clients do.

        Raises Refused, and one of UNREACHABLE while the server is away.
        """
        ready_by = time.monotonic() + _READY_SECONDS
        while True:
            try:
                with self.open(method, path, body, media) as answer:
                    found: Json = json.loads(answer.read())
                return found
            except Refused as error:
                if _INITIALIZING not in str(error) or time.monotonic() > ready_by:
                    raise
                time.sleep(1.0)

    def open(
        self, method: str, path: str, body: Json | None = None, media: str = "application/json", seconds: float = 20.0
    ) -> Any:
        """The response to a request, to be read and closed."""
        headers = {"Authorization": f"Bearer {self.login.token}", "Content-Type": media}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.login.url + path, data, headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=seconds, context=self._trust)
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace")) from error


@dataclass
class Server:
    """An API server in ``folder`` that keeps its port and its data when it is started again."""

    folder: Path
    port: int = field(default_factory=real.free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def kubeconfig(self) -> Path:
        """An administrator's."""
        return self.folder / "kubeconfig"

    def start(self) -> None:
        """Start it, and wait until it answers.  Raises NotReady."""
        raise NotImplementedError

    def kill(self) -> None:
        """Take it away at once, as kill -9 does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """Take it away in order."""
        if self.process is not None:
            real.ended(self.process)

    def account(self, namespace: str, name: str) -> str:
        """A new token of a ServiceAccount, good for an hour."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        token: str = Api(Login.of(self.kubeconfig)).call("POST", path, asked)["status"]["token"]
        return token

    def audit(self) -> list[Json]:
        """What was asked of the server by others than the administrator, if it writes that down."""
        return []

    def forbidden(self) -> list[Json]:
        """Which of that was refused for want of rights."""
        return []


class Embedded(Server):
    """`stromboli up` without its scheduler, controllers and nodes."""

    def start(self) -> None:
        """Start it, and wait until it answers.  Raises NotReady."""
        self.folder.mkdir(parents=True, exist_ok=True)
        options = ["--no-scheduler", "--no-controllers", "--nodes=0x1cpu", f"--port={self.port}"]
        where = [f"--data-dir={self.folder / 'data'}", f"--kubeconfig={self.kubeconfig}"]
        with (self.folder / "up.log").open("ab") as log:
            self.process = subprocess.Popen([*STROMBOLI, "up", *options, *where], stdout=log, stderr=log)
        end = time.monotonic() + _READY_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with Api(Login.of(self.kubeconfig)).open("GET", "/readyz") as answer:
                    answer.read()
                return
            except (*real.UNREACHABLE, Refused, TypeError):
                time.sleep(0.1)
        raise NotReady((self.folder / "up.log").read_text()[-2000:])


@dataclass
class Real(Server):
    """A kube-apiserver with its etcd, RBAC and an audit log of all requests; ``flags`` are more of its own."""

    flags: Sequence[str] = ()
    _starts: list[tuple[datetime, datetime]] = field(default_factory=list)

    def start(self) -> None:
        """Start it, and wait until it answers.  Raises NotReady."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "audit.yaml").write_text(_AUDIT)
        audit = [f"--audit-policy-file={self.folder}/audit.yaml", f"--audit-log-path={self.folder}/audit.log"]
        checks = ["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]
        began = datetime.now(UTC)
        self.process = real.launched(self.folder, [f"--kapi-port={self.port}", *audit, *checks, *self.flags])
        try:
            real.ready(self.folder, self.process)
        except real.ServerFailed as error:
            raise NotReady(str(error)) from error
        self._starts.append((began, datetime.now(UTC)))

    def audit(self) -> list[Json]:
        """What was asked by others than the administrator; a line that is still being written is left out."""
        lines = (self.folder / "audit.log").read_bytes().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def forbidden(self) -> list[Json]:
        """Requests refused for want of rights; not those of its start, when it does not know all rights yet."""
        refused = [entry for entry in self.audit() if entry["responseStatus"]["code"] in (401, 403)]
        return [entry for entry in refused if not any(began <= _moment(entry) <= end for began, end in self._starts)]


def _moment(entry: Json) -> datetime:
    return datetime.fromisoformat(entry["requestReceivedTimestamp"])


def kubectl(kubeconfig: Path, *arguments: str, given: str = "", env: Mapping[str, str] | None = None) -> str:
    """What kubectl prints.  Raises CalledProcessError."""
    command = ["kubectl", f"--kubeconfig={kubeconfig}", *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        raise NotReady(f"{arguments}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


SERVERS: Final[Mapping[str, type[Embedded] | type[Real]]] = {"embedded": Embedded, "real": Real}
"""Each kind of server by its name."""

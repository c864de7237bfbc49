"""One pod of the image as a process: its own root (read-only), network and processes, as the user that it states."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from e2e.image.netns import Network

Json = dict[str, Any]
ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_PATH: Final = "/opt/stromboli/bin:/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Access:
    """The way to the API server that every pod is given: a port of loopback, an authority, and a token."""

    port: int
    authority: str
    token: str
    namespace: str

    @property
    def variables(self) -> Mapping[str, str]:
        """What is in its environment."""
        return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.port)}

    @property
    def files(self) -> Mapping[str, str]:
        """What lies in the folder of its account."""
        return {"token": self.token, "ca.crt": self.authority, "namespace": self.namespace}


@dataclass
class PodProcess:
    """A pod with one container; ``image`` is the unpacked image, ``contents`` the files of volumes by their names."""

    body: Json
    image: Path
    folder: Path
    access: Access
    contents: Mapping[str, Mapping[str, str]]
    network: Network = field(default_factory=Network)
    process: subprocess.Popen[bytes] | None = None

    @property
    def container(self) -> Json:
        """Its container."""
        found: Json = self.body["spec"]["containers"][0]
        return found

    def start(self) -> None:
        """Begin to run it; what it writes is in ``log``."""
        self.folder.mkdir(parents=True)
        self.network.lead(self.access.port)
        (self.folder / "start").write_text(self._script())
        apart = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child=SIGTERM")
        words = ("nsenter", f"--net={self.network.path}", *apart, "sh", str(self.folder / "start"))
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)

    def ready(self) -> bool:
        """Whether its readiness probe is answered well."""
        probe = self.container["readinessProbe"]["httpGet"]
        try:
            connection = HTTPConnection("pod")
            connection.sock = self.connect(probe["port"])
            try:
                connection.request("GET", probe["path"])
                return connection.getresponse().status == 200
            finally:
                connection.close()
        except OSError:
            return False

    def connect(self, name: str) -> socket.socket:
        """A connection to its port of that name.  Raises OSError."""
        port = next(one["containerPort"] for one in self.container["ports"] if one["name"] == name)
        return self.network.connect(port)

    def refresh(self, contents: Mapping[str, Mapping[str, str]]) -> None:
        """Bring the files of its volumes up to date, as kubelets do with ConfigMaps."""
        if contents != {name: files for name, files in self.contents.items() if name != "account"}:
            self.contents = {**self.contents, **contents}
            self._write()

    def end(self, grace: float = 30.0) -> int:
        """SIGTERM, SIGKILL after the grace period; the exit code."""
        code = -1
        if self.process is not None:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            with suppress(OSError):
                for pid in children.read_text().split():
                    subprocess.run(["kill", "-TERM", pid], check=False)
            try:
                code = self.process.wait(grace)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()
        self.network.close()
        return code

    # ------------------------------------------------------------------------------------------------- its root

    def _write(self) -> None:
        for volume, files in self.contents.items():
            where = self.folder / "volumes" / volume
            where.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                fresh = where / f".{name}.new"
                fresh.write_text(text)
                fresh.rename(where / name)

    def _script(self) -> str:
        """Lay out the root and become the program: an overlay of the image, mounts, everything else read-only."""
        self.contents = {**self.contents, "account": self.access.files}
        self._write()
        root, spec = self.folder / "root", self.container
        for name in ("root", "work"):
            (self.folder / name).mkdir()
        mounts = {one["mountPath"]: one["name"] for one in spec.get("volumeMounts") or ()} | {ACCOUNT: "account"}
        lines = [
            "set -e",
            f"mount -t tmpfs none {self.folder}/work",
            f"mkdir {self.folder}/work/u {self.folder}/work/w",
        ]
        layers = f"lowerdir={self.image},upperdir={self.folder}/work/u,workdir={self.folder}/work/w"
        lines += [f"mount -t overlay -o {layers} none {root}"]
        lines += [f"mkdir -p {root}{target}" for target in ("/proc", "/tmp", *mounts)]
        if spec["securityContext"].get("readOnlyRootFilesystem"):
            lines.append(f"mount -o remount,ro {root}")
        for target, volume in mounts.items():
            where = self.folder / "volumes" / volume
            where.mkdir(parents=True, exist_ok=True)
            where.chmod(0o777)
            lines.append(f"mount --bind {where} {root}{target}")
        lines += [f"mount -t proc none {root}/proc", f"hostname {self.body['metadata']['name']}"]
        return "\n".join([*lines, f"exec {shlex.join(self._words(root))}"])

    def _words(self, root: Path) -> list[str]:
        user = self.body["spec"]["securityContext"]["runAsUser"]
        variables = {"PATH": _PATH, "HOME": "/", **self.access.variables}
        for one in self.container.get("env") or ():
            variables[one["name"]] = one.get("value") or self.access.namespace
        named = [f"{name}={value}" for name, value in variables.items()]
        bare = ["setpriv", "--no-new-privs"]
        jailed = ["chroot", f"--userspec={user}:{user}", str(root), *self.container["command"], *self.container["args"]]
        return [*bare, "env", "-i", *named, "/usr/sbin/chroot", *jailed[1:]]

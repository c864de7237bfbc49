"""``ssh``: the pods of a job log in at each other without a password."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stromboli.job_plugins.hosts import MOST_DATA, Host, all_hosts, check_size
from stromboli.job_plugins.plugin import AddVolume, Edit, JobPlugin, Place, Wanted, flag, secret
from stromboli.job_plugins.wanted import SSH_KEYS

PRIVATE: Final = "id_rsa"
PUBLIC: Final = "id_rsa.pub"
AUTHORIZED: Final = "authorized_keys"
CONFIG: Final = "config"
FOLDER: Final = "/root/.ssh"
PORT: Final = 22
_HEAD: Final = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"


class Ssh(JobPlugin):
    """A Secret with a pair of keys of the job's own and with the pods' names, mounted where ssh looks."""

    name = "ssh"
    path = flag("ssh-key-file-path", FOLDER)
    private_key = flag("ssh-private-key", "")
    public_key = flag("ssh-public-key", "")
    stated_port = flag("ssh-port", PORT)

    @property
    def port(self) -> int:
        """The port of the daemons."""
        return self.stated_port if 0 < self.stated_port < 1 << 16 else PORT

    def problem(self) -> str:
        """Raises PluginError where the names of the pods are too many for a Secret."""
        check_size(self.name, all_hosts(self.job), MOST_DATA // 2, "a Secret that names them twice", around=20)
        return ""

    def warnings(self) -> Iterator[str]:
        """A port that there is not."""
        if self.port != self.stated_port:
            yield f"invalid ssh port {self.stated_port}, falling back to default port {PORT}"

    def objects(self) -> Iterator[Wanted]:
        """The Secret."""
        config = _HEAD + "".join(map(self._entry, all_hosts(self.job)))
        if self.private_key:
            keys = {PRIVATE: self.private_key, PUBLIC: self.public_key, AUTHORIZED: self.public_key}
            yield secret(self._secret, {**keys, CONFIG: config})
        else:
            yield secret(self._secret, {CONFIG: config}, SSH_KEYS)

    @property
    def _secret(self) -> str:
        return f"{self.job.metadata.name}-ssh"

    def _entry(self, host: Host) -> str:
        return f"Host {host.name}\n  HostName {host}\n  Port {self.port}\n"

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterator[Edit]:
        """The Secret's files."""
        files = [{"key": key, "path": f".ssh/{key}"} for key in (PRIVATE, PUBLIC, AUTHORIZED, CONFIG)]
        mode = 0o600 if self.path == FOLDER else 0o644
        source = {"secretName": self._secret, "items": files, "defaultMode": mode}
        mount = {"name": self._secret, "mountPath": self.path, "subPath": ".ssh"}
        yield AddVolume({"name": self._secret, "secret": source}, mount)

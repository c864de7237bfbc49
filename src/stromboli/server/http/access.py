"""What clients need to get in: certificate authority, server certificate, token, and a kubeconfig that names them."""

from __future__ import annotations

import base64
import datetime as dt
import os
import secrets
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stromboli.errors import CannotServe
from stromboli.server.http.certificates import Bearer, ends, make_pair

_VALID: Final = dt.timedelta(days=365)
_RENEWED: Final = dt.timedelta(days=30)
"""Certificates that end within this time are made again."""
_PAIR: Final = ("server.crt", "server.key")
_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_PRIVATE: Final = 0o600
_OWN_FOLDER: Final = 0o700


@dataclass(frozen=True)
class Access:
    """Files and secrets of a server; ``authority`` is the certificate of the authority, in PEM."""

    directory: Path
    token: str
    authority: str

    @property
    def certificate(self) -> Path:
        """The server's certificate."""
        return self.directory / "server.crt"

    @property
    def private_key(self) -> Path:
        """The server's key."""
        return self.directory / "server.key"

    @property
    def kubeconfig(self) -> Path:
        """What clients are told."""
        return self.directory / "kubeconfig"

    def write_kubeconfig(self, url: str, path: Path | None = None) -> Path:
        """Write how to reach the server at ``url`` into a file that only its owner reads."""
        where = path or self.kubeconfig
        _write(where, _kubeconfig(url, self.authority, self.token).encode())
        return where


def access_in(directory: Path, address: str = "127.0.0.1") -> Access:
    """Certificates and token of a directory, made again where they are missing or will soon be of no use.

    Raises CannotServe naming the file that cannot be used, and OSError.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=_OWN_FOLDER)
    token_file = directory / "token"
    if not token_file.exists() or not _text(token_file).strip():
        _write(token_file, secrets.token_hex(32).encode())
    if not all((directory / name).exists() for name in _PAIR) or not _lasts(directory / "server.crt"):
        _make_certificates(directory, address)
    _check_pair(directory)
    return Access(directory, _text(token_file), _text(directory / "ca.crt"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except UnicodeDecodeError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: Exception) -> CannotServe:
    remedy = "remove it, and a new one is made; clients then need the new kubeconfig"
    return CannotServe(f"{path}: cannot be used ({error}); {remedy}")


def _check_pair(directory: Path) -> None:
    """Raise CannotServe unless certificate and key belong together."""
    certificate, key = (directory / name for name in _PAIR)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise _unusable(key, error) from error


def _lasts(certificate: Path) -> bool:
    """Whether the certificate is of use for some time yet."""
    try:
        end = ends(certificate.read_bytes())
    except ValueError as error:
        raise _unusable(certificate, error) from error
    return end - dt.datetime.now(dt.UTC) > _RENEWED


def _write(path: Path, content: bytes) -> None:
    """Put a whole file in the place of whatever stood there, for its owner alone."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        os.fchmod(file.fileno(), _PRIVATE)
        file.write(content)
    Path(file.name).replace(path)


def _make_certificates(directory: Path, address: str) -> None:
    """An authority whose key is thrown away, and the one certificate that it signs."""
    bearer = Bearer("stromboli-apiserver", _NAMES, (address,))
    made = make_pair(bearer, "stromboli-ca", dt.datetime.now(dt.UTC), _VALID)
    (directory / "server.key").unlink(missing_ok=True)  # it comes last: without it nothing of this counts
    _write(directory / "ca.crt", made.authority)
    _write(directory / "server.crt", made.certificate)
    _write(directory / "server.key", made.key)


def _kubeconfig(url: str, authority: str, token: str) -> str:
    data = base64.b64encode(authority.encode()).decode()
    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: stromboli
  cluster:
    server: {url}
    certificate-authority-data: {data}
users:
- name: stromboli-admin
  user:
    token: {token}
contexts:
- name: stromboli
  context:
    cluster: stromboli
    user: stromboli-admin
current-context: stromboli
"""

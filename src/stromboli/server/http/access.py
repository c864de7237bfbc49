"""What clients need to get in: certificate authority, server certificate, token, and a kubeconfig that names them."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import os
import secrets
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from stromboli.errors import CannotServe

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
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
    except ValueError as error:
        raise _unusable(certificate, error) from error
    return found.not_valid_after_utc - dt.datetime.now(dt.UTC) > _RENEWED


def _write(path: Path, content: bytes) -> None:
    """Put a whole file in the place of whatever stood there, for its owner alone."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        os.fchmod(file.fileno(), _PRIVATE)
        file.write(content)
    Path(file.name).replace(path)


def _make_certificates(directory: Path, address: str) -> None:
    """An authority whose key is thrown away, and the one certificate that it signs."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name, name = _name("stromboli-ca"), _name("stromboli-apiserver")
    authority = (
        _certificate(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    known = [*(x509.DNSName(one) for one in _NAMES), x509.IPAddress(ipaddress.ip_address(address))]
    certificate = (
        _certificate(name, authority_name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(known), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (directory / "server.key").unlink(missing_ok=True)  # it comes last: without it nothing of this counts
    _write(directory / "ca.crt", authority.public_bytes(pem))
    _write(directory / "server.crt", certificate.public_bytes(pem))
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    _write(directory / "server.key", key.private_bytes(pem, form, plain))


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - dt.timedelta(minutes=5)).not_valid_after(now + _VALID)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


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

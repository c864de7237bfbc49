"""Certificates for tests, made on the spot."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    """A certificate authority."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder("test authority", self._key).add_extension(x509.BasicConstraints(True, None), True)
        self.certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, *also: str, server: bool = False) -> tuple[bytes, bytes]:
        """A certificate and its key, PEM; a server's ``name`` is its address, ``also`` names it bears besides."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(name, key)
        if server:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name)), *map(x509.DNSName, also)])
            builder = builder.add_extension(names, False)
        made = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        form = serialization.PrivateFormat.PKCS8
        return made, key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())

    @staticmethod
    def _builder(name: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name("test authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
        )

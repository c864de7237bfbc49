"""Certificates of servers: an authority whose key is thrown away, and the one certificate that it has signed."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_PEM: Final = serialization.Encoding.PEM
_UNREADABLE: Final = (
    ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)  # fmt: skip
"""What reading certificates and keys may raise."""
_EARLY: Final = dt.timedelta(hours=1)
"""How long before it is made a certificate is valid: clocks differ."""


class Pair(NamedTuple):
    """A server's certificate and its key, and the certificate of the authority that signed it; all PEM."""

    authority: bytes
    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Pair(...)"


class Bearer(NamedTuple):
    """The subject of a certificate: its common name, and the DNS names and addresses that it is reached under."""

    name: str
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def make_pair(bearer: Bearer, authority: str, now: dt.datetime, valid: dt.timedelta) -> Pair:
    """A new authority of that name, and a certificate that it signs; both end ``valid`` after ``now``."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name, until = _name(authority), now + valid
    signer = (
        _certificate(authority_name, authority_name, authority_key.public_key(), now, until)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    known = [*map(x509.DNSName, bearer.names), *(x509.IPAddress(ipaddress.ip_address(one)) for one in bearer.addresses)]
    certificate = (
        _certificate(_name(bearer.name), authority_name, key.public_key(), now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(known), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(signer.public_bytes(_PEM), certificate.public_bytes(_PEM), private)


@contextmanager
def _reading() -> Iterator[None]:
    """Raise whatever keeps a certificate or key from being read as ValueError: it has no common base."""
    try:
        yield
    except _UNREADABLE as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


@_reading()
def ends(certificate: bytes) -> dt.datetime:
    """When a certificate ends.  Raises ValueError for what is none."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


@_reading()
def begins(certificate: bytes) -> dt.datetime:
    """From when on a certificate counts.  Raises ValueError for what is none."""
    return x509.load_pem_x509_certificate(certificate).not_valid_before_utc


@_reading()
def fits(certificate: bytes, key: bytes) -> bool:
    """Whether a key, which must not be encrypted, is that of a certificate.  Raises ValueError for what is none."""
    public = x509.load_pem_x509_certificate(certificate).public_key()
    own = serialization.load_pem_private_key(key, None).public_key()
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return public.public_bytes(*form) == own.public_bytes(*form)


@_reading()
def bears(certificate: bytes, names: Iterable[str]) -> bool:
    """Whether a certificate is good for all those names or addresses.  Raises ValueError for what is none."""
    try:
        extension = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except x509.ExtensionNotFound:
        return False
    borne = {str(one.value) for one in extension.value}
    return borne >= set(names)


@_reading()
def signers(certificate: bytes, authorities: bytes) -> bytes:
    """Those of several authorities (PEM) that have signed a certificate.  Raises ValueError."""
    signed = x509.load_pem_x509_certificate(certificate)
    found = [one for one in x509.load_pem_x509_certificates(authorities) if _has_signed(one, signed)]
    return b"".join(one.public_bytes(_PEM) for one in found)


@_reading()
def count(authorities: bytes) -> int:
    """How many certificates a text holds.  Raises ValueError for one that holds none."""
    return len(x509.load_pem_x509_certificates(authorities))


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, *_UNREADABLE):
        return False
    return True


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: dt.datetime, until: dt.datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - _EARLY).not_valid_after(until)


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

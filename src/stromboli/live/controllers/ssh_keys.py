"""The keys of job plugin ssh: made once for a job, kept as long as they are sound."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from stromboli.job_plugins.ssh import AUTHORIZED, PRIVATE, PUBLIC

BITS: Final = 2048
EXPONENT: Final = 65537


def completed_keys(stored: Mapping[str, str]) -> dict[str, str]:
    """The keys of a Secret, as it holds them: those ``stored`` if the private one can be read, else new ones.

    The private key is PKCS#1 in PEM; the public one is stored in its own file and in ``authorized_keys``.
    """
    private = _read(stored.get(PRIVATE, ""))
    if private is None:
        key = rsa.generate_private_key(EXPONENT, BITS)
        form = serialization.PrivateFormat.TraditionalOpenSSL
        private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()), key.public_key()
    text, public_key = private
    openssh = public_key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    public = base64.b64encode(openssh + b"\n").decode()
    return {PRIVATE: base64.b64encode(text).decode(), PUBLIC: public, AUTHORIZED: public}


def _read(stored: str) -> tuple[bytes, rsa.RSAPublicKey] | None:
    """A private key as its text and its public part; None for what is none."""
    try:
        text = base64.b64decode(stored, validate=True)
        key = serialization.load_pem_private_key(text, None, unsafe_skip_rsa_key_validation=True)
    except (binascii.Error, ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return (text, key.public_key()) if isinstance(key, rsa.RSAPrivateKey) else None

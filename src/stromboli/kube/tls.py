"""TLS towards an API server: trusted authorities, and our own certificate."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from stromboli.errors import AccessError


class ClientCertificate(NamedTuple):
    """A client certificate with its chain, and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "ClientCertificate(...)"


class Trust(NamedTuple):
    """How a server is recognised.

    ``authorities`` are PEM certificates, those of the machine when None; ``server_name`` is the name that the server's
    certificate must bear where it differs from the address; ``insecure`` accepts any server.
    """

    authorities: bytes | None = None
    server_name: str = ""
    insecure: bool = False

    def context(self, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
        """A context for connections that appear with ``certificate``.  Raises AccessError for unusable PEM data."""
        context = self._trusting()
        if self.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            _appear(context, certificate)
        return context

    def _trusting(self) -> ssl.SSLContext:
        try:
            found = ssl.create_default_context(cadata=self.authorities.decode() if self.authorities else None)
        except (ssl.SSLError, ValueError) as error:
            raise AccessError(f"the certificate authority's data cannot be used: {error}") from error
        # Since Python 3.13 a default context refuses authorities without the optional extensions that many lack.
        found.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return found


def _appear(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    with as_file(certificate.certificate) as chain, as_file(certificate.key) as key:
        try:
            context.load_cert_chain(chain, key, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise AccessError(f"the client certificate or its key cannot be used: {error}") from error


def _no_password() -> str:
    raise ValueError("the key is encrypted")


@contextmanager
def as_file(data: bytes) -> Iterator[str]:
    """The path of a file with ``data``, which OpenSSL insists on; where the system can, it never reaches a disk."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("pem", os.MFD_CLOEXEC)
        try:
            os.write(number, data)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            yield file.name

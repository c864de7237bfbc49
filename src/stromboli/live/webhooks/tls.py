"""The TLS side of the webhook server: one context, whose certificate is replaced while it serves."""

from __future__ import annotations

import ssl

from stromboli.errors import AccessError
from stromboli.kube.tls import as_file


class ShownCertificate:
    """A context that shows the newest certificate to each new connection; those that are there go on.

    ``shown`` is that certificate, empty before the first.
    """

    def __init__(self) -> None:
        self.context = self._newest = _fresh()
        # A context keeps one certificate for each kind of key, so that an old one might be shown along with a new one.
        self.context.sni_callback = lambda sock, _name, _context: setattr(sock, "context", self._newest)
        self.shown = b""

    def show(self, certificate: bytes, key: bytes) -> bool:
        """Show another certificate; False if it is shown already.  Raises AccessError, and the old one stays."""
        if certificate == self.shown:
            return False
        fresh = _fresh()
        try:
            with as_file(certificate) as chain, as_file(key) as secret:
                fresh.load_cert_chain(chain, secret, password=_no_password)
                if not self.shown:
                    self.context.load_cert_chain(chain, secret, password=_no_password)
        except (OSError, ValueError) as error:  # OSError: those of TLS, and no room for the files
            raise AccessError(f"the webhook server's certificate or key cannot be used: {error}") from error
        self._newest, self.shown = fresh, certificate
        return True


def _fresh() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted")

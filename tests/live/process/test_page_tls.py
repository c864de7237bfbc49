"""TLS of the health pages: which files it needs, and which clients are let in."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from stromboli.live.process.web import server_tls
from tests.support.certificates import Authority


def test_tls_of_the_health_server_needs_all_three_files(tmp_path: Path) -> None:
    authority = Authority()
    files = {"ca": authority.certificate, "crt": authority.issue("a")[0], "key": b""}
    made, files["key"] = authority.issue("a")
    files["crt"] = made
    paths = []
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        paths.append(str(tmp_path / name))
    assert server_tls(paths[0], paths[1], "") is None
    assert server_tls(*paths) is not None


@pytest.mark.parametrize(("shown", "welcome"), [("none", True), ("ours", True), ("theirs", False)])
def test_a_clients_certificate_is_checked_where_it_shows_one(shown: str, welcome: bool, tmp_path: Path) -> None:
    authority, other = Authority(), Authority()
    made, key = authority.issue("127.0.0.1", server=True)
    files = {"ca": authority.certificate, "crt": made, "key": key}
    for name, (certificate, private) in {"ours": authority.issue("a"), "theirs": other.issue("a")}.items():
        files |= {f"{name}.crt": certificate, f"{name}.key": private}
    paths = {name: str(tmp_path / name) for name in files}
    for name, data in files.items():
        Path(paths[name]).write_bytes(data)
    served = server_tls(paths["ca"], paths["crt"], paths["key"])
    assert served is not None
    client = ssl.create_default_context(cafile=paths["ca"])
    if shown != "none":
        client.load_cert_chain(paths[f"{shown}.crt"], paths[f"{shown}.key"])
    for context in (served, client):
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # what it asks for more, the tests' certificates lack
    assert are_friends(served, client) is welcome


def are_friends(served: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Whether a server and a client agree, without a socket between them."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [served.wrap_bio(there, back, server_side=True), client.wrap_bio(back, there, server_hostname="127.0.0.1")]
    for _ in range(4):
        for end in reversed(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return all(end.version() for end in ends)

"""How to reach an API server: from kubeconfig files, or from within a cluster."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec
import yaml

from stromboli.errors import AccessError, ManifestError
from stromboli.kube.credentials import (
    Credentials,
    ExecConfig,
    Files,
    Fixed,
    Impersonating,
    Login,
    Plugin,
    basic,
    bearer,
)
from stromboli.kube.tls import ClientCertificate, Trust
from stromboli.model.spec import without_nulls
from stromboli.model.values.reading import convert
from stromboli.model.values.redaction import without_logins

_Kind = TypeVar("_Kind")

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token, the cluster's authority and its namespace."""

_PATHS: Final = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key", "tokenFile")),
}
"""Fields that name files, relative to the file they stand in."""


class Access(msgspec.Struct, frozen=True):
    """An API server's address, our credentials, the authorities to trust, a proxy, and the default namespace."""

    server: str
    credentials: Credentials
    trust: Trust = Trust()
    proxy: str = ""
    namespace: str = "default"


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] = []


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: ExecConfig | None = None
    auth_provider: dict[str, Any] | None = None
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


# ---------------------------------------------------------------------- where to look


def find_access(kubeconfig: str = "", context: str = "", master: str = "") -> Access:
    """The API server that options and surroundings name.

    ``kubeconfig`` (a path) wins; else within a pod its own cluster; else the files of ``$KUBECONFIG``; else
    ``~/.kube/config``.  ``master`` replaces the address.  Raises AccessError.
    """
    found = _found(kubeconfig, context, master)
    return msgspec.structs.replace(found, server=master.rstrip("/")) if master else found


def _found(kubeconfig: str, context: str, master: str) -> Access:
    if kubeconfig:
        return from_kubeconfig([kubeconfig], context)
    if not context and "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").exists():
        return in_cluster()
    files = [file for file in os.environ.get("KUBECONFIG", "").split(os.pathsep) if file]
    files = files or [str(Path.home() / ".kube" / "config")]
    if any(Path(file).exists() for file in files):
        return from_kubeconfig(files, context)
    if master:
        return Access(master, Fixed(Login()), proxy=proxy_for(master))
    raise AccessError(f"no cluster is configured: {', '.join(files)} does not exist; name a file with --kubeconfig")


def in_cluster(account: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> Access:
    """The cluster that this process runs in, as a pod's service account; its token is read again as it is renewed."""
    try:
        host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    except KeyError as error:
        raise AccessError(f"the environment lacks {error.args[0]}: this is no pod") from error
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    namespace = account / "namespace"
    return Access(
        server,
        Files(token=str(account / "token")),
        Trust(_read(str(account / "ca.crt"))),
        proxy_for(server),
        namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "default",
    )


# ---------------------------------------------------------------------- kubeconfig


def from_kubeconfig(files: list[str], context: str = "") -> Access:
    """The API server of ``context`` (default: the current one); of equal names the first in ``files`` counts.

    Files that do not exist are left out unless there is but one.  Raises AccessError naming file and field.
    """
    config = _merged(files)
    name = context or str(config.get("current-context", ""))
    source = os.pathsep.join(files)
    if not name:
        raise AccessError("is missing and no context was named", file=source, path="current-context")
    try:
        chosen = _entry(config, "contexts", "context", name, _Context)
        cluster = _entry(config, "clusters", "cluster", chosen.cluster, _Cluster)
        user = _entry(config, "users", "user", chosen.user, _User) if chosen.user else _User()
        return _access(cluster, user, chosen.namespace or "default")
    except ManifestError as error:
        raise AccessError(error.problem, file=source, path=error.path) from error
    except AccessError as error:
        raise AccessError(error.problem, file=error.file or source, path=error.path) from error


def _merged(files: list[str]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for file in files:
        if len(files) > 1 and not Path(file).exists():
            continue
        for key, value in _document(file).items():
            if isinstance(value, list):
                merged[key] = merged.get(key, []) + value
            else:
                merged.setdefault(key, value)
    return merged


def _document(file: str) -> dict[str, Any]:
    try:
        found = without_nulls(yaml.load(_read(file), yaml.CSafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise AccessError(f"is not YAML: {str(error).splitlines()[0]}", file=file) from error
    if not isinstance(found, dict):
        raise AccessError("is not a kubeconfig", file=file)
    for key, (inner, fields) in _PATHS.items():
        for entry in found.get(key) or ():
            _anchor(entry.get(inner) or {}, fields, Path(file).parent)
    return found


def _anchor(entry: dict[str, Any], fields: tuple[str, ...], folder: Path) -> None:
    for field in fields:
        if entry.get(field):
            entry[field] = str(folder / entry[field])
    command = (entry.get("exec") or {}).get("command", "")
    if os.sep in command:
        entry["exec"]["command"] = str(folder / command)


def _entry(config: dict[str, Any], key: str, inner: str, name: str, kind: type[_Kind]) -> _Kind:
    for number, entry in enumerate(config.get(key) or ()):
        if entry.get("name") == name:
            try:
                return convert(entry.get(inner) or {}, kind)
            except ManifestError as error:
                path = f"{key}[{number}].{inner}" + (f".{error.path}" if error.path else "")
                raise ManifestError(error.problem, path=path) from error
    raise AccessError(f"names no {inner} {name!r}", path=key)


def _access(cluster: _Cluster, user: _User, namespace: str) -> Access:
    if urlsplit(cluster.server).scheme not in ("http", "https"):
        raise AccessError(f"{without_logins(cluster.server)!r} is no address of an API server", path="clusters.server")
    authorities = _bytes(
        cluster.certificate_authority_data, cluster.certificate_authority, "certificate-authority-data"
    )
    trust = Trust(authorities, cluster.tls_server_name, cluster.insecure_skip_tls_verify)
    proxy = cluster.proxy_url or proxy_for(cluster.server)
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise AccessError(
            f"{urlsplit(proxy).scheme}:// proxies are not supported, http:// and https:// are", path="proxy-url"
        )
    return Access(cluster.server.rstrip("/"), _credentials(cluster, user, authorities), trust, proxy, namespace)


def _credentials(cluster: _Cluster, user: _User, authorities: bytes | None) -> Credentials:
    found = _own_credentials(cluster, user, authorities)
    if not user.as_user:
        return found
    headers = {"Impersonate-User": user.as_user}
    if user.as_uid:
        headers["Impersonate-Uid"] = user.as_uid
    if len(user.as_groups) > 1:
        raise AccessError("more than one group is not supported", path="users.as-groups")
    if user.as_groups:
        headers["Impersonate-Group"] = user.as_groups[0]
    return Impersonating(found, headers)


def _own_credentials(cluster: _Cluster, user: _User, authorities: bytes | None) -> Credentials:
    """In Kubernetes' order: what the entry states itself comes before its plugin."""
    if user.auth_provider:
        raise AccessError("auth providers are gone from Kubernetes; use a plugin (exec)", path="users.auth-provider")
    if (user.client_certificate and user.client_key) and not user.client_certificate_data:
        return Files(user.token_file, user.client_certificate, user.client_key, Login(_headers(user)))
    certificate = _certificate(user)
    if user.token_file:
        return Files(user.token_file, rest=Login({}, certificate))
    if user.exec and not (user.token or user.username or certificate):
        return Plugin(user.exec, _described(cluster, authorities))
    return Fixed(Login(_headers(user), certificate))


def _headers(user: _User) -> dict[str, str]:
    return basic(user.username, user.password) if user.username else bearer(user.token)


def _certificate(user: _User) -> ClientCertificate | None:
    chain = _bytes(user.client_certificate_data, user.client_certificate, "client-certificate-data")
    key = _bytes(user.client_key_data, user.client_key, "client-key-data")
    if (chain is None) != (key is None):
        raise AccessError("a client certificate needs its key, and a key its certificate", path="users.client-key")
    return ClientCertificate(chain, key) if chain is not None and key is not None else None


def _described(cluster: _Cluster, authorities: bytes | None) -> dict[str, Any]:
    """What a plugin is told of the cluster."""
    said: dict[str, Any] = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authorities or b"").decode(),
        "proxy-url": cluster.proxy_url,
    }
    for extension in cluster.extensions:
        if extension.get("name") == "client.authentication.k8s.io/exec":
            said["config"] = extension.get("extension")
    return {key: value for key, value in said.items() if value}


def _bytes(data: str, file: str, path: str) -> bytes | None:
    if not data:
        return _read(file) if file else None
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise AccessError("is not base64", path=path) from error


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise AccessError(error.strerror or str(error), file=file) from error


# ---------------------------------------------------------------------- proxies


def proxy_for(server: str) -> str:
    """The proxy that ``$HTTPS_PROXY``, ``$HTTP_PROXY`` and ``$NO_PROXY`` name for ``server``; none for this machine."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host in ("localhost", "::1") or host.startswith("127.") or proxy_bypass(host):
        return ""
    return getproxies().get(parts.scheme, "")

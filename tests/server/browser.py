"""A client for tests that talks to the ASGI application without a socket."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from stromboli.server.api import Api
from stromboli.server.http.http import Front

TOKEN = "token-of-the-test"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass
class Answer:
    """A response: its code, headers and body."""

    code: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    content: bytes = b""

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.content)

    @property
    def text(self) -> str:
        """The message of a Status."""
        return str(self.body["message"])


class Browser:
    """A server in memory, and requests to it; what housekeeping is due is done after each."""

    def __init__(self, **options: Any) -> None:
        self.now = 1_700_000_000.0
        self.due: list[Any] = []
        self.runner = asyncio.Runner()
        self.api = Api(self.due.append, clock=lambda: self.now, token=TOKEN, **options)
        self.front = Front(self.api)
        self.settle()

    def settle(self) -> None:
        while self.due:
            self.due.pop()()

    def __call__(
        self,
        method: str,
        url: str,
        body: Any = None,
        media: str = "application/json",
        accept: str = "",
        token: str = TOKEN,
    ) -> Answer:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body) if body is not None else b""
        answer = self.runner.run(self._ask(method, url, content, media, accept, token))
        self.settle()
        return answer

    async def _ask(self, method: str, url: str, content: bytes, media: str, accept: str, token: str) -> Answer:
        parts, answer = urlsplit(url), Answer()
        headers = [(b"content-type", media.encode()), (b"authorization", b"Bearer " + token.encode())]
        headers += [(b"accept", accept.encode())] if accept else []
        scope = {
            "type": "http", "method": method, "path": parts.path, "query_string": parts.query.encode(),
            "headers": headers, "server": ("127.0.0.1", 443), "scheme": "https", "root_path": "",
        }  # fmt: skip

        told = False

        async def receive() -> dict[str, Any]:
            nonlocal told
            if told:
                await asyncio.sleep(0.02)  # a watch has sent what was there by then, and ends
                return {"type": "http.disconnect"}
            told = True
            return {"type": "http.request", "body": content}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.code = message["status"]
                answer.headers = [(key.decode(), value.decode()) for key, value in message["headers"]]
            else:
                answer.content += message.get("body", b"")

        await self.front(scope, receive, send)
        return answer

    def get(self, url: str, accept: str = "") -> Answer:
        return self("GET", url, accept=accept)

    def post(self, url: str, body: Any) -> Answer:
        return self("POST", url, body)

    def put(self, url: str, body: Any) -> Answer:
        return self("PUT", url, body)

    def patch(self, url: str, body: Any, media: str = MERGE) -> Answer:
        return self("PATCH", url, body, media)

    def delete(self, url: str, body: Any = None) -> Answer:
        return self("DELETE", url, body)

    def events(self, url: str) -> list[Any]:
        """The events of a watch that its client ends soon."""
        joint = "&" if "?" in url else "?"
        answer = self.get(f"{url}{joint}watch=true")
        return [msgspec.json.decode(line) for line in answer.content.splitlines()]


PODS = "/api/v1/namespaces/default/pods"
CONFIGS = "/api/v1/namespaces/default/configmaps"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", **spec.pop("container", {})}
    metadata = {"name": name, **spec.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def config(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def definition(plural: str = "widgets", kind: str = "Widget", **version: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 10},
                    "color": {"type": "string", "default": "red", "enum": ["red", "green"]},
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    served = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    served |= {"schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": columns, **version}
    names = {"plural": plural, "kind": kind, "singular": kind.lower(), "shortNames": ["w"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [served]},
    }


LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

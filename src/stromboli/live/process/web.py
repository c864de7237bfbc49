"""The pages that a scheduler serves about itself: health, readiness, metrics, and what it is doing."""

from __future__ import annotations

import asyncio
import ssl
import sys
import traceback
from collections.abc import Callable, Iterator

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from stromboli.errors import AccessError


class Pages:
    """Serves pages under one address (``host:port``, or ``:port`` for all hosts); ``port`` is the real one then."""

    def __init__(self, address: str, tls: ssl.SSLContext | None = None) -> None:
        host, _, port = address.rpartition(":")
        if not port.isdecimal():
            raise AccessError(f"{address!r} is no address; write host:port or :port")
        self._host, self.port = host.strip("[]") or None, int(port)
        self._tls = tls
        self._app = web.Application()
        self._runner: web.AppRunner | None = None

    def add(self, path: str, answer: Callable[[], web.Response]) -> None:
        """Serve ``answer`` under ``path``."""

        async def handle(_request: web.Request) -> web.Response:
            return answer()

        self._app.router.add_get(path, handle)

    def add_slow(self, path: str, answer: Callable[[], web.Response]) -> None:
        """Serve ``answer``, which takes its time, under ``path``: it is made in another thread."""

        async def handle(_request: web.Request) -> web.Response:
            return await asyncio.to_thread(answer)

        self._app.router.add_get(path, handle)

    async def start(self) -> None:
        """Begin to serve.  Raises OSError when the address cannot be had."""
        self._runner = web.AppRunner(self._app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Serve no more."""
        if self._runner is not None:
            await self._runner.cleanup()


def health_pages(pages: Pages, healthy: Callable[[], str], ready: Callable[[], str]) -> None:
    """``/healthz`` and ``/readyz``: ok, or 500 and what is wrong (the answer of ``healthy`` or ``ready``, if any)."""

    def answer(problem: str) -> web.Response:
        return web.Response(text=problem or "ok", status=500 if problem else 200)

    pages.add("/healthz", lambda: answer(healthy()))
    pages.add("/livez", lambda: answer(healthy()))
    pages.add("/readyz", lambda: answer(ready()))


def metrics_page(pages: Pages, registry: CollectorRegistry) -> None:
    """``/metrics`` in Prometheus' text form."""
    headers = {"Content-Type": CONTENT_TYPE_LATEST}
    pages.add_slow("/metrics", lambda: web.Response(body=generate_latest(registry), headers=headers))


def stacks_page(pages: Pages) -> None:
    """``/debug/pprof/goroutine``: the stacks of all threads and coroutines."""
    pages.add("/debug/pprof/goroutine", lambda: web.Response(text="\n".join(_stacks())))


def _stacks() -> Iterator[str]:
    for number, frame in sys._current_frames().items():
        yield f"thread {number}:\n" + "".join(traceback.format_stack(frame))
    for task in asyncio.all_tasks():
        frames = [traceback.FrameSummary(f.f_code.co_filename, f.f_lineno, f.f_code.co_name) for f in task.get_stack()]
        yield f"task {task.get_name()}:\n" + "".join(traceback.format_list(frames))


def server_tls(authority: str, certificate: str, key: str) -> ssl.SSLContext | None:
    """TLS of the health server: only if all three files are named, from version 1.2 on.

    A client's certificate is checked where it shows one.  Raises AccessError.
    """
    if not (authority and certificate and key):
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority)
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise AccessError(f"cannot be used for TLS: {error}", file=certificate) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    return context

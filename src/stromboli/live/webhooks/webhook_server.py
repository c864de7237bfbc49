"""The webhook server: reviews come over HTTPS, rules of admission answer them.

Refusals are told in the reviews; what is no review gets an HTTP error, which the API server treats as a failure.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from stromboli.crds.admission import Settings, World
from stromboli.crds.admission.paths import Path
from stromboli.crds.admission.reviews import Request, Response, answer, is_refusal, read_review, written
from stromboli.errors import ManifestError, StromboliError, in_words
from stromboli.kube.informers import Informers
from stromboli.live.process.events import Telling
from stromboli.live.process.stopping import Stop
from stromboli.live.webhooks.bundles import Bundles
from stromboli.live.webhooks.sight import LOOKS_AT_QUEUES, Sight, Together
from stromboli.live.webhooks.sources import Source
from stromboli.live.webhooks.tls import ShownCertificate

LONGEST_BODY: Final = 8 << 20
"""Bytes of a review: two objects, each as large as an API server takes one, and what stands around them."""

JSON: Final = "application/json"

KEEP_OPEN: Final = 600.0
"""Seconds for which an idle connection is kept: far longer than API servers keep theirs (90 s), so that the API server
closes it, and no request arrives on a connection that we are just closing."""

Counted = Callable[[Path, str, float], None]
"""Hears of each answer: path, outcome (``allowed``, ``patched``, ``refused``, ``failed``), and seconds."""


@dataclass(frozen=True)
class Terms:
    """How a server serves: where, for how long it goes on after it was told to stop, and how often it looks around.

    ``drain`` are the seconds for which others may still send reviews here, and ``graceful`` those that reviews under
    way may take then; ``look`` are the seconds between looks at certificate and configurations.
    """

    host: str = ""
    port: int = 8443
    drain: float = 5.0
    graceful: float = 30.0
    look: float = 10.0


class WebhookServer:
    """Serves ``paths``.  ``settings`` gives the rules' settings, which may change; ``port`` is the real one."""

    def __init__(
        self, paths: Sequence[Path], sight: Sight, bundles: Bundles, source: Source, informers: Informers,
        settings: Callable[[], Settings], terms: Terms, tell: Telling, counted: Counted = lambda *_: None,
    ) -> None:  # fmt: skip
        self._paths, self._sight, self._bundles, self._source = paths, sight, bundles, source
        self._informers, self._settings, self._terms, self.tell = informers, settings, terms, tell
        self._counted = counted
        self.certificate = ShownCertificate()
        self.port = terms.port
        self._stop = Stop()
        self._serves = False
        self._seen = float("-inf")
        self._trouble = ""

    # ------------------------------------------------------------------ running

    async def run(self) -> None:
        """Serve until cancelled, or until :meth:`stop` has been called and done."""
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._informers.run(), name="informers")
            keeping = group.create_task(self._keep(), name="certificates")
            try:
                await self._stop.unless(self._begin())
                if not self._stop:
                    await self._serve_until_stopped()
            finally:
                following.cancel()
                keeping.cancel()

    def stop(self) -> None:
        """Become unready, serve clients that have not noticed yet, and return from :meth:`run`."""
        self._stop.ask()

    def unready(self) -> str:
        """Why no reviews should be sent here; empty when they should."""
        if self._stop:
            return "it is stopping"
        if not self._serves:
            return self._trouble or f"not read yet: {', '.join(self._informers.late()) or 'the certificate'}"
        stale = asyncio.get_running_loop().time() - self._seen > 6 * self._terms.look
        return f"the certificate could not be looked at: {self._trouble}" if stale else ""

    async def _begin(self) -> None:
        await self._informers.synced()
        while not self.certificate.shown:
            await asyncio.sleep(0.05)

    async def _serve_until_stopped(self) -> None:
        runner = web.AppRunner(
            self._application(), access_log=None, keepalive_timeout=KEEP_OPEN, shutdown_timeout=self._terms.graceful
        )
        await runner.setup()
        site = web.TCPSite(
            runner, self._terms.host or None, self._terms.port, ssl_context=self.certificate.context, backlog=1024
        )
        try:
            await site.start()
            self.port, self._serves = runner.addresses[0][1], True
            self.tell("webhooks_served", port=self.port, paths=[path.path for path in self._paths])
            await self._stop.unless(_for_ever())
            await asyncio.sleep(self._terms.drain)
        finally:
            await runner.cleanup()

    # ------------------------------------------------------------------ certificate and configurations

    async def _keep(self) -> None:
        """Look at the certificate and at the configurations, again and again, and when a configuration changes."""
        while True:
            await self._look()
            try:
                async with asyncio.timeout(self._terms.look):
                    await self._bundles.changed.wait()
                    await asyncio.sleep(min(1.0, self._terms.look / 4))  # several changes are one look
            except TimeoutError:
                pass

    async def _look(self) -> None:
        try:
            found = await self._source.current()
            if self.certificate.show(found.certificate, found.key):
                self.tell("certificate_shown")
            self._seen = asyncio.get_running_loop().time()
            if not set(self._informers.late()):
                await self._bundles.keep(found.authorities)
            self._trouble = ""
        except Exception as error:  # noqa: BLE001  # whatever stands there, what is shown goes on being shown
            trouble = str(error) if isinstance(error, StromboliError) else in_words(error)
            if trouble != self._trouble:
                self.tell("certificate_trouble", error=trouble)
            self._trouble = trouble

    # ------------------------------------------------------------------ reviews

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=LONGEST_BODY)
        for path in self._paths:
            application.router.add_post(path.path, self._handler(path))
        return application

    def _handler(self, path: Path) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            begun = time.perf_counter()
            answered, outcome = await self._handled(path, request)
            self._counted(path, outcome, time.perf_counter() - begun)
            if self._stop:
                answered.force_close()
            return answered

        return handle

    async def _handled(self, path: Path, request: web.Request) -> tuple[web.Response, str]:
        if request.content_type != JSON:
            return web.Response(status=415, text=f"the body must be {JSON}"), "failed"
        try:
            review = read_review(await request.read())
            response = await self._answer(path, review)
        except web.HTTPRequestEntityTooLarge:
            return web.Response(status=413, text="request body too large"), "failed"
        except ManifestError as error:
            return web.Response(status=400, text=str(error)), "failed"
        except Exception as error:  # noqa: BLE001  # one review's trouble must not be all others'
            self.tell("review_failed", path=path.path, error=in_words(error))
            return web.Response(status=500, text=f"the rules have failed: {in_words(error)}"), "failed"
        outcome = "refused" if is_refusal(response) else "patched" if "patch" in response else "allowed"
        return web.Response(body=written(review.uid, response), content_type=JSON), outcome

    async def _answer(self, path: Path, review: Request) -> Response:
        """The answer; a refusal that may come of what is not known yet is made sure of."""
        world: World = self._sight
        if path.is_mutating and (met := await self._sight.met(review.namespace)):
            world = Together(self._sight, met)
        response = answer(path, review, world, self._settings())
        if path.is_mutating or not is_refusal(response) or path.resource not in LOOKS_AT_QUEUES:
            return response
        fresh = await self._sight.fresh()
        return response if fresh is None else answer(path, review, fresh, self._settings())


async def _for_ever() -> None:
    await asyncio.Event().wait()

"""The main loop of a process: listeners, background work, and a shutdown on SIGTERM without lost requests.

During the drain period the process is not ready and sends `Connection: close` with every response, so that
clients move away. Then it stops accepting, completes requests in flight, stops the background work, and exits
with 0. A second signal ends the drain period at once. If background work ends by itself, the process exits
with 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop
from aiohttp import web

from apiserver.log import EventLogger
from apiserver.program import CannotRunError
from apiserver.serving.bodies import LARGE_BYTES, ask_for_blocks, give_back_soon
from apiserver.serving.config import Limits, ServingConfig
from apiserver.serving.connections import Guard
from apiserver.serving.listener import ProcessListeners
from apiserver.serving.process_metrics import CONTENT_TYPE
from apiserver.serving.tls import ServerTls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aiohttp.typedefs import Handler, Middleware

    from apiserver.serving.process_metrics import ProcessMetrics


Check = Callable[[], str | None]
"""A readiness check: returns None if it passes, else the reason. It must be fast and must not raise."""


class Readiness:
    """The readiness checks of one process. While it drains it is not ready, whatever they return."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._draining = False

    @property
    def is_draining(self) -> bool:
        """Whether the process is shutting down."""
        return self._draining

    def add(self, name: str, check: Check) -> None:
        """Add a check. Raises `ValueError` if there is one of that name."""
        if name in self._checks:
            raise ValueError(f"there is already a readiness check {name!r}")
        self._checks[name] = check

    def drain(self) -> None:
        """Mark the process as not ready, permanently."""
        self._draining = True

    def report(self, *, verbose: bool = False) -> tuple[bool, str]:
        """Run all checks; return whether all passed, and the text of Kubernetes' own health endpoints.

        The text is `ok`, or one line per check.
        """
        results = {name: check() for name, check in self._checks.items()}
        results["shutdown"] = "the process is shutting down" if self._draining else None
        is_ready = not any(results.values())
        if is_ready and not verbose:
            return True, "ok"
        lines = [
            f"[-]{name} failed: {reason}" if reason else f"[+]{name} ok" for name, reason in results.items()
        ]
        return is_ready, "\n".join([*lines, f"readyz check {'passed' if is_ready else 'failed'}", ""])


_UNAVAILABLE = 503


def add_health_routes(application: web.Application, readiness: Readiness) -> None:
    """Add `/livez` and `/readyz` (with `?verbose`).

    A process that responds at all is live: nothing outside of it can make `/livez` fail.
    """

    async def livez(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        is_ready, text = readiness.report(verbose="verbose" in request.query)
        return web.Response(text=text, status=200 if is_ready else _UNAVAILABLE)

    application.router.add_get("/livez", livez)
    application.router.add_get("/readyz", readyz)


def health_application(readiness: Readiness) -> web.Application:
    """Return an application with only the health routes."""
    application = web.Application()
    add_health_routes(application, readiness)
    return application


def metrics_application(metrics: ProcessMetrics) -> web.Application:
    """Return an application with only `/metrics`."""

    async def expose(_request: web.Request) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})

    application = web.Application()
    application.router.add_get("/metrics", expose)
    return application


log = EventLogger(__name__)

Job = Callable[[], Coroutine[None, None, None]]
"""A job that runs until cancelled."""


class Supervisor:
    """Runs jobs concurrently. If one ends by itself, with or without an error, all count as failed."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._tasks = [asyncio.create_task(job(), name=_name_of(job)) for job in jobs]
        self.has_failed = False

    async def until(self, stop: asyncio.Event) -> None:
        """Return when `stop` is set, or when a job has ended."""
        stopping = asyncio.create_task(stop.wait())
        try:
            ended, _ = await asyncio.wait([stopping, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        for task in ended - {stopping}:
            self.has_failed = True
            error = _error_of(task)
            if isinstance(error, CannotRunError):
                log.critical("cannot run", why=str(error))
            else:
                log.critical("background work ended", job=task.get_name(), exc_info=error)

    async def close(self, *, within_seconds: float) -> None:
        """Cancel all jobs and wait until they have ended; log the names of those that do not."""
        running = [task for task in self._tasks if not task.done()]
        for task in running:
            task.cancel()
        if not running:
            return
        ended, stuck = await asyncio.wait(running, timeout=within_seconds)
        for task in ended:
            if error := _error_of(task):
                self.has_failed = True
                log.error("background work failed while it ended", job=task.get_name(), exc_info=error)
        if stuck:
            self.has_failed = True
            log.error("background work does not stop", jobs=sorted(task.get_name() for task in stuck))


def _error_of(task: asyncio.Task[object]) -> BaseException | None:
    return None if task.cancelled() else task.exception()


def _name_of(job: Job) -> str:
    return str(getattr(job, "__qualname__", None) or repr(job))


_UNMATCHED: Final = "unmatched"
_FAILED: Final = 500


def tracker(metrics: ProcessMetrics, readiness: Readiness, *, clock: Callable[[], float]) -> Middleware:
    """Return the outermost middleware of an application."""

    @web.middleware
    async def track(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        # The pattern of a route: clients must not be able to create label values.
        route = resource.canonical if resource else _UNMATCHED
        began, code = clock(), _FAILED
        protocol = request.transport.get_protocol() if request.transport else None
        guard = protocol if isinstance(protocol, Guard) else None
        if guard:
            guard.request_begun(request)
        metrics.requests_in_progress += 1
        try:
            response = await handler(request)
            code = response.status
        except web.HTTPException as answer:
            code = answer.status
            # aiohttp keeps the last response of an idle connection, and an exception keeps its frames.
            response = web.Response(
                status=code, reason=answer.reason, headers=answer.headers, body=answer.body
            )
        except Exception:  # the boundary of a request: logged in full, answered without internals
            log.exception("request failed", method=request.method, path=request.path)
            response = web.Response(status=_FAILED, text="internal error: see the server's log\n")
        finally:
            if guard:
                guard.request_ended()
            metrics.requests_in_progress -= 1
            metrics.observe_request(route, request.method, code=code, seconds=clock() - began)
        if (request.content_length or 0) >= LARGE_BYTES or (response.content_length or 0) >= LARGE_BYTES:
            give_back_soon()
        if readiness.is_draining:
            response.force_close()
        return response

    return track


_OTHER_DESCRIPTORS = 512
"""The number of file descriptors for anything but the connections of three listeners."""


def run_server(
    application: web.Application | None,
    serving: ServingConfig,
    *,
    readiness: Readiness,
    metrics: ProcessMetrics,
    background: Sequence[Job],
    tls: ServerTls | None = None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> int:
    """Serve until a signal or a failure; return the exit code of the process.

    `application` may be None: then there are only health, metrics and the `background` jobs, each of which
    must run until cancelled. Pass `tls` to change its trusted client authorities later.
    """
    ask_for_blocks()
    _allow_descriptors(3 * limits.connections + _OTHER_DESCRIPTORS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(
            _serve(
                application,
                serving,
                readiness=readiness,
                metrics=metrics,
                background=background,
                tls=tls,
                limits=limits,
            )
        )


async def _serve(
    application: web.Application | None,
    serving: ServingConfig,
    *,
    readiness: Readiness,
    metrics: ProcessMetrics,
    background: Sequence[Job],
    tls: ServerTls | None,
    limits: Limits,
) -> int:
    stop = _Stop(asyncio.get_running_loop())
    listeners = ProcessListeners(serving, limits)
    jobs = [*background, metrics.probe_lag]
    try:
        if application is not None:
            tls = tls or server_tls(serving)
            jobs.append(tls.follow)
            _watch_certificate(tls, readiness=readiness, metrics=metrics)
            clock = asyncio.get_running_loop().time
            application.middlewares.insert(0, tracker(metrics, readiness, clock=clock))
            await listeners.open_https(application, tls.context)
        await listeners.open_plain(health=health_application(readiness), metrics=metrics_application(metrics))
    except OSError as error:
        log.critical("cannot listen", address=serving.bind_address or "all", error=str(error))
        await listeners.close_all()
        return 1
    log.info("serving", address=serving.bind_address or "all", ports=listeners.ports)
    gc.freeze()  # objects from start-up stay for good: exempt them from garbage collection
    supervisor = Supervisor(jobs)
    await supervisor.until(stop.requested)
    readiness.drain()
    log.info("shutting down", drain_seconds=serving.drain_seconds if application else 0)
    if application is not None:
        await stop.pause(serving.drain_seconds)
        await listeners.close_https()
    await supervisor.close(within_seconds=limits.finish_seconds)
    await listeners.close_all()
    log.info("stopped")
    return int(supervisor.has_failed)


def _allow_descriptors(count: int) -> None:
    """Raise the limit on open files to `count`, as far as allowed: some runtimes start with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft not in {resource.RLIM_INFINITY, hard} and soft < count:
        limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


class _Stop:
    """The signal handlers: the first signal asks to stop, the second one to hurry."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.requested = asyncio.Event()
        self._hurry = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask)

    def _ask(self) -> None:
        (self._hurry if self.requested.is_set() else self.requested).set()

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`, or until the second signal."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()


def server_tls(serving: ServingConfig, *, client_authorities: bytes | None = None) -> ServerTls:
    """Return the TLS of a process with the files of its certificate directory; see `ServerTls`."""
    directory = Path(serving.certificate_directory)
    return ServerTls(directory / "tls.crt", directory / "tls.key", client_authorities=client_authorities)


def _watch_certificate(tls: ServerTls, *, readiness: Readiness, metrics: ProcessMetrics) -> None:
    """Add the readiness check and the metric that every HTTPS process has."""
    readiness.add("certificate", tls.why_not_ready)
    metrics.certificate_end.set_function(lambda: tls.certificate.end_seconds if tls.certificate else 0.0)

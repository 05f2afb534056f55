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
from typing import TYPE_CHECKING

import uvloop

from apiserver.log import EventLogger
from apiserver.serving.health import health_application, metrics_application
from apiserver.serving.listener import ProcessListeners
from apiserver.serving.memory import ask_for_blocks
from apiserver.serving.options import ServerOptions
from apiserver.serving.requests import tracking
from apiserver.serving.supervisor import Supervisor
from apiserver.serving.tls import ServerTls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from apiserver.serving.process_metrics import ProcessMetrics
    from apiserver.serving.readiness import Readiness
    from apiserver.serving.supervisor import Job

log = EventLogger(__name__)

_OTHER_DESCRIPTORS = 512
"""The number of file descriptors for anything but the connections of three listeners."""


def run_server(
    application: web.Application | None,
    options: ServerOptions,
    *,
    readiness: Readiness,
    metrics: ProcessMetrics,
    background: Sequence[Job],
    tls: ServerTls | None = None,
) -> int:
    """Serve until a signal or a failure; return the exit code of the process.

    `application` may be None: then there are only health, metrics and the `background` jobs, each of which
    must run until cancelled. Pass `tls` to change its trusted client authorities later.
    """
    ask_for_blocks()
    _allow_descriptors(3 * options.limits.connections + _OTHER_DESCRIPTORS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(
            _serve(
                application,
                options,
                readiness=readiness,
                metrics=metrics,
                background=background,
                tls=tls,
            )
        )


async def _serve(
    application: web.Application | None,
    options: ServerOptions,
    *,
    readiness: Readiness,
    metrics: ProcessMetrics,
    background: Sequence[Job],
    tls: ServerTls | None,
) -> int:
    stop = _Stop(asyncio.get_running_loop())
    listeners = ProcessListeners(options)
    jobs = [*background, metrics.probe_lag]
    try:
        if application is not None:
            tls = tls or _tls_of(options)
            jobs.append(tls.follow)
            _watch_certificate(tls, readiness=readiness, metrics=metrics)
            clock = asyncio.get_running_loop().time
            application.middlewares.insert(0, tracking(metrics, readiness, clock=clock))
            await listeners.open_https(application, tls.context)
        await listeners.open_plain(health=health_application(readiness), metrics=metrics_application(metrics))
    except OSError as error:
        log.critical("cannot listen", address=options.bind_address or "all", error=str(error))
        await listeners.close_all()
        return 1
    log.info("serving", address=options.bind_address or "all", ports=listeners.ports)
    gc.freeze()  # objects from start-up stay for good: exempt them from garbage collection
    gc.enable()
    supervisor = Supervisor(jobs)
    await supervisor.until(stop.asked)
    readiness.drain()
    log.info("shutting down", drain_seconds=options.drain_seconds if application else 0)
    if application is not None:
        await stop.pause(options.drain_seconds)
        await listeners.close_https()
    await supervisor.close(within_seconds=options.limits.finish_seconds)
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
        self.asked = asyncio.Event()
        self._hurry = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask)

    def _ask(self) -> None:
        (self._hurry if self.asked.is_set() else self.asked).set()

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`, or until the second signal."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()


def _tls_of(options: ServerOptions) -> ServerTls:
    if options.certificate_path is None or options.key_path is None:
        raise ValueError("an HTTPS application needs both certificate_path and key_path")
    return ServerTls(options.certificate_path, options.key_path)


def _watch_certificate(tls: ServerTls, *, readiness: Readiness, metrics: ProcessMetrics) -> None:
    """Add the readiness check and the metric that every HTTPS process has."""
    readiness.add("certificate", tls.why_not_ready)
    metrics.certificate_end.set_function(lambda: tls.served.end_seconds if tls.served else 0.0)

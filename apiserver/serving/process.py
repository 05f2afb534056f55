"""Runs one process: listeners first, then background work; on SIGTERM an end that loses no request.

The end: not ready, and `Connection: close` on every answer for the drain period, so that clients go elsewhere
by themselves; then accept no more, finish what is in flight, stop the background work, and exit with 0. A
second signal cuts the waiting short. Background work that ends by itself ends the process, with 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import signal
from typing import TYPE_CHECKING

import uvloop

from apiserver.serving.health import health_application, metrics_application
from apiserver.serving.listener import ProcessListeners
from apiserver.serving.logger import EventLogger
from apiserver.serving.memory import ask_for_blocks
from apiserver.serving.options import Limits, Ports, ServerOptions
from apiserver.serving.requests import request_middleware
from apiserver.serving.supervisor import Supervisor
from apiserver.serving.tls import ServerTls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiohttp import web

    from apiserver.serving.process_metrics import ProcessMetrics
    from apiserver.serving.readiness import Readiness
    from apiserver.serving.supervisor import Job

__all__ = ["Limits", "Ports", "ServerOptions", "run_server", "serve"]

log = EventLogger(__name__)

_OTHER_DESCRIPTORS = 512
"""For what is open besides the connections of three listeners."""


def run_server(
    application: web.Application | None,
    options: ServerOptions,
    *,
    readiness: Readiness,
    metrics: ProcessMetrics,
    background: Sequence[Job] = (),
    tls: ServerTls | None = None,
) -> int:
    """Run `serve` on its own event loop; returns the exit code of the process."""

    def started(_ports: Ports) -> None:
        gc.freeze()  # what start-up made stays for good: no use in visiting it again and again
        gc.enable()

    ask_for_blocks()
    _allow_descriptors(3 * options.limits.connections + _OTHER_DESCRIPTORS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(
            serve(
                application,
                options,
                readiness=readiness,
                metrics=metrics,
                background=background,
                tls=tls,
                on_started=started,
            )
        )


async def serve(
    application: web.Application | None,
    options: ServerOptions,
    *,
    readiness: Readiness,
    metrics: ProcessMetrics,
    background: Sequence[Job] = (),
    tls: ServerTls | None = None,
    on_started: Callable[[Ports], None] = lambda _ports: None,
) -> int:
    """Serve until a signal or a failure; returns the exit code of the process.

    `application` may be None: then there are only health, metrics and the `background` jobs, each of which
    must go on until it is cancelled. Pass `tls` to change its trusted client authorities later.
    """
    stop = _Stop(asyncio.get_running_loop())
    listeners = ProcessListeners(options)
    jobs = [*background, metrics.probe_lag]
    try:
        if application is not None:
            tls = tls or _tls_of(options)
            jobs.append(tls.follow)
            _equip(application, tls, readiness=readiness, metrics=metrics)
            await listeners.open_https(application, tls.context)
        await listeners.open_plain(health=health_application(readiness), metrics=metrics_application(metrics))
    except OSError as error:
        log.critical("cannot listen", address=options.bind_address, error=str(error))
        await listeners.close_all()
        return 1
    log.info("serving", address=options.bind_address, ports=str(listeners.ports))
    on_started(listeners.ports)
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
    """Let this process have so many files open, as far as it may: some runtimes begin with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft not in {resource.RLIM_INFINITY, hard} and soft < count:
        limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


class _Stop:
    """What signals ask for: the first one to end, the second one to hurry."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.asked = asyncio.Event()
        self._hurry = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask)

    def _ask(self) -> None:
        (self._hurry if self.asked.is_set() else self.asked).set()

    async def pause(self, seconds: float) -> None:
        """Wait, unless there is a hurry."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()


def _tls_of(options: ServerOptions) -> ServerTls:
    if options.certificate_path is None or options.key_path is None:
        raise ValueError("an HTTPS application needs both certificate_path and key_path")
    return ServerTls(options.certificate_path, options.key_path)


def _equip(
    application: web.Application, tls: ServerTls, *, readiness: Readiness, metrics: ProcessMetrics
) -> None:
    """Give the application what every HTTPS process has."""
    clock = asyncio.get_running_loop().time
    application.middlewares.insert(0, request_middleware(metrics, readiness, clock=clock))
    readiness.add("certificate", tls.why_not_ready)
    metrics.certificate_end.set_function(lambda: tls.served.end_seconds if tls.served else 0.0)

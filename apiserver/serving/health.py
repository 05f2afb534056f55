"""Readiness of a process by named checks, and the applications of its plain HTTP listeners."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiohttp import web

from apiserver.serving.process_metrics import CONTENT_TYPE

if TYPE_CHECKING:
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

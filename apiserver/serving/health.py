"""Applications of the plain HTTP listeners: health for the kubelet, metrics for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from apiserver.serving.process_metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from apiserver.serving.process_metrics import ProcessMetrics
    from apiserver.serving.readiness import Readiness

_UNAVAILABLE = 503


def add_health_routes(application: web.Application, readiness: Readiness) -> None:
    """Add `/livez` and `/readyz` (with `?verbose`).

    A process that responds at all is live: nothing outside of it can make `/livez` fail.
    """

    async def livez(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        report = readiness.report()
        text = report.text(verbose="verbose" in request.query)
        return web.Response(text=text, status=200 if report.is_ready else _UNAVAILABLE)

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

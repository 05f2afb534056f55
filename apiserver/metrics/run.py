"""`stowplan apiserver`: the entry point with its configuration, which connects the parts.

All requests but health checks are authenticated, by the certificate of the front proxy or by a bearer token.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

from aiohttp import web

from apiserver.cluster.namespaces import installation_namespace
from apiserver.metrics.authentication import Gate
from apiserver.metrics.index import MetricIndex
from apiserver.metrics.routes import Clock, Handler, routes, statuses
from apiserver.metrics.status import ServiceUnavailableError
from apiserver.metrics.tokens import TokenReviewer, bearer_token
from apiserver.metrics.watches import Watches
from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig, run_verb
from apiserver.serving.process import Readiness, add_health_routes, run_server, server_tls
from apiserver.serving.process_metrics import ProcessMetrics


@declaration()
class MetricsConfig:
    """Configuration of the external metrics API."""

    serving: ServingConfig = ServingConfig()
    """Settings of listeners, certificates and logs."""

    cluster: ClusterConfig = ClusterConfig()
    """The API server on which VariantAutoscalings and AutoscalingPolicyBindings are watched."""

    namespace: Annotated[str, Length(maximum=63)] = ""
    """The namespace of Stowplan, where the controller's Lease records its last cycle. Defaults to the
    namespace of the pod."""

    annotated: bool = False
    """Whether to serve decisions on annotated HorizontalPodAutoscalers and ScaledObjects (docs/annotated.md).
    Needs the permissions of `manifests/components/annotated`. Set it for the controller, too."""

    stale_after_seconds: Annotated[int, Range(1, 86400)] = 180
    """The maximum age of a decision, in seconds. If no cycle of the controller has confirmed a decision for
    longer, a query returns an error instead of a number, and the HorizontalPodAutoscaler keeps its replicas.
    """


_OPEN_PATHS: Final = frozenset(["/livez", "/readyz"])


def application(
    index: MetricIndex,
    *,
    gate: Callable[[], Gate | None],
    tokens: Callable[[], TokenReviewer | None],
    why_incomplete: Callable[[str], str | None],
    readiness: Readiness,
    clock: Clock,
) -> web.Application:
    """Return the application.

    `gate` returns the current gate, None until the front proxy is known; `tokens` what reviews the tokens of
    other clients, None without a connection to the API server.

    It must be served over TLS by a listener that requests client certificates.
    """

    @web.middleware
    async def authentication(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in _OPEN_PATHS:
            return await handler(request)
        certificate = peer_certificate(request)
        token = bearer_token(request.headers.get("Authorization", ""))
        # The front proxy may forward the token of its user, whom it has authenticated.
        if certificate is None and token is not None:
            await review(token, request, tokens())
            return await handler(request)
        current = gate()
        if current is None:
            raise ServiceUnavailableError("the front proxy settings of this cluster have not been read yet")
        current.authenticate(certificate, request.headers, now=clock())
        return await handler(request)

    application = web.Application(middlewares=[statuses, authentication])
    application.add_routes(routes(index, why_incomplete=why_incomplete, clock=clock))
    add_health_routes(application, readiness)
    return application


async def review(token: str, request: web.Request, tokens: TokenReviewer | None) -> None:
    """Raise a StatusError unless the user of a token may send a request.

    Discovery documents are for every user of the cluster.
    """
    if tokens is None:
        raise ServiceUnavailableError("the API server, which reviews tokens, has not been reached yet")
    parts = request.match_info
    if "metric" in parts:
        await tokens.authorize(token, namespace=parts["namespace"], metric_name=parts["metric"])
    else:
        await tokens.authenticate(token)


def peer_certificate(request: web.Request) -> bytes | None:
    """Return the verified client certificate (DER) of the TLS connection; None without one."""
    connection = None if request.transport is None else request.transport.get_extra_info("ssl_object")
    if not isinstance(connection, ssl.SSLObject | ssl.SSLSocket):
        return None
    return connection.getpeercert(binary_form=True)


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand; return its exit code."""
    return run_verb(
        MetricsConfig,
        arguments,
        verb="apiserver",
        description="Run the external metrics API server, which serves external.metrics.k8s.io from the"
        " status of VariantAutoscalings and AutoscalingPolicyBindings.",
        serving=lambda config: config.serving,
        start=_start,
    )


def _start(config: MetricsConfig) -> int:
    # Client certificates are requested from the start, and trusted once the front proxy is known.
    tls = server_tls(config.serving, client_authorities=b"")
    index = MetricIndex(stale_after_seconds=config.stale_after_seconds)
    namespace = config.namespace or installation_namespace(config.cluster.kubeconfig, config.cluster.context)
    watches, readiness = Watches(index, tls), Readiness()
    readiness.add("variantautoscalings", watches.why_variants_unknown)
    readiness.add("front-proxy", watches.why_front_proxy_unknown)
    return run_server(
        application(
            index,
            gate=lambda: watches.gate,
            tokens=lambda: watches.tokens,
            why_incomplete=watches.why_incomplete,
            readiness=readiness,
            clock=lambda: datetime.now(UTC),
        ),
        config.serving,
        readiness=readiness,
        metrics=ProcessMetrics("apiserver"),
        background=[lambda: watches.follow(config.cluster, namespace=namespace, annotated=config.annotated)],
        tls=tls,
    )

"""`stowplan apiserver`: the entry point, which connects the parts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from apiserver.cluster.namespaces import installation_namespace
from apiserver.metrics.app import application
from apiserver.metrics.config import MetricsConfig
from apiserver.metrics.provider import MetricIndex
from apiserver.metrics.watched import Watched
from apiserver.serving.process import run_server
from apiserver.serving.process_metrics import ProcessMetrics
from apiserver.serving.readiness import Readiness
from apiserver.serving.startup import run_verb, server_options
from apiserver.serving.tls import ServerTls


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
    options = server_options(config.serving, has_application=True)
    assert options.certificate_path is not None
    assert options.key_path is not None
    # Client certificates are requested from the start, and trusted once the front proxy is known.
    tls = ServerTls(options.certificate_path, options.key_path, client_authorities=b"")
    index = MetricIndex(stale_after_seconds=config.stale_after_seconds)
    namespace = config.namespace or installation_namespace(config.cluster.kubeconfig, config.cluster.context)
    watched, readiness = Watched(index, tls), Readiness()
    readiness.add("variantautoscalings", watched.why_variants_unknown)
    readiness.add("front-proxy", watched.why_front_proxy_unknown)
    return run_server(
        application(
            index,
            gate=lambda: watched.gate,
            why_incomplete=watched.why_incomplete,
            readiness=readiness,
            clock=lambda: datetime.now(UTC),
        ),
        options,
        readiness=readiness,
        metrics=ProcessMetrics("apiserver"),
        background=[lambda: watched.follow(config.cluster, namespace=namespace)],
        tls=tls,
    )

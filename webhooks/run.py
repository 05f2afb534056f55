"""`stowplan webhooks`: wiring."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import structlog

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotConfigured
from apiserver.kinds.registry import KINDS
from apiserver.kinds.scalable import Scalable
from apiserver.schema.validation import judge
from apiserver.serving.process import run_server
from apiserver.serving.process_metrics import ProcessMetrics
from apiserver.serving.readiness import Readiness
from apiserver.serving.startup import run_verb, server_options, version
from webhooks.app import application
from webhooks.authorizer import ClusterAuthorizer
from webhooks.config import ScalingConfig, WebhooksConfig
from webhooks.referents import CachedReferents
from webhooks.scaling import Authorizer, Scaling

_log = structlog.get_logger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Run the verb; returns the exit code."""
    return run_verb(
        WebhooksConfig,
        arguments,
        verb="webhooks",
        description="Serve admission and conversion webhooks to the API server.",
        serving=lambda config: config.serving,
        start=_start,
    )


def _start(config: WebhooksConfig) -> int:
    referents, authorizer = CachedReferents(config.namespace), ClusterAuthorizer()
    app = application(
        scaling_of(config.scaling, authorizer),
        referents,
        admission_limit_bytes=config.admission_limit_bytes,
        conversion_limit_bytes=config.conversion_limit_bytes,
    )
    return run_server(
        app,
        server_options(config.serving, has_application=True),
        readiness=Readiness(),
        metrics=ProcessMetrics("webhooks", version()),
        background=[lambda: _in_background(config, referents, authorizer)],
    )


def scaling_of(config: ScalingConfig, authorizer: Authorizer) -> Scaling:
    """Return what may be scaled by whose leave, as configured."""
    resources = {
        (item.group, item.kind): Scalable(resource=item.resource, has_scale=item.has_scale)
        for item in config.resources
    }
    return Scaling(resources=resources, authorizer=authorizer if config.authorize else None)


async def _in_background(
    config: WebhooksConfig, referents: CachedReferents, authorizer: ClusterAuthorizer
) -> None:
    """Make ready what the first review would otherwise wait for, then follow what ours may name."""
    kubeconfig = Path(config.cluster.kubeconfig) if config.cluster.kubeconfig else None
    try:
        connection = await Cluster.connect(kubeconfig, config.cluster.context or None)
    except NotConfigured as error:
        _log.warning("no cluster: no advice about other objects, no leave to scale any", why=error.message)
        await _compile_judges()
        await asyncio.Event().wait()
        return
    async with connection as cluster:
        authorizer.use(cluster)
        await _compile_judges()
        await referents.follow(cluster)


async def _compile_judges() -> None:
    for declared in (served.declaration for kind in KINDS for served in kind.versions):
        await asyncio.to_thread(judge, declared)

"""`stowplan webhooks`: wiring."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from apiserver.kinds.registry import KINDS
from apiserver.schema.validation import judge
from apiserver.serving.process import run_server
from apiserver.serving.process_metrics import ProcessMetrics
from apiserver.serving.readiness import Readiness
from apiserver.serving.startup import run_verb, server_options, version
from webhooks.app import application
from webhooks.config import WebhooksConfig
from webhooks.targets import CachedTargets


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
    targets = CachedTargets()
    app = application(
        targets,
        admission_limit_bytes=config.admission_limit_bytes,
        conversion_limit_bytes=config.conversion_limit_bytes,
    )
    return run_server(
        app,
        server_options(config.serving, has_application=True),
        readiness=Readiness(),
        metrics=ProcessMetrics("webhooks", version()),
        background=[lambda: _in_background(config, targets)],
    )


async def _in_background(config: WebhooksConfig, targets: CachedTargets) -> None:
    """Make ready what the first review would otherwise wait for, then follow the scale targets."""
    for declared in (served.declaration for kind in KINDS for served in kind.versions):
        await asyncio.to_thread(judge, declared)
    await targets.follow(config.cluster)

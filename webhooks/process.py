"""The webhooks process: serves conversion from the start, and admission as soon as it is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.serving.process import run_server
from apiserver.serving.readiness import Readiness
from apiserver.serving.startup import server_options
from webhooks.app import application
from webhooks.later import Admission

if TYPE_CHECKING:
    from apiserver.serving.process_metrics import ProcessMetrics
    from webhooks.config import WebhooksConfig


def serve_webhooks(config: WebhooksConfig, metrics: ProcessMetrics) -> int:
    """Serve until a termination signal arrives; return the exit code."""
    admission = Admission(config)
    app = application(
        admission.judges,
        admission_limit_bytes=config.admission_limit_bytes,
        conversion_limit_bytes=config.conversion_limit_bytes,
    )
    return run_server(
        app,
        server_options(config.serving, has_application=True),
        readiness=Readiness(),
        metrics=metrics,
        background=[admission.follow],
    )

"""Entry point of `stowplan webhooks`.

Reads of an object in a version other than the stored one wait for conversion, and so does the start of an API
server. So this module imports only what answering a conversion needs, and the HTTP library last: the command
line loads it in a thread meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.serving.config import run_verb
from apiserver.serving.process_metrics import ProcessMetrics
from webhooks.config import WebhooksConfig


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run_verb(
        WebhooksConfig,
        arguments,
        verb="webhooks",
        description="Run the admission and conversion webhooks.",
        serving=lambda config: config.serving,
        start=_start,
    )


def _start(config: WebhooksConfig) -> int:
    metrics = ProcessMetrics("webhooks")
    from webhooks.app import serve_webhooks  # noqa: PLC0415 (imports the HTTP library, which is slow)

    return serve_webhooks(config, metrics)

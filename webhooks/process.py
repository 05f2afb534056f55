"""The webhooks process: serves conversion from the start, and admission as soon as it is loaded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from apiserver.serving.health import Readiness
from apiserver.serving.process import run_server
from apiserver.serving.startup import server_options
from webhooks.app import application

if TYPE_CHECKING:
    from apiserver.serving.process_metrics import ProcessMetrics
    from webhooks.app import Judges
    from webhooks.config import WebhooksConfig
    from webhooks.judging import Judging


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


class Admission:
    """Admission whose decision functions `follow` loads; earlier reviews wait for them."""

    def __init__(self, config: WebhooksConfig) -> None:
        self._config = config
        self._loaded = asyncio.Event()
        self._judging: Judging | None = None

    async def judges(self) -> Judges:
        """Return the decision functions, once they are loaded."""
        await self._loaded.wait()
        assert self._judging is not None
        return self._judging.judges

    async def follow(self) -> None:
        """Load admission in a thread, then keep its caches current until cancelled."""
        self._judging = await asyncio.to_thread(_load, self._config)
        self._loaded.set()
        await self._judging.follow()


def _load(config: WebhooksConfig) -> Judging:
    from webhooks.judging import Judging  # noqa: PLC0415 (loading it takes longer than a conversion)

    return Judging(config)

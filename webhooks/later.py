"""Lazy loading of admission, so that conversion can be served in the meantime."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhooks.app import Judges
    from webhooks.config import WebhooksConfig
    from webhooks.judging import Judging


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

"""What admission needs, loaded while conversion is answered already."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhooks.app import Judges
    from webhooks.config import WebhooksConfig
    from webhooks.judging import Judging


class Admission:
    """Decides on nothing before `follow` has loaded what it takes: a review that comes earlier waits."""

    def __init__(self, config: WebhooksConfig) -> None:
        self._config = config
        self._loaded = asyncio.Event()
        self._judging: Judging | None = None

    async def judges(self) -> Judges:
        """Return what decides, as soon as it is there."""
        await self._loaded.wait()
        assert self._judging is not None
        return self._judging.judges

    async def follow(self) -> None:
        """Load it all in a thread, then keep current what is known of the cluster, until cancelled."""
        self._judging = await asyncio.to_thread(_load, self._config)
        self._loaded.set()
        await self._judging.follow()


def _load(config: WebhooksConfig) -> Judging:
    from webhooks.judging import Judging  # noqa: PLC0415 (loading it takes longer than answering a conversion)

    return Judging(config)

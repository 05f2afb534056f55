"""Supervision of background jobs that must never end by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from apiserver.log import EventLogger
from apiserver.program import CannotRunError

if TYPE_CHECKING:
    from collections.abc import Iterable

log = EventLogger(__name__)

Job = Callable[[], Coroutine[None, None, None]]
"""A job that runs until cancelled."""


class Supervisor:
    """Runs jobs concurrently. If one ends by itself, with or without an error, all count as failed."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._tasks = [asyncio.create_task(job(), name=_name_of(job)) for job in jobs]
        self.has_failed = False

    async def until(self, stop: asyncio.Event) -> None:
        """Return when `stop` is set, or when a job has ended."""
        stopping = asyncio.create_task(stop.wait())
        try:
            ended, _ = await asyncio.wait([stopping, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        for task in ended - {stopping}:
            self.has_failed = True
            error = _error_of(task)
            if isinstance(error, CannotRunError):
                log.critical("cannot run", why=str(error))
            else:
                log.critical("background work ended", job=task.get_name(), exc_info=error)

    async def close(self, *, within_seconds: float) -> None:
        """Cancel all jobs and wait until they have ended; log the names of those that do not."""
        running = [task for task in self._tasks if not task.done()]
        for task in running:
            task.cancel()
        if not running:
            return
        ended, stuck = await asyncio.wait(running, timeout=within_seconds)
        for task in ended:
            if error := _error_of(task):
                self.has_failed = True
                log.error("background work failed while it ended", job=task.get_name(), exc_info=error)
        if stuck:
            self.has_failed = True
            log.error("background work does not stop", jobs=sorted(task.get_name() for task in stuck))


def _error_of(task: asyncio.Task[object]) -> BaseException | None:
    return None if task.cancelled() else task.exception()


def _name_of(job: Job) -> str:
    return str(getattr(job, "__qualname__", None) or repr(job))

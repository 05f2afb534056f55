"""Supervision of background jobs."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.program import CannotRunError
from apiserver.serving.process import Job, Supervisor


async def forever() -> None:
    """Never end."""
    await asyncio.Event().wait()


async def broken() -> None:
    """Raise an exception."""
    raise ZeroDivisionError


async def finished() -> None:
    """Return."""


@pytest.mark.parametrize("job", [broken, finished])
async def test_a_job_that_ends_is_a_failure(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    """With or without an exception, its end is logged with its name and ends the wait of the supervisor."""
    supervisor = Supervisor([forever, job])
    async with asyncio.timeout(60):
        await supervisor.until(asyncio.Event())
    await supervisor.close(within_seconds=5)

    assert supervisor.has_failed
    assert [(record.levelname, vars(record)["members"]) for record in caplog.records] == [
        ("CRITICAL", {"job": job.__qualname__})
    ]


async def test_a_job_that_cannot_run_is_logged_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The message of its error says what to change."""

    async def unconfigured() -> None:
        raise CannotRunError("no cluster is configured")

    supervisor = Supervisor([forever, unconfigured])
    async with asyncio.timeout(60):
        await supervisor.until(asyncio.Event())
    await supervisor.close(within_seconds=5)

    assert supervisor.has_failed
    (record,) = caplog.records
    assert not record.exc_info
    assert vars(record)["members"] == {"why": "no cluster is configured"}


async def test_a_requested_stop_is_not_a_failure() -> None:
    """Jobs are cancelled and may clean up."""
    cleaned, stop = [], asyncio.Event()

    async def cleaning() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    supervisor = Supervisor([cleaning, forever])
    stop.set()
    await supervisor.until(stop)
    await asyncio.sleep(0)
    await supervisor.close(within_seconds=5)

    assert cleaned == [True]
    assert not supervisor.has_failed


async def test_an_exception_during_clean_up_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged."""

    async def untidy() -> None:
        try:
            await forever()
        finally:
            raise ZeroDivisionError

    supervisor = Supervisor([untidy])
    await asyncio.sleep(0)
    await supervisor.close(within_seconds=5)

    assert supervisor.has_failed
    assert caplog.messages == ["background work failed while it ended"]


async def test_a_job_that_ignores_cancellation_is_logged_with_its_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It does not delay the end of the process."""
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    supervisor = Supervisor([stubborn])
    await asyncio.sleep(0)
    await supervisor.close(within_seconds=0.01)
    release.set()

    assert "stubborn" in vars(caplog.records[0])["members"]["jobs"][0]
    assert supervisor.has_failed

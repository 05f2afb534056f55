"""Background work never ends unnoticed."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.serving.supervisor import Job, Supervisor


async def forever() -> None:
    """Go on."""
    await asyncio.Event().wait()


async def broken() -> None:
    """Fail."""
    raise ZeroDivisionError


async def finished() -> None:
    """Come to an end."""


@pytest.mark.parametrize("job", [broken, finished])
async def test_a_job_that_ends_is_a_failure(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    """With or without an error, the end of a job is reported by name, and ends the waiting."""
    supervisor = Supervisor([forever, job])
    async with asyncio.timeout(60):
        await supervisor.until(asyncio.Event())
    await supervisor.close(within_seconds=5)

    assert supervisor.has_failed
    assert [(record.levelname, vars(record)["members"]) for record in caplog.records] == [
        ("CRITICAL", {"job": job.__qualname__})
    ]


async def test_an_orderly_stop_is_none() -> None:
    """When asked to stop, jobs are cancelled, may clean up, and nothing has failed."""
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


async def test_an_error_while_cleaning_up_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """What fails on the way out is a failure, too."""

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


async def test_a_job_that_does_not_end_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """Work that ignores its cancellation does not hold up the process's end."""
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

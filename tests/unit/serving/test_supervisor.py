"""Background jobs, readiness checks and metrics of a process."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from apiserver.program import CannotRunError
from apiserver.serving.process import Job, Readiness, Supervisor
from apiserver.serving.process_metrics import ProcessMetrics


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


async def test_a_job_that_cannot_run_is_logged_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
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


def test_the_process_is_ready_if_no_check_fails() -> None:
    """Checks are run again each time, and one failed check is enough."""
    readiness, reason = Readiness(), [None, "not synced"]
    readiness.add("caches", lambda: reason[0])
    assert readiness.report()[0]
    reason.reverse()

    assert not readiness.report()[0]


def test_the_response_has_the_format_of_kubernetes_endpoints() -> None:
    """It lists all checks if it is verbose or a check fails."""
    readiness, reason = Readiness(), [None, "not synced"]
    readiness.add("certificate", lambda: None)
    readiness.add("caches", lambda: reason[0])
    assert readiness.report() == (True, "ok")
    assert readiness.report(verbose=True)[1].splitlines() == [
        "[+]certificate ok",
        "[+]caches ok",
        "[+]shutdown ok",
        "readyz check passed",
    ]
    reason.reverse()

    assert readiness.report()[1].splitlines() == [
        "[+]certificate ok",
        "[-]caches failed: not synced",
        "[+]shutdown ok",
        "readyz check failed",
    ]


def test_a_draining_process_is_never_ready() -> None:
    """The other checks do not matter."""
    readiness = Readiness()
    readiness.add("caches", lambda: None)
    readiness.drain()

    assert readiness.is_draining
    assert not readiness.report()[0]


def test_names_of_checks_must_be_unique() -> None:
    """Otherwise one check would hide another of the same name."""
    readiness = Readiness()
    readiness.add("caches", lambda: None)
    with pytest.raises(ValueError, match="already a readiness check 'caches'"):
        readiness.add("caches", lambda: None)


def samples(metrics: ProcessMetrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return the exposition's values by name and sorted label values."""
    families = text_string_to_metric_families(metrics.exposition().decode())
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_of_two_registries_are_separate() -> None:
    """No registry is global."""
    a, b = ProcessMetrics("a"), ProcessMetrics("b")
    a.observe_request("/x", "GET", code=200, seconds=0.1)

    assert ("stowplan_http_requests_total", ("200", "GET", "/x")) in samples(a)
    assert ("stowplan_http_requests_total", ("200", "GET", "/x")) not in samples(b)


def test_requests_are_counted_and_timed() -> None:
    """Requests are counted by route, method and code, and timed by route."""
    metrics = ProcessMetrics("a")
    for code in (200, 200, 500):
        metrics.observe_request("/x", "GET", code=code, seconds=0.003)
    values = samples(metrics)

    assert values["stowplan_http_requests_total", ("200", "GET", "/x")] == 2
    assert values["stowplan_http_requests_total", ("500", "GET", "/x")] == 1
    assert values["stowplan_http_request_duration_seconds_count", ("/x",)] == 3
    assert values["stowplan_http_request_duration_seconds_bucket", ("0.0025", "/x")] == 0
    assert values["stowplan_http_request_duration_seconds_bucket", ("0.005", "/x")] == 3


def test_unknown_methods_share_one_label_value() -> None:
    """Clients cannot create series without limit."""
    metrics = ProcessMetrics("a")
    for number in range(100):
        metrics.observe_request("unmatched", f"METHOD{number}", code=405, seconds=0.0)

    assert samples(metrics)["stowplan_http_requests_total", ("405", "other", "unmatched")] == 100


def test_build_information_and_process_metrics_exist_from_the_start() -> None:
    """The expiry of the certificate is 0 until there is one."""
    values = samples(ProcessMetrics("webhooks"))

    assert any(name == "stowplan_build_info" and "webhooks" in labels for name, labels in values)
    assert values["process_resident_memory_bytes", ()] > 0
    assert values["stowplan_serving_certificate_not_after_timestamp_seconds", ()] == 0


async def test_event_loop_lag_is_the_delay_of_a_timer() -> None:
    """A clock set back counts as no delay."""
    moments = iter([0.0, 0.5, 10.0, 13.5, 20.0, 19.0])
    rounds: list[float] = []

    async def sleep(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) > 3:
            raise asyncio.CancelledError

    metrics = ProcessMetrics("a")
    with pytest.raises(asyncio.CancelledError):
        await metrics.probe_lag(sleep=sleep, clock=lambda: next(moments, 30.0))
    values = samples(metrics)

    assert values["stowplan_event_loop_lag_seconds_sum", ()] == pytest.approx(3.0)
    assert values["stowplan_event_loop_lag_seconds_count", ()] == 3


def test_counters_have_no_series_of_their_creation() -> None:
    """Each would be a second series of the counter or histogram, as a gauge."""
    metrics = ProcessMetrics("a")
    metrics.observe_request("/x", "GET", code=200, seconds=0.1)

    assert [name for name, _ in samples(metrics) if name.endswith("_created")] == []

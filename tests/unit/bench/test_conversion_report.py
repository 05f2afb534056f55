"""Aggregation, goals and tables of the conversion benchmark."""

from __future__ import annotations

import pytest

from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.conversion.calls import READ_OLD, READ_STORED, WRITE_OLD, WRITE_STORED, Waits, account, waits
from hack.bench.conversion.goals import one_object_and_many, restart_goal
from hack.bench.conversion.report import OF_RESTARTS, calls_table, in_process_table
from hack.bench.conversion.restarts import TRIVIAL, Restart
from hack.bench.conversion.upgraded import stored_old
from hack.bench.costs import Key
from hack.bench.machine import Pace
from hack.bench.table import tabulated

PACE = Pace(here_us=81.6, there_us=40.8)
LOCAL: dict[Key, float] = {
    ("legacy", 1, "to v1alpha2", OURS): 12.0,
    ("legacy", 1, "to v1alpha2", STRAIGHTFORWARD): 30.0,
    ("current", 1, "to v1alpha1", OURS): 5.0,
    ("current", 1, "to v1alpha1", STRAIGHTFORWARD): 25.0,
    ("legacy", 5000, "to v1alpha2", OURS): 50_000.0,
    ("legacy", 5000, "to v1alpha2", STRAIGHTFORWARD): 200_000.0,
    ("current", 5000, "to v1alpha1", OURS): 20_000.0,
    ("current", 5000, "to v1alpha1", STRAIGHTFORWARD): 160_000.0,
}


def restart(converter: str, served_seconds: float) -> Restart:
    """Return a restart with the given time until reads succeed."""
    return Restart(
        converter=converter,
        live_seconds=4.0,
        served_seconds=served_seconds,
        conversions=5000,
        mean_ms=1.5,
        failures=0,
    )


RESTARTS = [restart(OURS, 11.0), restart(TRIVIAL, 10.0), restart(TRIVIAL, 12.0), restart(OURS, 99.0)]
RESTARTS += [restart(OURS, 11.0), restart(TRIVIAL, 10.0)]


def test_goals_apply_to_the_worst_shape_and_direction() -> None:
    """A mean would hide it; restarts are aggregated by their median."""
    lines = [goal.line() for goal in (*one_object_and_many(LOCAL, PACE), restart_goal(RESTARTS))]

    assert lines == [
        "goal: conversion_of_one_object 12.0 µs, wanted <= 10: missed",
        "goal: conversion_of_one_object_at_reference_pace 6.00 µs, wanted <= 10: met",
        "goal: conversion_of_5000_share_of_straightforward 25.0 %, wanted <= 20: missed",
        "goal: restart_of_trivial_converter 1.10 times, wanted <= 1.2: met",
    ]


def test_tables_are_aligned() -> None:
    """Both converters have columns per review and per object, with the ratio."""
    rows = [line.split() for line in in_process_table(LOCAL)]

    assert rows[1] == ["legacy", "1", "to", "v1alpha2", "12.0", "12.0", "30.0", "30.0", "1/2.5"]
    assert rows[3] == ["legacy", "5000", "to", "v1alpha2", "50000", "10.0", "200000", "40.0", "1/4.0"]


def test_calls_with_conversion_are_compared_with_calls_without() -> None:
    """Reads are compared with reads, writes with writes."""
    calls = {
        READ_STORED: Waits(calls=9, p50_ms=1.0, p99_ms=2.0),
        READ_OLD: Waits(calls=9, p50_ms=1.5, p99_ms=3.0),
        WRITE_STORED: Waits(calls=9, p50_ms=4.0, p99_ms=5.0),
        WRITE_OLD: Waits(calls=9, p50_ms=8.0, p99_ms=9.0),
    }

    assert [line.split()[-1] for line in calls_table(calls)[1:]] == ["1.00", "1.50", "1.00", "2.00"]


def test_every_restart_has_a_line_in_the_table() -> None:
    """It contains the API server's metrics of the conversions."""
    assert tabulated(OF_RESTARTS, RESTARTS)[1].split() == ["stowplan", "4.00", "11.00", "5000", "1.50", "0"]


def test_waits_are_aggregated_in_milliseconds() -> None:
    """Percentiles are by nearest rank."""
    found = waits([0.001, 0.002, 0.009])

    assert (found.calls, found.p50_ms, found.p99_ms) == (3, pytest.approx(2), pytest.approx(9))


def test_conversion_metrics_of_the_api_server_are_read() -> None:
    """Buckets and other series are ignored; failures are also counted separately."""
    name = "apiserver_crd_conversion_webhook_duration_seconds"
    labels = 'crd_name="c",from_version="a",to_version="b",succeeded='
    exposition = (
        f'{name}_bucket{{{labels}"true",le="+Inf"}} 10\n{name}_sum{{{labels}"true"}} 0.5\n'
        f'{name}_count{{{labels}"true"}} 10\n{name}_sum{{{labels}"false"}} 0.25\n'
        f'{name}_count{{{labels}"false"}} 2\nother_count 99\n'
    )

    assert account(exposition) == (12, 0.75, 2)


def test_a_cluster_before_the_upgrade_stores_the_old_version_without_conversion() -> None:
    """The new version is served, but not stored."""
    versions = [{"name": "v1alpha1", "storage": False}, {"name": "v1alpha2", "storage": True}]
    spec = {"versions": versions, "conversion": {"strategy": "Webhook"}}

    assert stored_old(spec) == {
        "versions": [{"name": "v1alpha1", "storage": True}, {"name": "v1alpha2", "storage": False}],
        "conversion": {"strategy": "None"},
    }
    assert versions[1]["storage"]

"""Metrics from the status of a VariantAutoscaling: values, or the reason why there are none."""

from __future__ import annotations

import datetime as dt
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.metrics.index import METRIC_NAMES, MetricValue, Unknown
from apiserver.metrics.watches import essentials, metrics_of

TIME = "2026-11-21T12:00:00Z"
LEAVES = (
    ("desiredOptimizedAlloc", "accelerator"),
    ("desiredOptimizedAlloc", "numReplicas"),
    ("desiredOptimizedAlloc", "lastRunTime"),
    ("currentAlloc", "numReplicas"),
)
"""The fields of the status of `variant`."""


def variant(
    *,
    spec: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a VariantAutoscaling with 4 decided and 3 current replicas by default."""
    decided = {"accelerator": "A100", "numReplicas": 4, "lastRunTime": TIME}
    return {
        "metadata": {"name": "llama-a100", "namespace": "team", "labels": labels or {}},
        "spec": {"modelID": "meta/llama"} | (spec or {}),
        "status": {"desiredOptimizedAlloc": decided, "currentAlloc": {"numReplicas": 3}} | (status or {}),
    }


def entries(value: dict[str, Any]) -> tuple[MetricValue | Unknown, ...]:
    """Return the entries of an object as the process caches it."""
    return metrics_of(essentials(value))


def by_name(value: dict[str, Any]) -> dict[str, MetricValue | Unknown]:
    """Return the entries by metric name."""
    return {entry.metric_name: entry for entry in entries(value)}


def values(value: dict[str, Any]) -> dict[str, int | str]:
    """Return the values in thousandths, or the reasons why there are none."""
    return {
        name: entry.value_milli if isinstance(entry, MetricValue) else entry.why
        for name, entry in by_name(value).items()
    }


def test_every_metric_occurs_once() -> None:
    """There are two names for the desired replicas, the current ones, and the ratio of these."""
    assert values(variant()) == {
        "wva_desired_replicas": 4000,
        "inferno_desired_replicas": 4000,
        "wva_desired_ratio": 1333,
        "wva_current_replicas": 3000,
    }
    assert tuple(by_name(variant())) == METRIC_NAMES


def test_zero_desired_replicas_are_served() -> None:
    """A variant scaled to zero has a decision like any other."""
    decided = {"accelerator": "A100", "numReplicas": 0, "lastRunTime": TIME}

    served = values(variant(status={"desiredOptimizedAlloc": decided}))

    assert served.pop("wva_current_replicas") == 3000
    assert set(served.values()) == {0}


def test_with_zero_current_replicas_the_ratio_is_the_desired_number() -> None:
    """There are no pods by which the HPA could multiply it."""
    assert values(variant(status={"currentAlloc": {"numReplicas": 0}}))["wva_desired_ratio"] == 4000


@given(st.integers(0, 400), st.integers(1, 400))
def test_hpa_computes_the_desired_number_from_the_ratio(desired: int, current: int) -> None:
    """It multiplies the ratio by the ready pods and rounds up, which must not give one replica more."""
    decided = {"numReplicas": desired, "lastRunTime": TIME}
    status = {"desiredOptimizedAlloc": decided, "currentAlloc": {"numReplicas": current}}
    ratio_milli = values(variant(status=status))["wva_desired_ratio"]

    assert isinstance(ratio_milli, int)
    assert ceil(ratio_milli * current / 1000) == desired


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({"desiredOptimizedAlloc": None}, "it has no decision yet", id="no decision"),
        pytest.param(
            {"desiredOptimizedAlloc": {"lastRunTime": TIME}}, "it has no decision yet", id="no number"
        ),
        pytest.param(
            {"desiredOptimizedAlloc": {"numReplicas": -1, "lastRunTime": TIME}},
            "it has no decision yet",
            id="a negative number",
        ),
        pytest.param(
            {"desiredOptimizedAlloc": {"numReplicas": True, "lastRunTime": TIME}},
            "it has no decision yet",
            id="a boolean number",
        ),
        pytest.param(
            {"desiredOptimizedAlloc": {"numReplicas": 4}},
            "the time of its decision",
            id="no time of the decision",
        ),
        pytest.param(
            {"desiredOptimizedAlloc": {"numReplicas": 4, "lastRunTime": "today"}},
            "the time of its decision",
            id="an invalid time",
        ),
    ],
)
def test_an_invalid_decision_makes_every_metric_unknown(status: dict[str, Any], want: str) -> None:
    """The reason is given; the value is never 0."""
    for why in values(variant(status=status)).values():
        assert isinstance(why, str)
        assert why.startswith(want)


def test_the_number_of_a_decision_that_is_not_applied_is_not_served() -> None:
    """An earlier controller wrote it. In a status without Stowplan's decision, the number is served."""
    refused = {"actuation": {"applied": False}, "decision": {"reason": "Unplanned", "message": "why"}}

    for why in values(variant(status=refused)).values():
        assert why == "its decision is only advice, or it cannot be planned: see its conditions or events"
    assert values(variant(status={"actuation": {"applied": False}}))["wva_desired_replicas"] == 4000
    assert values(variant(status=refused | {"actuation": {"applied": True}}))["wva_desired_replicas"] == 4000


def test_only_the_ratio_needs_the_current_replicas() -> None:
    """The desired number is served while the current number is unknown."""
    found = values(variant(status={"currentAlloc": {}}))

    assert found["wva_desired_replicas"] == 4000
    assert found["wva_desired_ratio"] == (
        "its current number of replicas is unknown (no status.currentAlloc.numReplicas)"
    )


@pytest.mark.parametrize("path", [("desiredOptimizedAlloc",), ("currentAlloc",), *LEAVES], ids=".".join)
def test_without_a_field_of_the_status_a_metric_keeps_its_value_or_is_unknown(path: tuple[str, ...]) -> None:
    """Missing data is never zero, nor any other number."""
    whole, partial = variant(), variant()
    *parents, last = path
    owner = partial["status"]
    for name in parents:
        owner = owner[name]
    del owner[last]

    for name, value in values(partial).items():
        assert isinstance(value, str) or value == values(whole)[name], name


def test_all_metrics_of_an_object_without_status_are_unknown() -> None:
    """They exist, but have no values."""
    bare = {"metadata": {"name": "a", "namespace": "n"}}

    assert all(isinstance(entry, Unknown) for entry in entries(bare))


PROFILED = {"accelerator": "L40S", "acceleratorCount": 2}


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param(variant(), {"accelerator_type": "A100"}, id="the decided accelerator"),
        pytest.param(
            variant(spec=PROFILED, status={"desiredOptimizedAlloc": {}}),
            {"accelerator_type": "L40S", "variant_id": "meta/llama-L40S-2"},
            id="the accelerator of the spec, and the identifier in the legacy format",
        ),
        pytest.param(
            variant(
                labels={"inference.optimization/acceleratorName": "H100"},
                status={"desiredOptimizedAlloc": {}},
            ),
            {"accelerator_type": "H100"},
            id="the accelerator of the label",
        ),
        pytest.param(
            variant(spec=PROFILED, status={"currentAlloc": {"variantID": "mine-A100-1"}}),
            {"accelerator_type": "A100", "variant_id": "mine-A100-1"},
            id="the identifier in the status",
        ),
        pytest.param(variant(status={"desiredOptimizedAlloc": {}}), {}, id="unknown labels are omitted"),
    ],
)
def test_series_have_labels_for_variant_namespace_model_and_accelerator(
    value: dict[str, Any], want: dict[str, str]
) -> None:
    """The namespace has two labels, and an unknown value has none."""
    always = {
        "variant_name": "llama-a100",
        "namespace": "team",
        "exported_namespace": "team",
        "model_id": "meta/llama",
    }

    assert {tuple(entry.labels.items()) for entry in entries(value)} == {
        tuple(entries(value)[0].labels.items())
    }
    assert entries(value)[0].labels == always | want


def test_the_time_is_that_of_the_decision_in_utc() -> None:
    """The status may have another offset."""
    decided = {"numReplicas": 1, "lastRunTime": "2026-11-21T14:00:00+02:00"}
    times = {
        entry.time
        for entry in entries(variant(status={"desiredOptimizedAlloc": decided}))
        if isinstance(entry, MetricValue)
    }

    assert times == {dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)}

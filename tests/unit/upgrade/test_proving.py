"""Detection of a conversion webhook that cannot be reached, and of objects that cannot be converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.manifests import legacy_variant, profiled_variant
from support.memory_cluster import Fault, MemoryCluster

from apiserver.cluster.errors import ClusterError, Forbidden, Throttled, Unavailable
from apiserver.kinds.llmd.conversion import convert
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from controller.commands.upgrade.calls import Pace, StoppedError
from controller.commands.upgrade.proving import ConversionFailedError, difference, prove, there_and_back
from controller.commands.upgrade.steps import MigrationSteps

OBJECTS = (legacy_variant("s2"), profiled_variant("s1"))
HERE = "stowplan-system"
PACE = Pace(per_second=1e9, tell=lambda *_: None)
FAILED = 'conversion webhook for llmd.ai/v1alpha1, Kind=VariantAutoscaling failed: Post "https://x": refused'


def always(error: ClusterError, *calls: Fault) -> Callable[[Fault], ClusterError | None]:
    """Return a fault that fails these calls every time."""
    return lambda call: error if call in calls else None


def once(error: ClusterError) -> Callable[[Fault], ClusterError | None]:
    """Return a fault that fails every call the first time it is made."""
    made: set[Fault] = set()

    def fault(call: Fault) -> ClusterError | None:
        is_first = call not in made
        made.add(call)
        return error if is_first else None

    return fault


async def test_calls_that_fail_once_are_repeated() -> None:
    """The run continues after a transient error of each call."""
    cluster = MemoryCluster(OBJECTS[:1], fault=once(Unavailable("connection reset")))

    result = await prove(cluster, VARIANT_AUTOSCALING, PACE, namespace=HERE)
    assert result == "1 object converted and back without loss"


async def test_an_unreachable_conversion_webhook_is_detected_without_any_object() -> None:
    """A made-up object is created by dry run in each version."""
    cluster = MemoryCluster([], fault=always(Unavailable(FAILED), ("create", "v1alpha2", "")))

    with pytest.raises(ConversionFailedError, match="conversion webhook for"):
        await prove(cluster, VARIANT_AUTOSCALING, PACE, namespace=HERE)


async def test_a_rejected_made_up_object_is_inconclusive() -> None:
    """The run continues, and the result contains the reason."""
    cluster = MemoryCluster(OBJECTS, fault=always(Forbidden("no"), ("create", "v1alpha1", "")))

    result = await prove(cluster, VARIANT_AUTOSCALING, PACE, namespace=HERE)
    assert result == "2 objects converted and back without loss; a test object was refused: no"


async def test_an_object_that_cannot_be_converted_is_named() -> None:
    """This works even if lists are only throttled, because the API server's cache is never filled."""
    faults = {
        ("list", "v1alpha2", ""): Throttled("storage is initializing", retry_after_seconds=0.001),
        ("get", "v1alpha2", "s2"): Unavailable(FAILED),
    }
    with pytest.raises(ConversionFailedError) as error:
        await prove(MemoryCluster(OBJECTS, fault=faults.get), VARIANT_AUTOSCALING, PACE, namespace=HERE)

    assert [failure.name for failure in error.value.failures] == ["s2"]


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
async def test_an_error_of_the_api_server_is_not_taken_for_one_of_conversion(version: str) -> None:
    """The error is passed on unchanged."""
    cluster = MemoryCluster(OBJECTS, fault=always(Unavailable("etcd is gone"), ("list", version, "")))

    with pytest.raises(Unavailable, match="etcd is gone"):
        await prove(cluster, VARIANT_AUTOSCALING, PACE, namespace=HERE)


async def test_a_version_that_was_served_before_the_run_stays_served() -> None:
    """A run that continues an earlier one removes no version, and does not even read the definition."""
    cluster = MemoryCluster(OBJECTS, fault=always(Unavailable(FAILED), ("create", "v1alpha2", "")))
    steps = MigrationSteps(cluster, PACE, namespace=HERE)

    with pytest.raises(StoppedError, match="were served before this run and still are"):
        await steps.prove(VARIANT_AUTOSCALING).act()
    assert {verb for verb, *_ in cluster.calls} == {"create"}


DIFFERENCES = {
    "nothing": ({}, ""),
    "the version and metadata of the server": (
        {"apiVersion": "llmd.ai/v1", "metadata": {"resourceVersion": "2", "annotations": {}}},
        "",
    ),
    "a field": ({"spec": {"a": {"b": 2}}}, "spec.a.b"),
    "a missing field": ({"spec": {"a": {}}}, "spec.a.b"),
    "true in place of one": ({"spec": {"a": {"b": True}}}, "spec.a.b"),
    "a label": ({"metadata": {"labels": {"x": "y"}}}, "metadata.labels"),
}


@pytest.mark.parametrize(("change", "want"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_the_difference_of_two_readings_is_the_path_of_a_field(change: dict[str, Any], want: str) -> None:
    """It is the path of the first field that differs."""
    one = {"apiVersion": "llmd.ai/v1alpha1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": {"b": 1}}}

    assert difference(one, one | change) == want


def test_a_wrong_conversion_is_detected() -> None:
    """The readings in both versions are compared with each other."""
    old = profiled_variant("x")
    new = convert(old, "llmd.ai/v1alpha2")
    other = new | {"spec": new["spec"] | {"acceleratorCount": 8}}

    assert there_and_back([old, new]) == ""
    assert "spec.modelProfile" in there_and_back([old, other])

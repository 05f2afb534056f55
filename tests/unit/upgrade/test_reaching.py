"""Detection of a conversion webhook that cannot be reached, and of objects that cannot be converted."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from support.manifests import legacy_variant, profiled_variant
from support.memory_cluster import Fault, MemoryCluster

from apiserver.cluster.errors import ClusterError, Forbidden, Throttled, Unavailable
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from controller.commands.upgrade.execution import Execution
from controller.commands.upgrade.progress import Progress
from controller.commands.upgrade.proving import Proof, prove
from controller.commands.upgrade.reaching import UnreadableError
from controller.commands.upgrade.retrying import Pace
from controller.commands.upgrade.runs import StoppedError
from controller.commands.upgrade.steps import Action, Step

OBJECTS = (legacy_variant("s2"), profiled_variant("s1"))
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

    assert await prove(cluster, VARIANT_AUTOSCALING, PACE) == Proof(objects=1, failures=(), refusal="")


async def test_an_unreachable_conversion_webhook_is_detected_without_any_object() -> None:
    """A made-up object is created by dry run in each version."""
    cluster = MemoryCluster([], fault=always(Unavailable(FAILED), ("create", "v1alpha2", "")))

    with pytest.raises(UnreadableError, match="conversion webhook for"):
        await prove(cluster, VARIANT_AUTOSCALING, PACE)


async def test_a_rejected_made_up_object_is_inconclusive() -> None:
    """The run continues, and the result contains the reason."""
    cluster = MemoryCluster(OBJECTS, fault=always(Forbidden("no"), ("create", "v1alpha1", "")))

    assert (await prove(cluster, VARIANT_AUTOSCALING, PACE)).refusal == "no"


async def test_an_object_that_cannot_be_converted_is_named() -> None:
    """This works even if lists are only throttled, because the API server's cache is never filled."""
    faults = {
        ("list", "v1alpha2", ""): Throttled("storage is initializing", retry_after_seconds=0.001),
        ("get", "v1alpha2", "s2"): Unavailable(FAILED),
    }
    with pytest.raises(UnreadableError) as error:
        await prove(MemoryCluster(OBJECTS, fault=faults.get), VARIANT_AUTOSCALING, PACE)

    assert [failure.name for failure in error.value.failures] == ["s2"]


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
async def test_an_error_of_the_api_server_is_not_taken_for_one_of_conversion(version: str) -> None:
    """The error is passed on unchanged."""
    cluster = MemoryCluster(OBJECTS, fault=always(Unavailable("etcd is gone"), ("list", version, "")))

    with pytest.raises(Unavailable, match="etcd is gone"):
        await prove(cluster, VARIANT_AUTOSCALING, PACE)


async def test_a_version_that_was_served_before_the_run_stays_served() -> None:
    """A run that continues an earlier one removes no version, and does not even read the definition."""
    cluster = MemoryCluster(OBJECTS, fault=always(Unavailable(FAILED), ("create", "v1alpha2", "")))
    execution = Execution(cluster, Progress(io.StringIO(), steps=1), per_second=1e9)

    with pytest.raises(StoppedError, match="were served before this run and still are"):
        await execution.do(Step(action=Action.PROVE, kind=VARIANT_AUTOSCALING))
    assert {verb for verb, *_ in cluster.calls} == {"create"}

"""When conversion counts as not reached, and which object is at fault."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from support.manifests import legacy_variant, profiled_variant
from support.memory_cluster import Fault, MemoryCluster

from apiserver.cluster.errors import ClusterError, Forbidden, Throttled, Unavailable
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.upgrading.execution import Execution
from apiserver.upgrading.progress import Progress
from apiserver.upgrading.proving import Proof, prove
from apiserver.upgrading.reaching import UnreadableError
from apiserver.upgrading.retrying import Pace
from apiserver.upgrading.runs import StoppedError
from apiserver.upgrading.steps import Action, Step

OBJECTS = (legacy_variant("s2"), profiled_variant("s1"))
PACE = Pace(per_second=1e9, tell=lambda *_: None)
FAILED = 'conversion webhook for llmd.ai/v1alpha1, Kind=VariantAutoscaling failed: Post "https://x": refused'


def always(error: ClusterError, *calls: Fault) -> Callable[[Fault], ClusterError | None]:
    """Fail these calls every time."""
    return lambda call: error if call in calls else None


def once(error: ClusterError) -> Callable[[Fault], ClusterError | None]:
    """Fail every call the first time it is made."""
    made: set[Fault] = set()

    def fault(call: Fault) -> ClusterError | None:
        is_first = call not in made
        made.add(call)
        return error if is_first else None

    return fault


async def test_a_glitch_stops_nothing() -> None:
    """Each call is made again."""
    cluster = MemoryCluster(OBJECTS[:1], fault=once(Unavailable("connection reset")))

    assert await prove(cluster, VARIANT_AUTOSCALING, PACE) == Proof(objects=1, failures=(), refusal="")


async def test_a_converter_that_nobody_reaches_is_found_without_any_object() -> None:
    """By a made-up object, created by dry run in each version."""
    cluster = MemoryCluster([], fault=always(Unavailable(FAILED), ("create", "v1alpha2", "")))

    with pytest.raises(UnreadableError, match="conversion webhook for"):
        await prove(cluster, VARIANT_AUTOSCALING, PACE)


async def test_a_made_up_object_that_somebody_refuses_shows_nothing() -> None:
    """And is in the way of nobody."""
    cluster = MemoryCluster(OBJECTS, fault=always(Forbidden("no"), ("create", "v1alpha1", "")))

    assert (await prove(cluster, VARIANT_AUTOSCALING, PACE)).refusal == "no"


async def test_the_object_at_fault_is_named() -> None:
    """Even where the list only asks to wait, since its cache is never filled."""
    faults = {
        ("list", "v1alpha2", ""): Throttled("storage is initializing", retry_after_seconds=0.001),
        ("get", "v1alpha2", "s2"): Unavailable(FAILED),
    }
    with pytest.raises(UnreadableError) as error:
        await prove(MemoryCluster(OBJECTS, fault=faults.get), VARIANT_AUTOSCALING, PACE)

    assert [failure.name for failure in error.value.failures] == ["s2"]


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
async def test_a_server_that_fails_is_no_converter_that_fails(version: str) -> None:
    """Its own error is passed on, and nothing is said of conversion."""
    cluster = MemoryCluster(OBJECTS, fault=always(Unavailable("etcd is gone"), ("list", version, "")))

    with pytest.raises(Unavailable, match="etcd is gone"):
        await prove(cluster, VARIANT_AUTOSCALING, PACE)


async def test_a_version_that_was_served_before_stays() -> None:
    """A run that goes on with what another one served takes nothing away: no definition is even read."""
    cluster = MemoryCluster(OBJECTS, fault=always(Unavailable(FAILED), ("create", "v1alpha2", "")))
    execution = Execution(cluster, Progress(io.StringIO(), steps=1), per_second=1e9)

    with pytest.raises(StoppedError, match="were served before this run and still are"):
        await execution.do(Step(action=Action.PROVE, kind=VARIANT_AUTOSCALING))
    assert {verb for verb, *_ in cluster.calls} == {"create"}

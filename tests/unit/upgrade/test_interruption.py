"""Downgrades of objects, interrupted after any write and run again, end like an uninterrupted one."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.memory_cluster import CutOffError, MemoryCluster
from support.variants import valid

from apiserver.kinds.llmd.conversion import SPOKE, convert
from apiserver.kinds.llmd.shapes import RELEASES, Shape, in_shape
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.json import as_object, same, without
from controller.commands.upgrade.calls import Pace, StoppedError
from controller.commands.upgrade.steps import MigrationSteps, is_reshaped, with_members

if TYPE_CHECKING:
    from apiserver.schema.json import Json

PACE = Pace(per_second=1e9, tell=lambda *_: None)


def objects() -> list[Json]:
    """Return objects of every shape, most of them with a status."""
    made = [valid(seed, SPOKE) for seed in range(12)]
    for number, item in enumerate(made):
        item["metadata"]["name"] = f"object-{number}"
    return made


async def give_back(cluster: MemoryCluster, shape: Shape) -> None:
    """Do what a downgrade does to objects: reshape them, and remove our annotations."""
    steps = MigrationSteps(cluster, PACE, namespace="stowplan-system")
    await steps.reshape(VARIANT_AUTOSCALING, shape).act()
    await steps.sweep(VARIANT_AUTOSCALING, shape).act()


@pytest.mark.parametrize("release", ["v0.0.1", "v0.4.2", "v0.5.1", "v0.7.0", "pull-233"])
async def test_a_downgrade_interrupted_after_any_write_ends_like_an_uninterrupted_one(release: str) -> None:
    """Many of the interruptions are between the writes of a spec and its status."""
    shape, whole = RELEASES[release], MemoryCluster(objects())
    await give_back(whole, shape)
    writes = 2**30 - whole.writes_left

    for last in range(1, writes):
        cluster = MemoryCluster(objects(), writes_left=last)
        with pytest.raises(CutOffError):
            await give_back(cluster, shape)
        cluster.writes_left = 2**30
        await give_back(cluster, shape)
        assert cluster.said() == whole.said(), last
    assert writes > 12


@settings(max_examples=often(100))
@given(st.integers(0, 2**62), st.sampled_from([*RELEASES.values()]))
def test_a_run_interrupted_between_two_writes_ends_like_an_uninterrupted_one(seed: int, shape: Shape) -> None:
    """An allocation that the release could not hold may also be completed by what the new spec has."""
    for offset in range(8):
        item = convert(valid(seed + offset, SPOKE), SPOKE)
        wanted = in_shape(item, shape).value
        status = {"status": with_members(item["status"], wanted["status"])} if "status" in item else {}
        assert same(in_shape(item | status, shape).value, wanted), seed + offset
        resumed = in_shape(wanted | status, shape).value
        assert same(without(resumed, ("status",)), without(wanted, ("status",))), seed + offset
        more, least = as_object(resumed.get("status")), as_object(wanted.get("status"))
        assert same({name: more[name] for name in least}, least), seed + offset


async def test_a_definition_that_was_deleted_in_the_meantime_stops_the_downgrade() -> None:
    """An error states this, and nothing is created."""
    cluster = MemoryCluster([])
    steps = MigrationSteps(cluster, PACE, namespace="stowplan-system")

    with pytest.raises(StoppedError, match="was deleted in the meantime"):
        await steps.withdraw(VARIANT_AUTOSCALING).act()
    assert cluster.objects == {}


async def test_the_last_step_removes_annotations_and_changes_nothing_else() -> None:
    """Objects that would have to be reshaped are reported as failures instead."""
    shape = RELEASES["v0.5.1"]
    given_back = MemoryCluster(objects()[:6])
    await give_back(given_back, shape)
    cluster = MemoryCluster([*given_back.said(), *objects()[6:]])
    for item in cluster.objects.values():
        item["metadata"]["annotations"] = {"x": "y", "llmd.ai/kept-by-conversion": "{}"}
    before = copy.deepcopy(cluster.objects)
    wrong = {name for name, item in before.items() if is_reshaped(item, shape)}
    steps = MigrationSteps(cluster, PACE, namespace="stowplan-system")
    with pytest.raises(StoppedError) as error:
        await steps.sweep(VARIANT_AUTOSCALING, shape).act()

    assert {failure.name for failure in error.value.failures} == wrong
    for name, item in cluster.objects.items():
        assert item["spec"] == before[name]["spec"]
        assert ("llmd.ai/kept-by-conversion" in item["metadata"]["annotations"]) == (name in wrong)
    assert 0 < len(wrong) < len(before)

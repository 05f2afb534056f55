"""Downgrades that are interrupted after any write, run again, and end like an uninterrupted one."""

from __future__ import annotations

import copy
import io
from typing import TYPE_CHECKING

import pytest
from support.memory_cluster import CutOffError, MemoryCluster
from support.variants import valid

from apiserver.kinds.llmd.conversion import SPOKE
from apiserver.kinds.llmd.shapes import RELEASES, Shape
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from controller.commands.upgrade.accounts import account
from controller.commands.upgrade.execution import Execution
from controller.commands.upgrade.progress import Progress
from controller.commands.upgrade.reshaping import forget, reshape, sweep
from controller.commands.upgrade.resources import resource_of
from controller.commands.upgrade.retrying import Pace
from controller.commands.upgrade.runs import StoppedError
from controller.commands.upgrade.status_to_come import ANNOTATION, announces, announcing
from controller.commands.upgrade.steps import Action, Step

if TYPE_CHECKING:
    from apiserver.schema.json import Json

RESOURCE = resource_of(VARIANT_AUTOSCALING, "v1alpha1")
PACE = Pace(per_second=1e9, tell=lambda *_: None)


def objects() -> list[Json]:
    """Return objects of every shape, most of them with a status."""
    made = [valid(seed, SPOKE) for seed in range(12)]
    for number, item in enumerate(made):
        item["metadata"]["name"] = f"object-{number}"
    return made


async def give_back(cluster: MemoryCluster, shape: Shape) -> None:
    """Do what a downgrade does to objects: reshape them, and remove our annotations."""
    _, failures = await reshape(cluster, RESOURCE, shape, PACE, dry_run=False)
    _, left = await sweep(cluster, RESOURCE, shape, PACE)
    assert failures == left == ()


@pytest.mark.parametrize("release", ["v0.0.1", "v0.4.2", "v0.5.1", "v0.7.0", "pull-233"])
async def test_a_downgrade_interrupted_after_any_write_ends_like_an_uninterrupted_one(release: str) -> None:
    """Many of the interruptions are between the writes of a spec and its status."""
    shape, whole = RELEASES[release], MemoryCluster(objects())
    await give_back(whole, shape)
    writes = 2**30 - whole.writes_left
    announced = 0

    for last in range(1, writes):
        cluster = MemoryCluster(objects(), writes_left=last)
        with pytest.raises(CutOffError):
            await give_back(cluster, shape)
        announced += any(map(announces, cluster.objects.values()))
        cluster.writes_left = 2**30
        await give_back(cluster, shape)
        assert cluster.said() == whole.said(), last
    assert writes > 12
    assert announced > 6


async def test_a_definition_that_was_deleted_in_the_meantime_stops_the_downgrade() -> None:
    """An error states this, and nothing is created."""
    cluster = MemoryCluster([])
    progress = Progress(io.StringIO(), steps=1)
    execution = Execution(cluster, progress, per_second=1e9, shape=RELEASES["v0.4.2"])
    step = Step(action=Action.WITHDRAW, kind=VARIANT_AUTOSCALING, version="v1alpha1")

    with pytest.raises(StoppedError, match="was deleted in the meantime"):
        await execution.do(step)
    assert cluster.objects == {}


async def test_the_last_sweep_removes_annotations_and_changes_nothing_else() -> None:
    """Objects that would have to be reshaped are reported as failures instead."""
    shape = RELEASES["v0.5.1"]
    given = MemoryCluster(objects()[:6])
    await give_back(given, shape)
    cluster = MemoryCluster([*given.said(), *objects()[6:]])
    for item in cluster.objects.values():
        item["metadata"]["annotations"] = {"x": "y", "llmd.ai/kept-by-conversion": "{}"}
    before = copy.deepcopy(cluster.objects)
    wrong = {name for name, item in before.items() if account(item, shape).is_reshaped}
    _, failures = await sweep(cluster, RESOURCE, shape, PACE)

    assert {failure.name for failure in failures} == wrong
    for name, item in cluster.objects.items():
        assert item["spec"] == before[name]["spec"]
        assert ("llmd.ai/kept-by-conversion" in item["metadata"]["annotations"]) == (name in wrong)
    assert 0 < len(wrong) < len(before)


async def test_an_upgrade_removes_the_announcements_of_an_interrupted_downgrade() -> None:
    """Objects without an announcement are not changed."""
    cluster = MemoryCluster(objects())
    first, second, *_ = cluster.objects.values()
    cluster.objects["object-0"] = announcing(first, first.get("status"))
    freed, failures = await forget(cluster, resource_of(VARIANT_AUTOSCALING, "v1alpha2"), PACE)

    assert (freed, failures) == (1, ())
    assert ANNOTATION not in cluster.objects["object-0"]["metadata"].get("annotations", {})
    assert cluster.objects["object-1"] == second

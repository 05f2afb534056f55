"""The real scheduler can place what a plan contains: hundreds of generated clusters in one control plane."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hack.clusters.filling import PACKED, FillResult, PodOrder, SchedulingWay, cluster_plane, fill_clusters
from hack.clusters.generated import ClusterKind, generate_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane

COUNT = int(os.environ.get("STOWPLAN_CLUSTERS", "40"))
FIRST_SEED = int(os.environ.get("STOWPLAN_CLUSTERS_SEED", "1"))
GATED = SchedulingWay(scheduler=PACKED, order=PodOrder.GATED)
LARGEST_FIRST = SchedulingWay(scheduler=PACKED, order=PodOrder.LARGEST_FIRST)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Yield a control plane for generated clusters, with a scheduler of the shipped profile."""
    with cluster_plane() as started:
        yield started


def wrong(found: list[FillResult]) -> list[str]:
    """Return a line for each pending pod or violation, with the seed that reproduces it."""
    return [
        f"{item.cluster.kind} cluster of seed {item.cluster.seed}, {item.way.order}:"
        f" waiting {list(item.waiting)}, {list(item.offences)}"
        for item in found
        if item.waiting or item.offences
    ]


async def test_the_scheduler_places_all_replicas_of_a_plan(plane: ControlPlane) -> None:
    """Gated pods may have any order and size; without gates sizes must nest and the largest come first."""
    seeds = range(FIRST_SEED, FIRST_SEED + (COUNT + 1) // 2)
    nested = [generate_cluster(seed=seed, kind=ClusterKind.NESTED) for seed in seeds]
    mixed = [generate_cluster(seed=seed, kind=ClusterKind.MIXED) for seed in seeds]

    by_gate = await fill_clusters(plane, mixed, [GATED])
    by_size = await fill_clusters(plane, nested, [LARGEST_FIRST])

    assert wrong([*by_gate, *by_size]) == []
    assert sum(item.added for item in [*by_gate, *by_size]) > COUNT

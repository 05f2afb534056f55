"""What a plan says fits, the real scheduler places: hundreds of generated clusters in one control plane."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hack.clusters.filling import Filled
from hack.clusters.generated import Kind, generated
from hack.clusters.plane import cluster_plane, filled
from hack.clusters.ways import PACKED, Order, Way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane

COUNT = int(os.environ.get("STOWPLAN_CLUSTERS", "40"))
FIRST_SEED = int(os.environ.get("STOWPLAN_CLUSTERS_SEED", "1"))
GATED = Way(scheduler=PACKED, order=Order.GATED)
LARGEST_FIRST = Way(scheduler=PACKED, order=Order.LARGEST_FIRST)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Run a scheduler with the shipped profile; nothing but generated clusters in its control plane."""
    with cluster_plane() as started:
        yield started


def wrong(found: list[Filled]) -> list[str]:
    """Say what may not be, with the seed that shows it."""
    return [
        f"{item.cluster.kind} cluster of seed {item.cluster.seed}, {item.way.order}:"
        f" waiting {list(item.waiting)}, {list(item.offences)}"
        for item in found
        if item.waiting or item.offences
    ]


async def test_what_a_plan_says_fits_the_scheduler_places(plane: ControlPlane) -> None:
    """With gates in any order and of any sizes; without them where sizes nest and the largest comes first."""
    seeds = range(FIRST_SEED, FIRST_SEED + (COUNT + 1) // 2)
    nested = [generated(seed=seed, kind=Kind.NESTED) for seed in seeds]
    mixed = [generated(seed=seed, kind=Kind.MIXED) for seed in seeds]

    by_gate = await filled(plane, mixed, [GATED])
    by_size = await filled(plane, nested, [LARGEST_FIRST])

    assert wrong([*by_gate, *by_size]) == []
    assert sum(item.added for item in [*by_gate, *by_size]) > COUNT

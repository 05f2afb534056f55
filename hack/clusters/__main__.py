"""`python -m hack.clusters`: how often the pods of a feasible plan are scheduled, by profile and order."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence

from hack.clusters.filling import (
    DEFAULT,
    PACKED,
    FillResult,
    PodOrder,
    SchedulingWay,
    cluster_plane,
    fill_clusters,
)
from hack.clusters.generated import ClusterKind, generate_cluster

_BATCH = 200
"""Clusters of each kind per control plane; each batch starts a new one."""


def main(arguments: list[str]) -> int:
    """Print a line for each way; return 1 if a scheduler violated a constraint."""
    parser = argparse.ArgumentParser(prog="python -m hack.clusters", description=__doc__)
    parser.add_argument(
        "--count", type=int, default=200, help="number of clusters of each kind (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the first cluster (%(default)s)")
    options = parser.parse_args(arguments)
    ways = [
        SchedulingWay(scheduler=scheduler, order=order)
        for scheduler in (PACKED, DEFAULT)
        for order in PodOrder
    ]
    began = time.monotonic()
    filled: list[FillResult] = []
    for first in range(options.seed, options.seed + options.count, _BATCH):
        seeds = range(first, min(first + _BATCH, options.seed + options.count))
        clusters = [generate_cluster(seed=seed, kind=kind) for kind in ClusterKind for seed in seeds]
        with cluster_plane() as control_plane:
            filled += asyncio.run(fill_clusters(control_plane, clusters, ways))
    for kind in ClusterKind:
        for way in ways:
            print(
                _line(kind, way, [item for item in filled if item.way == way and item.cluster.kind is kind])
            )
    wrong = [offence for item in filled for offence in item.offences]
    print(*wrong, f"{time.monotonic() - began:.0f} s", sep="\n")
    return bool(wrong)


def _line(kind: ClusterKind, way: SchedulingWay, filled: Sequence[FillResult]) -> str:
    short = [item for item in filled if item.waiting]
    waiting, added = sum(len(item.waiting) for item in short), sum(item.added for item in filled)
    seeds = f"; seeds {', '.join(str(item.cluster.seed) for item in short[:5])}" if short else ""
    return (
        f"{kind:7} {way.scheduler:18} {way.order:40} {len(short):4} of {len(filled)} clusters,"
        f" {waiting:5} of {added} pods wait{seeds}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

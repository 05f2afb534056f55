"""One main variant per model; others are chosen where they save clearly, or where it finds no place.

Unlike replicas behind one router are used less well than replicas that are alike: a router that evens out
queues or caches loads the slow ones beyond their targets before the fast ones are busy. A mix that follows
the load by its smallest unit also piles up many of those. In closed loop, over recorded and drawn loads,
counting the cost of the others twice made fleets 5 percent cheaper, and a fifth fewer requests missed their
targets. Only the choice between mixes depends on this: what a plan costs, and what budgets count, are true
costs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controller.planning.demand import rate_of
from controller.planning.problem import bins_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.demand import ModelDemand
    from controller.planning.problem import PlacementProblem

MIX_FACTOR = 2
"""How many times its cost a replica counts that is not of the main variant."""


def with_main_variants(
    problem: PlacementProblem, demands: Sequence[ModelDemand], *, is_unlimited: bool = False
) -> PlacementProblem:
    """Return the problem in which each model's other variants are dearer, unless its load mixes at cost.

    Only where the main variant would find room for all of the demand: who has to mix anyway does so at cost.
    `is_unlimited` asks what would be if there were room for all.
    """
    room = None if is_unlimited else _Room(problem)
    dearer: set[int] = set()
    first = 0
    for demand in demands:
        own = range(first, first + len(demand.variants))
        main = None if demand.load.mixes_at_cost else _main(demand, problem, own, room)
        dearer |= {index for index in own if index != main} if main is not None else set()
        first = own.stop
    return replace(
        problem,
        variants=tuple(
            replace(terms, cost=MIX_FACTOR * terms.cost) if index in dearer else terms
            for index, terms in enumerate(problem.variants)
        ),
    )


def _main(
    demand: ModelDemand, problem: PlacementProblem, own: Sequence[int], room: _Room | None
) -> int | None:
    """Return the variant that alone serves all of the demand at least cost, starts included; None without."""
    found: list[tuple[int, int]] = []
    for index, variant in zip(own, demand.variants, strict=True):
        rate, terms = rate_of(variant), problem.variants[index]
        replicas = -(-demand.required_rate // rate) if rate else 0
        more = max(0, replicas - terms.current)
        if 0 < replicas <= terms.upper and (room is None or more <= room.replicas(index)):
            found.append((replicas * terms.cost + more * terms.start_price, index))
    return min(found)[1] if found else None


class _Room:
    """How many more replicas of each variant there is room for, as if nobody else wanted it."""

    def __init__(self, problem: PlacementProblem) -> None:
        self._problem = problem
        self._bins = bins_of(problem)
        self._slots: dict[tuple[int, int], int] = {}

    def replicas(self, variant: int) -> int:
        """Return the replicas of a variant that its nodes have room for, those that can be added included."""
        terms = self._problem.variants[variant]
        if not terms.accelerators:
            return terms.upper
        return sum(self._in_bin(index, terms.accelerators) for index in self._bins[variant]) // terms.pods

    def _in_bin(self, index: int, size: int) -> int:
        if (index, size) not in self._slots:
            free = self._problem.free
            there = sum(max(0, free[node]) // size for node in self._problem.bins[index].nodes)
            added = (
                growth.limit * (growth.accelerators // size)
                for growth in self._problem.growth
                if growth.bin == index
            )
            self._slots[index, size] = there + sum(added)
        return self._slots[index, size]

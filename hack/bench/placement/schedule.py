"""What one run measures: which engine on which fleet, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from hack.bench.placement.engines import HIGHS
from hack.bench.placement.outcome import Job
from hack.fleets.catalogue import LARGEST, RULED, VERSION, Instance

_SEQUENCES: Final = "F13"
_MOST_ROUNDS: Final = {100: 3, 500: 2}
"""How often fleets of up to so many models are placed at most; larger ones once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementSettings:
    """What to measure of placement."""

    rounds: int
    seconds: float
    """By the clock, for each problem."""
    families: tuple[str, ...]
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    engines: tuple[str, ...]
    most_highs: int
    """Models that HiGHS is tried with."""
    largest: tuple[str, ...] = ()
    """Families that the largest size is for."""
    fragmented: tuple[str, ...] = ()
    """Families of clusters in which replicas are moved to make room."""
    nodes: tuple[int, ...] = ()
    """Of each of them."""
    plans: tuple[str, ...] = ()
    """Families of whole plans."""
    again: tuple[str, ...] = ()
    """Families of plans that are made again and again."""
    repeats: int = 0
    """How often each, in each order; 0 for what suits its size."""
    is_joint: bool = False
    """Whether a fleet is placed among pods that may move, which then do."""
    is_raced: bool = False
    """Whether ours is beside HiGHS at an equal gap."""
    highs_seconds: float = 0.0
    """Of CPU, that HiGHS has for that."""
    generator: int = VERSION

    def jobs(self) -> Iterator[Job]:
        """Yield what is measured: all engines on an instance, one after the other, small instances first."""
        for size, family, seed in product(self.sizes, self.families, self.seeds):
            instance = Instance(family=family, size=size, seed=seed)
            rounds = next((most for models, most in _MOST_ROUNDS.items() if size <= models), 1)
            for engine in self.engines if size < LARGEST or family in self.largest else ():
                if engine != HIGHS:
                    rounds = min(self.rounds, rounds)
                    yield Job(instance=instance, engine=engine, seconds=self.seconds, rounds=rounds)
                elif self._has_a_chance(instance):
                    yield Job(instance=instance, engine=engine, seconds=self.seconds, rounds=1)

    def _has_a_chance(self, instance: Instance) -> bool:
        """Tell whether HiGHS is asked, for one answer only."""
        is_stated = instance.family not in RULED and not instance.family.startswith(_SEQUENCES)
        return is_stated and instance.size <= self.most_highs

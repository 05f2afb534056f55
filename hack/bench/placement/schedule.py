"""The selection of one run: which engine is measured on which fleet, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from hack.bench.placement.engines import HIGHS
from hack.bench.placement.result import Job
from hack.fleets.catalogue import LARGEST, RULED, VERSION, Instance

_SEQUENCES: Final = "F13"
_MOST_ROUNDS: Final = {100: 3, 500: 2}
"""The maximum number of repeats, by the largest number of models; larger fleets are placed once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementSettings:
    """The selected measurements of placement."""

    rounds: int
    seconds: float
    """Wall-clock limit of each solve."""
    families: tuple[str, ...]
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    engines: tuple[str, ...]
    most_highs: int
    """Maximum number of models of fleets that HiGHS places."""
    largest: tuple[str, ...] = ()
    """Families that are also placed at the largest size."""
    fragmented: tuple[str, ...] = ()
    """Families of clusters in which replicas are moved to make room."""
    nodes: tuple[int, ...] = ()
    """Numbers of nodes of these clusters."""
    plans: tuple[str, ...] = ()
    """Families of whole plans."""
    again: tuple[str, ...] = ()
    """Families of repeated plans."""
    repeats: int = 0
    """Number of runs of these with and without shuffling each; 0 for the default of the size."""
    is_joint: bool = False
    """Whether a fleet is placed among movable pods, which are then moved."""
    is_raced: bool = False
    """Whether our engine races HiGHS to an equal gap."""
    highs_seconds: float = 0.0
    """Limit of HiGHS in the race, in seconds of CPU."""
    generator: int = VERSION

    def jobs(self) -> Iterator[Job]:
        """Yield the measurements: all engines on one instance after the other, small instances first."""
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
        """Tell whether HiGHS can place the instance: small enough, no sequence, no rules of pods."""
        is_stated = instance.family not in RULED and not instance.family.startswith(_SEQUENCES)
        return is_stated and instance.size <= self.most_highs

"""What one run measures: which engine on which fleet, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hack.bench.measurement import RoundSettings
from hack.bench.placement.engines import HIGHS
from hack.bench.placement.outcome import Job
from hack.fleets.catalogue import LARGEST, RULED, VERSION, Instance

_SEQUENCES: Final = "F13"
_MOST_ROUNDS: Final = {100: 3, 500: 2}
"""How often fleets of up to so many models are placed at most; larger ones once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementSettings(RoundSettings):
    """What to measure of placement."""

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
        for size in self.sizes:
            for family in self.families:
                if size < LARGEST or family in self.largest:
                    for seed in self.seeds:
                        yield from self._on(Instance(family=family, size=size, seed=seed))

    def _on(self, instance: Instance) -> Iterator[Job]:
        for engine in self.engines:
            if self._is_tried(engine, instance):
                rounds = 1 if engine == HIGHS else self._rounds(instance.size)
                yield Job(instance=instance, engine=engine, seconds=self.seconds, rounds=rounds)

    def _is_tried(self, engine: str, instance: Instance) -> bool:
        """Tell whether an engine is asked: HiGHS where it has a chance, and for one answer only."""
        if engine != HIGHS:
            return True
        is_stated = instance.family not in RULED and not instance.family.startswith(_SEQUENCES)
        return is_stated and instance.size <= self.most_highs

    def _rounds(self, size: int) -> int:
        most = next((rounds for models, rounds in _MOST_ROUNDS.items() if size <= models), 1)
        return min(self.rounds, most)

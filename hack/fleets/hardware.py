"""The accelerators that generated fleets may run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COST_OF_A_DOLLAR: Final = 1_000_000
"""Per hour, in the unit of cost of a problem: the planner counts as finely."""

USABLE_MEMORY: Final = 0.9
"""What an engine may fill of an accelerator's memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Accelerator:
    """One type of accelerator, and the nodes that have it."""

    name: str
    dollars_per_hour: float
    memory_gb: int
    speed: float
    """Relative throughput of one."""

    slowness: float
    """How much of it a strict latency target takes away, at most."""

    per_node: int

    @property
    def cost(self) -> int:
        """Of one, in the unit of cost."""
        return round(self.dollars_per_hour * COST_OF_A_DOLLAR)

    def holds(self, weights_gb: float, count: int) -> bool:
        """Tell whether so many hold a model of that size."""
        return weights_gb <= USABLE_MEMORY * self.memory_gb * count


ACCELERATORS: Final = (
    Accelerator(name="l4", dollars_per_hour=0.8, memory_gb=24, speed=0.35, slowness=0.7, per_node=4),
    Accelerator(name="l40s", dollars_per_hour=1.9, memory_gb=48, speed=1.0, slowness=0.5, per_node=8),
    Accelerator(name="a100", dollars_per_hour=3.4, memory_gb=80, speed=2.0, slowness=0.25, per_node=8),
    Accelerator(name="h100", dollars_per_hour=6.5, memory_gb=80, speed=4.0, slowness=0.0, per_node=8),
    Accelerator(name="mi300x", dollars_per_hour=5.6, memory_gb=192, speed=3.6, slowness=0.2, per_node=8),
)
H100: Final = ACCELERATORS[3]

"""Random fleets of models, with their variants and demands."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

COST_OF_A_DOLLAR: Final = 1_000_000
"""One dollar per hour in a problem's unit of cost, which is as fine as the planner's."""

USABLE_MEMORY: Final = 0.9
"""Share of an accelerator's memory that an engine may use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceleratorStock:
    """One type of accelerator, and its nodes."""

    name: str
    dollars_per_hour: float
    memory_gb: int
    speed: float
    """Relative throughput of one accelerator."""

    slowness: float
    """Maximum share of throughput lost by a strict latency target."""

    per_node: int

    @property
    def cost(self) -> int:
        """Cost of one accelerator, in the unit of cost."""
        return round(self.dollars_per_hour * COST_OF_A_DOLLAR)

    def holds(self, weights_gb: float, count: int) -> bool:
        """Tell whether `count` accelerators hold weights of a size."""
        return weights_gb <= USABLE_MEMORY * self.memory_gb * count


ACCELERATORS: Final = (
    AcceleratorStock(name="l4", dollars_per_hour=0.8, memory_gb=24, speed=0.35, slowness=0.7, per_node=4),
    AcceleratorStock(name="l40s", dollars_per_hour=1.9, memory_gb=48, speed=1.0, slowness=0.5, per_node=8),
    AcceleratorStock(name="a100", dollars_per_hour=3.4, memory_gb=80, speed=2.0, slowness=0.25, per_node=8),
    AcceleratorStock(name="h100", dollars_per_hour=6.5, memory_gb=80, speed=4.0, slowness=0.0, per_node=8),
    AcceleratorStock(name="mi300x", dollars_per_hour=5.6, memory_gb=192, speed=3.6, slowness=0.2, per_node=8),
)
H100: Final = ACCELERATORS[3]

PRIORITIES: Final = (0.10, 0.25, 0.40, 0.25)
"""Share of the models by priority, the most important first."""

WARM_SHARE: Final = 0.8
"""Share of the models with a minimum replica; half of the others have no demand."""

BILLIONS: Final = (3, 8, 14, 32, 70, 123, 405)
_SHARES: Final = (0.15, 0.30, 0.15, 0.15, 0.15, 0.07, 0.03)
_WEIGHTS_GB: Final = (6, 16, 28, 64, 140, 246, 405)
"""Two bytes per parameter, or one byte if no node could hold two."""

_THROUGHPUT: Final = 20_000
_TAIL: Final = 1.1
_MOST_REPLICAS: Final = 500.0


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantOffer:
    """Costs and capacity of one variant."""

    accelerator: AcceleratorStock
    size: int
    amount: int
    """Throughput of one replica under the model's latency target."""

    cost: int
    pods: int = 1
    """Pods per replica, which share its accelerators evenly."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetModel:
    """One model: its variants and its demand."""

    offers: tuple[VariantOffer, ...]
    requirement: int
    priority: int
    is_warm: bool

    @property
    def cheapest(self) -> tuple[int, VariantOffer]:
        """The cheapest variant for the whole demand, with the total cost."""
        return min(
            ((replicas_for(offer, self.requirement) * offer.cost, offer) for offer in self.offers),
            key=lambda pair: pair[0],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Mix:
    """Parameters of a family's fleets."""

    load: float = 1.0
    """Typical demand, in replicas of the model's median variant."""

    most_offers: int = 6
    sizes: tuple[int, ...] = (1, 2, 4, 8)
    """Numbers of accelerators of one replica."""

    huge_share: float = 0.0
    """Share of the models that need a whole node."""


def replicas_for(offer: VariantOffer, requirement: int) -> int:
    """Return the number of replicas of one variant that meet a requirement."""
    return -(-requirement // offer.amount)


def fleet(rng: np.random.Generator, size: int, mix: Mix) -> list[FleetModel]:
    """Draw a fleet of `size` models."""
    return [_ask(rng, mix) for _ in range(size)]


def _ask(rng: np.random.Generator, mix: Mix) -> FleetModel:
    offers = _offers(rng, mix)
    needed = drawn_replicas(rng) * mix.load * statistics.median(offer.amount for offer in offers)
    is_warm = rng.random() < WARM_SHARE
    is_idle = not is_warm and rng.random() < 1 / 2
    return FleetModel(
        offers=tuple(offers),
        requirement=0 if is_idle else math.ceil(needed),
        priority=int(rng.choice(len(PRIORITIES), p=PRIORITIES)),
        is_warm=is_warm,
    )


def drawn_replicas(rng: np.random.Generator) -> float:
    """Draw a demand in replicas from a heavy-tailed distribution."""
    return min(_MOST_REPLICAS, 1 + float(rng.pareto(_TAIL)))


def _offers(rng: np.random.Generator, mix: Mix) -> list[VariantOffer]:
    """Draw a model's size and strictness, then some of its possible variants."""
    which = int(rng.choice(len(BILLIONS), p=_SHARES))
    is_huge = rng.random() < mix.huge_share
    strictness = rng.random()
    fitting = [
        (accelerator, size)
        for accelerator in ACCELERATORS
        for size in _fitting_sizes(accelerator, len(BILLIONS) - 1 if is_huge else which, mix.sizes, is_huge)
    ]
    kept = min(len(fitting), 1 + int(rng.integers(mix.most_offers)))
    chosen = sorted(rng.permutation(len(fitting))[:kept].tolist())
    return [
        drawn_offer(rng, *fitting[index], which=which, strictness=0.0 if is_huge else strictness)
        for index in chosen
    ]


def _fitting_sizes(
    accelerator: AcceleratorStock, which: int, sizes: Sequence[int], is_huge: bool
) -> list[int]:
    """Return the two smallest sizes that hold the model on one node, or the whole node for a huge model."""
    if is_huge:
        whole = accelerator.per_node == max(sizes) and accelerator.holds(_WEIGHTS_GB[which], max(sizes))
        return [max(sizes)] if whole else []
    fits = [s for s in sizes if s <= accelerator.per_node and accelerator.holds(_WEIGHTS_GB[which], s)]
    return fits[:2]


def drawn_offer(
    rng: np.random.Generator, accelerator: AcceleratorStock, size: int, *, which: int, strictness: float
) -> VariantOffer:
    """Draw the throughput from speed and size, reduced for scarce memory and strict latency."""
    memory = USABLE_MEMORY * accelerator.memory_gb * size
    room = min(1.0, 2 * max(0.0, 1 - _WEIGHTS_GB[which] / memory))
    speed = accelerator.speed * size ** rng.uniform(0.8, 1.0) / BILLIONS[which] ** 0.9
    damped = speed * max(0.1, room) * (1 - strictness * accelerator.slowness)
    amount = max(1, round(_THROUGHPUT * damped * rng.lognormal(0.0, 0.2)))
    return VariantOffer(accelerator=accelerator, size=size, amount=amount, cost=accelerator.cost * size)

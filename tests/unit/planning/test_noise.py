"""Noise of the load restarts almost nothing in a shortage: what starts is not exchanged for new replicas."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from support.planning_builders import load, node, variant

from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Replica, Snapshot, Variant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.planning.cluster import Node
    from controller.planning.decision import Plan
    from controller.planning.load import ModelLoad

SETTINGS = Settings(deterministic_seconds=0.5, wall_seconds=60.0, relief_solves=0)
RATE = 1_000_000
"""One request per second, in the unit of planning."""

TYPES = {"H100": 10, "L40S": 3}
"""Requests per second that one accelerator serves; costs are in proportion."""

ON_NODE = 8
MODELS = 20
NOISE = 0.02
CYCLE_SECONDS = 15.0
START_SECONDS = 120.0
SETTLED_CYCLES = 8
"""Cycles in which the first replicas start, and the fleet takes its shape."""


@dataclass(kw_only=True)
class Fleet:
    """Models with half of the accelerators that they need, and their pods."""

    random: Random
    nodes: tuple[Node, ...]
    loads: tuple[int, ...]
    """Mean requests per second of each model."""

    variants: tuple[tuple[Variant, ...], ...]
    """Those of each model, without replicas."""

    pods: dict[str, list[tuple[float, str, str]]] = field(default_factory=dict)
    """Time at which each replica of a variant was bound, its name and its node, the newest first."""

    started: int = 0

    def snapshot(self, now_seconds: float) -> Snapshot:
        """Return the pods with noisy loads."""
        return Snapshot(
            nodes=self.nodes,
            variants=tuple(self._running(one, now_seconds) for own in self.variants for one in own),
            loads=tuple(self._load(f"m{number}", mean) for number, mean in enumerate(self.loads)),
            taken_seconds=now_seconds,
        )

    def follow(self, made: Plan, now_seconds: float) -> int:
        """Remove and bind replicas as planned, and return the number of accelerators of the new ones."""
        sizes = {one.name: one.accelerators_per_replica for own in self.variants for one in own}
        for decision in made.decisions:
            pods = self.pods.setdefault(decision.name, [])
            del pods[: max(0, len(pods) - decision.replicas)]
        bound = [(item.name, item.node) for item in made.placements for _ in range(item.pods)]
        for name, host in bound:
            self.started += 1
            self.pods[name].insert(0, (now_seconds, f"{name}-{self.started}", host))
        return sum(sizes[name] for name, _ in bound)

    def _running(self, one: Variant, now_seconds: float) -> Variant:
        replicas = tuple(
            Replica(name=name, node=host, ready=ready, report_age_seconds=5.0 if ready else None)
            for since, name, host in self.pods.get(one.name, ())
            for ready in [now_seconds - since >= START_SECONDS]
        )
        return replace(one, replicas=replicas, current_replicas=len(replicas))

    def _load(self, name: str, mean: float) -> ModelLoad:
        rate = mean * RATE * (1 + self.random.gauss(0, NOISE))
        return load(rate, name, start_seconds=START_SECONDS)


def fleet(seed: int, *, variants: int) -> Fleet:
    """Return a fleet of unlike models; each is served by so many types of accelerators."""
    random = Random(seed)
    needed = dict.fromkeys(TYPES, 0.0)
    models, loads = [], []
    for number in range(MODELS):
        mean, priority = random.randint(5, 60), random.choice((1, 5, 10))
        own = tuple(_variants(random, f"m{number}", priority=priority))[:variants]
        for one in own:
            rate = one.capacity.requests_per_second if one.capacity else 1.0
            needed[one.accelerator] += one.accelerators_per_replica * mean / 0.85 / rate / len(own)
        models.append(own)
        loads.append(mean)
    nodes = [
        node(f"{kind}-{number}", ON_NODE, accelerator=kind)
        for kind, accelerators in needed.items()
        for number in range(round(accelerators / 2 / ON_NODE))
    ]
    return Fleet(random=random, nodes=tuple(nodes), loads=tuple(loads), variants=tuple(models))


def _variants(random: Random, model: str, *, priority: int) -> Iterator[Variant]:
    size = random.choice((1, 1, 2, 4))
    for kind in random.sample(list(TYPES), len(TYPES)):
        yield variant(
            f"{model}-{kind}",
            model_id=model,
            accelerator=kind,
            size=size,
            cost=str(size * TYPES[kind]),
            serves=size * TYPES[kind] * random.uniform(0.7, 1.4) * RATE,
            priority=priority,
            start_seconds=START_SECONDS,
        )


@pytest.mark.parametrize("variants", [1, 2])
def test_noise_of_two_percent_restarts_at_most_two_per_mille_of_accelerators(variants: int) -> None:
    """Each cycle starts from the pods that the last one left."""
    running, shares = fleet(1, variants=variants), []
    accelerators = ON_NODE * len(running.nodes)
    for cycle in range(16):
        now_seconds = 1000.0 + cycle * CYCLE_SECONDS
        made = plan(running.snapshot(now_seconds), SETTINGS)
        shares.append(running.follow(made, now_seconds) / accelerators)

    assert shares[0] > 0.9  # there is a shortage: everything is in use from the beginning
    assert fmean(shares[SETTLED_CYCLES:]) <= 0.002

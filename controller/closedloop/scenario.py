"""All that a run in closed loop depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.closedloop.autoscaler import SYNC_SECONDS
from controller.closedloop.behaviour import DEFAULT_BEHAVIOUR, Behaviour
from controller.simulation.workload import requests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.simulation.profile import EngineProfile
    from controller.simulation.request import Request
    from controller.simulation.workload import Workload

WARM_UP_SECONDS = 600.0
"""How long a warm start is simulated before it is scored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Targets:
    """What a request is to have: seconds to its first token and mean seconds between tokens.

    None where nothing is asked.
    """

    ttft_seconds: float | None = None
    itl_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """One model, what it is asked for, and how well it is to serve; priority 1 goes first, 100 last."""

    model_id: str
    workload: Workload
    targets: Targets
    priority: int = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantSetup:
    """One way to run a model.

    `start_up_seconds` pass from a place on a node to the first request; `start_up_jitter_seconds` is the most
    that chance adds to it. `price_per_hour` is that of a replica.
    """

    name: str
    profile: EngineProfile
    accelerator: str
    price_per_hour: float
    accelerators_per_replica: int = 1
    start_up_seconds: float = 120.0
    start_up_jitter_seconds: float = 0.0
    initial_replicas: int = 1
    min_replicas: int = 0
    max_replicas: int = 100
    behaviour: Behaviour | None = None
    """Of the HorizontalPodAutoscaler that reads a published decision; None: the scenario's, no tolerance."""

    stated_profile: EngineProfile | None = None
    """What the VariantAutoscaling tells the controller that the engine can do, true or not; None: nothing."""

    @property
    def model_id(self) -> str:
        """The model that it runs."""
        return self.profile.model_id


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeGroup:
    """So many nodes that are alike."""

    accelerator: str
    accelerators: int
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """What is played. Names of variants and identifiers of models are unique.

    `warm_up_seconds` is 0 for a cold start; else the beginning of each workload is played that much longer,
    before anything is scored.
    """

    name: str
    models: tuple[Model, ...]
    variants: tuple[VariantSetup, ...]
    nodes: tuple[NodeGroup, ...]
    duration_seconds: float = 3600.0
    warm_up_seconds: float = WARM_UP_SECONDS
    behaviour: Behaviour = DEFAULT_BEHAVIOUR
    grace_seconds: float = 30.0
    """How long a pod that is deleted may finish what it has."""

    sync_seconds: float = SYNC_SECONDS
    """Time between two looks of the HorizontalPodAutoscalers at their metrics."""

    seed: int = 1

    @property
    def end_seconds(self) -> float:
        """When the run ends, on a time line that begins with the warm-up."""
        return self.warm_up_seconds + self.duration_seconds

    def variants_of(self, model_id: str) -> tuple[VariantSetup, ...]:
        """Return the variants of one model."""
        return tuple(variant for variant in self.variants if variant.model_id == model_id)

    def published_behaviour(self, variant: VariantSetup) -> Behaviour:
        """Return the rules by which a variant follows a number of replicas."""
        return variant.behaviour or self.behaviour.without_tolerance()

    def requests(self) -> Mapping[str, list[Request]]:
        """Return the requests of each model, in order; those of the warm-up come first."""
        made: dict[str, list[Request]] = {}
        for number, model in enumerate(self.models):
            made[model.model_id] = requests(
                model.workload,
                seconds=self.duration_seconds,
                warm_up_seconds=self.warm_up_seconds,
                seed=self.seed * 1000 + number,
            )
        return made

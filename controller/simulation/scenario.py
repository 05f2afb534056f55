"""The complete input of a closed-loop run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.simulation.autoscaler import DEFAULT_BEHAVIOUR, SYNC_SECONDS, Behaviour, SimulatedAutoscaler
from controller.simulation.profile import EngineProfile
from controller.simulation.router import SHORTEST_QUEUE, Routing
from controller.simulation.workload import Request, Workload, requests
from controller.sizing.records import Targets

WARM_UP_SECONDS = 600.0
"""Duration of the warm-up before a warm start is scored, in seconds."""

PATIENCE_SECONDS = 60.0
"""How long clients wait for a first token unless a scenario says otherwise, in seconds."""

LAST_SECONDS = 300.0
"""Time for requests to finish after the end, without cost, in seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioModel:
    """One model with its workload and targets; priority 1 goes first, 100 last."""

    model_id: str
    workload: Workload
    targets: Targets
    priority: int = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantSetup:
    """One way to run a model.

    `start_up_seconds` is the mean time from binding to a node to the first request. Each start deviates by up
    to `start_up_jitter_seconds`, evenly in both directions, but never takes less than no time.
    `price_per_hour` is that of a replica.
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
    """Behavior of the HPA that reads a published decision; None for the scenario's without tolerance."""

    stated_profile: EngineProfile | None = None
    """Profile that the VariantAutoscaling declares, correct or not; None for no profile."""

    @property
    def model_id(self) -> str:
        """ID of the model that it runs."""
        return self.profile.model_id


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeGroup:
    """A number of identical nodes."""

    accelerator: str
    accelerators: int
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Outage:
    """A node that is gone for a time: its pods end at once, and others replace them.

    Nodes are named by accelerator, position of their group, and number: `h100-0-0`. Times are in seconds
    since scoring began.
    """

    node: str
    from_seconds: float
    to_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """The scenario to simulate. Names of variants and IDs of models are unique.

    `warm_up_seconds` is 0 for a cold start; otherwise the beginning of each workload is additionally played
    ahead for that time, before anything is scored.
    """

    name: str
    models: tuple[ScenarioModel, ...]
    variants: tuple[VariantSetup, ...]
    nodes: tuple[NodeGroup, ...]
    duration_seconds: float = 3600.0
    warm_up_seconds: float = WARM_UP_SECONDS
    behaviour: Behaviour = DEFAULT_BEHAVIOUR
    grace_seconds: float = 30.0
    """How long a deleted pod may finish its requests, in seconds."""

    patience_seconds: float | None = PATIENCE_SECONDS
    """Seconds without a first token after which a client gives up its request; None for never."""

    outages: tuple[Outage, ...] = ()
    routing: Routing = SHORTEST_QUEUE
    """How requests are distributed over the replicas of a model."""

    sync_seconds: float = SYNC_SECONDS
    """Sync period of the HorizontalPodAutoscalers, in seconds."""

    seed: int = 1

    @property
    def end_seconds(self) -> float:
        """End of the run, on a time line that starts with the warm-up."""
        return self.warm_up_seconds + self.duration_seconds

    def variants_of(self, model_id: str) -> tuple[VariantSetup, ...]:
        """Return the variants of one model."""
        return tuple(variant for variant in self.variants if variant.model_id == model_id)

    def published_behaviour(self, variant: VariantSetup) -> Behaviour:
        """Return the behavior of the HPA that follows a variant's published replicas."""
        return variant.behaviour or self.behaviour.without_tolerance()

    def follower(self, variant: VariantSetup) -> SimulatedAutoscaler:
        """Return the HPA that follows a variant's published replicas.

        A variant that starts without replicas counts as scaled to zero by its HPA.
        """
        return SimulatedAutoscaler(
            behaviour=self.published_behaviour(variant),
            min_replicas=variant.min_replicas,
            max_replicas=variant.max_replicas,
            target_average=1.0,
            has_scaled_to_zero=variant.initial_replicas == 0,
        )

    def requests(self) -> Mapping[str, list[Request]]:
        """Return the requests of each model, in order; those of the warm-up come first."""
        return {
            model.model_id: requests(
                model.workload,
                seconds=self.duration_seconds,
                warm_up_seconds=self.warm_up_seconds,
                seed=self.seed * 1000 + number,
            )
            for number, model in enumerate(self.models)
        }

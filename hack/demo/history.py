"""Observations and events of the demo from its beginning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from controller.simulation.outcome import reversals
from hack.demo.model_story import ModelStory
from hack.demo.observation import ModelView, Observation, VariantView
from hack.demo.service import Served


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """The answer to a manifest that should be rejected."""

    manifest: str
    exit_code: int
    output: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Outage:
    """The absence of one of our processes, in seconds after the start of the load."""

    component: str
    from_seconds: float
    to_seconds: float


@dataclass(slots=True)
class History:
    """Observations in chronological order, and events."""

    observations: list[Observation] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    model: ModelStory = field(default_factory=ModelStory)
    served: list[Served] = field(default_factory=list)
    """Results of each model's requests, by priority; empty until the end."""

    def between(self, from_seconds: float, to_seconds: float) -> list[Observation]:
        """Return the observations in [from, to)."""
        return [o for o in self.observations if from_seconds <= o.seconds < to_seconds]

    def variant_names(self) -> list[str]:
        """Return the names of all variants ever observed, sorted."""
        return sorted({variant.name for o in self.observations for variant in o.variants})

    def reversals(self) -> dict[str, int]:
        """Return how often the replicas of each variant change direction."""
        return {
            name: reversals([view.current_replicas for _, view in self.of_variant(name)])
            for name in self.variant_names()
        }

    def of_variant(self, name: str) -> Iterator[tuple[float, VariantView]]:
        """Yield the times and views of one variant."""
        for observation in self.observations:
            for variant in observation.variants:
                if variant.name == name:
                    yield observation.seconds, variant


def model_view(observation: Observation, model_id: str) -> ModelView | None:
    """Return the view of a model, or None if it was not there."""
    return next((model for model in observation.models if model.model_id == model_id), None)

"""Results of the requests of one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.simulation.batch import Completion
from controller.simulation.outcome import ModelOutcome, model_outcome
from controller.simulation.scenario import ScenarioModel
from controller.simulation.workload import Request


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """All requests that arrived until the end, and those that were completed."""

    model: ScenarioModel
    requests: Sequence[Request]
    finished: Sequence[Completion]

    @property
    def outcome(self) -> ModelOutcome:
        """The numbers of missed targets."""
        return model_outcome(self.model, len(self.requests), self.finished)

    def first_tokens(self, from_seconds: float, to_seconds: float) -> tuple[int, int]:
        """Return the number of requests in [from, to) with the first token in time, and of all of them."""
        most = self.model.targets.ttft_seconds
        arrived = [r for r in self.requests if from_seconds <= r.arrival_us / 1e6 < to_seconds]
        in_time = sum(
            from_seconds <= done.request.arrival_us / 1e6 < to_seconds
            for done in self.finished
            if most is None or done.time_to_first_token_seconds <= most
        )
        return in_time, len(arrived)

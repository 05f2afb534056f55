"""One model of a solved problem: totals over its variants, computed once for all of their explanations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.demand import provided_rate
from controller.planning.problem import per_mille_missing
from controller.planning.utilization import utilization
from controller.planning.wording import count, load_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.planning.demand import ModelDemand
    from controller.planning.solved_problem import SolvedProblem
    from controller.planning.utilization import Utilization


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCase:
    """A model of a solved problem; tuples are over its variants, in order."""

    solved: SolvedProblem
    demand: ModelDemand
    model: int
    first: int
    """Index of the model's first variant."""

    wanted: tuple[int, ...]
    """Replicas with unlimited nodes."""

    placed: tuple[int, ...]
    """Replicas for which there is a place."""

    provided_rate: int
    """Capacity of the placed replicas, in millionths of a request per second."""

    unmet_per_mille: int
    """Per mille of the required capacity that is missing, rounded up."""

    asked: str
    """The load in words: `41 requests/s now, up to 52 in the 140 s that a replica needs to start`."""

    filled: Utilization | None
    """Utilization of the placed replicas; None if they serve nothing."""

    @property
    def is_below_floor(self) -> bool:
        """Whether fewer replicas have a place than the model must keep."""
        return sum(self.placed) < self.demand.floor

    @property
    def duty(self) -> str:
        """The replicas that the model must keep, in words."""
        least = self.demand.floor
        return f"{self.demand.model_id} must keep {'one replica' if least == 1 else count(least, 'replica')}"

    def filled_if_unlimited(self) -> Utilization | None:
        """Return the utilization of the replicas wanted with unlimited nodes."""
        return utilization(
            self.demand.variants,
            self.wanted,
            requests_per_second=self.demand.load.upper_requests_per_second,
        )


def model_cases(solved: SolvedProblem) -> Iterator[ModelCase]:
    """Yield the case of each model, in order."""
    first = 0
    for model, demand in enumerate(solved.demands):
        yield _model_case(solved, demand, model=model, first=first)
        first += len(demand.variants)


def _model_case(solved: SolvedProblem, demand: ModelDemand, *, model: int, first: int) -> ModelCase:
    own = slice(first, first + len(demand.variants))
    placed = solved.granted.replicas[own]
    provided = provided_rate(demand.variants, placed)
    return ModelCase(
        solved=solved,
        demand=demand,
        model=model,
        first=first,
        wanted=solved.wanted.replicas[own],
        placed=placed,
        provided_rate=provided,
        unmet_per_mille=per_mille_missing(demand.required_rate, provided),
        asked=load_text(demand.load),
        filled=utilization(
            demand.variants, placed, requests_per_second=demand.load.upper_requests_per_second
        ),
    )

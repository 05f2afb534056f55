"""One model of a solved problem: what its variants hold together, counted once for all of their sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.problem import per_mille_missing
from controller.planning.utilisation import provided_tokens, utilisation
from controller.planning.wording import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.planning.case import Answer
    from controller.planning.demand import ModelDemand
    from controller.planning.saturation import Capacity
    from controller.planning.utilisation import Utilisation


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCase:
    """A model among the others; tuples are over its variants, in order."""

    answer: Answer
    demand: ModelDemand
    model: int
    first: int
    """Number of the model's first variant."""

    capacities: tuple[Capacity | None, ...]
    """What one replica holds, where that is known."""

    wanted: tuple[int, ...]
    """Replicas with unlimited nodes."""

    placed: tuple[int, ...]
    """Replicas that have a place."""

    required_tokens: int
    provided_tokens: int
    """By the replicas that have a place."""

    unmet_per_mille: int
    """Share of the required capacity that is missing, rounded up."""

    asked: str
    """The demand in words: `41.2k tokens`."""

    filled: Utilisation | None
    """How full the replicas get that have a place; None where they hold nothing."""

    @property
    def is_cold(self) -> bool:
        """Whether the model must be kept warm and is not."""
        return not self.demand.may_scale_to_zero and not any(self.placed)

    def filled_if_unlimited(self) -> Utilisation | None:
        """Return how full the replicas would get that are wanted with unlimited nodes."""
        return utilisation(
            self.demand.variants, self.capacities, self.wanted, demand_tokens=self.demand.tokens or 0
        )


def model_cases(answer: Answer) -> Iterator[ModelCase]:
    """Yield every model's case, in order."""
    first = 0
    for model, demand in enumerate(answer.demands):
        yield _model_case(answer, demand, model=model, first=first)
        first += len(demand.variants)


def _model_case(answer: Answer, demand: ModelDemand, *, model: int, first: int) -> ModelCase:
    own = slice(first, first + len(demand.variants))
    placed = answer.granted.replicas[own]
    capacities = tuple([answer.capacities.get(variant.key) for variant in demand.variants])
    asked, required = demand.tokens or 0, demand.required_tokens
    provided = provided_tokens(capacities, placed)
    return ModelCase(
        answer=answer,
        demand=demand,
        model=model,
        first=first,
        capacities=capacities,
        wanted=answer.wanted.replicas[own],
        placed=placed,
        required_tokens=required,
        provided_tokens=provided,
        unmet_per_mille=per_mille_missing(required, provided),
        asked=f"{tokens(asked)} tokens",
        filled=utilisation(demand.variants, capacities, placed, demand_tokens=asked),
    )

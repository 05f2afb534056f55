"""One variant of a solved problem, with everything that a decision about it is worded from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.decision import Signal
from controller.planning.demand import allowed_replicas
from controller.planning.formulation import held_replicas
from controller.planning.problem import per_mille_missing
from controller.planning.shortage import Scarcity, ledger, scarcity
from controller.planning.wording import scarcity_clause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.cluster import Node
    from controller.planning.demand import ModelDemand
    from controller.planning.problem import PlacementProblem, Solution
    from controller.planning.saturation import Capacity
    from controller.planning.settings import Settings
    from controller.planning.shortage import Ledger
    from controller.planning.snapshot import Variant


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A solved problem; variants are numbered through the models in order."""

    nodes: Sequence[Node]
    demands: Sequence[ModelDemand]
    capacities: Mapping[tuple[str, str], Capacity]
    problem: PlacementProblem
    wanted: Solution
    """With unlimited nodes."""

    granted: Solution
    settings: Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One variant among its model's."""

    answer: Answer
    after: Ledger
    demand: ModelDemand
    first: int
    """Number of the model's first variant."""

    position: int
    """Of this variant among the model's."""

    @property
    def variant(self) -> Variant:
        """The variant itself."""
        return self.demand.variants[self.position]

    @property
    def capacity(self) -> Capacity | None:
        """What one replica holds, if known."""
        return self.answer.capacities.get(self.variant.key)

    @property
    def wanted(self) -> int:
        """Replicas with unlimited nodes."""
        return self.answer.wanted.replicas[self.first + self.position]

    @property
    def placed(self) -> int:
        """Replicas that have a place."""
        return self.answer.granted.replicas[self.first + self.position]

    @property
    def granted(self) -> int:
        """Replicas to publish: those that have a place; what is not decided anew stays even without one."""
        if self.demand.signal is Signal.FRESH:
            return self.placed
        return max(self.placed, allowed_replicas(self.variant))

    @property
    def held(self) -> int:
        """Replicas to keep while nobody knows better."""
        return held_replicas(self.variant)

    @property
    def siblings(self) -> list[tuple[Variant, int, int]]:
        """All variants of the model: (variant, wanted, placed)."""
        span = slice(self.first, self.first + len(self.demand.variants))
        wanted, placed = self.answer.wanted.replicas[span], self.answer.granted.replicas[span]
        return list(zip(self.demand.variants, wanted, placed, strict=True))

    def provided(self, *, unlimited: bool = False) -> int:
        """Return the model's capacity in tokens, as granted or with unlimited nodes."""
        return sum(
            self.answer.capacities[variant.key].tokens * (wanted if unlimited else placed)
            for variant, wanted, placed in self.siblings
            if variant.key in self.answer.capacities
        )

    def unmet_per_mille(self, *, unlimited: bool = False) -> int:
        """Return the share of the model's required capacity that is missing, rounded up."""
        return per_mille_missing(self.demand.required_tokens, self.provided(unlimited=unlimited))

    @property
    def is_cold(self) -> bool:
        """Whether the model must be kept warm and is not."""
        return not self.demand.may_scale_to_zero and not any(placed for _, _, placed in self.siblings)

    def scarcity(self) -> Scarcity | None:
        """Return what keeps one more replica out of the nodes, or None."""
        return scarcity(
            self.answer.problem,
            self.after,
            nodes=self.answer.nodes,
            priorities=[d.priority for d in self.answer.demands for _ in d.variants],
            variant=self.first + self.position,
        )

    def scarcity_clause(self, found: Scarcity) -> str:
        """Return the same in words."""
        variants = [variant for demand in self.answer.demands for variant in demand.variants]
        return scarcity_clause(found, self.variant, nodes=self.answer.nodes, variants=variants)


def cases(answer: Answer) -> Iterator[Case]:
    """Yield every variant's case, in order."""
    after = ledger(answer.problem, answer.granted, answer.nodes)
    first = 0
    for demand in answer.demands:
        for position in range(len(demand.variants)):
            yield Case(answer=answer, after=after, demand=demand, first=first, position=position)
        first += len(demand.variants)

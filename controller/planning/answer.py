"""A solved problem, and what everybody who words it asks of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from controller.planning.demand import provided_rate
from controller.planning.limits import running, stated_limits
from controller.planning.problem import PER_MILLE, LimitKind, per_mille_missing
from controller.planning.shortage import Scarcities, ledger
from controller.planning.units import cost_of
from controller.planning.vacancies import Vacancies
from controller.planning.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.cluster import Node
    from controller.planning.decision import Relief
    from controller.planning.demand import ModelDemand
    from controller.planning.flapping import Flapping
    from controller.planning.problem import LimitRow, PlacementProblem, Solution
    from controller.planning.settings import Settings
    from controller.planning.snapshot import Snapshot, Variant


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A solved problem; variants are numbered through the models in order."""

    snapshot: Snapshot
    nodes: Sequence[Node]
    demands: Sequence[ModelDemand]
    problem: PlacementProblem
    wanted: Solution
    """With unlimited nodes."""

    granted: Solution
    settings: Settings
    gives_way: str = ""
    """How those of lower priorities give way, where they may not all at once; empty elsewhere."""

    reliefs: Mapping[int, tuple[Relief, ...]] = field(default_factory=dict)
    """By model."""

    flapping: Mapping[tuple[str, str], Flapping] = field(default_factory=dict)
    """Variants that are not to turn for cost alone."""

    @cached_property
    def variants(self) -> list[Variant]:
        """All variants, as the problem numbers them."""
        return [variant for demand in self.demands for variant in demand.variants]

    @cached_property
    def scarcities(self) -> Scarcities:
        """What keeps one more replica of each variant out of the nodes."""
        return Scarcities(
            self.problem,
            ledger(self.problem, self.granted, self.nodes),
            nodes=self.nodes,
            priorities=[demand.priority for demand in self.demands for _ in demand.variants],
        )

    @cached_property
    def vacancies(self) -> Vacancies:
        """Where one more replica finds a place."""
        return Vacancies(self.problem, self.granted)

    @cached_property
    def granted_by_model(self) -> list[int]:
        """Granted replicas of each model."""
        return [
            sum(self.granted.replicas[v] for v in self.variants_of(model))
            for model in range(len(self.demands))
        ]

    @cached_property
    def _first(self) -> list[int]:
        """The number of each model's first variant, and behind the last one how many there are."""
        return [0, *accumulate(len(demand.variants) for demand in self.demands)]

    def variants_of(self, model: int) -> range:
        """Return the numbers of a model's variants."""
        return range(self._first[model], self._first[model + 1])

    @cached_property
    def _limits_of(self) -> Mapping[int, list[tuple[LimitRow, int]]]:
        """By variant: the limits that it uses, each with how much is used of it."""
        found: dict[int, list[tuple[LimitRow, int]]] = defaultdict(list)
        for row in self.problem.limits:
            used = sum(each * self.granted.replicas[v] for v, each in row.terms)
            for v, amount in row.terms:
                if amount:
                    found[v].append((row, used + amount))
        return found

    def limit_of(self, variant: int) -> LimitRow | None:
        """Return the first limit that leaves no room for one more replica of a variant, or None."""
        rows = self._limits_of.get(variant, ())
        return next((row for row, used_then in rows if used_then > row.limit), None)

    def unmet_per_mille(self, model: int, replicas: Sequence[int] | Mapping[int, int]) -> int:
        """Return the share of a model's required capacity that some replicas do not provide, rounded up."""
        demand = self.demands[model]
        provided = provided_rate(demand.variants, [replicas[v] for v in self.variants_of(model)])
        return per_mille_missing(demand.required_rate, provided)

    def shortage_per_mille(self, model: int, replicas: Sequence[int]) -> int:
        """Return the same, and everything where a model that is to be kept warm has no replica."""
        warm = self.demands[model].may_scale_to_zero or any(replicas[v] for v in self.variants_of(model))
        return self.unmet_per_mille(model, replicas) if warm else PER_MILLE

    def limit_text(self, row: LimitRow) -> str:
        """Return what a limit allows, with its unit."""
        if row.kind is LimitKind.BUDGET:
            return f"{cost_of(_allowed(row)):f} per hour"
        return count(_allowed(row), "accelerator" if row.kind is LimitKind.QUOTA else "replica")

    @cached_property
    def excess_of(self) -> Mapping[int, list[str]]:
        """By variant: which quotas and budgets what runs exceeds, by how much, and what follows."""
        found: dict[int, list[str]] = defaultdict(list)
        terms = self.problem.variants
        for _, row, is_exceeded in stated_limits(self.snapshot, self.variants, terms):
            if is_exceeded:
                excess = running(row, terms) - row.limit
                by = f"{cost_of(excess):f}" if row.kind is LimitKind.BUDGET else str(excess)
                limit = f"{row.kind} {row.name} of {self.limit_text(row)}"
                for v, _ in row.terms:
                    found[v].append(f"what runs exceeds {limit} by {by}: nothing new starts under it")
        return found


def _allowed(row: LimitRow) -> int:
    return row.limit if row.allowed is None else row.allowed

"""A solved problem, with the derived values that explanations need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from controller.planning.cluster import Node, Quota
from controller.planning.decision import Relief
from controller.planning.demand import ModelDemand, provided_rate
from controller.planning.engine.assign import Vacancies
from controller.planning.inputs import Settings
from controller.planning.limits import running, stated_limits
from controller.planning.problem import (
    PER_MILLE,
    LimitKind,
    LimitRow,
    PlacementProblem,
    Solution,
    per_mille_missing,
)
from controller.planning.ranges import cost_of
from controller.planning.shortage import Scarcities, ledger
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import count


@dataclass(frozen=True, kw_only=True)
class SolvedProblem:
    """A solved problem; variants are numbered consecutively over the models, in order."""

    snapshot: Snapshot
    nodes: Sequence[Node]
    demands: Sequence[ModelDemand]
    problem: PlacementProblem
    wanted: Solution
    """The solution with unlimited nodes."""

    granted: Solution
    """The solution with the nodes that there are: all of its replicas have places. More may be published
    (`Case.granted`).
    """

    settings: Settings
    gives_way: str = ""
    """A clause about when replicas of lower priorities are removed, if not all at once; empty otherwise."""

    reliefs: Mapping[int, tuple[Relief, ...]] = field(default_factory=dict)
    """The reliefs of each model, by its index."""

    """Variants whose direction must not be reversed for cost alone, by (namespace, name)."""

    @cached_property
    def variants(self) -> list[Variant]:
        """All variants, in the order of the problem."""
        return [variant for demand in self.demands for variant in demand.variants]

    @cached_property
    def scarcities(self) -> Scarcities:
        """What prevents one more replica of each variant from fitting on the nodes."""
        return Scarcities(
            self.problem,
            ledger(self.problem, self.granted, self.nodes),
            nodes=self.nodes,
            priorities=[demand.priority for demand in self.demands for _ in demand.variants],
        )

    @cached_property
    def vacancies(self) -> Vacancies:
        """Where one more replica of each variant would fit."""
        return Vacancies(self.problem, self.granted)

    @cached_property
    def granted_by_model(self) -> list[int]:
        """The granted replicas of each model."""
        return [
            sum(self.granted.replicas[v] for v in self.variants_of(model))
            for model in range(len(self.demands))
        ]

    @cached_property
    def _first(self) -> list[int]:
        """The index of each model's first variant, followed by the total number of variants."""
        return [0, *accumulate(len(demand.variants) for demand in self.demands)]

    def variants_of(self, model: int) -> range:
        """Return the indices of a model's variants."""
        return range(self._first[model], self._first[model + 1])

    @cached_property
    def _limits_of(self) -> Mapping[int, list[tuple[LimitRow, int]]]:
        """The limits that apply to each variant, each with its use after one more replica, by variant."""
        limits: dict[int, list[tuple[LimitRow, int]]] = defaultdict(list)
        for row in self.problem.limits:
            used = sum(each * self.granted.replicas[v] for v, each in row.terms)
            for v, amount in row.terms:
                if amount:
                    limits[v].append((row, used + amount))
        return limits

    def exceeded_limit(self, variant: int) -> LimitRow | None:
        """Return the first limit that one more replica of a variant would exceed, or None."""
        rows = self._limits_of.get(variant, ())
        return next((row for row, used_then in rows if used_then > row.limit), None)

    def unmet_per_mille(self, model: int, replicas: Sequence[int] | Mapping[int, int]) -> int:
        """Return the per mille of a model's required capacity that replicas do not provide, rounded up."""
        demand = self.demands[model]
        provided = provided_rate(demand.variants, [replicas[v] for v in self.variants_of(model)])
        return per_mille_missing(demand.required_rate, provided)

    def shortage_per_mille(self, model: int, replicas: Sequence[int]) -> int:
        """Return `unmet_per_mille`, or 1000 where a model that must be kept warm has no replica."""
        warm = self.demands[model].may_scale_to_zero or any(replicas[v] for v in self.variants_of(model))
        return self.unmet_per_mille(model, replicas) if warm else PER_MILLE

    def limit_text(self, row: LimitRow) -> str:
        """Return the amount that a limit allows in all, with its unit."""
        if row.kind is LimitKind.BUDGET:
            return f"{cost_of(_limit_of(row)):f} per hour"
        return count(_limit_of(row) + row.others, "accelerator" if row.kind is LimitKind.QUOTA else "replica")

    def limit_clause(self, row: LimitRow) -> str:
        """Return what a limit allows, and how much of that other workloads hold."""
        held = f", of which other workloads hold {row.others}" if row.others else ""
        return f"{row.kind} {row.name} allows {self.limit_text(row)}{held}"

    @cached_property
    def excess_of(self) -> Mapping[int, list[str]]:
        """Quotas and budgets that current replicas exceed, by how much and with what effect, by variant."""
        by_variant: dict[int, list[str]] = defaultdict(list)
        terms = self.problem.variants
        for stated, row, is_exceeded in stated_limits(self.snapshot, self.variants, terms):
            if is_exceeded:
                left = stated.accelerators if isinstance(stated, Quota) else row.limit
                excess = running(row, terms) - left
                by = f"{cost_of(excess):f}" if row.kind is LimitKind.BUDGET else str(excess)
                limit = f"{row.kind} {row.name} of {self.limit_text(row)}"
                for v, _ in row.terms:
                    by_variant[v].append(f"what runs exceeds {limit} by {by}: nothing new starts under it")
        return by_variant


def _limit_of(row: LimitRow) -> int:
    return row.limit if row.allowed is None else row.allowed

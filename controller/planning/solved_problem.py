"""A solved problem, with the derived values that explanations and evictions need."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from controller.planning.cluster import Node, Quota
from controller.planning.decision import BoundBy, Relief
from controller.planning.demand import ModelDemand, provided_rate
from controller.planning.engine.assign import Vacancies
from controller.planning.inputs import Settings
from controller.planning.limits import current_use, stated_limits
from controller.planning.problem import (
    PER_MILLE,
    LimitKind,
    LimitRow,
    PlacementProblem,
    Solution,
    bins_of,
    free_after_removals,
    per_mille_missing,
    staying_pods,
)
from controller.planning.ranges import cost_of
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import count

OTHERS = -1
"""Pseudo-index of workloads that are not variants."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scarcity:
    """The state of the nodes that a variant may use, when none has room for another pod."""

    bound_by: BoundBy
    nodes: tuple[int, ...]
    free: int
    """Free accelerators on all of them together."""

    largest: int
    """Total accelerators of the largest one."""

    holders: tuple[tuple[int, int], ...]
    """(variant or OTHERS, accelerators), those first that could be asked to give way: by the lowest priority,
    then the largest share. Workloads that are not variants come last.
    """


@dataclass(frozen=True, kw_only=True)
class SolvedProblem:
    """A solved problem; variants are numbered consecutively over the models, in order."""

    snapshot: Snapshot
    nodes: Sequence[Node]
    demands: Sequence[ModelDemand]
    problem: PlacementProblem
    unconstrained: tuple[int, ...]
    """The replicas of each variant with unlimited nodes."""

    granted: Solution
    """The solution with the nodes that there are: all of its replicas have places. More may be published
    (`VariantCase.published`).
    """

    settings: Settings
    gives_way: str = ""
    """A clause about when replicas of lower priorities are removed, if not all at once; empty otherwise."""

    reliefs: Mapping[int, tuple[Relief, ...]] = field(default_factory=dict)
    """The reliefs of each model, by its index."""

    @cached_property
    def variants(self) -> list[Variant]:
        """All variants, in the order of the problem."""
        return [variant for demand in self.demands for variant in demand.variants]

    @cached_property
    def free(self) -> list[int]:
        """The free accelerators of each node after the plan; negative on overcommitted nodes."""
        free = free_after_removals(self.problem, self.granted.replicas)
        for v, node, pods in self.granted.placements:
            free[node] -= pods * self.problem.variants[v].accelerators
        return free

    @cached_property
    def holders(self) -> list[dict[int, int]]:
        """The accelerators of each node by their holders after the plan: variants in order, or OTHERS."""
        held: list[Counter[int]] = [
            Counter({OTHERS: node.accelerators_used_by_others}) for node in self.nodes
        ]
        for v, (terms, stays) in enumerate(zip(self.problem.variants, self.granted.replicas, strict=True)):
            for node, pods in staying_pods(self.problem, v, stays).items():
                held[node][v] += pods * terms.accelerators
        for v, node, pods in self.granted.placements:
            held[node][v] += pods * self.problem.variants[v].accelerators
        return [dict(sorted((+holders).items())) for holders in held]

    @cached_property
    def _bins(self) -> list[tuple[int, ...]]:
        return [tuple(bins) for bins in bins_of(self.problem)]

    @cached_property
    def _scarcities(self) -> dict[tuple[tuple[int, ...], int, int], Scarcity | None]:
        """The scarcities that are known so far; variants with equal needs share one."""
        return {}

    def scarcity(self, v: int) -> Scarcity | None:
        """Return what prevents one more replica of a variant, or None if a node has room for a pod of it."""
        size, priority = self.problem.variants[v].accelerators, self._priorities[v]
        if not size:
            return None
        key = (self._bins[v], size, priority)
        if key not in self._scarcities:
            self._scarcities[key] = self._scarcity(*key)
        return self._scarcities[key]

    @cached_property
    def _priorities(self) -> list[int]:
        return [demand.priority for demand in self.demands for _ in demand.variants]

    def _scarcity(self, bins: tuple[int, ...], size: int, priority: int) -> Scarcity | None:
        usable = [node for bin_ in bins for node in self.problem.bins[bin_].nodes]
        free, held, priorities = self.free, self.holders, self._priorities
        if any(free[node] >= size for node in usable):
            return None
        total = sum(max(0, free[node]) for node in usable)
        holders: Counter[int] = Counter()
        for node in usable:
            holders.update(held[node])
        importance = dict(enumerate(priorities)) | {OTHERS: 0}
        largest = max((self.nodes[node].accelerators_allocatable for node in usable), default=0)
        above = {v for v, own in enumerate(priorities) if own < priority}
        bound_by = BoundBy.ACCELERATORS
        if usable and total >= size:  # fragmentation comes first, then holders of a higher priority
            bound_by = BoundBy.NODE_SIZE
        elif any(free[node] + sum(a for v, a in held[node].items() if v in above) >= size for node in usable):
            bound_by = BoundBy.PRIORITY
        elif usable and largest < size:
            bound_by = BoundBy.NODE_SIZE
        return Scarcity(
            bound_by=bound_by,
            nodes=tuple(usable),
            free=total,
            largest=largest,
            holders=tuple(
                sorted(holders.items(), key=lambda item: (-importance[item[0]], -item[1], item[0]))
            ),
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
                excess = current_use(row, terms) - left
                by = f"{cost_of(excess):f}" if row.kind is LimitKind.BUDGET else str(excess)
                limit = f"{row.kind} {row.name} of {self.limit_text(row)}"
                for v, _ in row.terms:
                    by_variant[v].append(f"what runs exceeds {limit} by {by}: nothing new starts under it")
        return by_variant


def _limit_of(row: LimitRow) -> int:
    return row.limit if row.allowed is None else row.allowed

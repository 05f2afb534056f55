"""The models and variants of a solved problem, with everything that the explanation of a decision needs.

A number is published only as far as there is a place for it, but for replicas that are kept without one:
those of models without a new decision, those whose removal would remove ready ones, and those that wait in
vain for a node (`_replicas_to_publish`). Clauses of messages are here; `explain.py` chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.planning.decision import BoundBy
from controller.planning.demand import (
    ModelDemand,
    allowed_replicas,
    provided_rate,
    rate_of,
    staying_replicas,
)
from controller.planning.formulation import held_replicas, ordered_replicas, outlasting_replicas
from controller.planning.inventory import topology_keys
from controller.planning.problem import PER_MILLE, UNLIMITED_REPLICAS, LimitRow, per_mille_missing
from controller.planning.snapshot import Variant
from controller.planning.solved_problem import OTHERS, Scarcity, SolvedProblem
from controller.planning.wording import count, listing, load_text

HOLDERS_NAMED = 3
"""Number of holders of scarce accelerators that a message names."""


class ModelCase:
    """A model of a solved problem; tuples are over its variants, in order."""

    def __init__(self, solved: SolvedProblem, model: int) -> None:
        self.solved, self.model = solved, model
        self.demand = solved.demands[model]
        own = solved.variants_of(model)
        self.first = own.start
        """Index of the model's first variant."""
        self.unconstrained = solved.unconstrained[own.start : own.stop]
        """Replicas with unlimited nodes."""
        self.placed = solved.granted.replicas[own.start : own.stop]
        """Replicas for which there is a place."""
        self.provided_rate = provided_rate(self.demand.variants, self.placed)
        """Capacity of the placed replicas, in millionths of a request per second."""
        self.unmet_per_mille = per_mille_missing(self.demand.required_rate, self.provided_rate)
        """Per mille of the required capacity that is missing, rounded up."""
        load = self.demand.load
        present = load.steady_rate(load.requests_per_second or 0.0)
        self.uncovered_per_mille = per_mille_missing(present, self.provided_rate)
        """Per mille of the present load that placed replicas do not cover, rounded up; 0 if it is unknown."""
        self.load_text = load_text(load)
        """The load in words: `41 requests/s now, up to 52 in the 140 s that a replica needs to start`."""

    @property
    def is_below_floor(self) -> bool:
        """Whether fewer replicas have a place than the model must keep."""
        return sum(self.placed) < self.demand.floor

    @property
    def duty(self) -> str:
        """The replicas that the model must keep, in words."""
        least = self.demand.floor
        return f"{self.demand.model_id} must keep {'one replica' if least == 1 else count(least, 'replica')}"


class VariantCase:
    """One variant of a model."""

    def __init__(self, whole: ModelCase, position: int, published: int) -> None:
        self.whole, self.solved, self.demand = whole, whole.solved, whole.demand
        self.position = position
        """Index of this variant among the model's variants."""
        self.number = whole.first + position
        """Index of this variant in the problem."""
        self.variant = whole.demand.variants[position]
        self.unconstrained, self.placed = whole.unconstrained[position], whole.placed[position]
        self.published = published
        """Replicas to publish; those that are kept without a place count, too."""

    @property
    def held_replicas(self) -> int:
        """Replicas to keep while the data allows no new decision."""
        return held_replicas(self.variant)

    @property
    def limit(self) -> LimitRow | None:
        """The first quota, budget or ceiling that one more replica would exceed, or None."""
        return self.solved.exceeded_limit(self.number)

    def scarcity(self) -> Scarcity | None:
        """Return what prevents one more replica from fitting on the nodes, or None."""
        return self.solved.scarcity(self.number)

    @property
    def gives_way_later(self) -> str:
        """A clause that lower priorities hold what this variant lacks and are removed later; else empty."""
        scarcity = self.scarcity() if self.solved.gives_way else None
        own, variants = self.demand.priority, self.solved.variants
        later = [v for v, _ in scarcity.holders if v >= 0 and variants[v].priority > own] if scarcity else []
        return f"; {self.solved.gives_way}" if later else ""

    @property
    def unusable_clause(self) -> str:
        """Why new replicas of this variant are not counted on; empty when they are."""
        capacity = self.variant.capacity
        if capacity is not None and not capacity.rate:
            return "a replica serves nothing"
        if capacity is None or capacity.is_usable:
            return ""
        if capacity.unreachable:
            return capacity.unreachable[0]
        return "it never ran, and nothing is started on an estimate alone"

    @property
    def unusable_bound_by(self) -> BoundBy:
        """What bounds a variant whose new replicas are not counted on; too few accelerators if they are."""
        if not self.unusable_clause:
            return BoundBy.ACCELERATORS
        unreachable = self.variant.capacity and self.variant.capacity.unreachable
        return BoundBy.TARGETS if unreachable else BoundBy.CAPACITY_UNKNOWN

    @property
    def unused_clause(self) -> str:
        """Why the model is short of capacity although one more replica of this variant would fit."""
        if own := self._own_clause:
            return own
        provided = self.whole.provided_rate + rate_of(self.variant)
        if per_mille_missing(self.demand.required_rate, provided) == self.whole.unmet_per_mille:
            return (
                "there is room for at least one more, which would serve less than a thousandth of the demand"
            )
        return "there is room for at least one more, but no better plan was found"

    @property
    def dearer_clause(self) -> str:
        """Why other variants serve the model although one more replica of this variant would fit."""
        if own := self._own_clause:
            return own
        if self.solved.granted.unproven:
            return "there is room for at least one more, but no cheaper plan was found"
        return "there is room for at least one more, but the granted mix costs less in total"

    @property
    def _own_clause(self) -> str:
        """What prevents this variant from starting replicas wherever they fit; empty if nothing does."""
        if self.variant.capacity and self.variant.capacity.unreachable:
            return self.variant.capacity.unreachable[0]
        if self._is_at_most_planned:
            return f"of a variant at most {UNLIMITED_REPLICAS} replicas are planned"
        if self.placed < len(self.solved.problem.variants[self.number].bound_replicas):
            return "none is started while others of its own leave their nodes"
        return ""

    @property
    def _is_at_most_planned(self) -> bool:
        """Whether it has as many replicas as are planned of a variant, but for a rounded share of them."""
        upper = self.solved.problem.variants[self.number].upper
        return upper >= UNLIMITED_REPLICAS and (upper - self.placed) * PER_MILLE <= upper

    @property
    def rule_clause(self) -> str:
        """The placement rule that excludes one more replica although a node has room; empty if none does."""
        terms = self.solved.problem.variants[self.number]
        if not terms.is_topology_constrained and terms.pods == 1:
            return ""
        if self.solved.vacancies.has_room_for_one(self.number):
            return ""
        size, pods, rules = self.variant.accelerators_per_pod, terms.pods, self.variant.rules
        clauses = [rules.spread.clause] if rules.spread else []
        if pods > 1:
            where = f"in one {self.variant.together_in}" if self.variant.together_in else "at once"
            clauses.append(f"{pods} pods of {size} {where}")
        clauses += [rules.most_per_node.clause] if rules.most_per_node else []
        return f"no nodes have room for one more replica ({', '.join(clauses)})"

    @property
    def rule_bound_by(self) -> BoundBy:
        """What bounds a variant with a `rule_clause`; without a topology, its pods need several nodes."""
        terms = self.solved.problem.variants[self.number]
        return BoundBy.TOPOLOGY if terms.is_topology_constrained else BoundBy.ACCELERATORS

    def scarcity_clause(self, scarcity: Scarcity) -> str:
        """Return what prevents one more replica: `no H100 node has 8 free, 6 are held by priority 1 chat`."""
        kind = self.variant.accelerator or "accelerator"
        size = self.variant.accelerators_per_pod
        if not scarcity.nodes:
            return self._no_node_clause
        if scarcity.largest < size:
            return f"no {kind} node has {size} in all, the largest has {scarcity.largest}"
        if scarcity.free >= size:
            nodes = len(scarcity.nodes)
            room = f"no {kind} node has {size} free, {scarcity.free} are spread over {nodes} nodes"
        else:
            room = f"no {kind} node has {size} free" if size > 1 else f"no {kind} is free"
        holders = self._named_holders(scarcity).items()
        holder_texts = [
            f"{amount} {'is' if amount == 1 else 'are'} held by {name}" for name, amount in holders
        ]
        return ", ".join([room, listing(holder_texts)] if holder_texts else [room])

    @property
    def _no_node_clause(self) -> str:
        """Why the variant may use no node."""
        own, kind = self.variant.accelerator, self.variant.accelerator or "accelerator"
        alike = [node for node in self.solved.nodes if own in ("", node.accelerator)]
        if not alike:
            return f"no node has {own}"
        if not any(node.schedulable for node in alike):
            return f"no {kind} node is schedulable"
        for label in sorted(topology_keys(self.variant)):
            if not any(key == label for node in alike for key, _ in node.labels):
                return f"no {kind} node has the label {label}, over which its pods are placed"
        return f"no {kind} node meets its node selector and tolerations"

    def _named_holders(self, scarcity: Scarcity) -> dict[str, int]:
        """Return the accelerators of the least important holders by name; one name may stand for several."""
        amounts: dict[str, int] = {}
        last: int | None = None
        for holder, amount in scarcity.holders:
            priority = None if holder == OTHERS else self.solved.variants[holder].priority
            if len(amounts) == HOLDERS_NAMED and priority != last:
                break  # a name belongs to one priority, and holders are sorted by priority
            name = self._name_of_holder(holder)
            if name in amounts or len(amounts) < HOLDERS_NAMED:
                amounts[name] = amounts.get(name, 0) + amount
                last = priority
        return amounts

    def _name_of_holder(self, holder: int) -> str:
        """Return a holder with what protects it; of other namespaces only the priority unless `names_all`."""
        if holder == OTHERS:
            return "other workloads"
        other, granted = self.solved.variants[holder], self.solved.granted.replicas[holder]
        if other is self.variant:
            return "its own replicas"
        if other.namespace == self.variant.namespace:
            return f"priority {other.priority} {other.name}{_protection(other, granted)}"
        if self.solved.settings.names_all:
            return f"priority {other.priority} {other.namespace}/{other.name}{_protection(other, granted)}"
        return f"workloads of priority {other.priority} in other namespaces"


def _protection(variant: Variant, granted: int) -> str:
    """Return why a variant keeps all of its granted replicas, whatever others need; empty if it need not."""
    if variant.is_paused:
        return " (paused)"
    if variant.pinned_replicas is not None:
        return f" (pinned to {variant.pinned_replicas})"
    if 0 < granted <= variant.min_replicas:
        return f" (minReplicas is {variant.min_replicas})"
    return "" if variant.may_be_preempted else " (which may not be preempted)"


def published_replicas(variant: Variant, demand: ModelDemand, placed: int) -> int:
    """Return the placed replicas, or without a new decision at least the current ones that limits allow."""
    if demand.signal.decides:
        return placed
    stays, ordered = allowed_replicas(variant), ordered_replicas(variant)
    return max(placed, stays if ordered is None else min(stays, ordered))


def waiting_replicas(variant: Variant, most: int) -> int:
    """Return the replicas to keep, up to `most`, if some of them wait in vain for a node; 0 if none does."""
    return min(allowed_replicas(variant), most) if variant.stalled_replicas else 0


def _replicas_to_publish(solved: SolvedProblem) -> Sequence[int]:
    """Return the replicas of each variant to publish, in order.

    If fewer would remove ready replicas, and others would get their nodes, these others wait without a place,
    as far as limits allow it. So do those that wait in vain: node autoscalers have to see their pods. While
    the demand of a model is not covered, these stay in every variant. Otherwise, those of a variant that is
    not wanted on unlimited nodes would be removed, no longer count as waiting, and be requested again.
    """
    variants = [(variant, demand) for demand in solved.demands for variant in demand.variants]
    placed = solved.granted.replicas
    published = [published_replicas(*variants[v], number) for v, number in enumerate(placed)]
    covered = [
        provided_rate(demand.variants, [placed[v] for v in solved.variants_of(model)]) >= demand.lower_rate
        for model, demand in enumerate(solved.demands)
        for _ in demand.variants
    ]
    for v, (variant, demand) in enumerate(variants):
        if not demand.signal.decides:
            continue
        most = solved.unconstrained[v] if covered[v] else solved.problem.variants[v].upper
        least = max(outlasting_replicas(variant, demand), waiting_replicas(variant, most))
        bound = sum([bool(replica.nodes) for replica in staying_replicas(variant)]) if least else 0
        if bound <= published[v] < least:
            more = [*published[:v], least, *published[v + 1 :]]
            used = [sum(amount * more[w] for w, amount in row.terms) for row in solved.problem.limits]
            if all(amount <= row.limit for row, amount in zip(solved.problem.limits, used, strict=True)):
                published = more
    return published


def cases(solved: SolvedProblem) -> Iterator[VariantCase]:
    """Yield the case of each variant, in order."""
    published = _replicas_to_publish(solved)
    for model, demand in enumerate(solved.demands):
        whole = ModelCase(solved, model)
        for position in range(len(demand.variants)):
            yield VariantCase(whole, position, published[whole.first + position])

"""Check that the pods to evict exist and may be moved, and that disruption budgets are respected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from controller.planning.decision import Plan
from controller.planning.snapshot import Snapshot

Place = tuple[str, str, str, bool]
"""Namespace, name, node, and whether it is a pod of another workload."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lot:
    """The pods that may be evicted from one node."""

    replicas: int
    is_protected: bool
    budget: tuple[str, str]
    allowed: int | None


def move_problems(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Yield a message for each move that is impossible or not allowed."""
    variants = {(variant.namespace, variant.name) for variant in snapshot.variants}
    lots = _lots(snapshot)
    moved: Counter[Place] = Counter()
    for move in plan.moves:
        moved[move.namespace, move.name, move.node, move.is_other] += move.replicas
        if not move.benefits or not set(move.benefits) <= variants:
            yield f"{move.name}: no variant gains room by this move"
    for place, replicas in sorted(moved.items()):
        lot = lots.get(place)
        if lot is None or replicas > lot.replicas:
            yield f"{place[1]}: there are no {replicas} to be evicted from node {place[2]}"
        elif lot.is_protected:
            yield f"{place[1]}: must not be moved"
    yield from _budgets(snapshot, plan, lots, moved)


def _lots(snapshot: Snapshot) -> Mapping[Place, _Lot]:
    found: dict[Place, _Lot] = {}
    for variant in snapshot.variants:
        for node, replicas in Counter(replica.node for replica in variant.replicas).items():
            if node is not None:
                found[variant.namespace, variant.name, node, False] = _Lot(
                    replicas=replicas,
                    is_protected=variant.is_paused
                    or variant.pinned_replicas is not None
                    or not variant.may_be_preempted
                    or not variant.may_be_moved,
                    budget=(variant.namespace, variant.disruption_budget or f"variant {variant.name}"),
                    allowed=variant.evictable_replicas,
                )
    for host in snapshot.nodes:
        for pod in host.movable:
            found[pod.namespace, pod.name, host.name, True] = _Lot(
                replicas=1,
                is_protected=False,
                budget=(pod.namespace, pod.disruption_budget or f"pod {pod.name}"),
                allowed=pod.evictable,
            )
    return found


def _budgets(
    snapshot: Snapshot, plan: Plan, lots: Mapping[Place, _Lot], moved: Counter[Place]
) -> Iterator[str]:
    """Yield a message for each disruption budget that evictions and stopped ready replicas exceed together.

    If pods report different allowances of a budget, the smallest applies. A budget without evictions is not
    checked: replicas that a model does not need may be stopped in any case.
    """
    allowed: dict[tuple[str, str], int] = {}
    for lot in lots.values():
        if lot.allowed is not None:
            allowed[lot.budget] = min(lot.allowed, allowed.get(lot.budget, lot.allowed))
    evicted: Counter[tuple[str, str]] = Counter()
    for place, replicas in moved.items():
        if place in lots:
            evicted[lots[place].budget] += replicas
    stopped = _stopped_by_budget(snapshot, plan)
    for budget, replicas in sorted(evicted.items()):
        if budget in allowed and replicas + stopped[budget] > allowed[budget]:
            beside = f" beside {stopped[budget]} stopped" if stopped[budget] else ""
            yield (
                f"disruption budget {'/'.join(budget)}: {replicas} evictions{beside},"
                f" {allowed[budget]} allowed"
            )


def _stopped_by_budget(snapshot: Snapshot, plan: Plan) -> Counter[tuple[str, str]]:
    """Return the number of ready replicas that the plan stops, by budget."""
    stays = {(decision.namespace, decision.name): decision.replicas for decision in plan.decisions}
    stopped: Counter[tuple[str, str]] = Counter()
    for variant in snapshot.variants:
        leaving = max(0, len(variant.replicas) - variant.current_replicas)
        ready = sum(replica.ready for replica in variant.replicas[leaving:])
        gone = max(0, ready - stays.get((variant.namespace, variant.name), ready))
        stopped[variant.namespace, variant.disruption_budget or f"variant {variant.name}"] += gone
    return stopped

"""Check that every variant is within its own bounds, and that every model keeps its last replica."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from controller.planning.decision import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.planning.decision import Decision
    from controller.planning.snapshot import Snapshot, Variant


def bound_problems(snapshot: Snapshot, decisions: Mapping[tuple[str, str], Decision]) -> Iterator[str]:
    """Yield a message for each variant with more or fewer replicas than allowed."""
    for variant in snapshot.variants:
        yield from _bounds(variant, decisions[variant.namespace, variant.name])


def _bounds(variant: Variant, decision: Decision) -> Iterator[str]:
    most = variant.max_replicas
    if decision.replicas < 0:
        yield f"{variant.name}: {decision.replicas} replicas are less than none"
    if most is not None and decision.replicas > most:
        yield f"{variant.name}: {decision.replicas} replicas are more than maxReplicas ({most})"
    least = variant.min_replicas
    ordered = variant.is_paused or variant.pinned_replicas is not None
    if decision.replicas < least and decision.reason is not Reason.SHORTAGE and not ordered:
        yield f"{variant.name}: {decision.replicas} replicas are less than minReplicas ({least})"
    pinned = variant.pinned_replicas
    if pinned is not None and not variant.is_paused:
        if decision.replicas > pinned:
            yield f"{variant.name}: {decision.replicas} replicas although it is pinned to {pinned}"
        elif decision.replicas < pinned and decision.reason is not Reason.SHORTAGE:
            yield f"{variant.name}: only {decision.replicas} replicas although it is pinned to {pinned}"
    floor = variant.current_replicas if most is None else min(variant.current_replicas, most)
    is_ordered = pinned is not None and decision.replicas >= pinned
    if not decision.signal.decides and decision.replicas < floor and not is_ordered:
        yield f"{variant.name}: scaled down to {decision.replicas} although its signal is {decision.signal}"


def warmth_problems(snapshot: Snapshot, decisions: Mapping[tuple[str, str], Decision]) -> Iterator[str]:
    """Yield a message for each model that loses its last replica although it may not scale to zero."""
    replicas: Counter[tuple[str, str]] = Counter()
    must: dict[tuple[str, str], bool] = {}
    excused: set[tuple[str, str]] = set()
    for variant in snapshot.variants:
        model = (variant.namespace, variant.model_id)
        decision = decisions[variant.namespace, variant.name]
        replicas[model] += decision.replicas
        must[model] = must.get(model, False) or not variant.may_scale_to_zero
        if variant.is_paused or variant.pinned_replicas == 0:
            excused.add(model)  # a user removed the last one, or wants no change
        if decision.reason is Reason.SHORTAGE:
            excused.add(model)
    for model in sorted(must):
        if must[model] and not replicas[model] and model not in excused:
            yield f"{model[1]}: no replica is left, though it may not scale to zero"

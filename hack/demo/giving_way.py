"""Whether a model shrinks because it is preempted, according to its decisions. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from hack.demo.history import History, model_view
from hack.demo.observation import VariantView

CARRIED_OUT_SECONDS = 70.0
"""Time in seconds within which replicas follow a decision; it is long for slow machines."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retreat:
    """Replicas that a model lost because its variants were preempted."""

    seconds: float
    """When the loss was observed."""

    replicas: int
    """The number that those variants lost, at most that of the whole model."""

    message: str
    """The most recent message of one of the decisions."""


def gives_way(variant: VariantView) -> bool:
    """Tell whether a variant's decision says that a higher priority takes what it needs."""
    return variant.reason == "Shortage" and variant.bound_by == "Priority" and bool(variant.message)


def retreats(history: History, model_id: str, *, from_seconds: float, to_seconds: float) -> Iterator[Retreat]:
    """Yield the losses of a model in [from, to) by variants that shrink to decisions in which they gave way.

    The number of replicas at any one time does not matter: they may arrive late, and leave more than once.
    The loss of a variant that is not observed before and after is unknown.
    """
    decided: list[tuple[float, VariantView]] = []
    for earlier, later in pairwise(history.observations):
        before, after = model_view(earlier, model_id), model_view(later, model_id)
        if before is None or after is None:
            continue
        if from_seconds <= later.seconds < to_seconds:
            decided += [(later.seconds, variant) for variant in after.variants if gives_way(variant)]
        since = later.seconds - CARRIED_OUT_SECONDS
        left = {variant.name: variant.current_replicas for variant in after.variants}
        lost = {v.name: v.current_replicas - left[v.name] for v in before.variants if v.name in left}
        reasons = {
            variant.name: variant.message
            for seconds, variant in decided
            if seconds >= since
            and lost.get(variant.name, 0) > 0
            and variant.desired_replicas == left[variant.name]
        }
        replicas = min(sum(lost.values()), sum(lost[name] for name in reasons))
        if replicas > 0:
            yield Retreat(seconds=later.seconds, replicas=replicas, message=[*reasons.values()][-1])

"""Whether a model shrinks because it gives way, as its decisions say: pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from hack.demo.history import History, model_view
from hack.demo.observation import ModelView, VariantView

CARRIED_OUT_SECONDS = 70.0
"""How long after a decision replicas may go where it says: after the scale-down window of the freemium model,
which is 40 s, and some more where the machine is slow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retreat:
    """Replicas that a model has no more because its variants' decisions gave way."""

    seconds: float
    """When they were seen to be gone."""

    replicas: int
    """How many those variants lost, and not more than the model as a whole."""

    message: str
    """What one of the decisions says, in its latest words."""


def gives_way(variant: VariantView) -> bool:
    """Tell whether a variant gets less than it needs because a higher priority has it, and says so."""
    return variant.reason == "Shortage" and variant.bound_by == "Priority" and bool(variant.message)


def retreats(history: History, model_id: str, *, from_seconds: float, to_seconds: float) -> Iterator[Retreat]:
    """Yield what a model loses because some of its variants go down to where they gave way to in [from, to).

    How many replicas there were at any one moment does not matter: they may come late, and go more than once.
    Of a variant that is not seen before and after nobody knows what it lost.
    """
    decided: list[tuple[float, VariantView]] = []
    for earlier, later in pairwise(history.observations):
        before, after = model_view(earlier, model_id), model_view(later, model_id)
        if before is None or after is None:
            continue
        if from_seconds <= later.seconds < to_seconds:
            decided += [(later.seconds, variant) for variant in after.variants if gives_way(variant)]
        since = later.seconds - CARRIED_OUT_SECONDS
        lost = _lost(before, after)
        left = {variant.name: variant.current_replicas for variant in after.variants}
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


def _lost(before: ModelView, after: ModelView) -> dict[str, int]:
    """Return by how many replicas each variant that is seen twice has fewer; negative for more."""
    left = {variant.name: variant.current_replicas for variant in after.variants}
    return {v.name: v.current_replicas - left[v.name] for v in before.variants if v.name in left}

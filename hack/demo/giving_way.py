"""Whether a model shrinks because it gives way, as its decisions say: pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from hack.demo.history import model_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.demo.history import History
    from hack.demo.observation import VariantView

CARRIED_OUT_SECONDS = 30.0
"""How long after a decision replicas may go where it says, however slow the machine is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retreat:
    """A model's loss of replicas that a decision to give way had asked for."""

    replicas: int
    """How many fewer the model has."""

    message: str
    """What the decision says."""


def gives_way(variant: VariantView) -> bool:
    """Tell whether a variant gets less than it needs because a higher priority has it, and says so."""
    return variant.reason == "Shortage" and variant.bound_by == "Priority" and bool(variant.message)


def retreats(history: History, model_id: str, *, from_seconds: float, to_seconds: float) -> Iterator[Retreat]:
    """Yield what a model loses because one of its variants goes down to where it gave way to in [from, to).

    How many replicas there were at any one moment does not matter: they may come late, and go more than once.
    """
    decided: list[tuple[float, VariantView]] = []
    for earlier, later in pairwise(history.observations):
        before, after = model_view(earlier, model_id), model_view(later, model_id)
        if before is None or after is None:
            continue
        if from_seconds <= later.seconds < to_seconds:
            decided += [(later.seconds, variant) for variant in after.variants if gives_way(variant)]
        since = later.seconds - CARRIED_OUT_SECONDS
        counts = {variant.name: variant.current_replicas for variant in after.variants}
        fallen = {v.name for v in before.variants if counts.get(v.name, 0) < v.current_replicas}
        reasons = [
            variant.message
            for seconds, variant in decided
            if seconds >= since
            and variant.name in fallen
            and variant.desired_replicas == counts[variant.name]
        ]
        lost = before.current_replicas - after.current_replicas
        if reasons and lost > 0:
            yield Retreat(replicas=lost, message=reasons[-1])

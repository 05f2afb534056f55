"""Utilization of a model's replicas by its demand, as explanations state it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.demand import provided_rate
from controller.planning.load import RATE_UNIT
from controller.planning.wording import rate_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.snapshot import Variant


@dataclass(frozen=True, kw_only=True, slots=True)
class Utilization:
    """Demand relative to the capacity that serves it."""

    per_cent: int
    parts: tuple[tuple[int, str, str], ...]
    """(position in the model, capacity text, the same with the name) of each variant that serves something.
    """

    def seen_from(self, position: int) -> str:
        """Return `85 % of 3 x 9.4`, the variant's own replicas first, then those of others by name."""
        own = [text for at, text, _ in self.parts if at == position]
        others = [named for at, _, named in self.parts if at != position]
        return f"{self.per_cent} % of {' + '.join(own + others)}"


def utilization(
    variants: Sequence[Variant], replicas: Sequence[int], *, requests_per_second: float
) -> Utilization | None:
    """Return the utilization of the replicas of a model's variants, or None if they serve nothing."""
    provided = provided_rate(variants, replicas)
    if not provided:
        return None
    parts = []
    for position, (variant, count) in enumerate(zip(variants, replicas, strict=True)):
        if count and variant.capacity and variant.capacity.rate:
            text = f"{count} x {rate_text(variant.capacity.requests_per_second)}"
            parts.append((position, text, f"{text} {variant.name}"))
    return Utilization(per_cent=round(100 * requests_per_second / (provided * RATE_UNIT)), parts=tuple(parts))

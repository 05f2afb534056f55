"""How full a demand makes what the variants of a model hold, as their sentences say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.wording import tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.saturation import Capacity
    from controller.planning.snapshot import Variant


@dataclass(frozen=True, kw_only=True, slots=True)
class Utilisation:
    """Demand against what holds it."""

    per_cent: int
    parts: tuple[tuple[int, str, str], ...]
    """Of each variant that holds something: its position in the model, what holds it, the same by name."""

    def seen_from(self, position: int) -> str:
        """Return `85 % of 3 x 16.1k`, the own replicas first, then those of the other variants by name."""
        own = [text for at, text, _ in self.parts if at == position]
        others = [named for at, _, named in self.parts if at != position]
        return f"{self.per_cent} % of {' + '.join(own + others)}"


def provided_tokens(capacities: Sequence[Capacity | None], replicas: Sequence[int]) -> int:
    """Return what the replicas of a model's variants hold together, as far as that is known."""
    return sum([held.tokens * count for held, count in zip(capacities, replicas, strict=True) if held])


def utilisation(
    variants: Sequence[Variant],
    capacities: Sequence[Capacity | None],
    replicas: Sequence[int],
    *,
    demand_tokens: int,
) -> Utilisation | None:
    """Return how full the replicas of a model's variants get; None where they hold nothing."""
    provided = provided_tokens(capacities, replicas)
    if not provided:
        return None
    parts = []
    for position, (held, count) in enumerate(zip(capacities, replicas, strict=True)):
        if count and held:
            text = f"{count} x {tokens(held.tokens)}"
            parts.append((position, text, f"{text} {variants[position].name}"))
    return Utilisation(per_cent=round(100 * demand_tokens / provided), parts=tuple(parts))

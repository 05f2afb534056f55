"""What an AutoscalingPolicy decided over time: metric values, recommendations, and replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.policies.sharing import binding_sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.policies.policy import Binding
    from controller.policies.sharing import BindingDecision


@dataclass(frozen=True, kw_only=True, slots=True)
class DecidedPoint:
    """One decision. `values` are totals over all pods; None while unknown.

    `recommended` is what the metrics ask for, without any limit; None while no metric is known. `replicas` is
    the decided number, and `targets` are the replicas of each target in it.
    """

    seconds: float
    values: Mapping[str, float | None]
    recommended: int | None
    replicas: int
    current_replicas: int
    targets: tuple[int, ...]
    in_panic: bool
    limits: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """All decisions for the targets of one binding, one per interval."""

    targets: tuple[str, ...]
    points: tuple[DecidedPoint, ...]
    is_alike: bool = True
    """Whether all replicas have capacity 1, so that recommended and decided replicas are the same ones."""

    unreported: tuple[str, ...] = ()
    """Metrics of the policy that no simulated engine ever reported; empty if none was asked."""

    @property
    def changes(self) -> tuple[DecidedPoint, ...]:
        """The decisions that changed the number of replicas."""
        return tuple(point for point in self.points if point.replicas != point.current_replicas)


def decided_point(
    binding: Binding, made: BindingDecision, counts: Sequence[int], seconds: float
) -> DecidedPoint:
    """Return the record of a decision; `counts` are the current replicas of each target."""
    return DecidedPoint(
        seconds=seconds,
        values={asked.metric: asked.total for asked in made.whole.recommendations},
        recommended=made.whole.wanted_replicas,
        replicas=sum(made.replicas),
        current_replicas=sum(counts),
        targets=made.replicas,
        in_panic=made.whole.panic_since_seconds is not None,
        limits=tuple(str(limit) for limit in made.whole.limits),
        sentence=binding_sentence(binding, made),
    )


def target_names(binding: Binding) -> tuple[str, ...]:
    """Return the names of a binding's targets, in order."""
    return tuple(target.target.name for target in binding.targets)

"""What can be seen of the demo at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantView:
    """One variant: what runs, what was decided, and what the HorizontalPodAutoscaler made of it."""

    name: str
    shape: Literal["legacy", "current"]
    accelerator: str
    accelerators_per_replica: int
    cost_per_replica: Decimal
    current_replicas: int
    """What the Deployment asks for."""

    placed_replicas: int
    """Those with a place on a node: they cost from then on."""

    ready_replicas: int
    desired_replicas: int | None
    """The published decision; None before the first."""

    autoscaler_replicas: int | None
    """What the HorizontalPodAutoscaler last wanted; None before it acted."""

    unconstrained_replicas: int | None
    reason: str
    bound_by: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientView:
    """What the clients of one model measure."""

    requests_per_second: float
    ttft_p90_ms: float | None
    """Milliseconds to the first token that nine of ten requests meet; None for too few to tell."""

    unfinished_requests: int
    """Waiting or running."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelView:
    """One model: its class, its clients and its variants."""

    model_id: str
    class_name: str
    priority: int
    ttft_target_ms: int | None
    clients: ClientView
    variants: tuple[VariantView, ...]

    @property
    def current_replicas(self) -> int:
        """Replicas of all variants."""
        return sum(variant.current_replicas for variant in self.variants)

    @property
    def is_on_target(self) -> bool:
        """Whether the first token comes in time; False as long as that is not known."""
        measured, target = self.clients.ttft_p90_ms, self.ttft_target_ms
        return measured is not None and target is not None and measured <= target


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundView:
    """One target of a binding: what it asks for, and what was decided."""

    name: str
    current_replicas: int
    desired_replicas: int | None
    """The published decision; None before the first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingView:
    """One AutoscalingPolicyBinding."""

    name: str
    targets: tuple[BoundView, ...]
    is_placed: bool
    """Whether the plan has room for all that is required."""

    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceleratorView:
    """One type of accelerator in the whole cluster."""

    name: str
    used: int
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """Everything at one moment; `seconds` counts from the start of the load."""

    seconds: float
    models: tuple[ModelView, ...]
    """By priority, then by name."""

    accelerators: tuple[AcceleratorView, ...]
    bindings: tuple[BindingView, ...] = ()

    @property
    def variants(self) -> tuple[VariantView, ...]:
        """All variants of all models."""
        return tuple(variant for model in self.models for variant in model.variants)

    @property
    def cost_per_hour(self) -> Decimal:
        """Cost of all replicas that have a place on a node."""
        return sum((v.cost_per_replica * v.placed_replicas for v in self.variants), start=Decimal(0))

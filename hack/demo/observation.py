"""The observable state of the demo at one time."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantView:
    """One variant: its replicas and the decision."""

    name: str
    shape: Literal["legacy", "current", "annotated"]
    accelerator: str
    accelerators_per_replica: int
    cost_per_replica: Decimal
    current_replicas: int
    """Replicas in the Deployment's spec."""

    placed_replicas: int
    """Replicas with pods bound to nodes, which incur costs."""

    ready_replicas: int
    desired_replicas: int | None
    """The published decision; None before the first one."""

    reason: str
    bound_by: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientView:
    """Measurements by the clients of one model."""

    requests_per_second: float
    ttft_p90_ms: float | None
    """90th percentile of the time to first token in milliseconds; None for too few samples."""

    unfinished_requests: int
    """Waiting or running requests."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelView:
    """One model: its service class, clients and variants."""

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
        """Whether the time to first token is within its target; False if unknown."""
        measured, target = self.clients.ttft_p90_ms, self.ttft_target_ms
        return measured is not None and target is not None and measured <= target


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundView:
    """One target of a binding: its replicas and the decision."""

    name: str
    current_replicas: int
    desired_replicas: int | None
    """The published decision; None before the first one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingView:
    """One AutoscalingPolicyBinding."""

    name: str
    targets: tuple[BoundView, ...]
    is_placed: bool
    """Whether the plan has room for all required replicas."""

    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceleratorView:
    """One type of accelerator in the whole cluster."""

    name: str
    used: int
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """Everything at one time; `seconds` counts from the start of the load."""

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
        """Cost of all replicas that are bound to nodes."""
        return sum((v.cost_per_replica * v.placed_replicas for v in self.variants), start=Decimal(0))

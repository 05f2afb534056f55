"""The state of a fleet as records: accelerators, models, shortages and problems.

Models and variants are shown by their published decisions, so that all views of one moment agree. Nodes are
counted from pods, by the rules of planning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from apiserver.schema.json import Json
from controller.planning.decision import Reason

Number = TypeVar("Number", int, Decimal)

FINE: Final = frozenset({*Reason} - {Reason.SHORTAGE} | {"NoProblem", "ModelAvailable", "ScaledToZero"})
"""Reasons of the condition `Ready` that are no problem."""


class Severity(StrEnum):
    """How bad a problem is."""

    CRITICAL = "critical"
    """Nothing is decided, or no decision has an effect."""

    ERROR = "error"
    """One object is not decided on, or its decision has no effect."""

    WARNING = "warning"
    """Something does not have the intended effect, or is short."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetProblem:
    """Something that is wrong, and the command that shows more."""

    severity: Severity
    subject: str
    """What it is about, such as `VariantAutoscaling chat/llama`."""

    reason: str
    message: str
    command: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceleratorUse:
    """The accelerators of one type, in numbers of accelerators."""

    accelerator: str
    nodes: int = 0
    total: int = 0
    models: int | None = 0
    """Held by pods of variants. This and the following are None if pods may not be read."""

    others: int | None = 0
    """Held by other pods."""

    free: int | None = 0
    unusable: int | None = 0
    """Free on nodes that take no new pods."""

    pending: int | None = 0
    """Requested by pods of variants that are on no node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantState:
    """One variant."""

    namespace: str
    name: str
    kind: str
    accelerator: str
    ready: int | None
    requested: int | None
    """Replicas that its scale target requests."""

    granted: int | None
    wanted: int | None
    cost_per_hour: Decimal | None
    """Cost of the requested replicas."""

    saved_per_hour: Decimal | None
    """What following the decision would save; None if it is not advice."""

    is_ready: bool | None
    """Whether its condition `Ready` is true; None if it has none yet."""

    reason: str
    message: str
    decided: str
    """Time of the decision; empty for none."""

    command: str
    """The command that explains it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelState:
    """One model of a namespace, with its variants."""

    namespace: str
    model_id: str
    priority: int
    requests_per_second: float | None
    upper_requests_per_second: float | None
    unmet: float | None
    """Missing share of the required capacity; None if it is unknown."""

    relief: str
    """The change that would help most; empty if nothing is known."""

    service_level: Json
    """Targets, promised and attained shares as published; empty without targets or requests."""

    variants: tuple[VariantState, ...]

    @property
    def cost_per_hour(self) -> Decimal | None:
        """Cost of the requested replicas of all variants; None if that of none is known."""
        return total(item.cost_per_hour for item in self.variants)

    @property
    def saved_per_hour(self) -> Decimal | None:
        """What following the advice would save; None if nothing is advice."""
        return total(item.saved_per_hour for item in self.variants)


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingState:
    """One AutoscalingPolicyBinding, or one Model, which has no replicas of its own."""

    namespace: str
    name: str
    kind: str
    requested: int | None
    granted: int | None
    wanted: int | None
    is_ready: bool | None
    reason: str
    message: str
    command: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetState:
    """The state of all that may be read."""

    time: datetime
    accelerators: tuple[AcceleratorUse, ...] | None
    """By type; None if nodes may not be read."""

    models: tuple[ModelState, ...]
    """By priority: 1 is served first."""

    bindings: tuple[BindingState, ...]
    problems: tuple[FleetProblem, ...]
    """The worst first."""

    namespace: str = ""
    """The namespace of the models; empty for all."""

    unread: tuple[str, ...] = ()
    """What may not be listed, by the names of permissions."""

    @property
    def short(self) -> tuple[ModelState, ...]:
        """The models that get less than they need, by priority."""
        return tuple(item for item in self.models if item.unmet)

    @property
    def helps_most(self) -> ModelState | None:
        """The most important short model whose shortage a known change would reduce."""
        return next((item for item in self.short if item.relief), None)

    @property
    def cost_per_hour(self) -> Decimal | None:
        """Cost of the requested replicas of all models; None if that of none is known."""
        return total(item.cost_per_hour for item in self.models)

    @property
    def saved_per_hour(self) -> Decimal | None:
        """What following all advice would save; None if nothing is advice."""
        return total(item.saved_per_hour for item in self.models)

    def as_json(self) -> Json:
        """Return the state as a JSON document."""
        whole: Json = msgspec.to_builtins(self)
        for model, document in zip(self.models, whole["models"], strict=True):
            document |= {"cost_per_hour": model.cost_per_hour, "saved_per_hour": model.saved_per_hour}
        own = {
            "cost_per_hour": self.cost_per_hour,
            "saved_per_hour": self.saved_per_hour,
            "short": [f"{item.namespace}/{item.model_id}" for item in self.short],
            "helps_most": self.helps_most.relief if self.helps_most else None,
        }
        complete: Json = msgspec.to_builtins(whole | own)
        return complete


def total(amounts: Iterable[Number | None]) -> Number | None:
    """Return the sum of the known amounts; None if none is known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known, start=type(known[0])()) if known else None

"""The scales that the controller should write for a binding, and the condition about them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apiserver.kinds import authorship
from apiserver.kinds.authorship import WRITTEN_BY, writer_of, writer_record
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import TargetObject
from apiserver.schema.json import Json
from controller.bindings.status import BindingResult
from controller.observe.binding_conditions import BindingCondition, BindingFinding, BindingReason

Version = tuple[str, int, str | None]
"""UID, generation and recorded writer of a binding."""

_TRIED: Final = frozenset(
    {
        BindingReason.SCALES_WRITTEN,
        BindingReason.WRITER_MAY_NOT_SCALE,
        BindingReason.CONTROLLER_MAY_NOT_SCALE,
        BindingReason.WRITE_FAILED,
    }
)
"""Reasons that result from an attempt to write."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """The replicas to set on one target, and those that the decision was based on."""

    target: TargetObject
    was: int
    replicas: int

    @property
    def is_change(self) -> bool:
        """Whether the replicas differ from the current ones."""
        return self.was != self.replicas

    @property
    def called(self) -> str:
        """The target's name in messages."""
        return f"{self.target.kind} {self.target.name!r}"


def orders_of(result: BindingResult) -> tuple[Order, ...]:
    """Return the scales that the controller should write; none if it should leave all targets alone."""
    if _resting(result) is not None or result.replicas is None or not result.case.is_direct:
        return ()
    return tuple(
        Order(target=state.bound.target, was=state.current_replicas, replicas=replicas)
        for state, replicas in zip(result.case.targets, result.replicas, strict=True)
    )


def scaling_finding(result: BindingResult, tried: BindingFinding | None) -> BindingFinding | None:
    """Return whether the controller writes the scales of a binding; None if it should not, or not yet.

    `tried` is the result of the last attempt.
    """
    return (_resting(result) or tried) if result.case.is_direct else None


def _resting(result: BindingResult) -> BindingFinding | None:
    """Return why no attempt is made, or None."""
    case = result.case
    if result.decision is None or case.stands_back:
        return False, BindingReason.NOTHING_DECIDED, "there is no decision: see the other conditions"
    if result.advice:
        reason, text = result.advice
        return False, reason, f"{text}: nothing is written"
    if case.orders.is_paused:
        return False, BindingReason.PAUSED, "paused: nothing is written"
    if case.second_writer:
        return False, BindingReason.TARGET_SCALED_BY_OTHER, case.second_writer
    if writer_of(case.value) is None:
        text = (
            f"the annotation {WRITTEN_BY} names no user whose permissions could be used, which is normal"
            f" for an object older than the webhooks: {taking_over(case.value)}"
        )
        return False, BindingReason.WRITER_UNKNOWN, text
    return None


def told_before(value: Json) -> BindingFinding | None:
    """Return the result of the last attempt on this version of a binding, according to its status."""
    for item in (value.get("status") or {}).get("conditions") or []:
        is_current = item.get("observedGeneration") == value["metadata"].get("generation")
        if (
            item.get("type") == BindingCondition.SCALING_ACTIVE
            and item.get("reason") in _TRIED
            and is_current
        ):
            return item.get("status") == "True", BindingReason(item["reason"]), str(item.get("message"))
    return None


def version_of(value: Json) -> Version:
    """Return the version of a binding, which includes its writer, as other writers have other permissions."""
    metadata = value["metadata"]
    return str(metadata.get("uid", "")), int(metadata.get("generation", 0)), writer_record(value)


def taking_over(value: Json) -> str:
    """Return how a user becomes the writer of a binding without changing it."""
    metadata = value["metadata"]
    command = authorship.taking_over(f"aspb {metadata['name']}", namespace=metadata["namespace"])
    return f"a user who is allowed to scale the targets must run {command}"

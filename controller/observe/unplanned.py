"""Why a VariantAutoscaling is not planned; an error in reading one object sets only that object aside."""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.observe.conditions import ConditionReason
from controller.observe.targets import TargetKey, UnplannableTargetError


@dataclass(frozen=True, kw_only=True, slots=True)
class Unplanned:
    """Why a VariantAutoscaling is not planned, as a reason and a message."""

    reason: ConditionReason
    message: str
    fault: Exception | None = field(default=None, compare=False)
    """An error that no check foresaw, to be logged with its traceback."""


def faulty(error: Exception) -> Unplanned:
    """Return the result for an object that caused an unforeseen error."""
    text = f"{type(error).__name__} in the controller: its log has the details"
    return Unplanned(reason=ConditionReason.INVALID_CONFIGURATION, message=text, fault=error)


def unplanned_by(error: Exception) -> Unplanned:
    """Return the result for an object that could not be read; a ValueError says what is wrong with it."""
    if isinstance(error, ValueError):
        return Unplanned(reason=ConditionReason.INVALID_CONFIGURATION, message=str(error))
    return faulty(error)


def unplanned_target(key: TargetKey, error: Exception) -> Unplanned:
    """Return the result for a VariantAutoscaling whose target could not be read."""
    cause, text = unplanned_by(error), f"{key.called} {key.name!r} cannot be planned"
    is_foreseen = isinstance(error, UnplannableTargetError)
    reason = ConditionReason.TARGET_NOT_SUPPORTED if is_foreseen else cause.reason
    return Unplanned(reason=reason, message=f"{text}: {cause.message}", fault=cause.fault)

"""A policy as decisions need it: in numbers and seconds, with all defaults applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from apiserver.kinds.judgement import errors_of
from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY, effective_policy
from apiserver.schema.durations import seconds
from apiserver.schema.json import Json
from apiserver.schema.quantities import amount


class UnreadablePolicyError(ValueError):
    """An object that admission would reject; `problems` has one line per error, with its field."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyMetric:
    """A metric, and its target value per replica."""

    name: str
    target: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StableLimits:
    """Rate limits in one direction per period, and the stabilization window."""

    instances: int = 1
    percent: int = 100
    period_seconds: float = 15.0
    select: Literal["Or", "And"] = "Or"
    window_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PanicRules:
    """When demand counts as a surge, and the limits in panic mode."""

    percent: int = 1000
    period_seconds: float
    threshold_percent: int = 200
    hold_seconds: float = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingPolicy:
    """All fields of a policy."""

    metrics: tuple[PolicyMetric, ...]
    tolerance_percent: int = 10
    up: StableLimits = StableLimits()
    down: StableLimits = StableLimits(window_seconds=300.0)
    panic: PanicRules | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Minimum and maximum replicas, and the time without activity before scaling to zero."""

    min_replicas: int
    max_replicas: int
    grace_seconds: float = 0.0


def read_policy(value: Json) -> ScalingPolicy:
    """Return the policy of an AutoscalingPolicy. Raises UnreadablePolicyError if it is invalid."""
    if errors := errors_of(AUTOSCALING_POLICY, AUTOSCALING_POLICY.storage_version, value):
        raise UnreadablePolicyError(tuple(map(str, errors)))
    spec = effective_policy(value["spec"])
    up, down = spec["behavior"]["scaleUp"], spec["behavior"]["scaleDown"]
    panic = up.get("panicPolicy")
    return ScalingPolicy(
        metrics=tuple(
            PolicyMetric(name=item["metricName"], target=float(amount(item["targetValue"]) or 0))
            for item in spec["metrics"]
        ),
        tolerance_percent=int(spec["tolerancePercent"]),
        up=_limits(up["stablePolicy"]),
        down=_limits(down),
        panic=None if panic is None else _panic(panic),
    )


def _limits(block: Json) -> StableLimits:
    return StableLimits(
        instances=int(block["instances"]),
        percent=int(block["percent"]),
        period_seconds=_seconds(block["period"]),
        select=block["selectPolicy"],
        window_seconds=_seconds(block["stabilizationWindow"]),
    )


def _panic(block: Json) -> PanicRules:
    return PanicRules(
        percent=int(block["percent"]),
        period_seconds=_seconds(block["period"]),
        threshold_percent=int(block["panicThresholdPercent"]),
        hold_seconds=_seconds(block["panicModeHold"]),
    )


def _seconds(text: str) -> float:
    return seconds(text) or 0.0

"""Warnings about a valid AutoscalingPolicy that is probably a mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, cast

from apiserver.kinds.kthena.autoscalingpolicy import (
    AutoscalingPolicyPanicPolicy,
    AutoscalingPolicyStablePolicy,
)
from apiserver.schema.durations import nanoseconds
from apiserver.schema.json import Json
from apiserver.schema.model import node_of
from apiserver.schema.paths import FieldPath

USUAL_INTERVAL: Final = "15s"
"""The interval between decisions unless the controller is configured otherwise."""

_DEFAULT_TOLERANCE_PERCENT: Final = 10
_TEXT_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


def policy_advice(spec: Json, path: tuple[str | int, ...]) -> list[str]:
    """Return warnings about a valid policy spec, located at `path` of its object.

    Only blocks that are present are checked, completed with the defaults of the schema. An absent block has
    sound defaults.
    """
    behavior = spec.get("behavior", {})
    up, down = behavior.get("scaleUp", {}), behavior.get("scaleDown")
    stable, panic = up.get("stablePolicy"), up.get("panicPolicy")
    tolerance = spec.get("tolerancePercent", _DEFAULT_TOLERANCE_PERCENT)
    warnings = list(_spec_advice(spec, tolerance, path))
    if stable is not None:
        stable = _STABLE | stable
        if texts := list(_stable_advice(stable, "up")):
            warnings += _with_places(texts, *path, "behavior", "scaleUp", "stablePolicy")
    if panic is not None and (texts := list(_panic_advice(_PANIC | panic, stable or _STABLE, tolerance))):
        warnings += _with_places(texts, *path, "behavior", "scaleUp", "panicPolicy")
    if down is not None and (texts := list(_stable_advice(_STABLE | down, "down"))):
        warnings += _with_places(texts, *path, "behavior", "scaleDown")
    return warnings


def _with_places(texts: list[str], *path: str | int) -> list[str]:
    return [f"{FieldPath(path)}: {text}" for text in texts]


def _spec_advice(spec: Json, tolerance_percent: int, path: tuple[str | int, ...]) -> Iterator[str]:
    if tolerance_percent == 100:  # noqa: PLR2004 (100 percent)
        yield f"{FieldPath((*path, 'tolerancePercent'))}: at 100, nothing is scaled down except to 0"
    for position, metric in enumerate(spec["metrics"]):
        if not _TEXT_NAME.fullmatch(metric["metricName"]):
            where = FieldPath((*path, "metrics", position, "metricName"))
            yield f"{where}: not a Prometheus metric name; no pod can expose it"


def _stable_advice(block: Json, way: str) -> Iterator[str]:
    period = _length(block["period"])
    if period < _USUAL_LENGTH:
        yield _short_period(period, lifted="both limits")
    if period == 0:
        return
    limits = (block["instances"], block["percent"])
    if block["selectPolicy"] == "And" and 0 in limits:
        yield f"And with a limit of 0 never scales {way}"
    elif limits == (0, 0):
        yield f"instances 0 and percent 0 never scale {way}"
    if 0 < _length(block.get("stabilizationWindow", "0s")) < _USUAL_LENGTH:
        yield f"stabilizationWindow is below {USUAL_INTERVAL}, the usual interval"


def _panic_advice(block: Json, stable: Json, tolerance_percent: int) -> Iterator[str]:
    period = _length(block["period"])
    if period < _USUAL_LENGTH:
        yield _short_period(period, lifted="the limit")
    if block["percent"] == 0 and period:
        yield "percent 0 never scales up while panic lasts"
    elif period and _is_slower(block, stable):
        yield "slower than stablePolicy, in percent and period"
    if block["panicThresholdPercent"] <= 100 + tolerance_percent:
        yield f"with tolerancePercent {tolerance_percent}, every scale-up is a panic"
    if _length(block["panicModeHold"]) < _USUAL_LENGTH:
        yield f"panicModeHold is below {USUAL_INTERVAL}, the usual interval"


def _short_period(period: int, *, lifted: str) -> str:
    return f"period is below {USUAL_INTERVAL}, the usual interval" if period else f"period 0s lifts {lifted}"


def _is_slower(panic: Json, stable: Json) -> bool:
    period = _length(stable["period"])
    return period == 0 or (panic["percent"] < stable["percent"] and _length(panic["period"]) >= period)


def _defaults_of(declared: type) -> Json:
    return {prop.name: prop.default for prop in node_of(declared).properties if prop.has_default}


_length: Final = cast("Callable[[str], int]", nanoseconds)
"""A duration of a valid policy in nanoseconds."""

_STABLE: Final = _defaults_of(AutoscalingPolicyStablePolicy)
_PANIC: Final = _defaults_of(AutoscalingPolicyPanicPolicy) | {"period": USUAL_INTERVAL}
_USUAL_LENGTH: Final = _length(USUAL_INTERVAL)

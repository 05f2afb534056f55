"""Warnings about a valid AutoscalingPolicy that is probably a mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

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
    here = FieldPath(path)
    behavior = spec.get("behavior", {})
    up, down = behavior.get("scaleUp", {}), behavior.get("scaleDown")
    stable, panic = up.get("stablePolicy"), up.get("panicPolicy")
    tolerance = spec.get("tolerancePercent", _DEFAULT_TOLERANCE_PERCENT)
    ways = here.child("behavior", "scaleUp")
    found = list(_spec_advice(spec, tolerance, here))
    if stable is not None:
        found += _placed(ways.child("stablePolicy"), _stable_advice(_STABLE | stable, "up"))
    if panic is not None:
        whole = _PANIC | panic
        found += _placed(ways.child("panicPolicy"), _panic_advice(whole, _STABLE | (stable or {}), tolerance))
    if down is not None:
        found += _placed(here.child("behavior", "scaleDown"), _stable_advice(_STABLE | down, "down"))
    return found


def _placed(path: FieldPath, texts: Iterator[str]) -> Iterator[str]:
    return (f"{path}: {text}" for text in texts)


def _spec_advice(spec: Json, tolerance_percent: int, path: FieldPath) -> Iterator[str]:
    if tolerance_percent == 100:  # noqa: PLR2004 (100 percent)
        yield f"{path.child('tolerancePercent')}: at 100, nothing is scaled down except to 0"
    for position, metric in enumerate(spec["metrics"]):
        if not _TEXT_NAME.fullmatch(metric["metricName"]):
            where = path.child("metrics").index(position).child("metricName")
            yield f"{where}: not a Prometheus metric name; no pod can expose it"


def _stable_advice(block: Json, way: str) -> Iterator[str]:
    yield from _short_period(block, lifted="both limits")
    limits = (block["instances"], block["percent"])
    if _is_nothing(block["period"]):
        return
    if block["selectPolicy"] == "And" and 0 in limits:
        yield f"And with a limit of 0 never scales {way}"
    elif limits == (0, 0):
        yield f"instances 0 and percent 0 never scale {way}"
    window = block.get("stabilizationWindow", "0s")
    if not _is_nothing(window) and _is_shorter(window, USUAL_INTERVAL):
        yield f"stabilizationWindow is below {USUAL_INTERVAL}, the usual interval"


def _panic_advice(block: Json, stable: Json, tolerance_percent: int) -> Iterator[str]:
    yield from _short_period(block, lifted="the limit")
    if block["percent"] == 0 and not _is_nothing(block["period"]):
        yield "percent 0 never scales up while panic lasts"
    elif _is_slower(block, stable):
        yield "slower than stablePolicy, in percent and period"
    if block["panicThresholdPercent"] <= 100 + tolerance_percent:
        yield f"with tolerancePercent {tolerance_percent}, every scale-up is a panic"
    if _is_shorter(block["panicModeHold"], USUAL_INTERVAL):
        yield f"panicModeHold is below {USUAL_INTERVAL}, the usual interval"


def _short_period(block: Json, *, lifted: str) -> Iterator[str]:
    if _is_nothing(block["period"]):
        yield f"period 0s lifts {lifted}"
    elif _is_shorter(block["period"], USUAL_INTERVAL):
        yield f"period is below {USUAL_INTERVAL}, the usual interval"


def _is_slower(panic: Json, stable: Json) -> bool:
    if _is_nothing(panic["period"]):
        return False
    is_unlimited = _is_nothing(stable["period"])
    return is_unlimited or (
        panic["percent"] < stable["percent"] and not _is_shorter(panic["period"], stable["period"])
    )


def _is_nothing(duration: str) -> bool:
    return nanoseconds(duration) == 0


def _is_shorter(duration: str, than: str) -> bool:
    return (nanoseconds(duration) or 0) < (nanoseconds(than) or 0)


def _defaults_of(declared: type) -> Json:
    return {prop.name: prop.default for prop in node_of(declared).properties if prop.has_default}


_STABLE: Final = _defaults_of(AutoscalingPolicyStablePolicy)
_PANIC: Final = _defaults_of(AutoscalingPolicyPanicPolicy) | {"period": USUAL_INTERVAL}

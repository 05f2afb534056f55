"""AutoscalingPolicy `v1alpha1`: the metrics that determine the replicas, and the limits on scaling speed.

A policy does not name what is scaled: an AutoscalingPolicyBinding does, and so does a Model, which embeds the
same spec. Decisions where the reference page does not specify the behavior:

- Limits are counted over `period`; a period of 0s disables them.
- Without `panicPolicy` there is no panic mode.
- A duration is unsigned and at most 30m, as in the releases of this kind.
- Metrics are identified by name: no two may have the same one.

Length limits of text and lists are ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Final, Literal, cast

import re2

from apiserver.kinds.meta import Condition, Duration, Int32, PositiveQuantity
from apiserver.schema import errors, quantities
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.durations import nanoseconds
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import ComputedDefault
from apiserver.schema.markers import Items, Length, MapKeys, Range
from apiserver.schema.model import node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly, Within

_LEAST: Final = Decimal("1e-9")
_MOST: Final = Decimal(2**63 - 1)
_POSITIVE: Final = re2.compile(quantities.POSITIVE_PATTERN)


def storable(value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
    """Return an error for a quantity that Kubernetes would round: one too fine or too large.

    The schema rejects text that is not a positive quantity, or that is too long.
    """
    amount = quantities.amount(value)
    if (amount is not None and _LEAST <= amount <= _MOST) or not _is_positive(value):
        return ()
    return [errors.invalid(path, value, "must be between 1n and 9223372036854775807")]


def _is_positive(value: int | str) -> bool:
    if not isinstance(value, str):
        return value > 0
    return len(value) <= quantities.LONGEST_CHARACTERS and bool(_POSITIVE.search(value))


HalfHour = Annotated[Duration, Within("0s", "30m")]
"""A duration from 0s to 30m."""

TargetValue = Annotated[
    PositiveQuantity, WebhookOnly(storable, "`targetValue` is between 1n and 9223372036854775807.")
]


@declaration()
class AutoscalingPolicyMetric:
    """A metric and its target value for one replica."""

    metric_name: Annotated[str, Length(1, 256)]
    """The name of the metric as exposed by the pods of the target, such as `vllm:num_requests_waiting`."""

    target_value: TargetValue
    """The target value per replica. The desired number of replicas is the sum of the metric over all replicas
    divided by this value. With several metrics, the largest number applies."""


@declaration()
class AutoscalingPolicyStablePolicy:
    """Limits on the rate of scaling in one direction, and its stabilization window."""

    instances: Annotated[Int32, Range(0)] = 1
    """The maximum number of replicas that may be added or removed within `period`."""

    percent: Annotated[Int32, Range(0, 1000)] = 100
    """The maximum change within `period`, as a percentage of the replicas at its start."""

    period: HalfHour = "15s"
    """The period over which `instances` and `percent` are counted, at most 30m. 0s disables both limits."""

    select_policy: Literal["Or", "And"] = "Or"
    """How the two limits are combined. With `Or`, a change must satisfy at least one of them, so the looser
    one applies. With `And`, it must satisfy both, so the tighter one applies."""

    stabilization_window: Maybe[HalfHour] = UNSET
    """The stabilization window, at most 30m. Scaling down follows the highest recommendation within the
    window, scaling up the lowest. Defaults to 5m for scaling down and 0s for scaling up."""


@declaration()
class AutoscalingPolicyPanicPolicy:
    """The policy for panic mode, in which its own limit applies and nothing is scaled down."""

    percent: Annotated[Int32, Range(0, 1000)] = 1000
    """The maximum number of replicas that may be added within `period`, as a percentage of the replicas at
    its start."""

    period: HalfHour
    """The period over which `percent` is counted, at most 30m. 0s disables the limit."""

    panic_threshold_percent: Annotated[Int32, Range(110, 1000)] = 200
    """The threshold for panic mode, which begins when the desired replicas reach this percentage of the
    current ones."""

    panic_mode_hold: HalfHour = "60s"
    """How long panic mode lasts after the demand last exceeded the threshold, at most 30m."""


@declaration()
class AutoscalingPolicyScaleUpPolicy:
    """Policies for scaling up."""

    stable_policy: Maybe[AutoscalingPolicyStablePolicy] = UNSET
    """The limits outside of panic mode. If unset, the defaults of its fields apply, with a stabilization
    window of 0s."""

    panic_policy: Maybe[AutoscalingPolicyPanicPolicy] = UNSET
    """The limits in panic mode, which begins on a steep rise of demand. If unset, there is no panic mode."""


@declaration()
class AutoscalingPolicyBehavior:
    """Limits on the rate of scaling, for each direction."""

    scale_up: Maybe[AutoscalingPolicyScaleUpPolicy] = UNSET
    """Policies for scaling up."""

    scale_down: Maybe[AutoscalingPolicyStablePolicy] = UNSET
    """The limits on scaling down. If unset, the defaults of its fields apply, with a stabilization window of
    5m."""


@declaration()
class AutoscalingPolicySpec:
    """The desired state of an AutoscalingPolicy: its metrics, tolerance and scaling behavior."""

    tolerance_percent: Annotated[Int32, Range(0, 100)] = 10
    """The tolerance. Nothing is scaled while the desired replicas differ from the current ones by less than
    this percentage of the current ones."""

    metrics: Annotated[tuple[AutoscalingPolicyMetric, ...], Items(1, 32), MapKeys("metricName")]
    """The metrics that determine the number of replicas, identified by name."""

    behavior: Maybe[AutoscalingPolicyBehavior] = UNSET
    """The limits on the rate of scaling. Unset fields are filled in with their defaults."""


@declaration()
class AutoscalingPolicyStatus:
    """The observed state of an AutoscalingPolicy."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that the status refers to."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """The conditions of the policy."""


@declaration()
class AutoscalingPolicy:
    """A policy for scaling by metrics. Bindings and Models apply it to targets."""

    spec: AutoscalingPolicySpec
    """The desired state of the policy: its metrics, tolerance and scaling behavior."""

    status: Maybe[AutoscalingPolicyStatus] = UNSET
    """The observed state of the policy. Stowplan does not write it: the status of each
    AutoscalingPolicyBinding shows the effect of its policy."""


# A schema default inside an absent parent has no effect, and that of a stabilization window depends on the
# direction. So there is one set of defaults: those of the schema in every block, and the two windows here,
# which are those of a HorizontalPodAutoscaler.
UP_WINDOW: Final = "0s"
"""The stabilization window for scaling up: the last recommendation applies at once."""

DOWN_WINDOW: Final = "5m"
"""The stabilization window for scaling down: the highest recommendation of five minutes applies."""

_UP: Final = ("scaleUp", "stablePolicy", "stabilizationWindow")
_DOWN: Final = ("scaleDown", "stabilizationWindow")


def behavior_fill(spec: Json, path: tuple[str | int, ...]) -> Iterator[ComputedDefault]:
    """Yield the absent parts of the scaling behavior of a policy spec, located at `path` of its object.

    These are only the parts that the schema cannot express; its own defaults are filled in afterwards. The
    first item carries one warning for all of them.
    """
    behavior = spec.get("behavior")
    ways = ((_UP, UP_WINDOW), (_DOWN, DOWN_WINDOW))
    absent = [(way, window) for way, window in ways if _depth(behavior or {}, way) < len(way)]
    if not absent:
        return
    warning = _fill_warning(path, dict(absent))
    if behavior is None:
        value = {way[0]: _nest(way[1:], window) for way, window in absent}
        yield ComputedDefault(path=(*path, "behavior"), value=value, warning=warning)
        return
    for way, window in absent:
        there = _depth(behavior, way)
        value = _nest(way[there + 1 :], window)
        yield ComputedDefault(path=(*path, "behavior", *way[: there + 1]), value=value, warning=warning)
        warning = ""


def _fill_warning(path: tuple[str | int, ...], absent: dict[tuple[str, ...], str]) -> str:
    windows = " and ".join(f"{window} for {way[0]}" for way, window in absent.items())
    return f"{FieldPath((*path, 'behavior'))}: filled in stabilizationWindow {windows}"


def _depth(behavior: Json, way: tuple[str, ...]) -> int:
    """Return how many leading names of a path exist."""
    here: JsonValue = behavior
    for depth, name in enumerate(way):
        here = here.get(name)
        if here is None:
            return depth
    return len(way)


def _nest(names: tuple[str, ...], value: JsonValue) -> JsonValue:
    for name in reversed(names):
        value = {name: value}
    return value


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

"""AutoscalingPolicy `v1alpha1`: which metrics decide how many replicas there are, and how fast it may change.

A policy says nothing of what is scaled; an AutoscalingPolicyBinding does, and so does a Model, which holds
the same spec in place. Decisions where the reference page is silent:

- Limits are counted over `period`; a period of 0s lifts them.
- Without `panicPolicy` there is no panic mode.
- A length of time has no sign and is 30m at most, as in the releases of this kind.
- Metrics are told apart by their names: no two may have the same one.

Bounds on the length of text and lists are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Final, Literal

import re2

from apiserver.kinds.meta import Condition, Duration, Int32, PositiveQuantity
from apiserver.schema import errors, quantities
from apiserver.schema.comparison import Within
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import JsonValue
from apiserver.schema.markers import Items, Length, MapKeys, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly

_LEAST: Final = Decimal("1e-9")
_MOST: Final = Decimal(2**63 - 1)
_POSITIVE: Final = re2.compile(quantities.POSITIVE_PATTERN)


def storable(value: JsonValue, path: FieldPath) -> Iterator[FieldError]:
    """Yield one error for a quantity finer or larger than Kubernetes keeps: it would silently be another.

    A text that is no positive quantity at all, or beyond its bound, is the schema's to refuse.
    """
    found = quantities.amount(value)
    if not (found is not None and _LEAST <= found <= _MOST) and _is_positive(value):
        yield errors.invalid(path, value, "must be between 1n and 9223372036854775807")


def _is_positive(value: int | str) -> bool:
    if not isinstance(value, str):
        return value > 0
    return len(value) <= quantities.LONGEST_CHARACTERS and bool(_POSITIVE.search(value))


HalfHour = Annotated[Duration, Within("0s", "30m")]
"""A length of time between nothing and half an hour."""

TargetValue = Annotated[
    PositiveQuantity, WebhookOnly(storable, "`targetValue` is between 1n and 9223372036854775807.")
]


@declaration()
class AutoscalingPolicyMetric:
    """A metric, and what one replica should show of it."""

    metric_name: Annotated[str, Length(1, 256)]
    """Name of the metric as the pods of the target expose it, such as `vllm:num_requests_waiting`."""

    target_value: TargetValue
    """What one replica should show: the sum over all replicas divided by this is how many are wanted. With
    several metrics, the one that wants most decides."""


@declaration()
class AutoscalingPolicyStablePolicy:
    """How fast the number of replicas may change in one direction, and how steady the demand must be."""

    instances: Annotated[Int32, Range(0)] = 1
    """Most replicas that are added (or removed) within `period`."""

    percent: Annotated[Int32, Range(0, 1000)] = 100
    """Most replicas that are added (or removed) within `period`, as a percentage of those at its start."""

    period: HalfHour = "15s"
    """Time over which `instances` and `percent` are counted, 30m at most. 0s lifts both limits."""

    select_policy: Literal["Or", "And"] = "Or"
    """Which limit holds: with `Or` a step is taken when either allows it, so the looser one holds; with
    `And` both must allow it, so the tighter one does."""

    stabilization_window: Maybe[HalfHour] = UNSET
    """How far back earlier recommendations count: scaling down follows the highest of them, scaling up the
    lowest. 30m at most; without it, 5m for scaling down and 0s for scaling up."""


@declaration()
class AutoscalingPolicyPanicPolicy:
    """Scaling up in a hurry: while it lasts, its own limit holds and nothing is scaled down."""

    percent: Annotated[Int32, Range(0, 1000)] = 1000
    """Most replicas that are added within `period`, as a percentage of those at its start."""

    period: HalfHour
    """Time over which `percent` is counted, 30m at most. 0s lifts the limit."""

    panic_threshold_percent: Annotated[Int32, Range(110, 1000)] = 200
    """Panic begins when the replicas that are wanted reach this percentage of those that are there."""

    panic_mode_hold: HalfHour = "60s"
    """How long panic lasts after demand was last beyond the threshold, 30m at most."""


@declaration()
class AutoscalingPolicyScaleUpPolicy:
    """How fast replicas are added."""

    stable_policy: Maybe[AutoscalingPolicyStablePolicy] = UNSET
    """The limits of ordinary times. Without it its defaults hold, and a window of 0s."""

    panic_policy: Maybe[AutoscalingPolicyPanicPolicy] = UNSET
    """What holds instead when demand rises steeply. Without it there is no panic mode."""


@declaration()
class AutoscalingPolicyBehavior:
    """How fast the number of replicas may change, upwards and downwards."""

    scale_up: Maybe[AutoscalingPolicyScaleUpPolicy] = UNSET
    """How fast replicas are added."""

    scale_down: Maybe[AutoscalingPolicyStablePolicy] = UNSET
    """How fast replicas are removed. Without it its defaults hold, and a window of 5m."""


@declaration()
class AutoscalingPolicySpec:
    """The desired state of an AutoscalingPolicy: its metrics, and how fast replicas follow them."""

    tolerance_percent: Annotated[Int32, Range(0, 100)] = 10
    """Nothing is scaled while the replicas that are wanted differ from those that are there by less than
    this percentage of the latter."""

    metrics: Annotated[tuple[AutoscalingPolicyMetric, ...], Items(1, 32), MapKeys("metricName")]
    """The metrics by which the number of replicas is decided, told apart by name."""

    behavior: Maybe[AutoscalingPolicyBehavior] = UNSET
    """How fast the number of replicas may change. What is left out is filled in with its default."""


@declaration()
class AutoscalingPolicyStatus:
    """The observed state of an AutoscalingPolicy."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that the status is about."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """Aspects of the state of the policy."""


@declaration()
class AutoscalingPolicy:
    """How to scale by metrics; bindings and models say what is scaled that way."""

    spec: AutoscalingPolicySpec
    """The desired state of the policy: its metrics, its tolerance and its behavior."""

    status: Maybe[AutoscalingPolicyStatus] = UNSET
    """The observed state of the policy. Written by the controller."""

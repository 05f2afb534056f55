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

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Final, Literal

import re2

from apiserver.kinds.meta import Condition, Duration, Int32, PositiveQuantity
from apiserver.schema import errors, quantities
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import JsonValue
from apiserver.schema.markers import Items, Length, MapKeys, Range
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

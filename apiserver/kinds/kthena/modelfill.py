"""Defaults of a Model that depend on other fields; the webhook fills them in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apiserver.kinds.kthena.autoscalingpolicy_behavior import behavior_fill
from apiserver.schema.json import Json
from apiserver.schema.kind import Filled

GRACE_PERIOD: Final = "30s"
"""The default idle time before the last replica is removed, if a policy of the model scales the backends."""

EXPANSION_RATE_PERCENT: Final = 200
"""The default expansion rate in percent, if a policy of the model scales the backends."""


def model_fill(value: Json) -> list[Filled]:
    """Return the defaults that a policy of the model implies, and the scaling behavior of every policy."""
    spec = value.get("spec", {})
    backends = spec.get("backends", ())
    found: list[Filled] = []
    if "autoscalingPolicy" in spec:
        found += _with_policy(spec, backends)
        found += behavior_fill(spec["autoscalingPolicy"], ("spec", "autoscalingPolicy"))
    for position, backend in enumerate(backends):
        if "autoscalingPolicy" in backend:
            where = ("spec", "backends", position, "autoscalingPolicy")
            found += behavior_fill(backend["autoscalingPolicy"], where)
    return found


def _with_policy(spec: Json, backends: list[Json]) -> Iterator[Filled]:
    for position, backend in enumerate(backends):
        if "scaleToZeroGracePeriod" not in backend:
            yield Filled(
                path=("spec", "backends", position, "scaleToZeroGracePeriod"),
                value=GRACE_PERIOD,
                warning=f"spec.backends[{position}].scaleToZeroGracePeriod: filled in with {GRACE_PERIOD}",
            )
    if "costExpansionRatePercent" not in spec:
        yield Filled(
            path=("spec", "costExpansionRatePercent"),
            value=EXPANSION_RATE_PERCENT,
            warning=f"spec.costExpansionRatePercent: filled in with {EXPANSION_RATE_PERCENT}",
        )

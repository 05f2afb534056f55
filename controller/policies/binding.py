"""A policy binding as decisions need it: its ordered targets with bounds, costs and capacities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.kinds.judgement import errors_of
from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY_BINDING
from apiserver.kinds.kthena.autoscalingpolicybinding_activity import ActivitySource, activity_source
from apiserver.kinds.kthena.autoscalingpolicybinding_capacity import capacities_of
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import TargetObject, target_object
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json
from controller.policies.policy import UnreadablePolicyError

DEFAULT_URI = "/metrics"
DEFAULT_PORT = 8100


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundTarget:
    """One target of a binding."""

    target: TargetObject
    min_replicas: int
    max_replicas: int
    cost: int = 0
    capacity: float = 1.0
    uri: str = DEFAULT_URI
    port: int = DEFAULT_PORT
    labels: tuple[tuple[str, str], ...] = ()
    """Additional labels that pods must have for their metrics to count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """The targets that a policy scales; `expansion_percent` is None for a single target."""

    policy: str
    targets: tuple[BoundTarget, ...]
    expansion_percent: int | None = None
    activity: ActivitySource | None = None
    """Source of activity for requests that arrive while there are no replicas."""

    @property
    def capacities(self) -> tuple[float, ...]:
        """Capacity of one replica of each target; 1 for a single target."""
        is_alone = self.expansion_percent is None
        return tuple(1.0 if is_alone else target.capacity for target in self.targets)

    @property
    def is_alike(self) -> bool:
        """Whether all replicas have capacity 1."""
        return all(capacity == 1 for capacity in self.capacities)

    def serving(self, replicas: Sequence[int]) -> float:
        """Return the combined capacity of replicas of the targets, in replicas of capacity 1."""
        return math.fsum(each * count for each, count in zip(self.capacities, replicas, strict=True))


def read_binding(value: Json) -> Binding:
    """Return the binding of an AutoscalingPolicyBinding. Raises UnreadablePolicyError if it is invalid."""
    version = AUTOSCALING_POLICY_BINDING.storage_version
    if errors := errors_of(AUTOSCALING_POLICY_BINDING, version, value):
        raise UnreadablePolicyError(tuple(map(str, errors)))
    spec = with_defaults(version, value)["spec"]
    capacities = capacities_of(value)
    optimizer = spec.get("optimizerConfiguration")
    around = [spec["scalingConfiguration"]] if optimizer is None else optimizer["params"]
    return Binding(
        policy=spec["policyRef"]["name"],
        targets=tuple(
            _target(item, capacities.of.get(item["target"]["targetRef"]["name"], 1.0)) for item in around
        ),
        expansion_percent=None if optimizer is None else int(optimizer["costExpansionRatePercent"]),
        activity=activity_source(value),
    )


def lone_binding(name: str, *, min_replicas: int, max_replicas: int) -> Binding:
    """Return a binding of one Deployment, for a policy without a binding."""
    target = TargetObject(api_version="apps/v1", kind="Deployment", name=name)
    bound = BoundTarget(target=target, min_replicas=min_replicas, max_replicas=max_replicas)
    return Binding(policy="", targets=(bound,))


def _target(around: Json, capacity: float) -> BoundTarget:
    target = around["target"]
    endpoint = target.get("metricEndpoint") or {}
    return BoundTarget(
        target=target_object(target["targetRef"]),
        min_replicas=int(around["minReplicas"]),
        max_replicas=int(around["maxReplicas"]),
        cost=int(around.get("cost") or 0),
        capacity=capacity,
        uri=endpoint.get("uri") or DEFAULT_URI,
        port=int(endpoint.get("port") or DEFAULT_PORT),
        labels=tuple(sorted((target.get("additionalMatchLabels") or {}).items())),
    )

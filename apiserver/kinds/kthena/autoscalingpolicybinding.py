"""AutoscalingPolicyBinding `v1alpha1`: what an AutoscalingPolicy scales, and between which bounds.

Decisions where the reference page is silent:

- Exactly one of both configurations is set, as in the releases of this kind.
- A target needs the name of an object; its kind is ModelInfer where none is given, its namespace always that
  of the binding. `uid`, `resourceVersion` and `fieldPath` of the reference mean nothing: there is a warning.
- An optimizer needs targets, so `params` is required, and no two of them are the same object.
- A target without `metricEndpoint` has one with its defaults.
- The endpoint is a plain path on the pods of the target, so that it can only ever be a request to them.

Bounds on the length of text, lists and maps are ours.
"""

from __future__ import annotations

from typing import Annotated, Final

from apiserver.kinds.core.labels import LABELS, LabelValue
from apiserver.kinds.core.references import LocalObjectReference, ObjectReference
from apiserver.kinds.kthena.autoscalingpolicybinding_status import AutoscalingPolicyBindingStatus
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import (
    distinct_targets,
    fully_named,
    own_namespace,
)
from apiserver.kinds.meta import Int32
from apiserver.schema.comparison import LessOrEqual
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, Pattern, Properties, Range
from apiserver.schema.members import NotEmpty, WithoutKey
from apiserver.schema.presence import ExactlyOneOf
from apiserver.schema.rules import WebhookOnly

_SEGMENT: Final = r"\.*[A-Za-z0-9_~-][A-Za-z0-9._~-]*"

MetricPath = Annotated[
    str,
    Length(maximum=256),
    Pattern(
        rf"^/({_SEGMENT}(/{_SEGMENT})*/?)?$",
        says="an absolute path such as /metrics: letters, digits and -._~ between single slashes",
    ),
]
"""A path that stays what it is in any URL: nothing to escape, no empty segment, no `.` and no `..`."""

TargetReference = Annotated[
    ObjectReference,
    NotEmpty("name"),
    WebhookOnly(
        fully_named, "`kind` and `apiVersion` are set together; only the kind ModelInfer is known by itself."
    ),
]

SomeLabels = Annotated[
    dict[str, LabelValue],
    Properties(maximum=10),
    LABELS,
    WithoutKey("modelinfer.volcano.sh/name", because="which is always the name of the target"),
]

MOST_TARGET_REPLICAS: Final = 1_000_000
"""Most replicas of a target."""

FewestReplicas = Annotated[Int32, Range(0, MOST_TARGET_REPLICAS)]
MostReplicas = Annotated[Int32, Range(1, MOST_TARGET_REPLICAS)]


@declaration()
class MetricEndpoint:
    """Where the pods of a target expose their metrics."""

    uri: MetricPath = "/metrics"
    """Path of the page that is scraped, without host, query and fragment."""

    port: Annotated[Int32, Range(1, 65535)] = 8100
    """Port of each pod that is scraped."""


@declaration()
class Target:
    """An object with replicas, and where their metrics are."""

    target_ref: TargetReference
    """The object that is scaled, in the namespace of the binding. Without `kind` and `apiVersion` it is a
    ModelInfer of `workload.volcano.sh/v1alpha1`."""

    additional_match_labels: Maybe[SomeLabels] = UNSET
    """Labels that the pods of the target must have too for their metrics to count."""

    metric_endpoint: Maybe[MetricEndpoint] = UNSET
    """Where its pods are scraped. Without it: `/metrics` on port 8100."""


@declaration(LessOrEqual("minReplicas", "maxReplicas"))
class ScalingConfiguration:
    """One target, and how far it may be scaled."""

    target: Target
    """The object that is scaled, and where its metrics are read."""

    min_replicas: FewestReplicas
    """Fewest replicas, whatever the metrics say. At 0, no pod is left to report any metric."""

    max_replicas: MostReplicas
    """Most replicas, whatever the metrics say."""


@declaration(LessOrEqual("minReplicas", "maxReplicas"))
class OptimizerParam:
    """One of several unlike targets that share a load."""

    target: Target
    """The object that is scaled, and where its metrics are read."""

    cost: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """What one replica costs, in any unit that all targets share. Without it, nothing; targets of the same
    cost are taken in the order in which they stand."""

    min_replicas: FewestReplicas
    """Fewest replicas of this target, whatever the metrics say."""

    max_replicas: MostReplicas
    """Most replicas of this target, whatever the metrics say."""


@declaration()
class OptimizerConfiguration:
    """Several unlike targets, such as one for each accelerator, whose replicas share a load at least cost."""

    params: Annotated[
        tuple[OptimizerParam, ...],
        Items(1, 256),
        WebhookOnly(distinct_targets, "No two `params` have the same object as their target."),
    ]
    """The targets that share the load, in order of preference where their costs are equal. The annotation
    `stowplan.dev/capacity` of the binding says what their replicas serve beside each other, such as
    `llama-h100=2.5,llama-a100=1`; without it, all serve alike."""

    cost_expansion_rate_percent: Annotated[Int32, Range(0)] = 200
    """What the replicas may cost, in percent of the least cost at which the load is served, to meet it more
    precisely: 200 allows twice as much. At 100 or less they cost the least; so they always do while all
    replicas serve alike."""


@declaration(ExactlyOneOf(("scalingConfiguration", "optimizerConfiguration")))
class AutoscalingPolicyBindingSpec:
    """The desired state of an AutoscalingPolicyBinding: which policy applies, and to which targets."""

    policy_ref: LocalObjectReference
    """The AutoscalingPolicy, in the namespace of the binding. It may be created later."""

    optimizer_configuration: Maybe[OptimizerConfiguration] = UNSET
    """Spreads replicas over several targets of unlike cost and capacity as demand asks."""

    scaling_configuration: Maybe[ScalingConfiguration] = UNSET
    """Scales one target by its own metrics."""


@declaration(
    WebhookOnly(own_namespace, "`targetRef.namespace`, where it is set, is the namespace of the binding.")
)
class AutoscalingPolicyBinding:
    """What is scaled by an AutoscalingPolicy. A target belongs to one binding."""

    spec: AutoscalingPolicyBindingSpec
    """The desired state of the binding: the policy, and the targets that it scales."""

    status: Maybe[AutoscalingPolicyBindingStatus] = UNSET
    """The observed state of the binding. Written by the controller."""

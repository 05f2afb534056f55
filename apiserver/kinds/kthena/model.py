"""Model `v1alpha1`: a model, the ways to run it, and how they are scaled.

Three ways of scaling exclude each other: a policy of the model spreads replicas over all backends by cost; a
policy of a backend scales that one; without either, the replicas are as many as `minReplicas` and
`maxReplicas` say alike. Decisions where the reference page is silent:

- With a policy of the model every backend has a cost. It may be 0, since the page's minimum is.
- With it, an absent grace period means 30s and an absent rate of expansion 200.
- A backend without a policy has a fixed number of replicas even where others have one.
- What is made for a backend is called by both names, so together they are limited in length.

Bounds on counts and on the length of text are ours where the page has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from apiserver.kinds.core.names import LABEL_PATTERN, LABEL_SAYS
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicySpec
from apiserver.kinds.kthena.modelbackend import ModelBackend
from apiserver.kinds.kthena.modelmatch import ModelMatch
from apiserver.kinds.kthena.modelnames import NAMES
from apiserver.kinds.meta import Condition, Int32
from apiserver.schema import errors
from apiserver.schema.comparison import SumAtMost
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.items import (
    AtLeastInItems,
    Beside,
    EqualInItems,
    ForbiddenInItems,
    RequiredInItems,
    SumAtLeast,
)
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length, MapKeys, Pattern, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.presence import Needs
from apiserver.schema.rules import WebhookOnly

MOST_REPLICAS: Final = 1_000_000
"""Most replicas of all backends together."""

_WITH: Final = Beside("autoscalingPolicy", "spec.autoscalingPolicy", is_set=True)
_WITHOUT: Final = Beside("autoscalingPolicy", "spec.autoscalingPolicy", is_set=False)


def _adapter_names(value: Json, path: FieldPath) -> Iterator[FieldError]:
    spec = value.get("spec", {})
    taken = {(value.get("metadata") or {}).get("name"), spec.get("name")} - {None, ""}
    for position, backend in enumerate(spec.get("backends", [])):
        for rank, adapter in enumerate(backend.get("loraAdapters", [])):
            if adapter.get("name") in taken:
                here = path.child("spec", "backends").index(position).child("loraAdapters").index(rank)
                yield errors.invalid(
                    here.child("name"), adapter["name"], "must differ from the name of the model"
                )


@declaration(
    ForbiddenInItems("backends", "autoscalingPolicy", _WITH),
    RequiredInItems("backends", "scalingCost", _WITH),
    SumAtLeast("backends", "minReplicas", 1, _WITH),
    ForbiddenInItems("backends", "scalingCost", _WITHOUT, takes_zero=True),
    ForbiddenInItems("backends", "scaleToZeroGracePeriod", _WITHOUT),
    AtLeastInItems("backends", "minReplicas", 1, "autoscalingPolicy", _WITHOUT),
    EqualInItems("backends", ("minReplicas", "maxReplicas"), "autoscalingPolicy", _WITHOUT),
    Needs("costExpansionRatePercent", "autoscalingPolicy"),
)
class ModelSpec:
    """The desired state of a Model: the ways to run it, and how they are scaled."""

    name: Maybe[Annotated[str, Length(maximum=64), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]] = UNSET
    """What requests call the model. Without it: the name of this object."""

    owner: Maybe[Annotated[str, Length(maximum=253)]] = UNSET
    """Whose model it is, for people to read."""

    backends: Annotated[
        tuple[ModelBackend, ...], Items(1, 32), MapKeys("name"), SumAtMost("maxReplicas", MOST_REPLICAS)
    ]
    """The ways to run the model, by name. Several of them share the requests."""

    autoscaling_policy: Maybe[AutoscalingPolicySpec] = UNSET
    """Scales all backends together: as many replicas as its metrics ask for, of the cheapest mixture."""

    cost_expansion_rate_percent: Maybe[Annotated[Int32, Range(0, 1000)]] = UNSET
    """How fast the steps grow in which a policy of the model adds replicas of one backend before it turns to
    a dearer one: 200 doubles each step. Only with such a policy; without it: 200."""

    model_match: Maybe[ModelMatch] = UNSET
    """Which requests the model answers, beside their naming it. All conditions must hold."""


@declaration()
class ModelBackendStatus:
    """The observed state of one backend."""

    name: Annotated[str, Length(maximum=317)]
    """Name of the backend."""

    replicas: Annotated[Int32, Range(0)]
    """Number of replicas that run."""


@declaration()
class ModelStatus:
    """The observed state of a Model."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """Aspects of the state of the model. `Active`: all backends serve. `Failed`: something could not be
    created."""

    backend_statuses: Maybe[Annotated[tuple[ModelBackendStatus, ...], Items(maximum=256)]] = UNSET
    """The observed state of each backend."""

    replicas: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """Number of replicas that run, of all backends together."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that the status is about."""


@declaration(WebhookOnly(_adapter_names, "No LoRA adapter has the name of the model."), *NAMES)
class Model:
    """A model that is served, with the engines that run it and the policies that scale them."""

    spec: ModelSpec
    """The desired state of the model: its backends, and how they are scaled."""

    status: Maybe[ModelStatus] = UNSET
    """The observed state of the model. Written by the controller."""

"""Model `v1alpha1`: a model, the backends that run it, and how they are scaled.

There are three mutually exclusive ways of scaling: a policy of the model distributes replicas over all
backends by cost; a policy of a backend scales only that one; without either, the number of replicas is fixed,
and `minReplicas` and `maxReplicas` are equal. Decisions where the reference page does not specify the
behavior:

- With a policy of the model every backend has a cost. It may be 0, the minimum on the page.
- With it, the grace period defaults to 30s and the expansion rate to 200.
- A backend without a policy has a fixed number of replicas even if others have a policy.
- Objects created for a backend are named after both model and backend, which limits the length of the two
  names together.

Limits on counts and on the length of text are ours where the page has none.
"""

from __future__ import annotations

from typing import Annotated, Final

from apiserver.kinds.core.names import LABEL_PATTERN, LABEL_SAYS
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicySpec
from apiserver.kinds.kthena.modelbackend import ModelBackend
from apiserver.kinds.kthena.modelmatch import ModelMatch
from apiserver.kinds.kthena.modelnames import NAMES
from apiserver.kinds.meta import Condition, Int32
from apiserver.schema import errors
from apiserver.schema.comparison import SumAtMost
from apiserver.schema.conditions import Beside
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.items import (
    AtLeastInItems,
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
"""The maximum number of replicas of all backends together."""

_WITH: Final = Beside("autoscalingPolicy", "spec.autoscalingPolicy", is_set=True)
_WITHOUT: Final = Beside("autoscalingPolicy", "spec.autoscalingPolicy", is_set=False)


def _adapter_names(value: Json, path: FieldPath) -> list[FieldError]:
    found: list[FieldError] = []
    spec = value.get("spec", {})
    taken = ((value.get("metadata") or {}).get("name"), spec.get("name"))
    for position, backend in enumerate(spec.get("backends", ())):
        for rank, adapter in enumerate(backend.get("loraAdapters", ())):
            if (name := adapter.get("name")) and name in taken:
                where = FieldPath((*path.parts, "spec", "backends", position, "loraAdapters", rank, "name"))
                found.append(errors.invalid(where, name, "must differ from the name of the model"))
    return found


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
    """The desired state of a Model: its backends, and how they are scaled."""

    name: Maybe[Annotated[str, Length(maximum=64), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]] = UNSET
    """The name of the model in requests. Defaults to the name of this object."""

    owner: Maybe[Annotated[str, Length(maximum=253)]] = UNSET
    """The owner of the model, for information only."""

    backends: Annotated[
        tuple[ModelBackend, ...], Items(1, 32), MapKeys("name"), SumAtMost("maxReplicas", MOST_REPLICAS)
    ]
    """The backends that run the model, identified by name. Several backends share the requests."""

    autoscaling_policy: Maybe[AutoscalingPolicySpec] = UNSET
    """The policy that scales all backends together: its metrics determine the number of replicas, which are
    distributed at minimum cost."""

    cost_expansion_rate_percent: Maybe[Annotated[Int32, Range(0, 1000)]] = UNSET
    """The maximum cost of all replicas, as a percentage of the minimum cost of serving the load, as in an
    AutoscalingPolicyBinding. Only allowed with a policy of the model, and defaults to 200 then."""

    model_match: Maybe[ModelMatch] = UNSET
    """The requests that are routed to the model, in addition to the model name. All conditions must hold."""


@declaration()
class ModelBackendStatus:
    """The observed state of one backend."""

    name: Annotated[str, Length(maximum=317)]
    """The name of the backend."""

    replicas: Annotated[Int32, Range(0)]
    """The current number of running replicas."""


@declaration()
class ModelStatus:
    """The observed state of a Model."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """The conditions of the model. `Initialized`: all objects that the model needs exist. `Active`: all
    backends serve. `Updating`: an update is in progress. `Failed`: manual action is required, because an
    object could not be created, pods or adapters fail, or an older model has the name. `FieldsEffective`:
    every field has its documented effect."""

    backend_statuses: Maybe[Annotated[tuple[ModelBackendStatus, ...], Items(maximum=256)]] = UNSET
    """The observed state of each backend."""

    replicas: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The current number of running replicas of all backends together."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that the status refers to."""


@declaration(WebhookOnly(_adapter_names, "No LoRA adapter has the name of the model."), *NAMES)
class Model:
    """A model to serve, with the engines that run it and the policies that scale them."""

    spec: ModelSpec
    """The desired state of the model: its backends, and how they are scaled."""

    status: Maybe[ModelStatus] = UNSET
    """The observed state of the model. Written by the controller."""

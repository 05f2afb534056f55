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
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FORBIDDEN, REQUIRED, FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length, MapKeys, Pattern, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import Cel, EachItem, WebhookOnly, When

MOST_REPLICAS: Final = 1_000_000
"""The maximum number of replicas of all backends together."""

_WITH: Final = When(
    unless="!has(self.autoscalingPolicy)",
    applies=lambda spec: "autoscalingPolicy" in spec,
    words="when `spec.autoscalingPolicy` is set",
)
_WITHOUT: Final = When(
    unless="has(self.autoscalingPolicy)",
    applies=lambda spec: "autoscalingPolicy" not in spec,
    words="when `spec.autoscalingPolicy` is not set",
)


def _sum(backends: list[Json], name: str) -> int:
    return sum(backend.get(name, 0) for backend in backends)


_BOUNDED_SUM: Final = Cel(
    f"self.map(item, has(item.maxReplicas) ? item.maxReplicas : 0).sum() <= {MOST_REPLICAS}",
    lambda backends: not _sum(backends, "maxReplicas") > MOST_REPLICAS,
    f"the sum of `maxReplicas` must be less than or equal to {MOST_REPLICAS}",
    sentence=f"`maxReplicas` of all items is {MOST_REPLICAS} at most in sum.",
    shown=lambda backends: _sum(backends, "maxReplicas"),
)


def _adapter_names(value: Json, path: FieldPath) -> list[FieldError]:
    faults: list[FieldError] = []
    spec = value.get("spec", {})
    taken = ((value.get("metadata") or {}).get("name"), spec.get("name"))
    for position, backend in enumerate(spec.get("backends", ())):
        for rank, adapter in enumerate(backend.get("loraAdapters", ())):
            if (name := adapter.get("name")) and name in taken:
                where = FieldPath((*path.parts, "spec", "backends", position, "loraAdapters", rank, "name"))
                faults.append(errors.invalid(where, name, "must differ from the name of the model"))
    return faults


@declaration(
    EachItem(
        "backends",
        "autoscalingPolicy",
        _WITH,
        expression="!has(item.autoscalingPolicy)",
        holds=lambda backend: "autoscalingPolicy" not in backend,
        message=f"may not be set {_WITH.words}",
        reason=FORBIDDEN,
    ),
    EachItem(
        "backends",
        "scalingCost",
        _WITH,
        expression="has(item.scalingCost)",
        holds=lambda backend: "scalingCost" in backend,
        message=f"must be set {_WITH.words}",
        sentence=f"`scalingCost` of `backends` is required {_WITH.words}.",
        reason=REQUIRED,
    ),
    Cel(
        "!has(self.autoscalingPolicy) || !has(self.backends) || size(self.backends) == 0"
        " || self.backends.map(item, has(item.minReplicas) ? item.minReplicas : 0).sum() >= 1",
        lambda spec: (
            "autoscalingPolicy" not in spec
            or not spec.get("backends")
            or not _sum(spec["backends"], "minReplicas") < 1
        ),
        f"the sum of `minReplicas` must be greater than or equal to 1 {_WITH.words}",
        sentence=f"`minReplicas` of all `backends` is 1 at least in sum {_WITH.words}.",
        field="backends",
        shown=lambda spec: _sum(spec["backends"], "minReplicas"),
    ),
    EachItem(
        "backends",
        "scalingCost",
        _WITHOUT,
        expression="!has(item.scalingCost) || item.scalingCost == 0",
        holds=lambda backend: backend.get("scalingCost", 0) == 0,
        message=f"may not be set {_WITHOUT.words}",
        reason=FORBIDDEN,
    ),
    EachItem(
        "backends",
        "scaleToZeroGracePeriod",
        _WITHOUT,
        expression="!has(item.scaleToZeroGracePeriod)",
        holds=lambda backend: "scaleToZeroGracePeriod" not in backend,
        message=f"may not be set {_WITHOUT.words}",
        reason=FORBIDDEN,
    ),
    EachItem(
        "backends",
        "minReplicas",
        _WITHOUT,
        expression="!has(item.autoscalingPolicy) || !has(item.minReplicas) || item.minReplicas >= 1",
        holds=lambda backend: "autoscalingPolicy" not in backend or not backend.get("minReplicas", 1) < 1,
        message="must be greater than or equal to 1 when `autoscalingPolicy` is set",
        sentence="`minReplicas` of `backends` is 1 at least where `autoscalingPolicy` of the same item is"
        f" set, {_WITHOUT.words}.",
    ),
    EachItem(
        "backends",
        "minReplicas",
        _WITHOUT,
        expression="has(item.autoscalingPolicy) || !has(item.minReplicas) || !has(item.maxReplicas)"
        " || item.minReplicas >= item.maxReplicas",
        holds=lambda backend: (
            "autoscalingPolicy" in backend
            or not {"minReplicas", "maxReplicas"} <= backend.keys()
            # That it is not greater is another rule.
            or not backend["minReplicas"] < backend["maxReplicas"]
        ),
        message="must be equal to `maxReplicas` when neither `autoscalingPolicy` nor `spec.autoscalingPolicy`"
        " is set",
        sentence="`minReplicas` of `backends` equals `maxReplicas` where `autoscalingPolicy` of the same item"
        f" is not set, {_WITHOUT.words}.",
    ),
    Cel(
        "!has(self.costExpansionRatePercent) || has(self.autoscalingPolicy)",
        lambda spec: "costExpansionRatePercent" not in spec or "autoscalingPolicy" in spec,
        "may not be set when `autoscalingPolicy` is not set",
        sentence="`costExpansionRatePercent` may be set only together with `autoscalingPolicy`.",
        field="costExpansionRatePercent",
        reason=FORBIDDEN,
    ),
)
class ModelSpec:
    """The desired state of a Model: its backends, and how they are scaled."""

    name: Maybe[Annotated[str, Length(maximum=64), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]] = UNSET
    """The name of the model in requests. Defaults to the name of this object."""

    owner: Maybe[Annotated[str, Length(maximum=253)]] = UNSET
    """The owner of the model, for information only."""

    backends: Annotated[tuple[ModelBackend, ...], Items(1, 32), MapKeys("name"), _BOUNDED_SUM]
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
    """The conditions of the model. `Ready`: requests are served, or no replica is needed. `Initialized`: all
    objects that the model needs exist. `Active`: all backends serve. `Updating`: an update is in
    progress. `Failed`: manual action is required, because an object could not be created, pods or adapters
    fail, or an older model has the name. `FieldsEffective`: every field has its documented effect."""

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

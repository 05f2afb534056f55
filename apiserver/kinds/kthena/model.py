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

from collections.abc import Sequence
from typing import Annotated, Final

from apiserver.kinds.core.names import LABEL_PATTERN, LABEL_SAYS
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicySpec
from apiserver.kinds.kthena.modelbackend import ModelBackend
from apiserver.kinds.kthena.modelmatch import ModelMatch
from apiserver.kinds.meta import Condition, Int32
from apiserver.schema import errors
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FORBIDDEN, REQUIRED, FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length, MapKeys, Pattern, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import Cel, CelRule, EachItem, ValidationRule, WebhookOnly, When

_LONGEST: Final = 63
"""The maximum number of characters of a DNS label, and of a label value."""

_PARTED: Final = "Disaggregated"
_PARTS: Final = ("-prefill", "-decode")
_LONGEST_ROLE: Final = _PARTS[0]
_REVISION_CHARACTERS: Final = 11
"""The number of characters that a StatefulSet appends to its name in a label of its pods: a dash and a hash.
Source: `k8s.io/kubernetes/pkg/controller/history/controller_history.go`."""

_LENGTHS: Final = (
    f"MODEL-BACKEND, or MODEL-BACKEND{_LONGEST_ROLE} for a disaggregated backend, has at most {_LONGEST}"
    " characters."
)
_LETTER: Final = "must begin with a letter: Services are called by it"


def _service_names(value: Json, path: FieldPath) -> Sequence[FieldError]:
    """Return an error for the name of a Model, and one for each backend whose Service would be too long."""
    del path
    faults: list[FieldError] = []
    model = _model_name(value)
    if model and not "a" <= model[0] <= "z":
        faults.append(errors.invalid(FieldPath().child("metadata", "name"), model, _LETTER))
    for position, backend in enumerate(_backends(value)):
        name = _service_name(model, backend)
        if len(name) > _LONGEST:
            faults.append(_too_long(position, backend, f"its Service would be named {name}", len(name)))
    return faults


def _spanning_names(value: Json, path: FieldPath) -> Sequence[FieldError]:
    """Return an error for each backend whose engines span nodes and whose pod labels would be too long.

    All but the first pod of an engine belong to a StatefulSet with the name of the first pod, and have a
    label with the name of its revision. Source: `sigs.k8s.io/lws/pkg/controllers/pod_controller.go`.
    """
    del path
    backends = _backends(value)
    if not [1 for each in backends for worker in each.get("workers", ()) if worker.get("pods", 1) > 1]:
        return ()
    faults: list[FieldError] = []
    for position, backend in enumerate(backends):
        engines = [
            backend.get("maxReplicas", 1) * worker.get("replicas", 1)
            for worker in backend.get("workers", ())
            if worker.get("pods", 1) > 1
        ]
        if not engines or len(name := _service_name(_model_name(value), backend)) > _LONGEST:
            continue
        last = f"{name}-{max(engines) - 1:.0f}"  # the schema rejects what is not a number
        if (length := len(last) + _REVISION_CHARACTERS) > _LONGEST:
            faults.append(
                _too_long(position, backend, f"a label of its pods would be {last}-REVISION", length)
            )
    return faults


def _own_names(value: Json, path: FieldPath) -> Sequence[FieldError]:
    """Return an error for each backend with a workload of the same name as one of an earlier backend."""
    del path
    backends = _backends(value)
    if not [1 for backend in backends if backend.get("name", "").endswith(_PARTS)]:
        return ()
    faults: list[FieldError] = []
    model = _model_name(value)
    owners: dict[str, str] = {}
    for position, backend in enumerate(backends):
        name = str(backend.get("name", ""))
        for role in _PARTS if _is_parted(backend) else ("",):
            other = owners.setdefault(f"{name}{role}", name)
            if other != name:
                text = f"backend {other} has a workload {model}-{name}{role} as well: rename one of both"
                where = FieldPath().child("spec", "backends").index(position).child("name")
                faults.append(errors.invalid(where, name, text))
    return faults


_CEL_ROLE: Final = f"(item.type.endsWith('{_PARTED}') ? {len(_LONGEST_ROLE)} : 0)"
_CEL_LENGTH: Final = f"size(self.metadata.name) + 1 + size(item.name) + {_CEL_ROLE}"

NAMES: Final = (
    # The API server checks this only when a Model is created. Stored ones stay editable, and a CEL rule that
    # compared the backends of an update with the stored ones would exceed its cost budget: the webhook does.
    ValidationRule(
        _service_names,
        f"The name of a Model begins with a letter. Names of its Services are limited: {_LENGTHS}",
        cel=[
            CelRule(
                rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]')",
                message=f"metadata.name {_LETTER}",
                reads_past=True,
            ),
            CelRule(
                rule=f"oldSelf.hasValue() || self.spec.backends.all(item, {_CEL_LENGTH} <= {_LONGEST})",
                message=f"`name` makes the name of a Service too long: {_LENGTHS}",
                field_name="spec.backends",
                reads_past=True,
            ),
        ],
    ),
    WebhookOnly(
        _spanning_names,
        "If an engine of a backend has several `pods`, a dash, the number of the backend's last engine and"
        f" {_REVISION_CHARACTERS} more characters count towards this limit.",
    ),
    WebhookOnly(
        _own_names,
        "No two workloads of a Model have the same name: if a disaggregated backend is named `a`, no other"
        f" one is named {' or '.join(f'`a{part}`' for part in _PARTS)}.",
    ),
)
"""The rules of a Model for names that are derived from its own."""


def _model_name(value: Json) -> str:
    """Return the name of a Model; empty if the API server has yet to generate one."""
    return str((value.get("metadata") or {}).get("name") or "")


def _backends(value: Json) -> Sequence[Json]:
    backends: Sequence[Json] = value.get("spec", {}).get("backends", [])
    return backends


def _service_name(model: str, backend: Json) -> str:
    """Return the longest Service name of a backend."""
    role = _LONGEST_ROLE if _is_parted(backend) else ""
    return f"{model}-{backend.get('name', '')}{role}".replace(".", "-")


def _is_parted(backend: Json) -> bool:
    """Tell whether a backend runs prefill and decode separately."""
    return str(backend.get("type", "")).endswith(_PARTED)


def _too_long(position: int, backend: Json, why: str, length: int) -> FieldError:
    path = FieldPath().child("spec", "backends").index(position).child("name")
    text = f"{why}, which has {length} characters of at most {_LONGEST}: shorten it, or metadata.name"
    return errors.invalid(path, backend.get("name", ""), text)


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
    model_names = ((value.get("metadata") or {}).get("name"), spec.get("name"))
    for position, backend in enumerate(spec.get("backends", ())):
        for rank, adapter in enumerate(backend.get("loraAdapters", ())):
            if (name := adapter.get("name")) and name in model_names:
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

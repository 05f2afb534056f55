"""ModelServer `v1alpha1`: the pods that serve a model, and how a router speaks to them.

Decisions where the reference page is silent:

- A selector selects by something: without `pdGroup` it needs labels. One without any would take every pod of
  the namespace for an inference engine.
- Prefill and decode are told apart by labels, so the two sets may not be the same.
- A number of attempts is not negative; a timeout of 0s is none at all, as if it were absent.
- `spec` is required: `inferenceEngine` inside is.

Bounds on the length of text, of time, and on the number of labels are ours.
"""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.kinds.core.labels import LABELS, LabelKey, Labels, LabelValue
from apiserver.kinds.kthena.modelmatch import ServedModelName
from apiserver.kinds.meta import Condition, Duration, Int32
from apiserver.schema.comparison import Different, Within
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.filling import NotEmptyUnless
from apiserver.schema.markers import Items, MapKeys, Properties, Range

RoleLabels = Annotated[dict[str, LabelValue], Properties(1, 64), LABELS]
"""Labels that tell one role from another: at least one."""


@declaration(Different("decodeLabels", "prefillLabels"))
class PDGroup:
    """Prefill and decode on pods of their own: how each is told, and which belong together."""

    group_key: LabelKey
    """The label whose value says which group a pod belongs to. A prefill pod hands over to decode pods of its
    own group only."""

    prefill_labels: RoleLabels
    """Labels of the pods that read prompts."""

    decode_labels: RoleLabels
    """Labels of the pods that write answers."""


@declaration(NotEmptyUnless("matchLabels", "pdGroup"))
class WorkloadSelector:
    """Which pods serve: those of the same namespace that have all these labels."""

    match_labels: Maybe[Labels] = UNSET
    """Labels that every serving pod has, whatever its role."""

    pd_group: Maybe[PDGroup] = UNSET
    """Tells pods for prefill from pods for decode, where these are apart."""


@declaration()
class WorkloadPort:
    """The port on which the pods listen."""

    port: Annotated[Int32, Range(1, 65535)]
    """Port of the engine in each pod, between 1 and 65535."""

    protocol: Literal["http", "https"] = "http"
    """The protocol that the pods speak on that port."""


@declaration()
class Retry:
    """What happens when a pod fails a request."""

    attempts: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """How often one request is tried again before it has failed. Without it, or with 0, never."""

    retry_interval: Annotated[Duration, Within("0s", "1h")] = "100ms"
    """Time between two tries."""


@declaration()
class TrafficPolicy:
    """How long a router waits for the pods, and how often it tries again."""

    timeout: Maybe[Annotated[Duration, Within("0s", "168h")]] = UNSET
    """Longest time that a request may take. Without it, or with 0s, there is no limit."""

    retry: Maybe[Retry] = UNSET
    """What happens when a pod fails a request."""


@declaration()
class KVConnectorSpec:
    """How prefill pods hand their KV cache to decode pods."""

    type: Literal["http", "lmcache", "nixl", "mooncake"] = "http"
    """The connector that carries the KV cache. `http` needs nothing beside the engines."""


@declaration()
class ModelServerSpec:
    """The desired state of a ModelServer: which pods serve which model, and how routers reach them."""

    model: Maybe[ServedModelName] = UNSET
    """The name by which the engine knows its model. A request that says another is changed to say this;
    without it, requests go on as they came."""

    inference_engine: Literal["vLLM", "SGLang"]
    """The engine that serves."""

    workload_selector: WorkloadSelector
    """The pods that serve, in the namespace of this object."""

    workload_port: Maybe[WorkloadPort] = UNSET
    """The port on which the pods listen."""

    traffic_policy: Maybe[TrafficPolicy] = UNSET
    """How long a router waits for the pods, and how often it tries again."""

    kv_connector: Maybe[KVConnectorSpec] = UNSET
    """How prefill pods hand their KV cache to decode pods. Means nothing without `pdGroup`."""


@declaration()
class ModelServerStatus:
    """The observed state of a ModelServer. The reference page declares it empty."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that the status is about."""

    endpoints: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """Number of pods that are selected."""

    ready_endpoints: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """Number of these that are ready."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """`Accepted`: the spec is valid. `ResolvedRefs`: pods are selected. `Ready`: requests find one."""


@declaration()
class ModelServer:
    """Pods that serve one model together, as the target of a ModelRoute."""

    spec: ModelServerSpec
    """The desired state of the server: the pods that serve a model, and how routers reach them."""

    status: Maybe[ModelServerStatus] = UNSET
    """The observed state of the server. Written by the controller."""

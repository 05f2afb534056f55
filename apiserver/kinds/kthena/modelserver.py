"""ModelServer `v1alpha1`: the pods that serve a model, and how a router connects to them.

Decisions where the reference page does not specify the behavior:

- A selector must not be empty: without `pdGroup` it needs labels. One without any would treat every pod of
  the namespace as an inference engine.
- Prefill and decode pods are distinguished by labels, so the two sets must differ.
- The number of attempts is not negative; a timeout of 0s means no timeout, as if unset.
- `spec` is required, because `inferenceEngine` inside it is.

Limits on the length of text, on durations, and on the number of labels are ours.
"""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.kinds.core.names import LABELS, LabelKey, Labels, LabelValue
from apiserver.kinds.kthena.modelmatch import ServedModelName
from apiserver.kinds.meta import Condition, Duration, Int32
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import REQUIRED
from apiserver.schema.markers import Items, MapKeys, Properties, Range
from apiserver.schema.rules import Cel, Within

RoleLabels = Annotated[dict[str, LabelValue], Properties(1, 64), LABELS]
"""One or more labels that distinguish the pods of a role."""


@declaration(
    Cel(
        "!has(self.decodeLabels) || !has(self.prefillLabels) || size(self.decodeLabels) == 0"
        " || self.decodeLabels != self.prefillLabels",
        # The schema rejects empty labels.
        lambda group: not group.get("decodeLabels") or group["decodeLabels"] != group.get("prefillLabels"),
        "must differ from `prefillLabels`",
        sentence="`decodeLabels` differs from `prefillLabels`.",
        field="decodeLabels",
    )
)
class PDGroup:
    """Disaggregated prefill and decode: the pods of each role, and the groups that they form."""

    group_key: LabelKey
    """The key of the label whose value identifies the group of a pod. A prefill pod hands over only to decode
    pods of its own group."""

    prefill_labels: RoleLabels
    """The labels of the prefill pods, which process prompts."""

    decode_labels: RoleLabels
    """The labels of the decode pods, which generate the output."""


@declaration(
    Cel(
        "has(self.pdGroup) || (has(self.matchLabels) && size(self.matchLabels) > 0)",
        lambda selector: "pdGroup" in selector or bool(selector.get("matchLabels")),
        "must be set and not empty unless `pdGroup` is set",
        sentence="`matchLabels` is set and not empty unless `pdGroup` is set.",
        field="matchLabels",
        reason=REQUIRED,
    )
)
class WorkloadSelector:
    """A selector for the serving pods in the same namespace. All labels must match."""

    match_labels: Maybe[Labels] = UNSET
    """Labels of every serving pod, whatever its role."""

    pd_group: Maybe[PDGroup] = UNSET
    """Distinguishes prefill pods from decode pods, if they are disaggregated."""


@declaration()
class WorkloadPort:
    """The port that the pods listen on."""

    port: Annotated[Int32, Range(1, 65535)]
    """The port of the engine in each pod, between 1 and 65535."""

    protocol: Literal["http", "https"] = "http"
    """The protocol of the port."""


@declaration()
class Retry:
    """The retry policy for failed requests."""

    attempts: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The maximum number of retries of a request. If unset or 0, requests are not retried."""

    retry_interval: Annotated[Duration, Within("0s", "1h")] = "100ms"
    """The time between two attempts."""


@declaration()
class TrafficPolicy:
    """Timeout and retries of requests from a router to the pods."""

    timeout: Maybe[Annotated[Duration, Within("0s", "168h")]] = UNSET
    """The maximum duration of a request. If unset or 0s, there is no limit."""

    retry: Maybe[Retry] = UNSET
    """The retry policy for failed requests."""


@declaration()
class KVConnectorSpec:
    """The connector that transfers the KV cache from prefill pods to decode pods."""

    type: Literal["http", "lmcache", "nixl", "mooncake"] = "http"
    """The type of the connector. `http` needs nothing in addition to the engines."""


@declaration()
class ModelServerSpec:
    """The desired state of a ModelServer: the pods that serve a model, and how routers connect to them."""

    model: Maybe[ServedModelName] = UNSET
    """The model name that the engine expects. The router replaces any other name in a request with it. If
    unset, requests are forwarded unchanged."""

    inference_engine: Literal["vLLM", "SGLang"]
    """The inference engine."""

    workload_selector: WorkloadSelector
    """The selector for the serving pods, in the namespace of this object."""

    workload_port: Maybe[WorkloadPort] = UNSET
    """The port that the pods listen on."""

    traffic_policy: Maybe[TrafficPolicy] = UNSET
    """Timeout and retries of requests from a router to the pods."""

    kv_connector: Maybe[KVConnectorSpec] = UNSET
    """The connector that transfers the KV cache from prefill pods to decode pods. It has no effect without
    `pdGroup`."""


@declaration()
class ModelServerStatus:
    """The observed state of a ModelServer."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that the status refers to."""

    endpoints: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The number of selected pods."""

    ready_endpoints: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The number of selected pods that are ready."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """The conditions of the server. `Accepted`: the spec is valid. `ResolvedRefs`: pods are selected.
    `Ready`: requests reach a pod."""


@declaration()
class ModelServer:
    """A set of pods that serve one model, as the target of a ModelRoute."""

    spec: ModelServerSpec
    """The desired state of the server: the pods that serve a model, and how routers connect to them."""

    status: Maybe[ModelServerStatus] = UNSET
    """The observed state of the server. Written by the controller."""

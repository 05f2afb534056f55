"""ModelRoute `v1alpha1`: routing of requests to ModelServers by rules, weights and rate limits.

Decisions where the reference page does not specify the behavior:

- A rule needs at least one target with a weight above 0; otherwise its requests could go nowhere.
- Weights are relative within a rule. They are percentages if they add up to 100.
- The model name may be added to a route and removed from it, but not replaced, as in every release.
- A target is named by the bare name of a ModelServer, so a name that no object can have is rejected.

Length limits of text and lists are ours.
"""

from __future__ import annotations

import ipaddress
import operator
from collections.abc import Sequence
from typing import Annotated, Final, Literal

import re2

from apiserver.kinds.core.names import DnsSubdomain
from apiserver.kinds.kthena.modelmatch import ModelMatch, ServedModelName
from apiserver.kinds.meta import Condition, Int32, Uint32
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import REQUIRED, FieldError, invalid
from apiserver.schema.json import JsonValue
from apiserver.schema.markers import Items, Length, MapKeys, Pattern, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import Cel, Transition, WebhookOnly

# A network address is a DNS name, an IPv4 address, or an IPv6 address in brackets, and a port.
_LABEL: Final = r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
_NAME: Final = rf"{_LABEL}(\.{_LABEL})*\.?"
_PORT: Final = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_LONGEST: Final = 320
_NUMERIC: Final = re2.compile(r"^(\[(?P<six>[^\]]*)\]|(?P<four>[0-9.]+)):")


def _numeric_host(value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
    host = _NUMERIC.search(value) if len(value) <= _LONGEST else None
    if host is None:
        return ()
    try:
        if host.group("six") is not None:
            ipaddress.IPv6Address(host.group("six"))
        else:
            ipaddress.IPv4Address(host.group("four"))
    except ipaddress.AddressValueError:
        return [invalid(path, value, "must have a valid IP address where the host is no DNS name")]
    return ()


HostPort = Annotated[
    str,
    Length(maximum=_LONGEST),
    Pattern(
        rf"^({_NAME}|\[[0-9A-Fa-f:.]+\]):{_PORT}$",
        says="host:port, such as redis.cache.svc:6379, 10.0.0.7:6379 or [fd00::7]:6379: a host of letters,"
        " digits, '-' and '.' (no '_', no scheme, no path) and a port between 1 and 65535",
    ),
    WebhookOnly(_numeric_host, "A host in digits or in brackets is a valid IP address."),
]
"""A host and a port between 1 and 65535, without scheme, path or credentials."""


DEFAULT_WEIGHT: Final = 100
"""The weight of a target that does not set one."""

MOST_TARGETS: Final = 16
"""The maximum number of targets of a rule."""

MOST_RULES: Final = 16
"""The maximum number of rules of a route."""

MOST_ADAPTERS: Final = 10
"""The maximum number of LoRA adapters of a route."""


@declaration()
class TargetModel:
    """A target of requests and its weight."""

    model_server_name: DnsSubdomain
    """The name of a ModelServer in the namespace of the route."""

    weight: Annotated[Uint32, Range(0, 100)] = DEFAULT_WEIGHT
    """The share of the rule's requests, relative to the weights of its other targets. 0 sends none. If the
    weights of a rule add up to 100, they are percentages."""


SOME_WEIGHT: Final = Cel(
    f"size(self) == 0 || self.exists(item, (has(item.weight) ? item.weight : {DEFAULT_WEIGHT}) > 0)",
    lambda targets: not targets or not all(item.get("weight", DEFAULT_WEIGHT) <= 0 for item in targets),
    "the sum of `weight` must be greater than 0",
    sentence="`weight` of at least one item is greater than 0.",
    shown=lambda _: 0,
)
"""The rule that the requests of a rule can go somewhere."""


@declaration()
class Rule:
    """A routing rule: conditions on requests, and the targets of those that match."""

    name: Maybe[Annotated[str, Length(maximum=253)]] = UNSET
    """The name of the rule, for information only."""

    model_match: Maybe[ModelMatch] = UNSET
    """Conditions on the request. If unset or empty, the rule applies to every request."""

    target_models: Annotated[tuple[TargetModel, ...], Items(1, MOST_TARGETS), SOME_WEIGHT]
    """The targets among which the requests are distributed."""


@declaration()
class RedisConfig:
    """A reference to a Redis server."""

    address: HostPort
    """The host and port of the server, such as `redis.cache.svc:6379`. An IPv6 address is enclosed in
    brackets."""


@declaration()
class GlobalRateLimit:
    """The storage of token counts that all routers share."""

    redis: Maybe[RedisConfig] = UNSET
    """The Redis server that stores the counts."""


@declaration()
class RateLimit:
    """Limits on the tokens of requests per unit of time. Requests beyond a limit are answered with 429."""

    input_tokens_per_unit: Maybe[Annotated[Uint32, Range(1)]] = UNSET
    """The maximum number of prompt tokens per unit of time. If unset, prompts are not limited."""

    output_tokens_per_unit: Maybe[Annotated[Uint32, Range(1)]] = UNSET
    """The maximum number of output tokens per unit of time. If unset, outputs are not limited."""

    unit: Literal["second", "minute", "hour", "day", "month"] = "second"
    """The unit of time. A month has 30 days."""

    global_: Maybe[GlobalRateLimit] = UNSET
    """Makes all routers share one count. If unset, each router counts separately, and the limit applies to
    each of them."""


@declaration(
    Cel(
        "(has(self.modelName) && size(self.modelName) > 0)"
        " || (has(self.loraAdapters) && size(self.loraAdapters) > 0)",
        lambda spec: bool(spec.get("modelName") or spec.get("loraAdapters")),
        "at least one of `modelName` and `loraAdapters` must be set and not empty",
        sentence="At least one of `modelName` and `loraAdapters` is set and not empty.",
        field="modelName",
        reason=REQUIRED,
    )
)
class ModelRouteSpec:
    """The desired state of a ModelRoute: the model names that it serves, its rules and its limits."""

    model_name: Maybe[
        Annotated[
            ServedModelName,
            Transition(
                "self == oldSelf", operator.eq, "Cannot be changed to another value once it is stored."
            ),
        ]
    ] = UNSET
    """The model name of the requests to route: a base model, a LoRA adapter or a custom name. It cannot be
    replaced by another name; create a new route instead."""

    lora_adapters: Maybe[
        Annotated[tuple[Annotated[str, Length(1, 256)], ...], Items(maximum=MOST_ADAPTERS)]
    ] = UNSET
    """Names of LoRA adapters of the requests to route."""

    rules: Annotated[tuple[Rule, ...], Items(maximum=MOST_RULES)]
    """The routing rules, evaluated in order. The first rule that matches a request applies. A request that
    matches no rule is answered with 404."""

    rate_limit: Maybe[RateLimit] = UNSET
    """The limit on the tokens of all requests of this route. If unset, there is no limit."""


@declaration()
class TargetStatus:
    """The observed state of one ModelServer that the rules refer to."""

    model_server_name: Annotated[str, Length(maximum=253)]
    """The name of the ModelServer."""

    ready_endpoints: Annotated[Int32, Range(0)]
    """The number of its ready pods."""

    message: Maybe[Annotated[str, Length(maximum=1024)]] = UNSET
    """The reason why requests reach none of the pods. Unset if they do."""


@declaration()
class ModelRouteStatus:
    """The observed state of a ModelRoute."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that the status refers to."""

    ready_endpoints: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The number of ready pods of all targets together."""

    targets: Maybe[Annotated[tuple[TargetStatus, ...], Items(maximum=256), MapKeys("modelServerName")]] = (
        UNSET
    )
    """The ModelServers that the rules refer to."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """The conditions of the route. `Accepted`: the spec is valid, and no older route has the same model
    names. `ResolvedRefs`: all ModelServers exist. `Ready`: requests reach a pod wherever a rule sends them.
    `Translated`: the route has the same meaning behind the Gateways that it names."""


@declaration()
class ModelRoute:
    """A route for requests to a model, or to its LoRA adapters, to the ModelServers that serve it."""

    spec: ModelRouteSpec
    """The desired state of the route: the model names that it serves, its rules and its limits."""

    status: Maybe[ModelRouteStatus] = UNSET
    """The observed state of the route. Written by the controller."""

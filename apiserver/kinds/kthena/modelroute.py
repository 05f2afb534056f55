"""ModelRoute `v1alpha1`: which requests go to which ModelServers, in which shares, within which limits.

Decisions where the reference page is silent:

- A rule needs a target, and one of its weights must be above 0: else its requests could go nowhere.
- Weights are relative within a rule. They read as percentages where they add up to 100.
- The model name may be added to a route and removed from it, but not replaced, as in every release.
- A target is named by the bare name of a ModelServer, so a name that no object can have is refused.

Bounds on the length of text and lists are ours.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from apiserver.kinds.core.names import DnsSubdomain
from apiserver.kinds.kthena.hostport import HostPort
from apiserver.kinds.kthena.modelmatch import ModelMatch, ServedModelName
from apiserver.kinds.meta import Condition, Int32, Uint32
from apiserver.schema.comparison import SomePositive
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.filling import SomeNotEmpty
from apiserver.schema.markers import Items, Length, MapKeys, Range
from apiserver.schema.transitions import Unchanged

DEFAULT_WEIGHT: Final = 100
"""What a target weighs that does not say."""

MOST_TARGETS: Final = 16
"""Of a rule."""

MOST_ADAPTERS: Final = 10
"""Of a route."""


@declaration()
class TargetModel:
    """Where requests go, and in which share."""

    model_server_name: DnsSubdomain
    """Name of a ModelServer in the namespace of the route."""

    weight: Annotated[Uint32, Range(0, 100)] = DEFAULT_WEIGHT
    """Share of the rule's requests, relative to the weights of its other targets; 0 sends none. Where the
    weights of a rule add up to 100 they are percentages."""


TargetModels = Annotated[
    tuple[TargetModel, ...], Items(1, MOST_TARGETS), SomePositive("weight", default=DEFAULT_WEIGHT)
]


@declaration()
class Rule:
    """One way through: requests like these go to those servers."""

    name: Maybe[Annotated[str, Length(maximum=253)]] = UNSET
    """What the rule is called, for people."""

    model_match: Maybe[ModelMatch] = UNSET
    """What a request must be like. Without it, or empty, the rule applies to every request."""

    target_models: TargetModels
    """The servers among which the requests are shared out."""


@declaration()
class RedisConfig:
    """A Redis server."""

    address: HostPort
    """Host and port of the server, such as `redis.cache.svc:6379`; an IPv6 address stands in brackets."""


@declaration()
class GlobalRateLimit:
    """Where all routers together count."""

    redis: Maybe[RedisConfig] = UNSET
    """The Redis server that keeps the count."""


@declaration()
class RateLimit:
    """How many tokens requests may use per unit of time; what is beyond is answered with 429."""

    input_tokens_per_unit: Maybe[Annotated[Uint32, Range(1)]] = UNSET
    """Most tokens of prompts. Without it prompts are not limited."""

    output_tokens_per_unit: Maybe[Annotated[Uint32, Range(1)]] = UNSET
    """Most tokens of answers. Without it answers are not limited."""

    unit: Literal["second", "minute", "hour", "day", "month"] = "second"
    """The unit of time. A month has 30 days."""

    global_: Maybe[GlobalRateLimit] = UNSET
    """Lets all routers share one count. Without it each router counts for itself, and the limit holds for
    each."""


@declaration(SomeNotEmpty(("modelName", "loraAdapters")))
class ModelRouteSpec:
    """The desired state of a ModelRoute: the names that it answers to, and its rules."""

    model_name: Maybe[Annotated[ServedModelName, Unchanged()]] = UNSET
    """The model that a request names to come here: a base model, a LoRA adapter or a name of your own. It
    cannot be replaced by another; make a new route for another name."""

    lora_adapters: Maybe[
        Annotated[tuple[Annotated[str, Length(1, 256)], ...], Items(maximum=MOST_ADAPTERS)]
    ] = UNSET
    """LoRA adapters that a request may name to come here."""

    rules: Annotated[tuple[Rule, ...], Items(maximum=16)]
    """Tried in their order; the first that applies to a request is used. A request to which none applies is
    answered with 404."""

    rate_limit: Maybe[RateLimit] = UNSET
    """Limit on the tokens of all requests that come here. Without it there is none."""


@declaration()
class TargetStatus:
    """The observed state of one ModelServer that the rules name."""

    model_server_name: Annotated[str, Length(maximum=253)]
    """Name of the ModelServer."""

    ready_endpoints: Annotated[Int32, Range(0)]
    """Number of its pods that are ready."""

    message: Maybe[Annotated[str, Length(maximum=1024)]] = UNSET
    """Why requests find none of them. Missing where they do."""


@declaration()
class ModelRouteStatus:
    """The observed state of a ModelRoute. The reference page declares it empty."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that the status is about."""

    ready_endpoints: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """Number of pods that are ready, of all targets together."""

    targets: Maybe[Annotated[tuple[TargetStatus, ...], Items(maximum=256), MapKeys("modelServerName")]] = (
        UNSET
    )
    """The ModelServers that the rules name."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """`Accepted`: the spec is valid, and no older route answers to its names. `ResolvedRefs`: all
    ModelServers are there. `Ready`: requests find a pod wherever a rule sends them. `Translated`: it
    means the same behind the Gateways that it names."""


@declaration()
class ModelRoute:
    """Routes requests for a model, or for its LoRA adapters, to the ModelServers that serve it."""

    spec: ModelRouteSpec
    """The desired state of the route: the models that it answers to, its rules and its limits."""

    status: Maybe[ModelRouteStatus] = UNSET
    """The observed state of the route. Written by the controller."""

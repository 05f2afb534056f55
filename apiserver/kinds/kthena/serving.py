"""ModelRoute and ModelServer `v1alpha1` of networking.serving.volcano.sh, the group of Kthena's releases.

They have the fields of networking.volcano.sh, and what was added since. Fields whose type alone differs have
the descriptions from there. The definitions of the releases have no fields in `status`.
`externalModelProviderName` was added after 1.0; in releases up to 1.0, the API server demands
`modelServerName`.
"""

from __future__ import annotations

from typing import Annotated, Final

from apiserver.kinds.core.names import LABEL_PATTERN, LABEL_SAYS, SUBDOMAIN, SUBDOMAIN_SAYS, DnsSubdomain
from apiserver.kinds.inference.inferenceobjective import GroupName, KindName
from apiserver.kinds.kthena.modelroute import (
    MOST_RULES,
    MOST_TARGETS,
    SOME_WEIGHT,
    ModelRoute,
    ModelRouteSpec,
    RateLimit,
    Rule,
    TargetModel,
)
from apiserver.kinds.kthena.modelserver import ModelServer
from apiserver.kinds.meta import Int32, ObjectName
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, Pattern, Range
from apiserver.schema.rules import ExactlyOneOf

_MOST_PARENTS: Final = 32
"""As in the Gateway API."""

_Tokens = Annotated[Int32, Range(1)]
"""A number of tokens, which the definitions of the releases limit to 32 bits."""


@declaration()
class ServingStatus:
    """The observed state, for which the releases of Kthena define no fields."""


@declaration(ExactlyOneOf(("modelServerName", "externalModelProviderName")), extends=TargetModel)
class ServingTargetModel:
    """A target of requests and its weight."""

    model_server_name: Maybe[DnsSubdomain] = UNSET

    external_model_provider_name: Maybe[DnsSubdomain] = UNSET
    """The name of an ExternalModelProvider in the namespace of the route, after Kthena 1.0."""


@declaration(extends=Rule)
class ServingRule:
    """A routing rule: conditions on requests, and the targets of those that match."""

    target_models: Annotated[tuple[ServingTargetModel, ...], Items(1, MOST_TARGETS), SOME_WEIGHT]


@declaration(extends=RateLimit)
class ServingRateLimit:
    """Limits on the tokens of requests per unit of time. Requests beyond a limit are answered with 429."""

    input_tokens_per_unit: Maybe[_Tokens] = UNSET
    output_tokens_per_unit: Maybe[_Tokens] = UNSET


@declaration()
class ParentReference:
    """A reference to a Gateway, as in the Gateway API."""

    group: GroupName = "gateway.networking.k8s.io"
    """The API group of the parent. Empty means the core group."""

    kind: KindName = "Gateway"
    """The kind of the parent."""

    namespace: Maybe[Annotated[str, Length(1, 63), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]] = UNSET
    """The namespace of the parent. If unset, that of the route."""

    name: ObjectName
    """The name of the parent."""

    section_name: Maybe[Annotated[str, Length(1, 253), Pattern(f"^{SUBDOMAIN}$", says=SUBDOMAIN_SAYS)]] = (
        UNSET
    )
    """The name of a listener. If unset, the route is attached to all listeners."""

    port: Maybe[Annotated[Int32, Range(1, 65535)]] = UNSET
    """The port of the listeners. If unset, the port does not matter."""


@declaration(extends=ModelRouteSpec)
class ServingModelRouteSpec:
    """The desired state of a ModelRoute: the model names that it serves, its rules and its limits."""

    parent_refs: Maybe[Annotated[tuple[ParentReference, ...], Items(maximum=_MOST_PARENTS)]] = UNSET
    """The Gateways whose requests Kthena's router routes by this route. If unset, those of all Gateways in
    its namespace."""

    rules: Annotated[tuple[ServingRule, ...], Items(maximum=MOST_RULES)]
    rate_limit: Maybe[ServingRateLimit] = UNSET


@declaration(extends=ModelRoute)
class ServingModelRoute:
    """A route for requests to a model, or to its LoRA adapters, to the ModelServers that serve it."""

    spec: ServingModelRouteSpec
    status: Maybe[ServingStatus] = UNSET
    """Not written."""


@declaration(extends=ModelServer)
class ServingModelServer:
    """A set of pods that serve one model, as the target of a ModelRoute."""

    status: Maybe[ServingStatus] = UNSET
    """Not written."""

"""Configuration of `stowplan webhooks`."""

from __future__ import annotations

from typing import Annotated

from apiserver.kinds.scalable import SCALABLE
from apiserver.kinds.settings_names import NamesConfig
from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Items, Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig

Word = Annotated[str, Length(1, 63)]


@declaration()
class ScalableResource:
    """A kind that may be scaled on behalf of Stowplan's objects."""

    group: Annotated[str, Length(0, 253)]
    """API group, such as `apps`; empty for the core group."""

    kind: Word
    """Kind, such as `Deployment`."""

    resource: Word
    """Name of the resource in paths and permissions, such as `deployments`."""

    has_scale: bool = True
    """Whether the kind has a scale subresource. Otherwise the user who names it needs `update` on the
    object."""


@declaration()
class ScalingConfig:
    """Which targets Stowplan's objects may name, and whether the user must be allowed to scale them."""

    resources: Annotated[tuple[ScalableResource, ...], Items(1, 64)] = tuple(
        ScalableResource(group=group, kind=kind, resource=item.resource, has_scale=item.has_scale)
        for (group, kind), item in SCALABLE.items()
    )
    """Kinds that a target may have; other kinds are refused."""

    authorize: bool = True
    """Whether the user who names a target must be allowed to update its scale. If false, everyone who may
    write Stowplan's objects can resize any workload in the namespace."""


@declaration()
class WebhooksConfig:
    """Configuration of the admission and conversion webhooks."""

    serving: ServingConfig = ServingConfig()
    """Listeners, certificates and logs."""

    cluster: ClusterConfig = ClusterConfig()
    """The API server for permission checks and for caches of referenced objects. Conversion never uses it."""

    namespace: Annotated[str, Length(maximum=63)] = ""
    """Namespace of this installation, where service classes are looked up. Empty: the namespace of the
    pod."""

    names: NamesConfig = NamesConfig()
    """Names of the ConfigMaps with settings, which are validated on writes. With other names, change them for
    the controller and in the ValidatingWebhookConfiguration `stowplan`, too."""

    scaling: ScalingConfig = ScalingConfig()
    """Which targets Stowplan's objects may name."""

    tenants: bool = False
    """Whether the user who writes an object must be allowed to use its service class and to set a cost. For
    clusters whose users don't trust each other (docs/tenancy.md). Set it for the controller, too."""

    admission_limit_bytes: Annotated[int, Range(1 << 20, 1 << 30)] = 8 << 20
    """Maximum size of an admission review in bytes; an update carries both the old object and the new one."""

    conversion_limit_bytes: Annotated[int, Range(1 << 20, 1 << 30)] = 64 << 20
    """Maximum size of a conversion review in bytes."""

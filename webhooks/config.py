"""What `stowplan webhooks` can be told."""

from __future__ import annotations

from typing import Annotated

from apiserver.kinds.scalable import SCALABLE
from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Items, Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig

Word = Annotated[str, Length(1, 63)]


@declaration()
class ScalableResource:
    """A kind of object that ours may have scaled: it has a scale subresource."""

    group: Annotated[str, Length(0, 253)]
    """API group, such as `apps`; empty for the core group."""

    kind: Word
    """Kind, such as `Deployment`."""

    resource: Word
    """Name of the resource in paths and permissions, such as `deployments`."""

    has_scale: bool = True
    """Whether it has a scale subresource. Without one, who names it must be allowed to update it whole."""


@declaration()
class ScalingConfig:
    """What our objects may have scaled, and with whose permission."""

    resources: Annotated[tuple[ScalableResource, ...], Items(1, 64)] = tuple(
        ScalableResource(group=group, kind=kind, resource=item.resource, has_scale=item.has_scale)
        for (group, kind), item in SCALABLE.items()
    )
    """Kinds that a target may have; others are refused."""

    authorize: bool = True
    """Whether who names a target must be allowed to update its scale. Without it anybody who may write our
    objects can change the size of any workload in the namespace."""


@declaration()
class WebhooksConfig:
    """Configuration of the admission and conversion webhooks."""

    serving: ServingConfig = ServingConfig()
    """Listeners, certificates and logs."""

    cluster: ClusterConfig = ClusterConfig()
    """The API server: asked who may scale what, and which other objects exist. Conversion never uses it."""

    namespace: Annotated[str, Length(maximum=63)] = ""
    """Namespace of this installation, where service classes are looked for. Empty: that of the pod."""

    scaling: ScalingConfig = ScalingConfig()
    """What our objects may have scaled."""

    tenants: bool = False
    """Whether who writes an object must be allowed to use its service class, and to set a cost: for clusters
    whose users don't trust each other (docs/tenancy.md). Set it for the controller, too."""

    admission_limit_bytes: Annotated[int, Range(1 << 20, 1 << 30)] = 8 << 20
    """Largest admission review that is read; an update carries the old object and the new."""

    conversion_limit_bytes: Annotated[int, Range(1 << 20, 1 << 30)] = 64 << 20
    """Largest conversion review that is read."""

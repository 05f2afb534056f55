"""What `stowplan apiserver` can be told."""

from __future__ import annotations

from typing import Annotated

from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig


@declaration()
class MetricsConfig:
    """Configuration of the external metrics API."""

    serving: ServingConfig = ServingConfig()
    """Listeners, certificates and logs."""

    cluster: ClusterConfig = ClusterConfig()
    """The API server that VariantAutoscalings are watched on."""

    namespace: Annotated[str, Length(maximum=63)] = ""
    """Namespace of Stowplan itself, where the controller's Lease says when it last decided. Empty: that
    of the pod."""

    stale_after_seconds: Annotated[int, Range(1, 86400)] = 180
    """A decision that no cycle of the controller has confirmed for so long is an error and never a number:
    the HorizontalPodAutoscaler then holds."""

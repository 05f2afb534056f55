"""What `stowplan apiserver` can be told."""

from __future__ import annotations

from typing import Annotated

from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Range
from apiserver.serving.config import ClusterConfig, ServingConfig


@declaration()
class MetricsConfig:
    """Configuration of the external metrics API."""

    serving: ServingConfig = ServingConfig()
    """Listeners, certificates and logs."""

    cluster: ClusterConfig = ClusterConfig()
    """The API server that VariantAutoscalings are watched on."""

    stale_after_seconds: Annotated[int, Range(1, 86400)] = 180
    """A decision older than this is an error and never a number: the HorizontalPodAutoscaler then holds."""

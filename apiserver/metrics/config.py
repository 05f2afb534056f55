"""The configuration of `stowplan apiserver`."""

from __future__ import annotations

from typing import Annotated

from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig


@declaration()
class MetricsConfig:
    """Configuration of the external metrics API."""

    serving: ServingConfig = ServingConfig()
    """Settings of listeners, certificates and logs."""

    cluster: ClusterConfig = ClusterConfig()
    """The API server on which VariantAutoscalings and AutoscalingPolicyBindings are watched."""

    namespace: Annotated[str, Length(maximum=63)] = ""
    """The namespace of Stowplan, where the controller's Lease records its last cycle. Defaults to the
    namespace of the pod."""

    stale_after_seconds: Annotated[int, Range(1, 86400)] = 180
    """The maximum age of a decision, in seconds. If no cycle of the controller has confirmed a decision for
    longer, a query returns an error instead of a number, and the HorizontalPodAutoscaler keeps its replicas.
    """

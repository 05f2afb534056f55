"""What `stowplan webhooks` can be told."""

from __future__ import annotations

from typing import Annotated

from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Range
from apiserver.serving.config import ClusterConfig, ServingConfig


@declaration()
class WebhooksConfig:
    """Configuration of the admission and conversion webhooks."""

    serving: ServingConfig = ServingConfig()
    """Listeners, certificates and logs."""

    cluster: ClusterConfig = ClusterConfig()
    """The API server, for advice about objects that are not there yet. Conversion never uses it."""

    admission_limit_bytes: Annotated[int, Range(1 << 20, 1 << 30)] = 8 << 20
    """Largest admission review that is read; an update carries the old object and the new."""

    conversion_limit_bytes: Annotated[int, Range(1 << 20, 1 << 30)] = 64 << 20
    """Largest conversion review that is read."""

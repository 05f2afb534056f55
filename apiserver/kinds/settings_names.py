"""Names of the ConfigMaps with settings; apart from their schema, which takes long to import."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Final

from apiserver.schema.declaration import declaration
from apiserver.schema.json import Json
from apiserver.schema.markers import Length

INSTALLATION: Final = "stowplan-system"
"""The default namespace of the installation."""

LAST_VALID: Final = "stowplan-last-valid-settings"
"""Name of the ConfigMap in which the controller keeps the last valid settings."""

ALLOW_EMPTY: Final = "stowplan.dev/allow-empty"
"""With value `true` on a ConfigMap of settings, it may be empty: its last valid content is given up."""


@declaration()
class NamesConfig:
    """Names of the ConfigMaps with prices and service classes, in the namespace of the installation."""

    unit_costs: Annotated[str, Length(1, 253)] = "accelerator-unit-costs"
    """Name of the ConfigMap with the cost per hour of one accelerator of each type."""

    service_classes: Annotated[str, Length(1, 253)] = "service-classes-config"
    """Name of the ConfigMap with the service classes for models whose VariantAutoscalings name none. A class
    that is named by reference may be in any ConfigMap of the namespace."""


def are_settings(name: str, names: NamesConfig) -> bool:
    """Return whether a ConfigMap of the installation's namespace has settings by its name."""
    return name in {names.unit_costs, names.service_classes}


def holds_back(metadata: Json, data: Collection[str] | None) -> bool:
    """Return whether an empty ConfigMap lets its last valid content stay in force."""
    annotations = metadata.get("annotations") or {}
    return not data and annotations.get(ALLOW_EMPTY) != "true"

"""The API groups of Kthena's kinds."""

from __future__ import annotations

from typing import Final

REGISTRY: Final = "registry.volcano.sh"
"""The API group of Model, AutoscalingPolicy and AutoscalingPolicyBinding."""

NETWORKING: Final = "networking.volcano.sh"
"""The API group of ModelRoute and ModelServer."""

"""The API groups of Kthena's kinds."""

from __future__ import annotations

from typing import Final

REGISTRY: Final = "registry.volcano.sh"
"""Group of Model, AutoscalingPolicy and AutoscalingPolicyBinding."""

NETWORKING: Final = "networking.volcano.sh"
"""Group of ModelRoute and ModelServer."""

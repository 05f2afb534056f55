"""The API groups of Kthena's kinds."""

from __future__ import annotations

from typing import Final

REGISTRY: Final = "registry.volcano.sh"
"""The API group of Model, AutoscalingPolicy and AutoscalingPolicyBinding."""

NETWORKING: Final = "networking.volcano.sh"
"""The API group of ModelRoute and ModelServer before the first release of Kthena. Stowplan installs their
definitions; no release of Kthena reads them."""

SERVING: Final = "networking.serving.volcano.sh"
"""The API group of ModelRoute and ModelServer in all releases of Kthena, which install the definitions."""

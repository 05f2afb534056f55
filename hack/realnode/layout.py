"""Where the parts of the node are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.realnode.prepared import Prepared

NODE: Final = "real"
"""The name of the node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeLayout:
    """The files of one node, and what it is told of its surroundings."""

    prepared: Prepared
    directory: Path
    """Everything that the node writes."""

    pki: Path
    """The keys of the control plane, and the node's beside them."""

    @property
    def socket(self) -> Path:
        """Where containerd listens."""
        return self.directory / "containerd.sock"

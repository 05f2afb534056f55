"""Paths of the node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.realnode.prepared import Prepared

NODE: Final = "real"
"""The name of the node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeLayout:
    """Files of one node, and what was prepared for it."""

    prepared: Prepared
    directory: Path
    """The directory of all files that the node writes."""

    pki: Path
    """The keys of the control plane and of the node."""

    @property
    def socket(self) -> Path:
        """The socket of containerd."""
        return self.directory / "containerd.sock"

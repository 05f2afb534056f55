"""The controller of Models as a process for the duration of a block."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from hack.installation.models import start_models

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.controlplane.process import Process

NAMESPACE = "stowplan-system"
ACCOUNT = "stowplan-models"


@contextlib.contextmanager
def models_process(control_plane: ControlPlane, *folders: str, **settings: Any) -> Iterator[Process]:
    """Run the process until the block ends, with further folders of `manifests` applied."""
    process = start_models(control_plane, *folders, **settings)
    try:
        yield process
    finally:
        process.stop(patience_seconds=20.0)

"""The configuration of the rig's scheduler: the default profile and those of a shipped file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_CALLS_PER_SECOND = 1000
"""High enough that measurements of placements don't wait for the scheduler's client-side throttling."""


def scheduler_configuration(shipped: Path, *, kubeconfig: str) -> str:
    """Return a shipped configuration adapted to the scheduler of this instance.

    The profiles are unchanged, in addition to the default one; only the client settings are replaced.
    """
    document: dict[str, Any] = yaml.safe_load(shipped.read_text(encoding="utf-8"))
    connection = {"kubeconfig": kubeconfig, "qps": _CALLS_PER_SECOND, "burst": 2 * _CALLS_PER_SECOND}
    changed = {
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "default-scheduler"}, *document["profiles"]],
    }
    return yaml.safe_dump(document | changed)

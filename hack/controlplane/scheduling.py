"""The configuration of the rig's scheduler: the default profile, and what a shipped file has besides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_CALLS_PER_SECOND = 1000
"""Whoever measures placements should not wait for the scheduler's own manners."""


def scheduler_configuration(shipped: Path, *, kubeconfig: str) -> str:
    """Return a shipped configuration as the scheduler of this copy runs it.

    The profiles stand as they are, beside the default one; only how to reach the API server is ours.
    """
    document: dict[str, Any] = yaml.safe_load(shipped.read_text(encoding="utf-8"))
    connection = {"kubeconfig": kubeconfig, "qps": _CALLS_PER_SECOND, "burst": 2 * _CALLS_PER_SECOND}
    changed = {
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "default-scheduler"}, *document["profiles"]],
    }
    return yaml.safe_dump(document | changed)

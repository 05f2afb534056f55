"""Replicas that are not ready although they should have started long ago.

They still count as capacity. If plans replaced them, a variant whose pods never become ready, for instance
because of a wrong image, would be given all accelerators that it can get.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from apiserver.schema.json import Json
from controller.observe.pods import has_engine, is_ready, readiness_changed
from controller.planning.wording import count

_USUAL_STARTS: Final = 3.0
"""Multiple of the usual start-up time after which a replica is late."""

_LEAST_SECONDS: Final = 600.0
"""Minimum of that time in seconds, as by default for the rollout of a Deployment: the usual start-up time may
be unknown, and images may have to be pulled.
"""


def lateness(pods: Sequence[Json], *, start_seconds: float, now_seconds: float) -> str:
    """Return which replicas on nodes have not been ready for far longer than a start takes; empty if none.

    `start_seconds` is the usual start-up time.
    """
    limit_seconds = max(_LEAST_SECONDS, _USUAL_STARTS * start_seconds)
    late = [
        pod["metadata"]["name"]
        for pod in pods
        if has_engine(pod)
        and (since := _unready_since(pod)) is not None
        and now_seconds - since > limit_seconds
    ]
    if not late:
        return ""
    others = len(late) - 1
    who = f"{min(late)} and {count(others, 'more replica')} have" if others else f"{late[0]} has"
    return f"{who} not been ready for more than {limit_seconds:.0f} s"


def _unready_since(pod: Json) -> float | None:
    """Return since when a pod that started on a node has not been ready; None for any other."""
    started = (pod.get("status") or {}).get("startTime")
    if is_ready(pod) or not started:
        return None
    times = (started, readiness_changed(pod) or started)
    return max(datetime.fromisoformat(text).timestamp() for text in times)

"""Replicas that have not been ready for far longer than a start takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apiserver.schema.json import Json
from controller.observe.replicas import lateness

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pod(
    name: str = "llama-0",
    *,
    started: int | None = 3600,
    changed: int | None = None,
    ready: str = "False",
    labels: Json | None = None,
) -> Json:
    """Return a pod with the times in seconds since its start and since its readiness changed."""
    condition = {"type": "Ready", "status": ready} | _ago("lastTransitionTime", changed)
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"conditions": [{"type": "PodScheduled", "status": "True"}, condition]}
        | _ago("startTime", started),
    }


def _ago(name: str, seconds: int | None) -> Json:
    return {} if seconds is None else {name: (NOW - timedelta(seconds=seconds)).isoformat()}


WORKER = {"leaderworkerset.sigs.k8s.io/worker-index": "1"}
CASES = {
    "a ready replica": ([pod(ready="True")], 120, ""),
    "a replica that waits for a node": ([pod(started=None)], 120, ""),
    "a replica that is starting": ([pod(started=590)], 120, ""),
    "a replica that has just become unready": ([pod(changed=590)], 120, ""),
    "a replica of which only the start is known": (
        [pod()],
        120,
        "llama-0 has not been ready for more than 600 s",
    ),
    "a replica that became unready long ago": (
        [pod(changed=610)],
        120,
        "llama-0 has not been ready for more than 600 s",
    ),
    "a variant whose starts take long": ([pod(changed=800)], 300, ""),
    "several replicas": (
        [pod("llama-1"), pod("llama-0", changed=1000), pod("llama-2", ready="True")],
        300,
        "llama-0 and 1 more replica have not been ready for more than 900 s",
    ),
    "a worker of a group, whose leader counts": ([pod(labels=WORKER)], 120, ""),
}


@pytest.mark.parametrize(("pods", "start_seconds", "told"), CASES.values(), ids=CASES.keys())
def test_replicas_are_late_after_three_starts_and_ten_minutes(
    pods: list[Json], start_seconds: float, told: str
) -> None:
    """Only those on a node count: others wait for a place, which other messages explain."""
    assert lateness(pods, start_seconds=start_seconds, now_seconds=NOW.timestamp()) == told

"""Contents of a Lease when it is claimed and released."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from apiserver.cluster.lease import LeaseOptions, release, with_holder

NOW = datetime(2026, 7, 1, 12, 0, 0, tzinfo=UTC)
OPTIONS = LeaseOptions(namespace="ns", name="lease", identity="me")
OTHERS = {
    "holderIdentity": "other",
    "leaseDurationSeconds": 60,
    "acquireTime": "2026-01-01T00:00:00.000000Z",
    "renewTime": "2026-01-01T00:00:10.000000Z",
    "leaseTransitions": 4,
    "strategy": "OldestEmulationVersion",
}


def lease(spec: dict[str, Any] | None) -> dict[str, Any]:
    """Return a Lease as read from the server."""
    return {"metadata": {"name": "lease", "namespace": "ns", "resourceVersion": "7"}, "spec": spec}


@pytest.mark.parametrize(
    ("before", "want"),
    [
        pytest.param(None, {"acquireTime": "now", "leaseTransitions": 0}, id="a first leader"),
        pytest.param(lease(None), {"acquireTime": "now", "leaseTransitions": 1}, id="an empty lease"),
        pytest.param(
            lease(OTHERS), {"acquireTime": "now", "leaseTransitions": 5}, id="a change of the holder"
        ),
        pytest.param(
            lease(OTHERS | {"holderIdentity": "me"}),
            {"acquireTime": OTHERS["acquireTime"], "leaseTransitions": 4},
            id="a renewal",
        ),
    ],
)
def test_acquire_time_and_transitions_change_only_with_the_holder(
    before: dict[str, Any] | None, want: dict[str, Any]
) -> None:
    """Holder, duration and `renewTime` are always written."""
    body = with_holder(before, OPTIONS, NOW)
    written = "2026-07-01T12:00:00.000000Z"
    want |= {"acquireTime": written} if want["acquireTime"] == "now" else {}

    assert body["spec"].items() >= want.items()
    assert (
        body["spec"].items()
        >= {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": written}.items()
    )


def test_claiming_keeps_unknown_members_and_the_resource_version() -> None:
    """The resource version guards the write."""
    body = with_holder(lease(OTHERS), OPTIONS, NOW)

    assert body["metadata"]["resourceVersion"] == "7"
    assert body["spec"]["strategy"] == "OldestEmulationVersion"


def test_a_released_lease_can_be_claimed_at_once() -> None:
    """It has no holder and the shortest duration."""
    spec = release(lease(OTHERS | {"holderIdentity": "me"}), OPTIONS, NOW)["spec"]

    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("", 1, 4)


@pytest.mark.parametrize(
    "durations",
    [
        pytest.param({"duration_seconds": 10}, id="the renew deadline is not before the lease duration"),
        pytest.param({"retry_seconds": 9.0}, id="no second try before the deadline"),
        pytest.param({"retry_seconds": 0.0}, id="no delay between tries"),
    ],
)
def test_unsafe_durations_are_rejected(durations: dict[str, Any]) -> None:
    """With them, two candidates could lead at once."""
    with pytest.raises(ValueError, match="must be ordered"):
        LeaseOptions(namespace="ns", name="lease", identity="me", **durations)

"""The record of evictions on the Lease."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apiserver.cluster.lease import LeaseOptions, with_annotation, with_holder
from apiserver.schema.json import Json
from controller.evictions.rounds import ANNOTATION, moments_in, record_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MOMENTS = [NOON.timestamp() + seconds for seconds in (0.2, 0.9, 600)]
LEASE = {"metadata": {"name": "lease", "annotations": {"theirs": "kept"}}, "spec": {"holderIdentity": "me"}}


def recorded(moments: list[float]) -> Json:
    """Return the Lease with a record."""
    return with_annotation(LEASE, ANNOTATION, record_of(moments))


def test_a_record_is_read_as_it_was_written() -> None:
    """Times are rounded up to seconds and grouped by second; other annotations are kept."""
    written = recorded(MOMENTS)

    assert written["spec"] == LEASE["spec"]
    told = "2026-01-01T12:00:01Z x2, 2026-01-01T12:10:00Z x1"
    assert written["metadata"]["annotations"] == {"theirs": "kept", ANNOTATION: told}
    assert moments_in(written) == (MOMENTS[2] - 599, MOMENTS[2] - 599, MOMENTS[2])


def test_a_lease_without_record_or_with_an_empty_one_has_no_evictions() -> None:
    """An old Lease has no record, and after an hour without evictions it is empty."""
    assert moments_in({"metadata": {}}) == moments_in(recorded([])) == ()


def test_renewing_the_lease_keeps_the_record() -> None:
    """This also holds if another process takes over the lease."""
    for identity in ("me", "other"):
        options = LeaseOptions(namespace="ns", name="lease", identity=identity)
        assert moments_in(with_holder(recorded(MOMENTS[2:]), options, NOON)) == (MOMENTS[2],)


@pytest.mark.parametrize("times", ["x0", "x-3", "x", "3", "x999999999999999", "x1.5", ""])
def test_an_implausible_count_is_rejected(times: str) -> None:
    """It must neither mean that there were no evictions, nor allocate a huge list."""
    lease = {"metadata": {"annotations": {ANNOTATION: f"2026-01-01T12:00:20Z {times}"}}}

    with pytest.raises(ValueError, match=r"must end in x1|does not match|unconverted"):
        moments_in(lease)

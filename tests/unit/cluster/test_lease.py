"""Leader election by a Lease, and its record."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from apiserver.cluster.lease import LeaderElector, LeaseLost, LeaseOptions, release, with_holder
from apiserver.cluster.timing import Timing

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.cluster.conftest import Clock, FakeApiServer

    from apiserver.cluster.client import Cluster

PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
KEY = ("apis/coordination.k8s.io/v1/leases", "ns", "lease")


async def until(condition: Callable[[], object]) -> None:
    """Let other tasks run until a condition holds; they advance the fake clock."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 (a fake clock, without real waiting)
            await asyncio.sleep(0)


class Candidate:
    """An elector, the work that it leads, and a journal of both."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        identity: str,
        annotations: Callable[[], dict[str, str]] | None = None,
    ) -> None:
        """Start as a candidate with an identity and its own clock."""
        self.started, self.stop = asyncio.Event(), asyncio.Event()
        self.clock, self.began_time = clock, 0.0
        self.journal: list[str] = []
        options = LeaseOptions(namespace="ns", name="lease", identity=identity)
        timing = Timing(clock=clock, sleep=clock.sleep, random=lambda: 0.0)
        self.elector = LeaderElector(
            cluster,
            options,
            timing=timing,
            on_lost=lambda: self.journal.append("lost"),
            annotations=annotations,
        )
        self.task = asyncio.create_task(self.elector.run(self._lead))

    async def _lead(self) -> None:
        self.journal.append("began")
        self.began_time = self.clock.now
        self.started.set()
        try:
            await self.stop.wait()
        finally:
            self.journal.append("ended")

    async def leading(self) -> None:
        """Wait until the candidate leads."""
        async with asyncio.timeout(60):
            await self.started.wait()


def lease_of(api: FakeApiServer) -> dict[str, Any]:
    """Return the spec of the lease."""
    spec: dict[str, Any] = api.objects[KEY]["spec"]
    return spec


def held_by(identity: str, **spec: object) -> dict[str, Any]:
    """Return a lease with a holder."""
    return {
        "metadata": {"name": "lease"},
        "spec": {"holderIdentity": identity, "leaseDurationSeconds": 15, "renewTime": "x"} | spec,
    }


async def test_the_first_candidate_creates_the_lease_and_leads(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """At its normal end it releases the lease."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    assert a.elector.is_leading()
    assert lease_of(api)["holderIdentity"] == "a"

    a.stop.set()
    await a.task
    assert lease_of(api)["holderIdentity"] == ""
    assert not a.elector.is_leading()


async def test_a_second_candidate_takes_over_after_a_release(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """It does not wait until the lease expires, and leadership never overlaps."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    b = Candidate(cluster, clock, "b")
    await until(lambda: b.elector.holder == "a")
    assert not b.elector.is_leading()

    a.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await a.task
    assert a.journal == ["began", "ended"]
    await b.leading()
    assert lease_of(api)["leaseTransitions"] == 1
    b.stop.set()
    await b.task


async def test_a_candidate_takes_over_when_a_lease_was_not_renewed_for_its_duration(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """Time is measured by the own clock since the record was first read; `renewTime` is not used."""
    api.put(PATH, held_by("dead", renewTime="2099-01-01T00:00:00.000000Z", leaseDurationSeconds=20))
    a = Candidate(cluster, clock, "a")
    await a.leading()

    assert a.began_time - 1000.0 == 20.0
    a.stop.set()
    await a.task


async def test_a_candidate_does_not_take_over_a_lease_that_is_renewed(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """Every renewal restarts the wait."""
    api.put(PATH, held_by("other"))
    a = Candidate(cluster, clock, "a")
    for number in range(20):
        target = clock.now + 6
        await until(lambda: clock.now >= target)  # noqa: B023 (called within the same iteration)
        api.put(PATH, held_by("other", renewTime=str(number)))
    assert a.journal == []
    a.task.cancel()


async def test_one_of_two_simultaneous_candidates_leads(cluster: Cluster, clock: Clock) -> None:
    """If both see no lease, the server rejects the second creation."""
    a, b = Candidate(cluster, clock, "a"), Candidate(cluster, clock, "b")
    await until(lambda: a.elector.holder == b.elector.holder != "")

    assert [a.elector.is_leading(), b.elector.is_leading()].count(True) == 1
    a.task.cancel()
    b.task.cancel()
    await asyncio.wait({a.task, b.task})


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"code": 500}, id="server errors"),
        pytest.param({"sever": True}, id="severed connections"),
        pytest.param({"code": 403}, id="a revoked permission"),
        pytest.param({"code": 429, "headers": {"Retry-After": "60"}}, id="throttling"),
    ],
)
async def test_leadership_is_lost_at_the_renew_deadline(
    api: FakeApiServer, cluster: Cluster, clock: Clock, fault: dict[str, Any]
) -> None:
    """The loss is reported before another candidate may lead, and the work is cancelled."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    began = clock.now
    api.fail("PUT", times=50, **fault)
    api.fail("GET", times=50, **fault)
    with pytest.raises(LeaseLost, match="no renewal succeeded for 10 s"):
        await a.task

    assert a.journal == ["began", "lost", "ended"]
    assert clock.now - began <= 10.0
    assert not a.elector.is_leading()


async def test_leadership_is_lost_at_once_if_the_lease_has_another_holder(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """The lease of the other holder is not released."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    began = clock.now
    api.put(PATH, held_by("b"))
    with pytest.raises(LeaseLost, match="'b' holds it"):
        await a.task

    assert clock.now - began <= 4.0
    assert lease_of(api)["holderIdentity"] == "b"


async def test_a_leader_paused_past_the_deadline_no_longer_leads(cluster: Cluster, clock: Clock) -> None:
    """`is_leading` is false even before any task has run."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    clock.now += 11
    assert not a.elector.is_leading()
    with pytest.raises(LeaseLost):
        await a.task


async def test_leadership_survives_brief_faults(api: FakeApiServer, cluster: Cluster, clock: Clock) -> None:
    """A few failed renewals and a write that keeps the holder do not end it."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    api.fail("PUT", times=2, code=500)
    api.put(PATH, api.objects[KEY] | {"metadata": {"name": "lease", "labels": {"x": "y"}}})
    target = clock.now + 60
    await until(lambda: clock.now >= target)
    assert a.elector.is_leading()
    a.stop.set()
    await a.task


async def test_a_deleted_lease_is_created_again(api: FakeApiServer, cluster: Cluster, clock: Clock) -> None:
    """No other candidate took it, so the work continues."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    api.drop(f"{PATH}/lease")
    target = clock.now + 60
    await until(lambda: clock.now >= target)
    assert a.elector.is_leading()
    assert lease_of(api)["holderIdentity"] == "a"
    assert a.journal == ["began"]
    a.stop.set()
    await a.task


async def test_a_candidate_waits_for_the_holder_of_a_deleted_lease(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """Until its lease would have expired, the holder may still lead, and creates the lease again."""
    api.put(PATH, held_by("a"))
    b = Candidate(cluster, clock, "b")
    await until(lambda: b.elector.holder == "a")
    api.drop(f"{PATH}/lease")
    await b.leading()

    assert 15.0 <= b.began_time - 1000.0 <= 17.0
    b.stop.set()
    await b.task


async def test_an_exception_of_the_work_is_raised_and_the_lease_released(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """Another candidate can then lead."""

    async def fail() -> None:
        raise ZeroDivisionError

    options = LeaseOptions(namespace="ns", name="lease", identity="a")
    timing = Timing(clock=clock, sleep=clock.sleep, random=lambda: 0.0)
    with pytest.raises(ZeroDivisionError):
        await LeaderElector(cluster, options, timing=timing).run(fail)

    assert lease_of(api)["holderIdentity"] == ""


async def test_renewals_update_the_leader_s_annotations_on_the_lease(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """No extra write is needed."""
    said = {"work": "1"}
    a = Candidate(cluster, clock, "a", annotations=lambda: dict(said))
    await a.leading()
    assert api.objects[KEY]["metadata"]["annotations"] == {"work": "1"}

    said["work"] = "2"
    await until(lambda: api.objects[KEY]["metadata"]["annotations"] == {"work": "2"})

    a.stop.set()
    await a.task


def test_annotations_of_others_on_the_lease_are_kept() -> None:
    """The resource version guards the write."""
    lease = held_by("") | {
        "metadata": {"name": "lease", "annotations": {"other": "x"}, "resourceVersion": "7"}
    }

    body = with_holder(
        lease, LeaseOptions(namespace="ns", name="lease", identity="a"), datetime.now(UTC), {"work": "1"}
    )

    assert body["metadata"]["annotations"] == {"other": "x", "work": "1"}
    assert body["metadata"]["resourceVersion"] == "7"
    assert lease["metadata"]["annotations"] == {"other": "x"}


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

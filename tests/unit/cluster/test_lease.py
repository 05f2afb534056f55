"""One leads at a time, whatever happens to servers and clocks."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from apiserver.cluster.lease import LeaderElector, LeaseLost, LeaseOptions
from apiserver.cluster.lease_record import claimed
from apiserver.cluster.watch import Timing

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.cluster.conftest import Clock, FakeApiServer

    from apiserver.cluster.client import Cluster

PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
KEY = ("apis/coordination.k8s.io/v1/leases", "ns", "lease")


async def until(condition: Callable[[], object]) -> None:
    """Let the others run until something is so; time is theirs to move."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the clock is a fake, nothing is really waited for
            await asyncio.sleep(0)


class Candidate:
    """An elector, what it leads, and a record of both."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        identity: str,
        annotations: Callable[[], dict[str, str]] | None = None,
    ) -> None:
        """Take part under a name, on a clock that may differ from others'."""
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
        """Wait until it leads."""
        async with asyncio.timeout(60):
            await self.started.wait()


def lease_of(api: FakeApiServer) -> dict[str, Any]:
    """Read what the lease says."""
    spec: dict[str, Any] = api.objects[KEY]["spec"]
    return spec


def held_by(identity: str, **spec: object) -> dict[str, Any]:
    """Build a lease that somebody holds."""
    return {
        "metadata": {"name": "lease"},
        "spec": {"holderIdentity": identity, "leaseDurationSeconds": 15, "renewTime": "x"} | spec,
    }


async def test_first_leader_creates_the_lease(api: FakeApiServer, cluster: Cluster, clock: Clock) -> None:
    """Without a lease the first candidate leads at once, and says so in it."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    assert a.elector.is_leading()
    assert lease_of(api)["holderIdentity"] == "a"

    a.stop.set()
    await a.task
    assert lease_of(api)["holderIdentity"] == ""
    assert not a.elector.is_leading()


async def test_second_waits_and_takes_over_after_a_release(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """A release hands over without waiting for the lease to run out; nobody overlaps."""
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


async def test_a_dead_holder_is_followed_after_its_duration(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """Time runs from when the record was first seen, on our clock; what the record says is not believed."""
    api.put(PATH, held_by("dead", renewTime="2099-01-01T00:00:00.000000Z", leaseDurationSeconds=20))
    a = Candidate(cluster, clock, "a")
    await a.leading()

    assert a.began_time - 1000.0 == 20.0
    a.stop.set()
    await a.task


async def test_a_living_holder_is_not_followed(api: FakeApiServer, cluster: Cluster, clock: Clock) -> None:
    """Every renewal that is seen starts the wait anew."""
    api.put(PATH, held_by("other"))
    a = Candidate(cluster, clock, "a")
    for number in range(20):
        target = clock.now + 6
        await until(lambda: clock.now >= target)  # noqa: B023 - called before the loop goes on
        api.put(PATH, held_by("other", renewTime=str(number)))
    assert a.journal == []
    a.task.cancel()


async def test_of_two_at_once_one_wins(cluster: Cluster, clock: Clock) -> None:
    """When both see no lease, the server's refusal of the second create decides."""
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
        pytest.param({"code": 403}, id="a right taken away"),
        pytest.param({"code": 429, "headers": {"Retry-After": "60"}}, id="throttling"),
    ],
)
async def test_loss_at_the_renew_deadline(
    api: FakeApiServer, cluster: Cluster, clock: Clock, fault: dict[str, Any]
) -> None:
    """When no renewal succeeds, loss is reported at the deadline, before others may lead; work stops."""
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


async def test_loss_to_another(api: FakeApiServer, cluster: Cluster, clock: Clock) -> None:
    """Another holder in the record ends leadership at once, and is not released from under it."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    began = clock.now
    api.put(PATH, held_by("b"))
    with pytest.raises(LeaseLost, match="'b' holds it"):
        await a.task

    assert clock.now - began <= 4.0
    assert lease_of(api)["holderIdentity"] == "b"


async def test_a_frozen_leader_knows(cluster: Cluster, clock: Clock) -> None:
    """After a freeze past the deadline nothing may be written, even before any task has run."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    clock.now += 11
    assert not a.elector.is_leading()
    with pytest.raises(LeaseLost):
        await a.task


async def test_short_trouble_is_survived(api: FakeApiServer, cluster: Cluster, clock: Clock) -> None:
    """A few failures, and a write by somebody else that leaves us in place, do not end leadership."""
    a = Candidate(cluster, clock, "a")
    await a.leading()
    api.fail("PUT", times=2, code=500)
    api.put(PATH, api.objects[KEY] | {"metadata": {"name": "lease", "labels": {"x": "y"}}})
    target = clock.now + 60
    await until(lambda: clock.now >= target)
    assert a.elector.is_leading()
    a.stop.set()
    await a.task


async def test_failing_work_is_reported_and_the_lease_released(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """An error in what is led ends the election with that error, and lets the next one lead."""

    async def fail() -> None:
        raise ZeroDivisionError

    options = LeaseOptions(namespace="ns", name="lease", identity="a")
    timing = Timing(clock=clock, sleep=clock.sleep, random=lambda: 0.0)
    with pytest.raises(ZeroDivisionError):
        await LeaderElector(cluster, options, timing=timing).run(fail)

    assert lease_of(api)["holderIdentity"] == ""


async def test_renewals_carry_what_the_leader_has_to_say(
    api: FakeApiServer, cluster: Cluster, clock: Clock
) -> None:
    """Without a write more."""
    said = {"work": "1"}
    a = Candidate(cluster, clock, "a", annotations=lambda: dict(said))
    await a.leading()
    assert api.objects[KEY]["metadata"]["annotations"] == {"work": "1"}

    said["work"] = "2"
    await until(lambda: api.objects[KEY]["metadata"]["annotations"] == {"work": "2"})

    a.stop.set()
    await a.task


def test_what_others_wrote_on_the_lease_stays() -> None:
    """The version that was read guards the write."""
    lease = held_by("") | {
        "metadata": {"name": "lease", "annotations": {"other": "x"}, "resourceVersion": "7"}
    }

    body = claimed(
        lease, LeaseOptions(namespace="ns", name="lease", identity="a"), datetime.now(UTC), {"work": "1"}
    )

    assert body["metadata"]["annotations"] == {"other": "x", "work": "1"}
    assert body["metadata"]["resourceVersion"] == "7"
    assert lease["metadata"]["annotations"] == {"other": "x"}

"""Leader election among several replicas, by a Lease (coordination.k8s.io/v1), and its annotations.

The contract is client-go's: the identity in the Lease is its holder, and must renew it. The others measure,
on their own clock, how long the record has not changed, and acquire the lease when that exceeds the duration
in the record. Clocks of different machines are never compared. A holder stops at its renew deadline, well
before others may acquire the lease.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from apiserver.cluster.errors import ClusterError, Conflict, NotFound, Unavailable
from apiserver.cluster.resource import LEASES
from apiserver.cluster.timing import Timing, rfc3339_micro, utc_now
from apiserver.log import EventLogger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

    from apiserver.cluster.client import Cluster
    from apiserver.schema.json import Json


RETRY_JITTER = 1.2


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseOptions:
    """The lease to acquire, the identity of this process, and durations as in client-go."""

    namespace: str
    name: str
    identity: str
    """An identity that is unique to this process for all time: the pod name and a random part."""
    duration_seconds: int = 15
    """How long others wait after the last renewal that they observed."""
    renew_deadline_seconds: float = 10.0
    """How long the holder continues without a successful renewal."""
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        """Raise ValueError for durations that would allow two holders at the same time."""
        if not self.duration_seconds > self.renew_deadline_seconds > RETRY_JITTER * self.retry_seconds > 0:
            raise ValueError(
                "lease durations must be ordered: duration_seconds > renew_deadline_seconds > "
                f"{RETRY_JITTER} * retry_seconds > 0"
            )


def holder_of(spec: Json | None) -> str:
    """Return the identity of the holder; empty if the lease is free."""
    return str((spec or {}).get("holderIdentity") or "")


def transitions_of(spec: Json | None) -> int:
    """Return the number of times the lease has changed hands."""
    return int((spec or {}).get("leaseTransitions") or 0)


def with_holder(
    lease: Json | None, options: LeaseOptions, now: datetime, annotations: Mapping[str, str] | None = None
) -> Json:
    """Return the lease with this process as its holder, ready to be written.

    It is based on the lease that was read, whose resource version guards the write. `acquireTime` is kept
    while the holder stays the same; every change of holder counts as a transition. Given annotations are
    added.
    """
    metadata: Json = lease["metadata"] if lease else {"namespace": options.namespace, "name": options.name}
    if annotations:
        metadata = metadata | {"annotations": {**(metadata.get("annotations") or {}), **annotations}}
    old: Json = (lease or {}).get("spec") or {}
    kept = holder_of(old) == options.identity
    written = rfc3339_micro(now)
    claim = {
        "holderIdentity": options.identity,
        "leaseDurationSeconds": options.duration_seconds,
        "acquireTime": (kept and old.get("acquireTime")) or written,
        "renewTime": written,
        "leaseTransitions": transitions_of(old) + int(not kept and lease is not None),
    }
    return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": old | claim}


def release(lease: Json, options: LeaseOptions, now: datetime) -> Json:
    """Return the lease without a holder, so that others need not wait for it to expire."""
    body = with_holder(lease, options, now)
    body["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
    return body


log = EventLogger(__name__)

_RELEASE_TRIES = 3


class LeaseLost(Exception):  # noqa: N818 (the name describes the event)
    """The lease was not renewed in time, or has another holder: this process must stop writing and exit."""


def boot_time() -> float:
    """Return a clock in seconds that, unlike `time.monotonic`, also advances during system suspend."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaderElector:
    """A participant in one election; call `run` once.

    `on_lost` is called as soon as the lease is lost, before anything is awaited, and may exit the process.
    The result of `annotations` is written to the Lease with every renewal.
    """

    def __init__(
        self,
        cluster: Cluster,
        options: LeaseOptions,
        *,
        on_lost: Callable[[], None] | None = None,
        annotations: Callable[[], Mapping[str, str]] | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._on_lost = on_lost
        self._annotations = annotations
        self._timing = timing or Timing(clock=boot_time)
        self._lease: Json | None = None
        self._observed_spec: Json | None = None
        self._observed_time = 0.0
        self._renewed_time: float | None = None

    @property
    def holder(self) -> str:
        """The last observed holder of the lease; empty if it is free or unknown."""
        return holder_of(self._observed_spec)

    @property
    def transitions(self) -> int:
        """The number of changes of the holder since the Lease was created."""
        return transitions_of(self._observed_spec)

    def is_leading(self) -> bool:
        """Tell whether this process may write now; call before every write.

        The result depends on the clock, so that a process that was frozen past its deadline does not write
        when it resumes.
        """
        return self._left_seconds() > 0

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, run `lead` while it is held, and release it when `lead` ends.

        On cancellation, `lead` is cancelled and awaited before the release, so that two leaders never
        overlap. If the lease is lost, `lead` is cancelled as well, and `LeaseLost` is raised.
        """
        await self._acquire()
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._renew())
        try:
            await asyncio.wait({leading, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leading.cancel()
            renewing.cancel()
            await asyncio.wait({leading, renewing})
            await self._release()
        for task in (renewing, leading):
            if not task.cancelled():
                task.result()

    async def _acquire(self) -> None:
        log.info("waiting for the lease", lease=self._options.name, identity=self._options.identity)
        while not await self._attempt(self._options.renew_deadline_seconds / 2):
            spread = RETRY_JITTER * self._timing.random()  # jitter: many may be waiting
            await self._timing.sleep(self._options.retry_seconds * (1.0 + spread))
        log.info("leading", lease=self._options.name, transitions=self.transitions)

    async def _renew(self) -> NoReturn:
        """Renew the lease; raise `LeaseLost` if that fails for too long or another replica holds it."""
        # One attempt that gets no answer leaves time for another before the deadline.
        limit_seconds = self._options.renew_deadline_seconds / 2
        while True:
            await self._timing.sleep(max(min(self._options.retry_seconds, self._left_seconds()), 0.0))
            left_seconds = self._left_seconds()
            if left_seconds > 0 and await self._attempt(min(limit_seconds, left_seconds)):
                continue
            if self.holder != self._options.identity:
                self._lose(f"{self.holder!r} holds it")
            if self._left_seconds() <= 0:
                self._lose(f"no renewal succeeded for {self._options.renew_deadline_seconds:g} s")

    def _lose(self, why: str) -> NoReturn:
        self._renewed_time = None
        log.critical("lease lost", lease=self._options.name, why=why)
        if self._on_lost:
            self._on_lost()
        raise LeaseLost(f"lost the lease {self._options.namespace}/{self._options.name}: {why}")

    def _left_seconds(self) -> float:
        if self._renewed_time is None:
            return 0.0
        return self._renewed_time + self._options.renew_deadline_seconds - self._timing.clock()

    async def _attempt(self, timeout_seconds: float) -> bool:
        """Try once to acquire or renew; the time counts from before the call."""
        began = self._timing.clock()
        try:
            written = await self._write(timeout_seconds)
        except Conflict:
            self._lease = None  # a concurrent write: read before the next attempt
            return False
        except ClusterError as error:
            if isinstance(error, NotFound):
                self._lease = None  # somebody deleted it: create it again
            log.warning("lease not reached", lease=self._options.name, error=error.message)
            return False
        if written is None:
            return False
        self._observe(written)
        self._renewed_time = began
        return True

    async def _write(self, timeout_seconds: float) -> Json | None:
        """Write this process into the lease as its holder, or return None while another one holds it."""
        # The holder renews what it has written last, in one call: a write by anyone else causes a conflict.
        if self._lease is None or not self.is_leading():
            await self._fetch(timeout_seconds)
        if not self._is_free():  # also if it was deleted: its holder creates it again
            return None
        own = self._annotations() if self._annotations else None
        body = with_holder(self._lease, self._options, utc_now(), own)
        if self._lease is None:
            return await self._cluster.create(LEASES, body, timeout_seconds=timeout_seconds)
        return await self._cluster.replace(LEASES, body, timeout_seconds=timeout_seconds)

    async def _fetch(self, timeout_seconds: float) -> None:
        name, namespace = self._options.name, self._options.namespace
        try:
            lease = await self._cluster.get(
                LEASES, name, namespace=namespace, timeout_seconds=timeout_seconds
            )
        except NotFound:
            self._lease = None
        else:
            self._observe(lease)

    def _observe(self, lease: Json) -> None:
        """Store the lease; if its record has changed, restart the expiry timer on the local clock."""
        self._lease = lease
        spec = lease.get("spec") or {}
        if spec != self._observed_spec:
            self._observed_spec = spec
            self._observed_time = self._timing.clock()

    def _is_free(self) -> bool:
        if self.holder in {"", self._options.identity}:
            return True
        stated = (self._observed_spec or {}).get("leaseDurationSeconds") or self._options.duration_seconds
        return self._timing.clock() >= self._observed_time + float(stated)

    async def _release(self) -> None:
        """Release the lease if this process still holds it, so that the next leader need not wait."""
        if not self.is_leading():
            return
        self._renewed_time = None
        try:
            for _ in range(_RELEASE_TRIES):
                if await self._try_release(self._options.retry_seconds):
                    return
                self._lease = None  # a cancelled renewal reached the server
        except ClusterError as error:
            log.warning("lease not released", lease=self._options.name, error=error.message)

    async def _try_release(self, timeout_seconds: float) -> bool:
        if self._lease is None:
            await self._fetch(timeout_seconds)
        if self._lease is None or self.holder != self._options.identity:
            return True
        body = release(self._lease, self._options, utc_now())
        try:
            self._observe(await self._cluster.replace(LEASES, body, timeout_seconds=timeout_seconds))
        except Conflict:
            return False
        log.info("lease released", lease=self._options.name)
        return True


_TRIES: Final = 5


async def read_lease(cluster: Cluster, namespace: str, name: str) -> Json:
    """Read a Lease. Raises ClusterError, but never NotFound, if it does not exist."""
    try:
        return await cluster.get(LEASES, name, namespace=namespace)
    except NotFound as error:
        raise ClusterError(error.message) from None  # the evictor would take NotFound for a missing pod


def with_annotation(lease: Json, annotation: str, text: str) -> Json:
    """Return a Lease with one annotation set, and all others kept."""
    metadata = lease["metadata"]
    annotations = (metadata.get("annotations") or {}) | {annotation: text}
    return lease | {"metadata": metadata | {"annotations": annotations}}


async def annotate(cluster: Cluster, namespace: str, name: str, annotation: str, text: str) -> None:
    """Set an annotation of a Lease; retry on conflicts. Raises ClusterError if a call is rejected."""
    for _ in range(_TRIES):
        lease = await read_lease(cluster, namespace, name)
        try:
            await cluster.replace(LEASES, with_annotation(lease, annotation, text))
        except Conflict:
            continue
        return
    raise Unavailable(f"lease {name} is changed continuously by other clients")

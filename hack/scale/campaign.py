"""One run: the controller's own caches, planner, reconciler, events and lease with a real API server.

Engines and time are simulated: whatever its real duration, each cycle counts as 15 s of simulated time.
Requests per second of simulated time are therefore those of a controller that keeps its interval.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.lease import LeaderElector, LeaseOptions
from controller.caches import Caches
from controller.observe.settings_reading import PolicyReader
from controller.planning.inputs import Settings
from controller.variants.publishing import Pulse
from controller.variants.solver import Solver
from controller.variants.variantautoscaling import CycleSettings, Tools, VariantAutoscalingReconciler
from hack.calling.cores import memory_mebibytes
from hack.controlplane import ControlPlane
from hack.controlplane.auditing import AuditLog
from hack.scale import fleet
from hack.scale.engines import NoisyEngines
from hack.scale.memory import forget_peak

INTERVAL_SECONDS: Final = 15.0
USER_AGENT: Final = "stowplan"
LEASE_WRITES_PER_SECOND: Final = 0.5
"""One renewal every two seconds, the default of the controller's Lease."""

_BEGAN_SECONDS: Final = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
_PATIENCE_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.05
_READING: Final = frozenset({"get", "list", "watch"})
_LEASES: Final = "leases"
_LOOKED_FOR: Final = frozenset(
    {
        "list autoscalingpolicies",
        "list autoscalingpolicybindings",
        "list leaderworkersets",
        "list nodepools",
    }
)
"""Attempts to list kinds that this control plane lacks; their caches retry every few minutes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CyclePhase:
    """Costs of some consecutive cycles."""

    name: str
    cycles: int
    real_seconds: float
    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests by verb and resource, without those for the Lease and for the caches' watches."""

    copying: int
    """Restarted watches, and attempts to list kinds that are not defined."""

    lease_writes: int
    most_writes_of_a_cycle: int

    @property
    def writes(self) -> int:
        """The number of writing requests."""
        return sum(count for what, count in self.requests.items() if _is_write(what))

    @property
    def writes_per_second(self) -> float:
        """Writes per second of simulated time."""
        return self.writes / (self.cycles * INTERVAL_SECONDS)

    def line(self) -> str:
        """Return the figures as one line."""
        requests = ", ".join(f"{count} {what}" for what, count in sorted(self.requests.items())) or "none"
        return (
            f"{self.name:9} {self.cycles:3} cycles of {self.real_seconds / self.cycles:5.1f} s:"
            f" {self.writes_per_second:6.2f} writes/s, at most {self.most_writes_of_a_cycle} in a cycle;"
            f" requests: {requests}; {self.copying} watches restarted;"
            f" Lease {self.lease_writes / self.real_seconds:.2f} writes/s"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Campaign:
    """Cycles over a fleet. Use as `async with running(control_plane, count) as campaign`."""

    reconciler: VariantAutoscalingReconciler
    caches: Caches
    events: EventRecorder
    engines: NoisyEngines
    log: AuditLog
    solver: Solver

    def peaks_mebibytes(self) -> dict[str, float]:
        """Return the peak memory of this process, including the simulated engines, and of the solver."""
        peaks = {"controller": memory_mebibytes("VmHWM")}
        return peaks | ({"solver": memory_mebibytes("VmHWM", self.solver.pid)} if self.solver.pid else {})

    async def phase(self, name: str, cycles: int, *, loaded: bool) -> CyclePhase:
        """Run some cycles and count their requests."""
        self.engines.is_loaded = loaded
        self.log.since(user_agent=USER_AGENT)
        began, requests, most = time.monotonic(), Counter[str](), 0
        for _ in range(cycles):
            self.engines.pass_seconds(INTERVAL_SECONDS)
            before = self._versions()
            outcome = await self.reconciler.cycle()
            await self._wait_for_cache(before, outcome.written)
            await self.events.flush()
            counts = Counter(item.about for item in self.log.since(user_agent=USER_AGENT))
            most = max(most, sum(count for what, count in counts.items() if _is_write(what)))
            requests += counts
        seconds = time.monotonic() - began
        return CyclePhase(
            name=name,
            cycles=cycles,
            real_seconds=seconds,
            requests={
                what: n for what, n in requests.items() if _LEASES not in what and not _is_copying(what)
            },
            copying=sum(n for what, n in requests.items() if _is_copying(what)),
            lease_writes=sum(n for what, n in requests.items() if _LEASES in what),
            most_writes_of_a_cycle=most,
        )

    def _versions(self) -> Mapping[str, str]:
        items = self.caches.world().autoscalings
        return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in items}

    async def _wait_for_cache(self, before: Mapping[str, str], written: int) -> None:
        """Wait until the cache contains what was written, as it would before the next cycle in real time.

        Raises TimeoutError.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while sum(before.get(uid) != version for uid, version in self._versions().items()) < written:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{written} statuses were written, and the cache does not contain all of them"
                )
            await asyncio.sleep(_POLL_SECONDS)


@asynccontextmanager
async def run_campaign(control_plane: ControlPlane, count: int) -> AsyncIterator[Campaign]:
    """Create a fleet and run the controller's parts on it."""
    engines = NoisyEngines([*fleet.pods_of(count)], began_seconds=_BEGAN_SECONDS)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(await Cluster.connect(control_plane.kubeconfig))
        await fleet.create(cluster, count)
        forget_peak()
        solver = await stack.enter_async_context(Solver(Settings(wall_seconds=20.0), deadline_seconds=60.0))
        pulse = Pulse()
        reader = PolicyReader(unit_costs="unit-costs", default_classes=fleet.CLASSES)
        caches = Caches(cluster, namespace=fleet.NAMESPACE)
        events = EventRecorder(cluster, controller="stowplan.dev/controller", instance="scale")
        tools = Tools(
            cluster=cluster,
            events=events,
            source=engines,
            planner=solver,
            world=caches.world,
            policies=lambda: reader.read(caches.config_maps()),
            now=lambda: datetime.fromtimestamp(engines.seconds, UTC),
            steady=engines.now,
            pulse=pulse,
        )
        await stack.enter_async_context(_background(caches.run(), events.run(), _lead(cluster, pulse)))
        await caches.wait_until_synced()
        reconciler = VariantAutoscalingReconciler(tools, CycleSettings(scale_to_zero=False))
        yield Campaign(
            reconciler=reconciler,
            caches=caches,
            events=events,
            engines=engines,
            log=control_plane.audit_log,
            solver=solver,
        )


@asynccontextmanager
async def _background(*work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run coroutines until the block ends, and raise their errors then."""
    together = asyncio.ensure_future(asyncio.gather(*work))
    try:
        yield
    finally:
        together.cancel()
        with suppress(asyncio.CancelledError):
            await together


async def _lead(cluster: Cluster, pulse: Pulse) -> None:
    options = LeaseOptions(namespace=fleet.NAMESPACE, name="stowplan-controller", identity="scale")

    async def lead() -> None:
        await asyncio.Event().wait()

    await LeaderElector(cluster, options, on_lost=_lose_lease, annotations=pulse.annotations).run(lead)


def _lose_lease() -> None:
    raise RuntimeError("the lease is lost")


def _is_copying(what: str) -> bool:
    return what.startswith("watch") or what in _LOOKED_FOR


def _is_write(what: str) -> bool:
    return what.split(maxsplit=1)[0] not in _READING and _LEASES not in what

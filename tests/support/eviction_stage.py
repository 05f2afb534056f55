"""A cluster on which pods are evicted, in memory, and a plan with moves."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, Throttled
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.resource import DISRUPTION_BUDGETS, LEASES
from apiserver.schema.json import Json
from controller.evictions.evicting import Evictor
from controller.evictions.rounds import EvictionRecord, EvictionRules
from controller.observe.declarations import claimant_of
from controller.observe.gather import GatherResult, World
from controller.planning.decision import Move, Plan
from controller.planning.snapshot import Snapshot
from support.decisions import plan_of
from support.observations import observed

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RULES = EvictionRules(enabled=True, interval_seconds=60.0, per_hour=10)
FOREIGN: Json = {"key": "theirs", "effect": "NoSchedule"}
OURS: Json = {"key": "stowplan.dev/moving", "effect": "NoSchedule"}
AUTOSCALINGS: list[Json] = [{"metadata": {"namespace": "ns", "name": name}} for name in ("small", "large")]
MOVE = Move(namespace="ns", name="small", node="n1", replicas=2, benefits=(("ns", "large"),))
BUDGET = Throttled("the budget allows none", status={"details": {"causes": [{"reason": "DisruptionBudget"}]}})
PLAN = plan_of(moves=(MOVE,))


def pod(name: str, node: str) -> Json:
    """Return a pod of the small variant."""
    owners = [{"kind": "ReplicaSet", "name": "small-abc", "controller": True}]
    metadata = {"namespace": "ns", "name": name, "uid": name, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {}}


@dataclass
class Stage:
    """Two small replicas on one node, and an API server that records its calls."""

    refusals: dict[str, ClusterError] = field(default_factory=dict)
    """Errors by call: `evict a`, `try a`, `patch n1`."""

    calls: list[str] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    """The note of the last event about each variant."""

    pods: list[Json] = field(default_factory=lambda: [pod("a", "n1"), pod("b", "n1")])
    taints: list[Json] = field(default_factory=lambda: [FOREIGN])
    time: datetime = NOON
    nodes: tuple[str, ...] = ("n1",)
    lease: Json = field(default_factory=lambda: {"metadata": {"resourceVersion": "1"}, "spec": {}})
    budgets: list[Json] = field(default_factory=list)
    """Disruption budgets as in the caches."""

    allowed_now: int = 0
    """Evictions that every budget allows now."""

    def _called(self, call: str, *, is_noted: bool = True) -> None:
        if call in self.refusals:
            raise self.refusals[call]
        self.calls += [call] if is_noted else []

    async def evict(self, _namespace: str, name: str, *, uid: str, dry_run: bool) -> Json:
        """Evict a pod, or check whether that is allowed."""
        self._called(f"{'try' if dry_run else 'evict'} {name}")
        self.pods = self.pods if dry_run else [p for p in self.pods if p["metadata"]["uid"] != uid]
        return {}

    async def get(self, resource: object, name: str, namespace: str = "") -> Json:
        """Return the lease, a budget or the one node."""
        if resource is LEASES:
            self._called(f"read {namespace}/{name}", is_noted=False)
            return copy.deepcopy(self.lease)
        if resource is DISRUPTION_BUDGETS:
            self._called(f"look {name}", is_noted=False)
            return {"metadata": {"name": name}, "status": {"disruptionsAllowed": self.allowed_now}}
        return {"metadata": {"name": name, "resourceVersion": "1"}, "spec": {"taints": [*self.taints]}}

    async def replace(self, _resource: object, lease: Json) -> Json:
        """Write the lease, unless it was changed meanwhile."""
        self._called("record", is_noted=False)
        if lease["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict("modified")
        version = str(int(self.lease["metadata"]["resourceVersion"]) + 1)
        self.lease = lease | {"metadata": lease["metadata"] | {"resourceVersion": version}}
        return self.lease

    async def patch_merge(self, _resource: object, name: str, change: Json) -> Json:
        """Write the node's taints."""
        self._called(f"patch {name}")
        self.taints = change["spec"]["taints"]
        return change

    def record(self, about: Json, *, reason: str, note: str, **_event: str) -> None:
        """Record an event."""
        self.notes[about["metadata"]["name"]] = note
        self.events.append((about["metadata"]["name"], reason))

    def world(self) -> World:
        """Return the content of the caches."""
        nodes = [
            {"metadata": {"name": name}, "spec": {"taints": copy.deepcopy(self.taints)}}
            for name in self.nodes
        ]
        return World(
            autoscalings=AUTOSCALINGS,
            targets={},
            pods=[*self.pods],
            nodes=nodes,
            autoscalers=(),
            disruption_budgets=self.budgets,
        )

    def evictor(self, rules: EvictionRules = RULES) -> Evictor:
        """Return an evictor of this cluster, in a process that just became leader."""
        cluster = cast("Cluster", self)
        record = EvictionRecord(cluster, namespace="system", name="lease")
        return Evictor(cluster, cast("EventRecorder", self), rules, now=lambda: self.time, record=record)

    async def moved(self, evictor: Evictor, tries: int) -> int:
        """Return the number of evictions in a row of plans; recreated pods are planned to move again."""
        count = 0
        for number in range(tries):
            count += (await self.act(evictor)).get("evicted", 0)
            self.pods += [pod(f"{number}-{i}", "n1") for i in range(2 - len(self.pods))]
        return count

    async def act(self, evictor: Evictor, plan: Plan = PLAN, advised: tuple[str, ...] = ()) -> dict[str, int]:
        """Act on a plan, ten seconds after the last one."""
        self.time += timedelta(seconds=10)
        gathered = GatherResult(
            snapshot=Snapshot(nodes=(), variants=()),
            observed={("ns", "small"): observed("small", pods=tuple(self.pods))},
            claimants=tuple(map(claimant_of, AUTOSCALINGS)),
        )
        told = dict.fromkeys((("ns", name) for name in advised), "advised")
        return dict(await evictor.act(self.world(), gathered, plan, advised=told))

"""Execution of a plan's moves by the Eviction API, so that disruption budgets hold.

The steps are: check by dry runs that every eviction would be allowed, taint the nodes, evict, wait until the
recreated pods are bound, remove the taint. Without the taint the scheduler might place a recreated pod back
on the node that it was evicted from. If a node has our taint while no round is in progress, it is removed at
once: the process that added it is gone.

Single dry runs cannot show whether all evictions of a round are allowed together; this is computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound, Throttled, Unavailable
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.resource import DISRUPTION_BUDGETS, NODES
from apiserver.kinds.identity import Key
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.evictions.rounds import (
    EvictionRecord,
    EvictionRules,
    PodToEvict,
    Rounds,
    after_plan,
    begin,
    may_begin,
    pods_to_evict,
    recall,
    with_round,
)
from controller.observe.claim import Claimant
from controller.observe.conditions import EventReason
from controller.observe.gather import GatherResult, World
from controller.observe.movable import Disruptions, evictions_allowed
from controller.observe.scheduling import MOVING
from controller.planning.decision import Plan


async def ask(cluster: Cluster, target: PodToEvict, *, dry_run: bool) -> None:
    """Evict a pod, or check by a dry run whether that is allowed. Raises ClusterError if it is not."""
    metadata = target.pod["metadata"]
    await cluster.evict(metadata["namespace"], metadata["name"], uid=metadata["uid"], dry_run=dry_run)


async def spent_budget(cluster: Cluster, budgets: Sequence[Json], chosen: Sequence[PodToEvict]) -> str:
    """Return why a disruption budget would refuse one of several evictions, or an empty string.

    A dry run consumes no budget, so both of two evictions pass where the budget allows one. Budgets are read
    again, because the cached ones may be slightly outdated. Raises ClusterError if a read is rejected.
    """
    known = Disruptions(budgets)
    pods_by_budget = Counter(
        (target.pod["metadata"]["namespace"], name) for target in chosen for name in known.names(target.pod)
    )
    for (namespace, name), count in sorted(pods_by_budget.items()):
        if count == 1:
            continue  # covered by the dry run
        try:
            budget = await cluster.get(DISRUPTION_BUDGETS, name, namespace=namespace)
        except NotFound:
            continue
        if (allowed := evictions_allowed(budget)) < count:
            return f"the disruption budget {namespace}/{name} allows {allowed} of {count} evictions"
    return ""


def is_for_a_budget(error: Throttled) -> bool:
    """Tell whether a disruption budget refused an eviction, as opposed to an overloaded API server."""
    causes = ((error.status or {}).get("details") or {}).get("causes") or []
    return any(cause.get("reason") == "DisruptionBudget" for cause in causes)


_log = EventLogger(__name__)


class Evictor:
    """Runs one round of evictions at a time."""

    def __init__(
        self,
        cluster: Cluster,
        events: EventRecorder,
        rules: EvictionRules,
        *,
        now: Callable[[], datetime],
        record: EvictionRecord | None = None,
    ) -> None:
        self._cluster = cluster
        self._events = events
        self._rules = rules
        self._now = now
        self._record_of_the_hour = record
        self._rounds = Rounds()
        self._has_recalled = False
        self._last_complaint = ""
        self._kept_closed: frozenset[str] = frozenset()
        self._outcomes: Counter[str] = Counter()

    def with_messages(self, plan: Plan) -> Plan:
        """Return the plan with messages that say for which variants replicas are being moved."""
        return with_round(plan, self._rounds.current)

    async def act(
        self, world: World, gathered: GatherResult, plan: Plan, *, advised: Mapping[Key, object]
    ) -> Mapping[str, int]:
        """Take the next step; return the number of evictions by outcome. Never raises ClusterError."""
        self._outcomes = Counter()
        now_seconds = self._now().timestamp()
        self._rounds = after_plan(
            self._rounds, plan, world.pods, now_seconds=now_seconds, targets=world.targets
        )
        await self._reopen(world)
        involved = {key for move in plan.moves for key in (*move.benefits, (move.namespace, move.name))}
        allowed = not involved & advised.keys() and await self._may_begin(plan, now_seconds)
        pods = {key: item.pods for key, item in gathered.observed.items()}
        chosen = pods_to_evict(plan, pods, world.pods) if allowed else ()
        if chosen:
            evicted = await self._evict_all(world, chosen, now_seconds)
            self._rounds = begin(self._rounds, evicted, world.pods, now_seconds=now_seconds)
            self._tell(gathered.claimants, evicted)
        return self._outcomes

    async def _may_begin(self, plan: Plan, now_seconds: float) -> bool:
        """Tell whether a round may begin, given also the evictions of earlier processes."""
        if not may_begin(self._rounds, self._rules, plan, now_seconds=now_seconds):
            return False
        if not self._has_recalled and self._record_of_the_hour is not None:
            try:
                before = await self._record_of_the_hour.read()
            except ValueError:
                _log.warning("the record of evictions cannot be read: no evictions for an hour")
                before = (now_seconds,) * self._rules.per_hour
            except ClusterError as error:
                self._complain(error.message)
                return False
            self._rounds = recall(self._rounds, before, now_seconds=now_seconds)
        self._has_recalled = True
        return may_begin(self._rounds, self._rules, plan, now_seconds=now_seconds)

    async def _reopen(self, world: World) -> None:
        """Remove our taint from the nodes outside the current round; log each failure once."""
        busy = self._rounds.current.nodes if self._rounds.current else frozenset()
        kept_closed: set[str] = set()
        for node in world.nodes:
            name = node["metadata"]["name"]
            if is_closed(node) and name not in busy:
                try:
                    await reopen(self._cluster, name)
                except NotFound:
                    continue
                except ClusterError as error:
                    kept_closed.add(name)
                    if name not in self._kept_closed:
                        _log.warning("taint not removed from node", node=name, why=error.message)
        self._kept_closed = frozenset(kept_closed)

    async def _evict_all(
        self, world: World, chosen: Sequence[PodToEvict], now_seconds: float
    ) -> Sequence[PodToEvict]:
        """Return the evicted pods: none if one would be refused, else all up to the first failure."""
        evicted: list[PodToEvict] = []
        try:
            for target in chosen:
                await ask(self._cluster, target, dry_run=True)
            if why_not := await spent_budget(self._cluster, world.disruption_budgets, chosen):
                self._outcomes["refused"] += 1
                self._complain(why_not)
                return ()
            if self._record_of_the_hour is not None:
                await self._record_of_the_hour.write((*self._rounds.evictions, *[now_seconds] * len(chosen)))
            await self._close_all(sorted({target.move.node for target in chosen}))
            for target in chosen:
                await ask(self._cluster, target, dry_run=False)
                evicted.append(target)
                self._outcomes["evicted"] += 1
        except Throttled as error:
            self._outcomes["refused" if is_for_a_budget(error) else "busy"] += 1
            self._complain(error.message)
        except (NotFound, Conflict):
            self._outcomes["gone"] += 1
        except ClusterError as error:
            self._outcomes["failed"] += 1
            self._complain(error.message)
        else:
            self._last_complaint = ""
        return evicted

    async def _close_all(self, nodes: Sequence[str]) -> None:
        """Keep new pods off nodes. Raises ClusterError if a call is rejected, but never Conflict."""
        for node in nodes:
            try:
                await _write(self._cluster, node, [_TAINT])
            except Conflict as error:  # a Conflict would be taken for a pod that was replaced by a namesake
                raise Unavailable(
                    f"node {node} is changed continuously by other clients: {error.message}"
                ) from None

    def _complain(self, why: str) -> None:
        """Log the reason why nothing is moved, once until it changes."""
        if why != self._last_complaint:
            _log.warning("no further evictions for now", why=why)
        self._last_complaint = why

    def _tell(self, claimants: Sequence[Claimant], evicted: Sequence[PodToEvict]) -> None:
        """Log each eviction, and record events on the variant of the pod and on those that benefit.

        The log has all names; events name only workloads of their own namespace.
        """
        values = {item.key: item.value for item in claimants}
        for target in evicted:
            move, pod = target.move, target.pod["metadata"]["name"]
            helped = ", ".join("/".join(key) for key in move.benefits)
            _log.info("evicted", namespace=move.namespace, pod=pod, node=move.node, benefits=helped)
            own = [name for namespace, name in move.benefits if namespace == move.namespace]
            strangers = ["workloads of other namespaces"] if len(own) < len(move.benefits) else []
            note = (
                f"pod {pod} was evicted from node {move.node} to make room for {', '.join(own + strangers)}"
            )
            moved = [] if move.is_other else [(move.namespace, move.name)]
            self._record(values, moved, EventReason.MOVED, note)
            for key in move.benefits:
                called = f"pod {pod}" if key[0] == move.namespace else "a pod of another namespace"
                note = f"{called} was evicted from node {move.node} to make room"
                self._record(values, [key], EventReason.ROOM_MADE, note)

    def _record(
        self, values: Mapping[Key, Json], keys: Sequence[Key], reason: EventReason, note: str
    ) -> None:
        for key in keys:
            if key in values:
                self._events.record(values[key], type="Normal", reason=str(reason), action="Evict", note=note)


_TRIES: Final = 3
_TAINT: Final[Json] = {"key": MOVING, "effect": "NoSchedule"}


def is_closed(node: Json) -> bool:
    """Tell whether a node has our taint."""
    return any(taint["key"] == MOVING for taint in _taints(node))


def other_taints(node: Json) -> list[Json]:
    """Return the taints of a node without ours."""
    return [taint for taint in _taints(node) if taint["key"] != MOVING]


async def reopen(cluster: Cluster, name: str) -> None:
    """Remove our taint from a node. Raises ClusterError if a call is rejected."""
    await _write(cluster, name, [])


async def _write(cluster: Cluster, name: str, ours: Sequence[Json]) -> None:
    """Set our taints on a node and keep all others; retry if the node changed meanwhile."""
    for tries_left in reversed(range(_TRIES)):
        node = await cluster.get(NODES, name)
        if is_closed(node) == bool(ours):
            return
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        try:
            await cluster.patch_merge(
                NODES, name, {"metadata": version, "spec": {"taints": [*other_taints(node), *ours]}}
            )
        except Conflict:
            if not tries_left:
                raise
        else:
            return


def _taints(node: Json) -> Sequence[Json]:
    return (node.get("spec") or {}).get("taints") or []

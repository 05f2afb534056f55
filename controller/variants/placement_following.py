"""Tracks the placements of plans: releases gated pods, and reports replicas that lost their planned node.

The nodes of a plan are a proposal. A replica on another node does no harm by itself, but it does if a replica
that the plan had room for no longer fits anywhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.kinds.identity import Key
from apiserver.log import EventLogger
from controller.observe.claim import Claimant
from controller.observe.conditions import ConditionReason
from controller.observe.gather import GatherResult, World
from controller.planning.decision import NodePlacement, Plan
from controller.planning.inventory import admits
from controller.planning.snapshot import Snapshot
from controller.planning.wording import count, listing
from controller.variants.placing import GATE, GateKeeper, let_in, strays

_Spot = tuple[Key, str]
"""A variant and a node."""

_MOST_NAMES: Final = 3
_ELSEWHERE: Final = "pods of other namespaces"
_LATE_ELSEWHERE: Final = "variants of other namespaces still run more replicas than planned"

REMEDY: Final = f"with the scheduling gate {GATE}, pods are assigned to the planned nodes"
"""Advice that prevents a recurrence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """Placements of a plan, and the snapshot that it was made from."""

    snapshot: Snapshot
    placements: tuple[NodePlacement, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingReplica:
    """A pending replica that a plan had room for and that fits nowhere now."""

    variant: Key
    pod: str
    node: str
    """The node on which the plan had room."""

    takers: tuple[str, ...]
    """Pods bound there against the plan; those of other namespaces without names."""

    late: tuple[str, ...] = ()
    """Variants with pods there that still run more replicas than decided, each as `chat still runs 3 replicas
    instead of 2`: their autoscalers have not followed yet. Without these and `takers`, pods that are not
    planned took the node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """Differences between the cluster and the plan."""

    elsewhere: int = 0
    """Replicas bound since the last plan to a node on which it did not place them."""

    waiting: tuple[WaitingReplica, ...] = ()


IN_STEP: Final = Divergence()
"""No known difference."""


def divergence(last: Expectation | None, known: Iterable[WaitingReplica], now: Snapshot) -> Divergence:
    """Return the differences to the last plan; `known` replicas stay pending until something fits them."""
    pending: list[WaitingReplica] = []
    elsewhere = 0
    unplaced = _unplaced_pods(now)
    if last is not None:
        fresh = _newly_bound(last.snapshot, now)
        placed: Counter[_Spot] = Counter()
        for place in last.placements:
            placed[(place.namespace, place.name), place.node] += place.pods
        surplus = {spot: pods[placed[spot] :] for spot, pods in fresh.items() if len(pods) > placed[spot]}
        unused = {spot: pods - len(fresh.get(spot, ())) for spot, pods in placed.items()}
        elsewhere = sum(map(len, surplus.values()))
        pending = [*_waiting_replicas(unplaced, unused, surplus, now)]
    old = {(item.variant[0], item.pod): item for item in known}
    new = {(item.variant[0], item.pod): item for item in pending}
    still = {(namespace, pod) for (namespace, _), pods in unplaced.items() for pod in pods}
    # Known ones take precedence, so a replica keeps the cause that was seen first.
    waiting = [item for pod, item in sorted((new | old).items()) if pod in still]
    return Divergence(elsewhere=elsewhere, waiting=tuple(waiting))


def sentences(waiting: Iterable[WaitingReplica]) -> Mapping[Key, str]:
    """Return a message for each variant that has such pending replicas."""
    groups: dict[Key, dict[str, list[WaitingReplica]]] = defaultdict(lambda: defaultdict(list))
    for item in waiting:
        groups[item.variant][item.node].append(item)
    return {key: _node_text(nodes) for key, nodes in groups.items()}


def _node_text(nodes: Mapping[str, Sequence[WaitingReplica]]) -> str:
    text = listing([_sentence(node, items) for node, items in sorted(nodes.items())])
    is_only_late = all(item.late and not item.takers for items in nodes.values() for item in items)
    return text if is_only_late else f"{text}; {REMEDY}"


def _sentence(node: str, items: Sequence[WaitingReplica]) -> str:
    verb = "wait" if len(items) > 1 else "waits"
    return f"{count(len(items), 'replica')} planned on {node} {verb}: {_cause(items)}"


def _cause(items: Sequence[WaitingReplica]) -> str:
    if takers := _few(sorted({name for item in items for name in item.takers})):
        return f"the scheduler assigned {listing(takers)} to it"
    if late := _few(sorted({name for item in items for name in item.late})):
        return f"{listing(late)}, because autoscalers have not followed the plan yet"
    return "other pods use the place"


def _newly_bound(before: Snapshot, now: Snapshot) -> Mapping[_Spot, tuple[str, ...]]:
    """Return the newly bound pods by variant and node.

    Pods without accelerators are left out, as plans do not place them.
    """
    known = {
        (variant.namespace, replica.name): Counter(replica.nodes)
        for variant in before.variants
        for replica in variant.replicas
    }
    bound: dict[_Spot, list[str]] = defaultdict(list)
    for variant in now.variants:
        for replica in variant.replicas if variant.accelerators_per_replica else ():
            # Of a replica with several pods, some may have been bound before: only the others are new.
            fresh = Counter(replica.nodes) - known.get((variant.namespace, replica.name), Counter())
            for node in fresh.elements():
                bound[variant.key, node].append(replica.name)
    return {spot: tuple(sorted(names)) for spot, names in bound.items()}


def _waiting_replicas(
    unplaced: Mapping[Key, Sequence[str]],
    unused: Mapping[_Spot, int],
    surplus: Mapping[_Spot, tuple[str, ...]],
    now: Snapshot,
) -> Iterator[WaitingReplica]:
    """Yield the replicas without a node for which places of the plan are still unused."""
    late = _late(now) if unplaced else {}
    for key, pods in unplaced.items():
        places = sorted(node for (of, node), left in unused.items() if of == key for _ in range(left))
        for pod, node in zip(pods, places, strict=False):
            takers = {
                name if namespace == key[0] else _ELSEWHERE
                for ((namespace, _), where), names in surplus.items()
                if where == node
                for name in names
            }
            behind = {
                pods if namespace == key[0] else _LATE_ELSEWHERE
                for (namespace, _), pods in late.get(node, {}).items()
            }
            yield WaitingReplica(
                variant=key, pod=pod, node=node, takers=tuple(sorted(takers)), late=tuple(sorted(behind))
            )


def _late(now: Snapshot) -> Mapping[str, Mapping[Key, str]]:
    """Return, by node, the variants that run more replicas than decided, and how many."""
    late: dict[str, dict[Key, str]] = defaultdict(dict)
    for variant in now.variants:
        bound = [replica for replica in variant.replicas if replica.nodes]
        decided = variant.desired_replicas
        if not variant.accelerators_per_replica or decided is None or len(bound) <= decided:
            continue
        number = count(len(bound), "replica")
        for replica in bound:
            for node in replica.nodes:
                late[node][variant.key] = f"{variant.name} still runs {number} instead of {decided}"
    return late


def _unplaced_pods(now: Snapshot) -> Mapping[Key, Sequence[str]]:
    """Return the unbound pods that fit no node now, by variant; those that fit will be bound."""
    held: Counter[str] = Counter()
    unbound: dict[Key, list[str]] = {}
    for variant in now.variants:
        for replica in variant.replicas:
            for node in replica.nodes:
                held[node] += variant.accelerators_per_pod
            if not replica.nodes and variant.accelerators_per_replica:
                unbound.setdefault(variant.key, []).append(replica.name)
    variants = {variant.key: variant for variant in now.variants if variant.key in unbound}
    free = [(n, n.accelerators_allocatable - n.accelerators_used_by_others - held[n.name]) for n in now.nodes]
    return {
        key: sorted(unbound[key])
        for key, variant in variants.items()
        if not any(room >= variant.accelerators_per_pod and admits(node, variant) for node, room in free)
    }


def _few(names: Sequence[str]) -> Sequence[str]:
    """Return the names, shortened to what is readable in a sentence."""
    more = len(names) - _MOST_NAMES
    return [*names[:_MOST_NAMES], f"{more} more"] if more > 0 else names


_log = EventLogger(__name__)


class PlacementFollower:
    """Keeps the last plan's placements, and the replicas that are pending because they were not followed."""

    def __init__(self, cluster: Cluster, events: EventRecorder) -> None:
        self._events = events
        self._gate_keeper = GateKeeper(cluster)
        self._expected: Expectation | None = None
        self.divergence: Divergence = IN_STEP

    def compare(self, claimants: Sequence[Claimant], snapshot: Snapshot) -> Sequence[WaitingReplica]:
        """Return the replicas pending because of a divergence; record an event and log for new ones."""
        before = self.divergence.waiting
        self.divergence = divergence(self._expected, before, snapshot)
        new = sentences(item for item in self.divergence.waiting if item not in before)
        for claimant in claimants:
            if claimant.key in new:
                self._tell(claimant, new[claimant.key])
        return self.divergence.waiting

    async def follow(
        self, world: World, gathered: GatherResult, plan: Plan, *, acted_on: Callable[[Key], bool]
    ) -> None:
        """Keep the plan's placements, and release the gated pods that have a place in it."""
        self._expected = Expectation(snapshot=gathered.snapshot, placements=plan.placements)
        due = let_in(gathered.observed, plan, gathered.snapshot.nodes, acted_on=acted_on)
        await self._gate_keeper.open_for((*due, *strays(world.pods, gathered.observed.values())))

    def _tell(self, claimant: Claimant, sentence: str) -> None:
        namespace, name = claimant.key
        _log.warning("placed elsewhere", namespace=namespace, name=name, message=sentence)
        self._events.record(
            claimant.value,
            type="Warning",
            reason=str(ConditionReason.PLACED_ELSEWHERE),
            action="Place",
            note=sentence,
            meaning=sentence,
        )

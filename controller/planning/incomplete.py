"""Room for the missing pods of replicas that are bound in part.

A group of pods is incomplete while it starts, because a leader is often scheduled before its workers are
created, and after one of its pods was deleted. Its accelerators serve nothing until all pods are bound, and
only nodes in the domain of the bound pods will do. So its missing pods get room before anything is planned:
planning counts such a replica as a whole one, which it may still remove.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat

from controller.planning.decision import NodePlacement, Plan
from controller.planning.demand import staying_replicas
from controller.planning.inventory import admits
from controller.planning.pod_rules import allowed_on_node
from controller.planning.snapshot import Replica, Snapshot, Variant

Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class CompletedSnapshot:
    """A snapshot in which incomplete replicas are whole, as far as there is room."""

    snapshot: Snapshot
    added: Mapping[Key, Mapping[str, tuple[str, ...]]]
    """The nodes for missing pods, by variant and replica."""

    def with_places(self, plan: Plan) -> Plan:
        """Return a plan of this snapshot with places for the missing pods of the replicas that stay."""
        if not self.added:
            return plan
        granted = {item.key: item.replicas for item in plan.decisions}
        places = Counter({(place.namespace, place.name, place.node): place.pods for place in plan.placements})
        for variant in self.snapshot.variants:
            added = self.added.get(variant.key, {})
            bound = [replica for replica in staying_replicas(variant) if replica.nodes] if added else []
            for replica in bound[max(0, len(bound) - granted[variant.key]) :]:
                places.update((*variant.key, node) for node in added.get(replica.name, ()))
        placements = tuple(
            NodePlacement(namespace=namespace, name=name, node=node, pods=pods)
            for (namespace, name, node), pods in sorted(places.items())
        )
        return replace(plan, placements=placements)


def complete(snapshot: Snapshot) -> CompletedSnapshot:
    """Return the snapshot with room for missing pods.

    Pods with a rule on domains get none, because other pods may have to be placed first.
    """
    if not any(_incomplete(variant) for variant in snapshot.variants):
        return CompletedSnapshot(snapshot=snapshot, added={})
    rooms = _Rooms(snapshot)
    variants = {variant.key: variant for variant in snapshot.variants}
    added: dict[Key, Mapping[str, tuple[str, ...]]] = {}
    for variant in sorted(snapshot.variants, key=lambda variant: (variant.priority, variant.key)):
        incomplete = _incomplete(variant)
        nodes = rooms.take(variant, incomplete) if incomplete else {}
        if nodes:
            added[variant.key] = nodes
            variants[variant.key] = replace(variant, replicas=tuple(_whole(variant.replicas, nodes)))
    whole = replace(snapshot, variants=tuple(variants[variant.key] for variant in snapshot.variants))
    return CompletedSnapshot(snapshot=whole, added=added)


def missing_pods(variant: Variant, hosts: Sequence[str]) -> int:
    """Return how many pods a replica lacks that is bound to some nodes; 0 for one without a node."""
    return variant.pods_per_replica - len(hosts) if hosts else 0


def _incomplete(variant: Variant) -> Sequence[Replica]:
    if variant.pods_per_replica == 1 or not variant.accelerators_per_replica or variant.rules.spread:
        return ()
    return [replica for replica in staying_replicas(variant) if missing_pods(variant, replica.nodes) > 0]


def _whole(replicas: Sequence[Replica], nodes: Mapping[str, tuple[str, ...]]) -> Iterator[Replica]:
    for replica in replicas:
        further = nodes.get(replica.name, ())
        yield replace(replica, further_nodes=(*replica.further_nodes, *further)) if further else replica


class _Rooms:
    """The free accelerators of each node."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._free = {
            node.name: node.accelerators_allocatable - node.accelerators_used_by_others
            for node in snapshot.nodes
        }
        self._pods: Counter[tuple[Key, str]] = Counter()
        for variant in snapshot.variants:
            for replica in staying_replicas(variant):
                self._put(variant, replica.nodes)

    def take(self, variant: Variant, replicas: Sequence[Replica]) -> Mapping[str, tuple[str, ...]]:
        """Return a node for each missing pod, the fullest first, by replica; only replicas that get all."""
        domains: dict[str | None, list[str]] = defaultdict(list)
        for node in self._nodes.values():
            if self._free[node.name] >= variant.accelerators_per_pod and admits(node, variant):
                domains[self._domain(variant, [node.name])].append(node.name)
        nodes: dict[str, tuple[str, ...]] = {}
        for replica in replicas:
            domain = self._domain(variant, replica.nodes)
            names = [] if domain is None else domains[domain]
            names.sort(key=lambda name: (self._free[name], name))
            missing = missing_pods(variant, replica.nodes)
            places = tuple(islice(self._places(variant, names), missing))
            if len(places) == missing:
                self._put(variant, places)
                nodes[replica.name] = places
        return nodes

    def _places(self, variant: Variant, names: Sequence[str]) -> Iterator[str]:
        """Yield each node as often as a pod fits on it."""
        for name in names:
            fitting = self._free[name] // variant.accelerators_per_pod
            pods = self._pods[variant.key, name]
            yield from repeat(name, allowed_on_node(variant.rules.most_per_node, pods, fitting))

    def _domain(self, variant: Variant, nodes: Sequence[str]) -> str | None:
        """Return the domain of pods on some nodes, empty if all nodes are in one; None if it is unknown."""
        if not variant.together_in:
            return ""
        known = [self._nodes[name] for name in nodes if name in self._nodes]
        return next((dict(node.labels).get(variant.together_in) for node in known), None) or None

    def _put(self, variant: Variant, nodes: Sequence[str]) -> None:
        for name in nodes:
            self._pods[variant.key, name] += 1
            if name in self._free:
                self._free[name] -= variant.accelerators_per_pod

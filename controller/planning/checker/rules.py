"""Check rules that spread pods, keep them together or keep them apart, for the new pods of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from controller.planning.checker.places import added_node, kept_replicas, label_of, matches_node, missing_pods
from controller.planning.cluster import Node
from controller.planning.decision import Decision, Plan
from controller.planning.snapshot import Snapshot, Variant

Key = tuple[str, str]


def rule_problems(snapshot: Snapshot, plan: Plan, decisions: Mapping[Key, Decision]) -> Iterator[str]:
    """Yield a message for each rule that the placements of a variant's new pods violate.

    All nodes to be added to a pool count as one node with their labels.
    """
    nodes = {node.name: node for node in snapshot.nodes}
    to_come = {pool.name: added_node(pool) for pool in snapshot.pools}
    requests = [request for request in plan.requests if request.pool in to_come]
    added = {to_come[request.pool].name: request.nodes for request in requests}
    known = nodes | {node.name: node for node in to_come.values()}
    new: dict[Key, Counter[str]] = {}
    for place in plan.placements:
        new.setdefault((place.namespace, place.name), Counter())[place.node] += place.pods
    for request in requests:
        for namespace, name, pods in request.pods:
            new.setdefault((namespace, name), Counter())[to_come[request.pool].name] += pods
    for variant in snapshot.variants:
        key = (variant.namespace, variant.name)
        if key in new:
            pods_on_node = Counter(new[key])
            kept = kept_replicas(variant, decisions[key].replicas)
            for hosts in kept:
                pods_on_node.update(hosts)
            yield from _apart(variant, new[key], pods_on_node, added)
            yield from _together(variant, new[key], kept, known)
            yield from _spread(variant, new[key], pods_on_node, nodes=known, existing=nodes)


def _apart(
    variant: Variant, new: Counter[str], pods_on_node: Counter[str], added: Mapping[str, int]
) -> Iterator[str]:
    limit = variant.rules.most_per_node
    if limit is None:
        return
    for node in sorted(new):
        most = limit.pods * added.get(node, 1)
        if pods_on_node[node] > most:
            yield f"{variant.name}: {pods_on_node[node]} pods on node {node}, at most {most} may be there"


def _together(
    variant: Variant, new: Counter[str], kept: Sequence[Sequence[str]], nodes: Mapping[str, Node]
) -> Iterator[str]:
    """Yield a message for each domain with neither whole replicas nor missing pods of bound ones."""
    if not variant.together_in or variant.pods_per_replica == 1:
        return

    def block_of(node: str) -> str:
        return (label_of(nodes[node], variant.together_in) if node in nodes else None) or ""

    missing = Counter[str]()
    for hosts in kept:
        missing[next(filter(None, map(block_of, hosts)), "")] += missing_pods(variant, hosts)
    blocks = Counter[str]()
    for node, pods in new.items():
        blocks[block_of(node)] += pods
    for block, pods in sorted(blocks.items()):
        if not block or pods % variant.pods_per_replica > missing[block]:
            where = f"{variant.together_in}={block}"
            yield f"{variant.name}: {pods} pods in {where}, not a multiple of pods_per_replica"


def _spread(
    variant: Variant,
    new: Counter[str],
    pods_on_node: Counter[str],
    *,
    nodes: Mapping[str, Node],
    existing: Mapping[str, Node],
) -> Iterator[str]:
    """Yield a message for each domain that gets a pod and then exceeds the fewest by more than the skew.

    Domains that exist only on nodes to be added count only if there are no others.
    """
    spread = variant.rules.spread
    if spread is None:
        return
    key = spread.topology_key
    domain_of = {name: label_of(node, key) for name, node in nodes.items()}
    counts = _domains(variant, key, existing) or _domains(variant, key, nodes)
    for node, pods in pods_on_node.items():
        if (domain := domain_of.get(node)) in counts and domain is not None:
            counts[domain] += pods
    for domain in sorted({domain_of.get(node) or "" for node in new}):
        fewest = 0 if spread.counts_from_zero else min(counts.values(), default=0)
        ahead = counts.get(domain, 0) - fewest
        if domain not in counts or ahead > spread.max_skew:
            most = spread.max_skew
            yield f"{variant.name}: {key}={domain} is {ahead} pods ahead, at most {most} are allowed"


def _domains(variant: Variant, key: str, nodes: Mapping[str, Node]) -> dict[str, int]:
    """Return the domains of a topology on nodes that match the variant, each with no pod."""
    matching = (label_of(node, key) for node in nodes.values() if matches_node(node, variant))
    return {domain: 0 for domain in matching if domain is not None}

"""Check that every new replica has a place: room on its node, and the rules of its pods.

Rules spread pods, keep them together or keep them apart; they hold for the new pods of a plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from controller.planning.cluster import Node, NodePool, NodeRequirement, Taint, Toleration
from controller.planning.decision import BoundBy, Plan, VariantDecision
from controller.planning.snapshot import Snapshot, Variant

_MOST_PACKED = 64
"""The number of accelerators of a node above which combinations of pods would take too long to try."""

_MOST_DIGITS = 19
"""Maximum digits of a 64-bit integer."""


def place_problems(
    snapshot: Snapshot, plan: Plan, decisions: Mapping[tuple[str, str], VariantDecision]
) -> Iterator[str]:
    """Yield a message for each impossible placement, and for each replica without one."""
    nodes = {node.name: node for node in snapshot.nodes}
    variants = {(variant.namespace, variant.name): variant for variant in snapshot.variants}
    room = {n.name: n.accelerators_allocatable - n.accelerators_used_by_others for n in snapshot.nodes}
    placed: Counter[tuple[str, str]] = Counter()
    for variant in snapshot.variants:
        for hosts in kept_replicas(variant, decisions[variant.namespace, variant.name].replicas):
            for host in hosts:
                if host in room:
                    room[host] -= variant.accelerators_per_replica // variant.pods_per_replica
    gaining = set()
    for place in plan.placements:
        variant = variants[place.namespace, place.name]
        if place.node not in nodes or not _may_use(nodes[place.node], variant):
            yield f"{place.name}: may not go to node {place.node}"
            continue
        room[place.node] -= place.pods * variant.accelerators_per_replica // variant.pods_per_replica
        placed[place.namespace, place.name] += place.pods
        gaining.add(place.node)
    # A node that was already overcommitted and gets nothing new is not a fault of the plan.
    for name in sorted(gaining):
        if room[name] < 0:
            yield f"node {name}: {-room[name]} accelerators too many"
    yield from _requests(snapshot, plan, placed)
    yield from _counts(snapshot, decisions, placed)


def _requests(snapshot: Snapshot, plan: Plan, placed: Counter[tuple[str, str]]) -> Iterator[str]:
    """Yield a message for each problem with nodes to be added, and count the pods on them as placed."""
    pools = {pool.name: pool for pool in snapshot.pools}
    variants = {(variant.namespace, variant.name): variant for variant in snapshot.variants}
    for request in plan.requests:
        pool = pools.get(request.pool)
        if pool is None or request.nodes > pool.nodes_addable:
            yield f"node pool {request.pool}: {request.nodes} nodes cannot be added"
            continue
        to_come = added_node(pool)
        pods: Counter[int] = Counter()
        for namespace, name, count in request.pods:
            variant = variants[namespace, name]
            placed[namespace, name] += count
            pods[_pod_size(variant)] += count
            if not _may_use(to_come, variant) or variant.stalled_replicas:
                yield f"{name}: may not go to the nodes to be added to {pool.name}"
        if not fit_on_equal_nodes(pods, accelerators=pool.accelerators_per_node, nodes=request.nodes):
            sizes = ", ".join(f"{count} of {size}" for size, count in sorted(pods.items()))
            yield f"node pool {request.pool}: pods by accelerators ({sizes}) do not fit {request.nodes} nodes"


def added_node(pool: NodePool) -> Node:
    """Return a node as the pool would add it, with a name that no node of a cluster can have."""
    return Node(
        name=f"pool {pool.name}",
        accelerator=pool.accelerator,
        accelerators_allocatable=pool.accelerators_per_node,
        labels=pool.labels,
        taints=pool.taints,
    )


def fit_on_equal_nodes(pods: Mapping[int, int], *, accelerators: int, nodes: int) -> bool:
    """Return whether pods, by size, are found to fit on empty nodes.

    Placing the largest pods first succeeds if the sizes divide each other. Otherwise, filling one node after
    the other as far as possible finds most packings that leave no room. A packing that neither finds counts
    as impossible.
    """
    left = Counter({size: count for size, count in pods.items() if size and count})
    if sum(size * count for size, count in left.items()) > accelerators * nodes:
        return False
    if _fit_by_size(left, [accelerators] * nodes):
        return True
    return accelerators <= _MOST_PACKED and _fit_by_node(left, accelerators, nodes)


def _fit_by_size(pods: Mapping[int, int], rooms: list[int]) -> bool:
    for size, count in sorted(pods.items(), reverse=True):
        left = count
        for node, room in enumerate(rooms):
            here = min(left, room // size)
            rooms[node] -= here * size
            left -= here
        if left:
            return False
    return True


def _fit_by_node(pods: Counter[int], accelerators: int, nodes: int) -> bool:
    left = Counter(pods)
    for _ in range(nodes):
        first = max(left, default=0)
        if 0 < first <= accelerators:
            left -= Counter([first])
            left -= _fullest(sorted((+left).items(), reverse=True), accelerators - first)
    return not left


def _fullest(pods: Sequence[tuple[int, int]], room: int) -> Counter[int]:
    """Return the pods, from counts by size in descending order, that leave the least room."""
    if not pods:
        return Counter()
    (size, most), *others = pods
    best: Counter[int] = Counter()
    for count in range(min(most, room // size), -1, -1):
        chosen = _fullest(others, room - count * size)
        chosen[size] += count
        if _sum(chosen) > _sum(best):
            best = chosen
        if _sum(best) == room:
            break
    return best


def _sum(pods: Counter[int]) -> int:
    return sum(size * count for size, count in pods.items())


def _counts(
    snapshot: Snapshot, decisions: Mapping[tuple[str, str], VariantDecision], placed: Counter[tuple[str, str]]
) -> Iterator[str]:
    """Yield a message for each variant whose unbound replicas do not all have places, unless excused.

    Missing pods of replicas that are bound in part may have places.
    """
    for variant in snapshot.variants:
        key = (variant.namespace, variant.name)
        replicas = decisions[key].replicas
        kept = kept_replicas(variant, replicas)
        unplaced = (replicas - len(kept)) * variant.pods_per_replica
        missing = sum(missing_pods(variant, hosts) for hosts in kept)
        whole = len(kept) + placed[key] // variant.pods_per_replica
        removes_ready = any(whole <= ordinal < variant.current_replicas for ordinal in variant.ready_ordinals)
        is_left_out = decisions[key].bound_by is BoundBy.SOLVER
        is_held = is_left_out or not decisions[key].signal.decides
        # Current replicas may be kept without a place: if fewer would remove ready ones, if node autoscalers
        # have to see their pods, or without a new decision.
        is_excused = removes_ready or variant.stalled_replicas or is_held
        excused = min(variant.current_replicas, replicas) if is_excused else 0
        if variant.accelerators_per_replica == 0:
            continue
        if placed[key] > unplaced + missing:
            yield f"{variant.name}: {placed[key]} places for {unplaced} pods"
        elif placed[key] < unplaced and replicas > excused:
            yield f"{variant.name}: only {placed[key]} places for {unplaced} pods"


def _pod_size(variant: Variant) -> int:
    return variant.accelerators_per_replica // variant.pods_per_replica


def kept_replicas(variant: Variant, replicas: int) -> list[list[str]]:
    """Return the nodes of each bound replica that remains after removals, in removal order."""
    leaving_anyway = max(0, len(variant.replicas) - variant.current_replicas)
    hosts = [[node for node in (r.node, *r.further_nodes) if node is not None] for r in variant.replicas]
    unbound = [nodes for nodes in hosts if not nodes]
    bound = [nodes for nodes in hosts if nodes]
    # Replicas without a node are removed before all others, so bound ones leave only if these do not suffice.
    bound = bound[max(0, leaving_anyway - len(unbound)) :]
    return bound[len(bound) - min(len(bound), replicas) :]


def missing_pods(variant: Variant, hosts: Sequence[str]) -> int:
    """Return how many pods a bound replica lacks."""
    return max(0, variant.pods_per_replica - len(hosts))


def _may_use(node: Node, variant: Variant) -> bool:
    spread = variant.rules.spread
    has_label = not spread or label_of(node, spread.topology_key) is not None
    tolerated = all(any(_accepts(t, taint) for t in variant.tolerations) for taint in node.taints)
    return node.schedulable and has_label and tolerated and matches_node(node, variant)


def matches_node(node: Node, variant: Variant) -> bool:
    """Return whether a node matches the variant's pods, ignoring taints and cordons."""
    return (
        (not variant.accelerator or node.accelerator == variant.accelerator)
        and all(value in _values(node, key) for key, value in variant.node_selector)
        and (not variant.node_affinity or any(_matches(term, node) for term in variant.node_affinity))
    )


def _values(node: Node, key: str) -> list[str]:
    """Return the values that a label of a node has; of a node to be added it may have several."""
    return [value for name, value in node.labels if name == key]


def label_of(node: Node, key: str) -> str | None:
    """Return the value of a node's label, or None if it has none, or several possible ones."""
    values = _values(node, key)
    return values[0] if len(values) == 1 else None


def _matches(term: Sequence[NodeRequirement], node: Node) -> bool:
    """Return whether a node satisfies all requirements of a node selector term; an empty one matches none."""
    met = []
    for item in term:
        values = _values(node, item.key)
        bounds = [n for n in map(_integer, item.values) if n is not None]
        numbers = (
            [n for n in map(_integer, values) if n is not None]
            if len(bounds) == len(item.values) == 1
            else []
        )
        met.append(
            {
                "In": any(value in item.values for value in values),
                "NotIn": any(value not in item.values for value in values) or not values,
                "Exists": bool(values),
                "DoesNotExist": not values,
                "Gt": any(number > bounds[0] for number in numbers),
                "Lt": any(number < bounds[0] for number in numbers),
            }[item.operator]
        )
    return bool(met) and all(met)


def _integer(text: str) -> int | None:
    """Return a 64-bit integer, or None for text that kube-scheduler cannot compare."""
    digits = text[1:] if text.startswith(("+", "-")) else text
    digits = digits.lstrip("0") or digits[-1:]
    if len(digits) > _MOST_DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    number = -int(digits) if text.startswith("-") else int(digits)
    return number if -(2**63) <= number < 2**63 else None


def _accepts(toleration: Toleration, taint: Taint) -> bool:
    same_key = toleration.key == taint.key or (not toleration.key and toleration.operator == "Exists")
    same_value = toleration.operator == "Exists" or toleration.value == taint.value
    return same_key and same_value and toleration.effect in (taint.effect, "")


Key = tuple[str, str]


def rule_problems(snapshot: Snapshot, plan: Plan, decisions: Mapping[Key, VariantDecision]) -> Iterator[str]:
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
            yield from _spread_errors(variant, new[key], pods_on_node, nodes=known, existing=nodes)


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


def _spread_errors(
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

"""The pods on each node after the plan, by accelerators. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Final

from controller.planning.cluster import Node
from controller.planning.decision import Decision, Plan
from controller.planning.demand import staying_replicas
from controller.planning.snapshot import Snapshot, Variant

Key = tuple[str, str]

_LETTERS: Final = ascii_uppercase + ascii_lowercase


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Holding:
    """Pods of one variant on one node."""

    code: str
    """The variant's code in drawings."""

    variant: Key
    accelerators: int
    """Accelerators per pod."""

    stays: int
    """Pods that are there now and stay."""

    comes: int
    """Pods that are not there yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeLayout:
    """One node after the plan."""

    node: Node
    holdings: tuple[Holding, ...]

    @property
    def taken(self) -> int:
        """Accelerators that the variants use."""
        return sum(item.accelerators * (item.stays + item.comes) for item in self.holdings)

    @property
    def others(self) -> int:
        """Accelerators that other workloads use."""
        return self.node.accelerators_used_by_others

    @property
    def free(self) -> int:
        """Unused accelerators."""
        return max(0, self.node.accelerators_allocatable - self.others - self.taken)

    @property
    def look(self) -> tuple[object, ...]:
        """Key that is equal for nodes that look the same in a drawing."""
        return (self.node.schedulable, self.node.accelerators_allocatable, self.others, self.holdings)


def in_order(plan: Plan) -> tuple[Decision, ...]:
    """Return the decisions in the order in which they are served."""
    return tuple(sorted(plan.decisions, key=lambda item: (item.priority, item.namespace, item.name)))


def codes_of(plan: Plan) -> Mapping[Key, str]:
    """Return a short code for each variant, in the order in which they are served."""
    return codes_for([(item.namespace, item.name) for item in in_order(plan)])


def codes_for(keys: Sequence[Key]) -> Mapping[Key, str]:
    """Return a short code for each of some variants, in their order."""
    length = 1
    while len(_LETTERS) ** length < len(keys):
        length += 1
    return {key: _code(number, length) for number, key in enumerate(keys)}


def running_layouts(snapshot: Snapshot, codes: Mapping[Key, str]) -> tuple[NodeLayout, ...]:
    """Return every node as its pods run now, by type and name."""
    stays: dict[str, Counter[Key]] = defaultdict(Counter)
    for variant in snapshot.variants:
        for replica in variant.replicas:
            for name in replica.nodes:
                stays[name][variant.key] += 1
    return _layouts(snapshot, codes, stays, {})


def layouts(snapshot: Snapshot, plan: Plan) -> tuple[NodeLayout, ...]:
    """Return every node after the plan, by type and name."""
    granted = {(item.namespace, item.name): item.replicas for item in plan.decisions}
    comes: dict[str, Counter[Key]] = defaultdict(Counter)
    for item in plan.placements:
        comes[item.node][item.namespace, item.name] += item.pods
    stays: dict[str, Counter[Key]] = defaultdict(Counter)
    for variant in snapshot.variants:
        for nodes in _kept_places(variant, granted.get(variant.key, 0)):
            for name in nodes:
                stays[name][variant.key] += 1
    return _layouts(snapshot, codes_of(plan), stays, comes)


def _layouts(
    snapshot: Snapshot,
    codes: Mapping[Key, str],
    stays: Mapping[str, Counter[Key]],
    comes: Mapping[str, Counter[Key]],
) -> tuple[NodeLayout, ...]:
    """Return every node with the pods that stay and come there, given by node and variant."""
    sizes = {variant.key: variant.accelerators_per_pod for variant in snapshot.variants}
    none: Counter[Key] = Counter()

    def holdings(name: str) -> Iterator[Holding]:
        old, new = stays.get(name, none), comes.get(name, none)
        for key in {*old, *new}:
            if sizes[key] and key in codes:
                yield Holding(
                    code=codes[key], variant=key, accelerators=sizes[key], stays=old[key], comes=new[key]
                )

    return tuple(
        NodeLayout(node=node, holdings=tuple(sorted(holdings(node.name))))
        for node in sorted(snapshot.nodes, key=lambda node: (node.accelerator, _natural(node.name)))
    )


def unplaced_variants(snapshot: Snapshot, plan: Plan) -> frozenset[Key]:
    """Return the variants with more granted replicas than the plan has places for."""
    placed: Counter[Key] = Counter()
    for item in plan.placements:
        placed[item.namespace, item.name] += item.pods
    for request in plan.requests:
        for namespace, name, count in request.pods:
            placed[namespace, name] += count
    granted = {(item.namespace, item.name): item.replicas for item in plan.decisions}
    return frozenset(
        variant.key
        for variant in snapshot.variants
        if variant.accelerators_per_replica
        and _lacks_places(variant, granted.get(variant.key, 0), placed[variant.key])
    )


def _lacks_places(variant: Variant, granted: int, placed_pods: int) -> bool:
    new = granted - len(_kept_places(variant, granted))
    return new * variant.pods_per_replica > placed_pods


def by_type(nodes: Sequence[NodeLayout]) -> Mapping[str, tuple[NodeLayout, ...]]:
    """Return the nodes by accelerator type."""
    groups: dict[str, list[NodeLayout]] = defaultdict(list)
    for item in nodes:
        groups[item.node.accelerator].append(item)
    return {accelerator: tuple(group) for accelerator, group in sorted(groups.items())}


def alike(nodes: Sequence[NodeLayout]) -> tuple[tuple[NodeLayout, ...], ...]:
    """Return the nodes in groups that look the same, in the order of their first node."""
    groups: dict[tuple[object, ...], list[NodeLayout]] = defaultdict(list)
    for item in nodes:
        groups[item.look].append(item)
    return tuple(tuple(group) for group in groups.values())


def _kept_places(variant: Variant, granted: int) -> list[tuple[str, ...]]:
    """Return the nodes of each replica that stays; the first in removal order do not."""
    bound = [replica.nodes for replica in staying_replicas(variant) if replica.nodes]
    return bound[max(0, len(bound) - granted) :]


def _code(number: int, length: int) -> str:
    letters = ""
    for _ in range(length):
        number, letter = divmod(number, len(_LETTERS))
        letters = _LETTERS[letter] + letters
    return letters


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key for which node-2 comes before node-10."""
    parts: list[tuple[int, str]] = []
    digits = ""
    for letter in f"{name}\0":
        if letter.isascii() and letter.isdigit():
            digits += letter
            continue
        if digits:
            parts.append((int(digits), ""))
            digits = ""
        parts.append((-1, letter))
    return tuple(parts)

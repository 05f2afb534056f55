"""The problem as all heuristics see it: the models' requirements and variants, and the nodes by kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller.planning.problem import CoverRow, PlacementProblem, Stage

Want = tuple[int, Mapping[int, int]]
"""A requirement, and the capacity of one replica of each variant that counts towards it."""


class ModelWants(NamedTuple):
    """One model with requirements."""

    name: str
    """Name of its first variant, which breaks ties."""

    priority: int
    variants: tuple[int, ...]
    demands: Sequence[Want]
    """Required capacities, by any of its variants; none if no capacity is known."""

    warmth: Sequence[Want]
    """Replicas to keep, of any of its variants."""

    floors: Mapping[int, int]
    """Minimum replicas of single variants regardless of the model's demand; 0 is omitted."""


def _askings(problem: PlacementProblem) -> list[ModelWants]:
    """Return the models with requirements, by name; heuristics know neither continuity nor present loads."""
    rows_of: dict[int, list[CoverRow]] = defaultdict(list)
    for row in problem.rows:
        if row.stage not in (Stage.LOAD, Stage.CONTINUITY):
            rows_of[row.model].append(row)
    askings = [made for rows in rows_of.values() if (made := _wants_of(problem, rows))]
    return sorted(askings, key=lambda asking: asking.name)


def _unmet_wants(models: Sequence[ModelWants], replicas: Sequence[int]) -> list[list[Want]]:
    """Return the unmet part of each model's shared requirements for given replicas."""
    some = {v for v, count in enumerate(replicas) if count}
    lacking = []
    for model in models:
        wants = [*model.warmth, *model.demands]
        if not some.isdisjoint(model.variants):
            wants = [(shortfall(want, replicas), want[1]) for want in wants]
        lacking.append([want for want in wants if want[0] > 0])
    return lacking


def shortfall(want: Want, replicas: Sequence[int]) -> int:
    """Return the unmet part of a requirement; negative for a surplus."""
    left, amounts = want
    for v, amount in amounts.items():
        left -= amount * replicas[v]
    return left


def _floors(problem: PlacementProblem, models: Sequence[ModelWants]) -> list[int]:
    """Return the minimum replicas of each variant."""
    least = [terms.lower for terms in problem.variants]
    for model in models:
        for v, count in model.floors.items():
            least[v] = max(least[v], min(count, problem.variants[v].upper))
    return least


def _wants_of(problem: PlacementProblem, rows: Sequence[CoverRow]) -> ModelWants | None:
    amounts = [dict(row.terms) for row in rows]
    named: set[int] = set()
    named.update(*amounts)
    if not named:
        return None
    demands: list[Want] = []
    warmth: list[Want] = []
    own: dict[int, int] = {}
    for row, shares in zip(rows, amounts, strict=True):
        if len(shares) == 1 < len(named):
            ((v, amount),) = row.terms
            own[v] = max(own.get(v, 0), -(-row.requirement // amount))
        else:
            (demands if row.stage is Stage.DEMAND else warmth).append((row.requirement, shares))
    variants = tuple(sorted(named))
    priority = min([row.priority for row in rows])
    return ModelWants(problem.variants[variants[0]].name, priority, variants, demands, warmth, own)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeKind:
    """Nodes that the same variants may use, in one or more bins."""

    nodes: tuple[int, ...]
    sizes: tuple[int, ...]
    """Slot sizes that determine exactly what fits, smallest first; empty if every node is its own bin."""

    variants: tuple[int, ...]


def _kinds(problem: PlacementProblem) -> list[NodeKind]:
    """Return the kinds of nodes, in the order of their first bins."""
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    # Bins of one kind mostly share one tuple, and hashing thousands of long tuples would be slow.
    group_of: dict[int, list[int]] = {}
    for b, bin_ in enumerate(problem.bins):
        if id(bin_.variants) not in group_of:
            group_of[id(bin_.variants)] = alike[bin_.variants]
        group_of[id(bin_.variants)].append(b)
    return [
        NodeKind(
            nodes=tuple(node for b in group for node in problem.bins[b].nodes),
            sizes=problem.bins[group[0]].sizes if len(group) == 1 else (),
            variants=problem.bins[group[0]].variants,
        )
        for group in alike.values()
    ]


def _kinds_of(problem: PlacementProblem, known: Sequence[NodeKind]) -> list[tuple[int, ...]]:
    """Return for each variant the kinds of nodes that it may use."""
    usable: list[tuple[int, ...]] = [()] * len(problem.variants)
    for k, kind in enumerate(known):
        alone = (k,)
        for v in kind.variants:
            usable[v] = usable[v] + alone if usable[v] else alone
    return usable


def _rooms_of(problem: PlacementProblem, known: Sequence[NodeKind]) -> tuple[int, ...]:
    """Return the accelerators of each kind that are free or used by the problem's variants."""
    room = list(problem.free)
    for terms in problem.variants:
        for places in terms.bound_replicas:
            for node in places:
                room[node] += terms.accelerators
    return tuple(max(0, sum([room[node] for node in kind.nodes])) for kind in known)


@dataclass(frozen=True, kw_only=True, slots=True)
class RivalView:
    """The models with requirements, and the nodes by kind."""

    problem: PlacementProblem
    models: Sequence[ModelWants]
    """Sorted by name."""

    floors: tuple[int, ...]
    """Minimum replicas of each variant."""

    lacking: Sequence[Sequence[Want]]
    """The unmet part of each model's requirements at the minimum replicas."""

    kinds: Sequence[NodeKind]
    rooms: tuple[int, ...]
    """Accelerators of each kind that are free or used by the problem's variants."""

    usable: Sequence[Sequence[int]]
    """Kinds that each variant may use."""

    by_name: tuple[int, ...]
    """The variants sorted by name."""


def view_of(problem: PlacementProblem) -> RivalView:
    """Return the view of a problem."""
    models, known = _askings(problem), _kinds(problem)
    least = _floors(problem, models)
    names = [terms.name for terms in problem.variants]
    return RivalView(
        problem=problem,
        models=models,
        floors=tuple(least),
        lacking=_unmet_wants(models, least),
        kinds=known,
        rooms=_rooms_of(problem, known),
        usable=_kinds_of(problem, known),
        by_name=tuple(sorted(range(len(names)), key=names.__getitem__)),
    )

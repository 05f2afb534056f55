"""Models in arrays: those with equally many variants stand together, and whatever is done is done to all.

Shapes: n models of a cohort, w variants of each. All numbers are int64; what is missing is zero.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.classes import NO_CLASS
from controller.planning.columns.domains import domains_of, knows_all_ways, most_even, spread_over
from controller.planning.problem import COST, UNLIMITED_REPLICAS, Stage, level_name, provided

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.planning.columns.arrays import Booleans, Integers
    from controller.planning.columns.domains import Domains
    from controller.planning.columns.resources import Resources
    from controller.planning.problem import CoverRow, PlacementProblem, VariantTerms

    _Family = tuple[tuple[int, ...], int, bool]
    """Over how many domains each variant spreads, about how many mixes there are if few, else 0, and whether
    some variants are confined."""


ENUMERABLE_MIXES = 128
"""Up to how many replica mixes of a model all of them become columns."""

_NUMBERS = (
    "lower",
    "upper",
    "current",
    "bound",
    "ready",
    "cost",
    "start_price",
    "stop_price",
    "accelerators",
    "units",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirements:
    """At most one cover row for each model of a cohort."""

    stage: Stage
    requirement: Integers
    """(n,); 0 where the model has no such row."""

    amounts: Integers
    """(n, w): per replica."""

    weight: Integers
    """(n,)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cohort:
    """Models with equally many variants."""

    variants: Integers
    """(n, w): index among the problem's."""

    lower: Integers
    upper: Integers
    current: Integers
    bound: Integers
    """(n, w): replicas that have a node."""

    settled: Integers
    """(n, w): units of them that are not counted against the most slots, see `Resources`."""

    ready: Integers
    cost: Integers
    start_price: Integers
    stop_price: Integers
    accelerators: Integers
    """(n, w): of a replica's pods together."""

    units: Integers
    """(n, w): how many a replica makes in what its class counts: its pods, or one where they go together."""

    homeless: Integers
    """(n, w): 1 where no node would take a new replica."""

    place_class: Integers
    """(n, places): class of each place. A variant has one, or one in each domain that it spreads over."""

    origin: tuple[int, ...]
    """(places,): which of a model's variants each place is of."""

    closed: Booleans
    """(n, places): whether no node would take a new pod there."""

    domains: tuple[Domains | None, ...]
    """Per variant of a model: over what those at this position spread."""

    useful: Integers
    """(n, w): as many replicas as could ever find room, at most the upper bound."""

    requirements: tuple[Requirements, ...]
    levels: Integers
    """(n, number of stages): which level a shortfall of the model counts at, per stage; -1 for none."""

    is_confined: bool
    """Whether some variant of each of the models could not find room for as many replicas as are allowed."""

    is_enumerable: bool
    """Whether each of the models has so few mixes that all of them can be columns."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, w)."""
        return self.variants.shape[0], self.variants.shape[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Levels:
    """The lexicographic order of the shortfalls: stage by stage, in each by priority."""

    keys: tuple[tuple[Stage, int], ...]

    def __len__(self) -> int:
        return len(self.keys)

    def values(self, problem: PlacementProblem, replicas: tuple[int, ...], added: Sequence[int]) -> list[int]:
        """Return what replicas and added nodes come to at each level, cost last."""
        missing = dict.fromkeys(self.keys, 0)
        for row in problem.rows:
            missing[row.level] += row.weight * row.shortfall(provided(problem, row, replicas))
        nodes = added or (0,) * len(problem.growth)
        cost = sum(growth.price * count for growth, count in zip(problem.growth, nodes, strict=True))
        for terms, count in zip(problem.variants, replicas, strict=True):
            more = count - terms.current
            cost += count * terms.cost + (more * terms.start_price if more > 0 else -more * terms.stop_price)
        return [*missing.values(), cost]

    def name(self, index: int) -> str:
        """Return `demand of priority 3`; the name after the last level is that of cost."""
        return COST if index == len(self.keys) else level_name(*self.keys[index])


def levels_of(problem: PlacementProblem) -> Levels:
    """Return the levels that the problem's rows count at."""
    return Levels(keys=tuple(sorted({row.level for row in problem.rows})))


def cohorts_of(problem: PlacementProblem, resources: Resources, levels: Levels) -> tuple[Cohort, ...]:
    """Return the cohorts, the narrowest first; in each the models in the problem's order."""
    columns = _columns(problem.variants) | {"settled": resources.settled}
    columns["homeless"] = (resources.class_of != NO_CLASS) & ~resources.is_allowed_anywhere
    room = np.append(resources.most_replicas, UNLIMITED_REPLICAS)[resources.class_of] + columns["settled"]
    most = np.minimum(resources.most_apart, most_even(problem))
    columns["upper"] = np.maximum(columns["lower"], np.minimum(columns["upper"], most))
    columns["useful"] = np.clip(room // columns["units"], columns["lower"], columns["upper"])
    confined = (columns["useful"] < columns["upper"]).tolist()
    families: dict[_Family, list[tuple[tuple[int, ...], list[CoverRow]]]] = defaultdict(list)
    choices = (columns["upper"] - columns["lower"] + 1).tolist()
    for members, rows in _models(problem):
        mixes = math.prod(choices[variant] for variant in members)
        few = mixes <= ENUMERABLE_MIXES and knows_all_ways([problem.variants[v] for v in members])
        # Those with two mixes beside those with a hundred would be padded to a hundred.
        size = 1 << (mixes - 1).bit_length() if few else 0
        tight = any(confined[variant] for variant in members)
        families[_spreads(problem, members), size, tight].append((members, rows))
    position = {key: index for index, key in enumerate(levels.keys)}
    return tuple(
        _cohort(problem, resources, columns, models, position, is_enumerable=size > 0, is_confined=tight)
        for (_, size, tight), models in sorted(families.items(), key=lambda item: _rank(item[0]))
    )


def _spreads(problem: PlacementProblem, members: Sequence[int]) -> tuple[int, ...]:
    """Return over how many domains each variant of a model spreads; 0 for none."""
    return tuple(spread_over(problem.variants[v]) for v in members)


def _rank(family: _Family) -> tuple[int, _Family]:
    return len(family[0]), family


def _models(problem: PlacementProblem) -> Iterator[tuple[tuple[int, ...], list[CoverRow]]]:
    """Yield each model's variants and rows; a variant that no row names is a model of its own."""
    rows: dict[int, list[CoverRow]] = defaultdict(list)
    members: dict[int, set[int]] = defaultdict(set)
    for row in problem.rows:
        rows[row.model].append(row)
        members[row.model].update(variant for variant, _ in row.terms)
    named = set().union(*members.values()) if members else set()
    alone: list[tuple[tuple[int, ...], list[CoverRow]]] = [
        ((variant,), []) for variant in range(len(problem.variants)) if variant not in named
    ]
    together = [(tuple(sorted(members[model])), rows[model]) for model in members if members[model]]
    yield from sorted([*alone, *together])


def _columns(terms: Sequence[VariantTerms]) -> dict[str, Integers]:
    """Return each number of all variants as one array."""
    rows = [
        (
            t.lower,
            t.upper,
            t.current,
            len(t.bound),
            t.ready,
            t.cost,
            t.start_price,
            t.stop_price,
            t.accelerators_per_replica,
            t.pods if t.together is None else 1,
        )
        for t in terms
    ]
    return dict(zip(_NUMBERS, np.array(rows, dtype=np.int64).reshape(-1, len(_NUMBERS)).T, strict=True))


def _cohort(
    problem: PlacementProblem,
    resources: Resources,
    columns: dict[str, Integers],
    models: Sequence[tuple[tuple[int, ...], list[CoverRow]]],
    position: dict[tuple[Stage, int], int],
    *,
    is_enumerable: bool,
    is_confined: bool,
) -> Cohort:
    variants = np.array([members for members, _ in models], dtype=np.int64)
    place_class = _place_class(resources, variants)
    is_open = np.append(resources.allowed.any(axis=1), values=False)
    levels = np.full((len(models), len(Stage)), -1, dtype=np.int64)
    for index, (_, rows) in enumerate(models):
        for row in rows:
            levels[index, row.stage] = position[row.level]
    return Cohort(
        variants=variants,
        **{name: column[variants] for name, column in columns.items()},
        requirements=tuple(_requirements(models, variants)),
        place_class=place_class,
        origin=tuple(
            position
            for position, v in enumerate(variants[0].tolist())
            for _ in range(max(1, spread_over(problem.variants[v])))
        ),
        closed=(place_class != NO_CLASS) & ~is_open[place_class],
        domains=tuple(domains_of(problem, resources, own) for own in variants.T.tolist()),
        levels=levels,
        is_enumerable=is_enumerable,
        is_confined=is_confined,
    )


def _place_class(resources: Resources, variants: Integers) -> Integers:
    """Return the class of each place of each model, (n, places)."""
    if not resources.domain_classes:
        return resources.class_of[variants]
    rows = [
        [group for v in members for group in resources.domain_classes.get(v, (int(resources.class_of[v]),))]
        for members in variants.tolist()
    ]
    return np.array(rows, dtype=np.int64)


def _requirements(
    models: Sequence[tuple[tuple[int, ...], list[CoverRow]]], variants: Integers
) -> Iterator[Requirements]:
    """Yield the first rows of all models at each stage, then the second ones, and so on."""
    for stage in Stage:
        queues = [[row for row in rows if row.stage is stage] for _, rows in models]
        for turn in range(max(map(len, queues), default=0)):
            picked = [queue[turn] if turn < len(queue) else None for queue in queues]
            amounts = np.zeros_like(variants)
            for index, row in enumerate(picked):
                given = dict(row.terms) if row else {}
                amounts[index] = [given.get(int(variant), 0) for variant in variants[index]]
            yield Requirements(
                stage=stage,
                requirement=np.array([row.requirement if row else 0 for row in picked], dtype=np.int64),
                amounts=amounts,
                weight=np.array([row.weight if row else 0 for row in picked], dtype=np.int64),
            )

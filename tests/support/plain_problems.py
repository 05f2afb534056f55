"""Problems for the rules of other autoscalers: compact, or drawn at random."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from controller.planning.problem import (
    Bin,
    CoverRow,
    LimitRow,
    PlacementProblem,
    Stage,
    VariantTerms,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

PLENTY = 10_000
MANY = 1000


def terms(cost: int, *, current: int = 0, size: int = 1, upper: int = MANY, name: str = "v") -> VariantTerms:
    """Return a variant whose replicas, if any, have no node."""
    return VariantTerms(
        name=name,
        accelerators=size,
        cost=cost,
        start_price=0,
        stop_price=0,
        current=current,
        bound_replicas=(),
        ready=current,
        lower=0,
        upper=upper,
    )


def demand(model: int, requirement: int, *amounts: tuple[int, int], priority: int = 1) -> CoverRow:
    """Return a required capacity."""
    return CoverRow(
        name=f"m{model}",
        stage=Stage.DEMAND,
        priority=priority,
        model=model,
        requirement=requirement,
        terms=amounts,
    )


def warm(model: int, *variants: int) -> CoverRow:
    """Return the requirement that a model must not scale to zero."""
    return CoverRow(
        name=f"m{model}",
        stage=Stage.MINIMUM,
        priority=1,
        model=model,
        requirement=1,
        terms=tuple((v, 1) for v in variants),
    )


def problem(
    variants: Sequence[VariantTerms],
    rows: Sequence[CoverRow],
    *pools: tuple[tuple[int, ...], tuple[int, ...]],
    limits: Sequence[LimitRow] = (),
) -> PlacementProblem:
    """Return a problem with pools of nodes, as (free accelerators of each node, variants allowed there)."""
    free: list[int] = []
    bins = []
    for room, users in pools:
        sizes = tuple(sorted({variants[v].accelerators for v in users}))
        bins.append(Bin(nodes=tuple(range(len(free), len(free) + len(room))), sizes=sizes, variants=users))
        free += room
    named = tuple(replace(variant, name=f"v{index:02}") for index, variant in enumerate(variants))
    return PlacementProblem(
        variants=named, free=tuple(free), bins=tuple(bins), rows=tuple(rows), limits=tuple(limits)
    )


@st.composite
def _variant(draw: st.DrawFn, nodes: int, sizes: Sequence[int]) -> VariantTerms:
    hosts = st.lists(st.sampled_from([*((node,) for node in range(nodes)), ()]), max_size=3)
    bound = tuple(draw(hosts))
    upper = draw(st.integers(0, 6))
    return replace(
        terms(draw(st.integers(1, 9)), current=len(bound) + draw(st.integers(0, 1))),
        accelerators=draw(st.sampled_from(sizes)),
        bound_replicas=bound,
        upper=upper,
        lower=min(len(bound), upper) if draw(st.booleans()) else 0,
    )


@st.composite
def problems(draw: st.DrawFn) -> PlacementProblem:
    """Draw a few models with variants, floors and a quota on a few nodes."""
    sizes = draw(st.sampled_from(((0, 1, 2, 4), (1, 2, 8), (1, 2, 3), (3, 5))))
    count = draw(st.integers(1, 3))
    free = draw(st.lists(st.integers(-1, 8), min_size=count, max_size=count))
    variants: list[VariantTerms] = []
    rows = []
    for model in range(draw(st.integers(1, 4))):
        own = range(len(variants), len(variants) + draw(st.integers(1, 3)))
        variants += [replace(draw(_variant(count, sizes)), name=f"m{model}-{v}") for v in own]
        amounts = tuple((v, draw(st.integers(1, 5))) for v in own if draw(st.integers(0, 4)))
        priority = draw(st.integers(0, 2))
        rows += [demand(model, draw(st.integers(1, 20)), *amounts, priority=priority)]
        rows += [warm(model, *own)] if draw(st.booleans()) else []
    users = tuple(v for v, variant in enumerate(variants) if variant.accelerators)
    chain = sorted({variants[v].accelerators for v in users})
    divides = all(large % small == 0 for small, large in pairwise(chain))
    bins = [Bin(nodes=tuple(range(count)), sizes=tuple(chain), variants=users)]
    if not divides:
        bins = [Bin(nodes=(node,), sizes=(1,), variants=users) for node in range(count)]
    limits = []
    if draw(st.booleans()):
        held = sum(variant.lower for variant in variants)
        every = tuple((v, 1) for v in range(len(variants)))
        limits = [LimitRow(name="quota", limit=held + draw(st.integers(0, 4)), terms=every)]
    return PlacementProblem(
        variants=tuple(variants),
        free=tuple(free),
        bins=tuple(bins) if users else (),
        rows=tuple(rows),
        limits=tuple(limits),
    )

"""What is free but lies apart: which replicas would have to move for those who go short to find room.

Only replicas of fresh models that may be preempted move, and only among nodes for the same variants.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.decision import Move, Signal
from controller.planning.moves import Kind, fewest_evictions
from controller.planning.shortage import OTHERS, ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.case import Answer
    from controller.planning.lexicographic import Limits
    from controller.planning.moves import Evictions
    from controller.planning.problem import Bin

UNLIMITED = 10**6
"""Stands for any number of moves."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Defragmentation:
    """What to move in one bin, and how many replicas of those who go short find room then."""

    moves: tuple[Move, ...]
    replicas: Mapping[int, int]
    """Variant -> further replicas."""

    @property
    def moved(self) -> int:
        """How many replicas move."""
        return sum(move.replicas for move in self.moves)


def defragmentations(answer: Answer, *, most: int | None, limits: Limits) -> Iterator[Defragmentation]:
    """Yield what helps in each bin whose sizes divide each other; with `most` moves in all, or any number."""
    after = ledger(answer.problem, answer.granted, answer.nodes)
    left = UNLIMITED if most is None else most
    for bin_ in answer.problem.bins:
        missing = {v: count for v, count in _missing(answer).items() if v in bin_.variants}
        if not missing or not bin_.is_divisible or left <= 0:
            continue
        free = [after.free[node] for node in bin_.nodes]
        lying = [{v: n for v, n in after.held[node] if _may_move(answer, v)} for node in bin_.nodes]
        wanted = Counter[int]()
        for v, count in missing.items():
            wanted[answer.problem.variants[v].accelerators] += count
        evictions, kinds = _evictions(answer, free, lying, wanted, most=left, limits=limits)
        found = Defragmentation(
            moves=tuple(_moves(answer, bin_, lying, evictions, kinds)),
            replicas=_granted(answer, missing, evictions.placed),
        )
        if found.moves:
            left -= found.moved
            yield found


def _missing(answer: Answer) -> Mapping[int, int]:
    """Return the replicas that those who go short would have with unlimited nodes and do not get."""
    return {
        v: answer.wanted.replicas[v] - answer.granted.replicas[v]
        for model, demand in enumerate(answer.demands)
        if demand.signal is Signal.FRESH and answer.shortage_per_mille(model, answer.granted.replicas)
        for v in answer.variants_of(model)
        if answer.problem.variants[v].accelerators and answer.wanted.replicas[v] > answer.granted.replicas[v]
    }


def _may_move(answer: Answer, v: int) -> bool:
    if v == OTHERS or not answer.problem.variants[v].accelerators:
        return False
    return answer.variants[v].may_be_preempted and not answer.problem.variants[v].lower


def _evictions(
    answer: Answer,
    free: Sequence[int],
    lying: Sequence[Mapping[int, int]],
    wanted: Mapping[int, int],
    *,
    most: int,
    limits: Limits,
) -> tuple[Evictions, Sequence[Kind]]:
    """Return what to evict, by size; an accelerator that moves has a price of one."""
    sizes = sorted({answer.problem.variants[v].accelerators for there in lying for v in there})
    counts = np.zeros((len(free), len(sizes)), dtype=np.int64)
    for row, there in enumerate(lying):
        for v, accelerators in there.items():
            size = answer.problem.variants[v].accelerators
            counts[row, sizes.index(size)] += accelerators // size
    kinds = [Kind(accelerators=size, price=size) for size in sizes]
    found = fewest_evictions(np.array(free, dtype=np.int64), counts, kinds, wanted, most=most, limits=limits)
    return found, kinds


def _moves(
    answer: Answer,
    bin_: Bin,
    lying: Sequence[Mapping[int, int]],
    evictions: Evictions,
    kinds: Sequence[Kind],
) -> Iterator[Move]:
    """Yield whose replicas leave which node: of the lowest priority first."""
    for row, kind, count in evictions.evicted:
        size, left = kinds[kind].accelerators, count
        for v in sorted(lying[row], key=lambda v: (-answer.variants[v].priority, v)):
            if answer.problem.variants[v].accelerators == size and left:
                leaving = min(left, lying[row][v] // size)
                left -= leaving
                variant = answer.variants[v]
                yield Move(
                    namespace=variant.namespace,
                    name=variant.name,
                    node=answer.nodes[bin_.nodes[row]].name,
                    replicas=leaving,
                )


def _granted(answer: Answer, missing: Mapping[int, int], placed: Mapping[int, int]) -> Mapping[int, int]:
    """Return who gets the room: by priority."""
    left, granted = dict(placed), {}
    for v in sorted(missing, key=lambda v: (answer.variants[v].priority, v)):
        size = answer.problem.variants[v].accelerators
        granted[v] = min(missing[v], left[size])
        left[size] -= granted[v]
    return granted

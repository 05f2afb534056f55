"""The fewest evictions that make room for replicas, checked against brute force."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TYPE_CHECKING, Never, cast

import numpy as np
import pytest
from support.campaign import often
from support.planning_builders import EFFORT

from controller.planning.moves import Evictions, MovableKind, fewest_evictions

if TYPE_CHECKING:
    from controller.planning.cpsat import Effort


def _solve(
    free: list[int],
    movable: list[list[int]],
    kinds: list[MovableKind],
    wanted: dict[int, int],
    most: int = 10**6,
) -> Evictions:
    movable_pods = np.array(movable, dtype=np.int64).reshape(len(free), len(kinds))
    return fewest_evictions(
        np.array(free, dtype=np.int64), movable_pods, kinds, wanted, most=most, effort=EFFORT
    )


def test_one_eviction_makes_room_in_a_fragmented_cluster() -> None:
    """There are 36 accelerators free, but 8 on no node: moving one replica frees 8 on one node."""
    made = _solve([4] * 9, [[1]] * 9, [MovableKind(accelerators=4, price=1)], {8: 1})

    assert (sum(n for *_, n in made.evicted), made.placed, made.is_proven) == (1, {8: 1}, True)


def test_nothing_is_evicted_if_there_is_room() -> None:
    """An eviction without a benefit is not proposed."""
    assert _solve([8, 4], [[0], [1]], [MovableKind(accelerators=4, price=1)], {8: 1}).evicted == ()


def test_nothing_is_evicted_if_evicted_pods_have_no_other_place() -> None:
    """The wanted replica of 8 gets no place."""
    made = _solve([4, 3], [[1], [1]], [MovableKind(accelerators=4, price=1)], {8: 1})

    assert (made.evicted, made.placed) == ((), {8: 0})


def test_the_cheapest_pods_are_evicted() -> None:
    """Two small pods at a price of 1 each are evicted rather than a large one at 3."""
    kinds = [MovableKind(accelerators=4, price=3), MovableKind(accelerators=2, price=1)]
    made = _solve([4, 4, 4], [[1, 0], [0, 2], [0, 0]], kinds, {8: 1})

    assert made.evicted == ((1, 1, 2),)


def test_the_number_of_evictions_is_limited() -> None:
    """With one eviction allowed, one large replica gets room, not two."""
    made = _solve([4, 4, 4, 4], [[1]] * 4, [MovableKind(accelerators=4, price=1)], {8: 2}, most=1)

    assert (sum(n for *_, n in made.evicted), made.placed) == (1, {8: 1})


def test_a_node_with_very_many_pods_is_solved() -> None:
    """Only some of the ways to empty a node of 72 accelerators are examined; one replica fits anyway."""
    kinds = [MovableKind(accelerators=size, price=size) for size in (1, 2, 4)]
    made = _solve([4, 8], [[30, 11, 4], [0, 0, 0]], kinds, {8: 2})

    assert (made.placed, sum(n * kinds[kind].accelerators for _, kind, n in made.evicted)) == ({8: 1}, 0)


class Untouched:
    """A stub of `Effort` on which reading any limit fails the test."""

    def __getattr__(self, name: str) -> Never:
        """Fail."""
        raise AssertionError(f"solved within {name}")


def test_the_solver_is_not_called_if_everything_has_room() -> None:
    """Three nodes have room for all wanted replicas, beside 10,000 nodes that need no examination."""
    free = np.array([8, 4, 3] + [0] * 10_000)
    movable_pods = np.ones((len(free), 1), dtype=np.int64)
    kinds = [MovableKind(accelerators=2, price=1)]

    made = fewest_evictions(
        free, movable_pods, kinds, {8: 1, 4: 1, 1: 3}, most=9, effort=cast("Effort", Untouched())
    )

    assert (made.evicted, made.placed, made.is_proven) == ((), {8: 1, 4: 1, 1: 3}, True)


def test_the_cheapest_of_equally_large_pods_are_evicted() -> None:
    """Of three pods on one node, the two at a price of 1 are evicted; a node with dearer pods keeps them."""
    kinds = [MovableKind(accelerators=2, price=5), MovableKind(accelerators=2, price=1)]
    made = _solve([4, 4, 2], [[1, 2], [2, 0], [0, 0]], kinds, {8: 1})

    assert (made.evicted, made.is_proven) == (((0, 1, 2),), True)


def test_very_many_prices_are_distinguished() -> None:
    """Twenty kinds with nine pods each have more states than a 64-bit number can index."""
    kinds = [MovableKind(accelerators=1, price=30 - k) for k in range(20)]
    movable = [[9] * 20, [9] * 19 + [1], [0] * 20]

    made = _solve([4, 4, 4], movable, kinds, {8: 1})

    assert made.evicted == ((0, 19, 4),)


@pytest.mark.parametrize("block", range(4))
def test_evictions_are_optimal_on_small_clusters(block: int) -> None:
    """Brute force finds no choice that places more, or as much at a lower price."""
    for seed in range(block, often(160), 4):
        random = Random(seed)
        sizes = random.sample((1, 2, 4, 8), 2) if seed % 2 else random.choices((1, 2, 4), k=2)
        kinds = [MovableKind(accelerators=size, price=random.randint(1, 3)) for size in sizes]
        nodes = random.randint(1, 4)
        movable = [[random.choice((0, 0, 1, 2)) for _ in kinds] for _ in range(nodes)]
        free = [random.randint(0, 8) for _ in range(nodes)]
        wanted = {8: random.randint(0, 2), random.choice((4, 2)): random.randint(0, 2)}
        most = random.choice((1, 2, 100))

        made = _solve(free, movable, kinds, wanted, most)

        assert made.is_proven
        assert _worth(made, kinds) == _best(free, movable, kinds, wanted, most), seed


def _worth(made: Evictions, kinds: list[MovableKind]) -> tuple[int, int]:
    placed = sum(size * count for size, count in made.placed.items())
    return placed, -sum(n * kinds[kind].price for _, kind, n in made.evicted)


def _best(
    free: list[int], movable: list[list[int]], kinds: list[MovableKind], wanted: dict[int, int], most: int
) -> tuple[int, int]:
    best = (-1, 0)
    for flat in product(*(range(n + 1) for row in movable for n in row)):
        rows = [flat[i * len(kinds) : (i + 1) * len(kinds)] for i in range(len(free))]
        room = [
            f + sum(n * k.accelerators for n, k in zip(r, kinds, strict=True))
            for f, r in zip(free, rows, strict=True)
        ]
        again = [k.accelerators for r in rows for n, k in zip(r, kinds, strict=True) for _ in range(n)]
        price = sum(n * k.price for r in rows for n, k in zip(r, kinds, strict=True))
        if sum(flat) > most:
            continue
        for counts in product(*(range(count + 1) for count in wanted.values())):
            sizes = again + [size for size, count in zip(wanted, counts, strict=True) for _ in range(count)]
            if _fits(sizes, room):
                placed = sum(size * count for size, count in zip(wanted, counts, strict=True))
                best = max(best, (placed, -price))
    return best


def _fits(sizes: list[int], room: list[int]) -> bool:
    left = list(room)
    for size in sorted(sizes, reverse=True):
        node = min((n for n, free in enumerate(left) if free >= size), key=left.__getitem__, default=None)
        if node is None:
            return False
        left[node] -= size
    return True

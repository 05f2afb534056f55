"""Division of a load among different targets: the reference's valid vectors, and a search of all mixes."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.policies.splitting import MOST_CELLS, Share, capacity_of, cells_of, split

H100 = Share(min_replicas=0, max_replicas=4, cost=100)
A100 = Share(min_replicas=1, max_replicas=8, cost=60)

O_VECTORS = {
    "O1": ([(10, 1, 4), (5, 1, 3)], 5, (2, 3)),
    "O2": ([(10, 2, 5)], 0, (2,)),
    "O4": ([(10, 1, 4)], 4, (4,)),
    "O5": ([(100, 1, 3), (60, 2, 5)], 8, (3, 5)),
    "O8": ([(1, 1, 10)], 10, (10,)),
}
"""(cost, minimum, maximum) of each target, the requirement, and the expected replicas."""

DIFFERENT = {
    "O7": "there are no blocks: a mix is found as a whole",
    "K table, rows a100 and h100": "spread by blocks, up to a third above the least cost: the seed says"
    " integer programming, so the row `cheapest possible for K` holds",
}
"""Where our specification differs from the reference, and why."""


@pytest.mark.parametrize(("targets", "required", "want"), O_VECTORS.values(), ids=O_VECTORS.keys())
def test_distribution_vectors_of_the_reference(
    targets: list[tuple[int, int, int]], required: int, want: tuple[int, ...]
) -> None:
    """They have costs, bounds and a requirement."""
    shares = [Share(cost=cost, min_replicas=low, max_replicas=high) for cost, low, high in targets]

    assert split(required, shares, expansion_percent=100) == want


def test_every_vector_is_a_test_or_listed_as_different() -> None:
    """No vector is missing; `test_k_table` has the other row of the table."""
    table = {"K table, rows a100 and h100"}

    assert O_VECTORS.keys().isdisjoint(DIFFERENT)
    assert O_VECTORS.keys() | DIFFERENT == {"O1", "O2", "O4", "O5", "O7", "O8"} | table


CHEAPEST = {1: 60, 2: 120, 3: 180, 4: 240, 5: 300, 6: 360, 7: 420, 8: 480, 9: 580, 10: 680, 11: 780, 12: 880}
GREEDY = {1: 60, 2: 120, 3: 220, 4: 320, 5: 380, 6: 440, 7: 540, 8: 640, 9: 700, 10: 760, 11: 820, 12: 880}


@pytest.mark.parametrize("required", CHEAPEST)
@pytest.mark.parametrize("rate", [0, 50, 100, 150, 200])
def test_k_table(required: int, rate: int) -> None:
    """Replicas of equal capacity cost the least possible, and never more than the reference's blocks."""
    found = split(required, (H100, A100), expansion_percent=rate)

    assert sum(found) == required
    assert found[0] * 100 + found[1] * 60 == CHEAPEST[required] <= GREEDY[required]


SHARES = st.builds(
    Share,
    min_replicas=st.integers(0, 2),
    max_replicas=st.integers(3, 5),
    cost=st.integers(0, 6),
    capacity=st.sampled_from((0.5, 1.0, 1.5, 2.5, 0.333)),
    current_replicas=st.integers(0, 6),
)


@given(st.lists(SHARES, min_size=1, max_size=3), st.floats(0, 30), st.sampled_from((0, 100, 120, 150, 200)))
def test_no_other_mix_is_better(shares: list[Share], required: float, rate: int) -> None:
    """Among all mixes within bounds and cost that suffice: least excess, least cost, fewest starts."""
    required = round(required, 3)
    found = split(required, shares, expansion_percent=rate)
    mixes = list(itertools.product(*(range(s.min_replicas, s.max_replicas + 1) for s in shares)))
    enough = [mix for mix in mixes if capacity_of(shares, mix) >= required - 1e-9]
    assert found in mixes
    if not enough:
        assert found == tuple(share.max_replicas for share in shares)
        return
    least = min(_cost(shares, mix) for mix in enough)
    allowed = [mix for mix in enough if _cost(shares, mix) <= least * max(100, rate) // 100]

    assert _order(shares, found) == min(_order(shares, mix) for mix in allowed)


def _cost(shares: list[Share], mix: tuple[int, ...]) -> int:
    return sum(share.cost * count for share, count in zip(shares, mix, strict=True))


def _order(shares: list[Share], mix: tuple[int, ...]) -> tuple[float, int, int]:
    changes = sum(
        max(0, count - max(share.current_replicas, share.min_replicas))
        for share, count in zip(shares, mix, strict=True)
    )
    return round(capacity_of(shares, mix), 6), _cost(shares, mix), changes


def test_running_replicas_are_kept_among_equally_good_mixes() -> None:
    """With equal costs, this holds for any order of targets."""
    first = Share(min_replicas=0, max_replicas=9, cost=5, current_replicas=1)
    second = Share(min_replicas=0, max_replicas=9, cost=5, current_replicas=4)

    assert split(4, (first, second), expansion_percent=200) == (1, 3)
    assert split(6, (first, second), expansion_percent=200) == (2, 4)


def test_a_million_replicas_are_divided_quickly() -> None:
    """The cheapest come first; the result is as precise for capacities that are nearly equal."""
    many = 500_000
    cheap = Share(min_replicas=0, max_replicas=many, cost=2)
    dear = Share(min_replicas=0, max_replicas=many, cost=3, capacity=1.001)

    assert split(
        many + 7, (cheap, Share(min_replicas=0, max_replicas=many, cost=3)), expansion_percent=200
    ) == (
        many,
        7,
    )
    found = split(900_000, (cheap, dear), expansion_percent=100)
    assert 900_000 <= capacity_of((cheap, dear), found) <= 900_001
    assert split(math.inf, (cheap, dear), expansion_percent=100) == (many, many)


LARGE = [(8, 1000, 1e6), (16, 1000, 1e6), (64, 1000, 1e6), (256, 1000, 1e6), (256, 10**6, 1e8)]


@pytest.mark.parametrize(("number", "most", "required"), LARGE)
@pytest.mark.parametrize("least", [0.001, 1000.0])
def test_the_largest_valid_bindings_are_divided_quickly(
    number: int, most: int, required: float, least: float
) -> None:
    """With the most targets, replicas, costs and capacities that the API allows, the work stays limited."""
    random = Random(number)
    shares = [
        Share(
            min_replicas=0,
            max_replicas=most,
            cost=2**31 - 1 - place,
            capacity=round(random.uniform(least, 9999.999), 3),
            current_replicas=place % 3,
        )
        for place in range(number)
    ]
    found = split(required, shares, expansion_percent=100)

    assert cells_of(required, shares) <= MOST_CELLS
    assert required <= capacity_of(shares, found) + 1e-6
    assert all(0 <= count <= most for count in found)


@given(
    st.lists(
        st.builds(
            Share,
            min_replicas=st.integers(0, 3),
            max_replicas=st.sampled_from((3, 50, 10**6)),
            cost=st.integers(0, 2**31 - 1),
            capacity=st.integers(1, 9_999_999).map(lambda thousandths: thousandths / 1000),
            current_replicas=st.integers(0, 60),
        ),
        min_size=1,
        max_size=8,
    ),
    st.floats(0, 1e7),
    st.sampled_from((0, 100, 200, 2**31 - 1)),
)
def test_a_coarse_mix_suffices_without_a_superfluous_replica(
    shares: list[Share], required: float, rate: int
) -> None:
    """This holds for any capacities, within the limit of the work."""
    required = round(required, 3)
    found = split(required, shares, expansion_percent=rate)
    served = capacity_of(shares, found)

    assert cells_of(required, shares) <= MOST_CELLS
    assert all(s.min_replicas <= count <= s.max_replicas for s, count in zip(shares, found, strict=True))
    if served < required - 1e-6:
        assert found == tuple(share.max_replicas for share in shares)
    elif required <= capacity_of(shares, [share.max_replicas for share in shares]) - 1e-6:
        for share, count in zip(shares, found, strict=True):
            assert count == share.min_replicas or served - share.capacity < required + 1e-6


def test_large_costs_that_differ_by_one_are_distinguished() -> None:
    """With the greatest costs, products combined with their order exceed 64 bits."""
    first = Share(min_replicas=0, max_replicas=10_000, cost=2**31 - 1, capacity=1.001)
    second = replace(first, cost=2**31 - 2)

    assert split(5005, (first, second), expansion_percent=100) == (0, 5000)
    assert split(5005, (second, first), expansion_percent=100) == (5000, 0)


def test_free_replicas_that_suffice_are_not_mixed_with_expensive_ones() -> None:
    """The capacities have a tiny common divisor."""
    dear = Share(min_replicas=0, max_replicas=8, cost=100, capacity=0.333)
    middle = Share(min_replicas=0, max_replicas=27, cost=1, capacity=2.5)
    free = Share(min_replicas=2, max_replicas=39, capacity=1.27)

    assert split(19.187, (dear, middle, free), expansion_percent=100) == (0, 0, 16)
    many = (dear, middle, replace(free, max_replicas=10**6))
    assert split(127_000.5, many, expansion_percent=100)[:2] == (0, 0)


FINE = {
    1300: (1, 1),
    1600: (1, 2),
    2600: (2, 1),
    5000: (4, 1),
}


@pytest.mark.parametrize(("required", "want"), FINE.items())
def test_capacities_with_a_tiny_common_divisor_cost_no_more_than_necessary(
    required: float, want: tuple[int, int]
) -> None:
    """Measured capacities, such as in tokens per second, have three decimals and no round divisor."""
    large = Share(min_replicas=0, max_replicas=20, cost=100, capacity=1234.567)
    small = Share(min_replicas=0, max_replicas=20, cost=26, capacity=300.123)

    assert split(required, [large, small], expansion_percent=100) == want

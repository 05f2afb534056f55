"""The present load of all models comes before margins of any, and nothing moves within its band."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.planning_builders import EFFORT, demand, node, variant, world

from controller.planning.engine import place
from controller.planning.formulation import formulate, load_weights
from controller.planning.inputs import Settings
from controller.planning.problem import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.demand import ModelDemand

RATE = 1_000_000
"""One request per second, in the unit of planning."""


def model(
    name: str, *hosts: str, load: float, margin: float, priority: int, anticipated: float = 0.0
) -> ModelDemand:
    """Return a model whose replicas serve a request per second each, with load and margin in replicas."""
    own = variant(name, *hosts, model_id=name, serves=RATE)
    made = demand(
        own,
        lower=round((load + margin) * RATE),
        model_id=name,
        priority=priority,
        anticipated_rate=round(anticipated * RATE),
        supply_rate=len(hosts) * RATE,
    )
    return replace(made, load=replace(made.load, requests_per_second=load, start_seconds=120.0))


def placed(nodes: int, demands: Sequence[ModelDemand]) -> dict[str, int]:
    """Return the replicas of each model on nodes with one accelerator."""
    names = [f"n{number}" for number in range(nodes)]
    snapshot = world([node(name, 1) for name in names], demands)
    solution = place(formulate(snapshot, demands, settings=Settings()), effort=EFFORT)
    return {item.model_id: count for item, count in zip(demands, solution.replicas, strict=True)}


def test_the_load_of_a_lower_priority_comes_before_the_margin_of_a_higher_one() -> None:
    """Four accelerators are enough for the present load of both."""
    first = model("first", load=2, margin=2, priority=1)
    second = model("second", load=2, margin=0, priority=10)

    assert placed(4, [first, second]) == {"first": 2, "second": 2}
    assert placed(5, [first, second]) == {"first": 3, "second": 2}


def test_the_load_of_a_higher_priority_comes_first() -> None:
    """Its replicas come at the expense of running ones of the other."""
    first = model("first", load=3, margin=0, priority=1)
    second = model("second", "n0", "n1", "n2", load=3, margin=0, priority=10, anticipated=3)

    assert placed(3, [first, second]) == {"first": 3, "second": 0}


BANDS = {
    "no replica exists: most of the load": (10.0, 0.0, 9.5),
    "existing capacity within the band is kept": (10.0, 11.0, 11.0),
    "much more than the load is margin": (10.0, 20.0, 12.0),
    "never more than is required": (10.0, 20.0, 10.5),
}


@pytest.mark.parametrize("name", BANDS)
def test_capacity_for_the_load_is_what_exists_within_a_band_around_it(name: str) -> None:
    """Within the band, noise of the load moves nothing."""
    load, anticipated, want = BANDS[name]
    margin = want - load if name.startswith("never") else 30.0

    found = model("a", load=load, margin=margin, priority=1, anticipated=anticipated)

    assert found.load_rate(600.0) == round(want * RATE)


def test_waiting_requests_are_load_over_the_time_that_a_mix_lasts() -> None:
    """600 requests in ten minutes are one per second."""
    found = model("a", load=10, margin=30, priority=1)
    waiting = replace(found, load=replace(found.load, backlog_requests=600.0))

    assert waiting.load_rate(600.0) == round(0.95 * 11 * RATE)


def test_the_margin_of_capacities_is_no_part_of_the_present_load() -> None:
    """After misses, replicas are planned for half of what they serve at a steady rate."""
    found = model("a", load=10, margin=30, priority=1)
    cautious = replace(found, load=replace(found.load, load_share=0.5))

    assert cautious.load_rate(600.0) == found.load_rate(600.0) // 2


@pytest.mark.parametrize(
    ("start_seconds", "want"), [(0.0, (1, 9)), (120.0, (2, 8)), (300.0, (5, 5)), (3600.0, (9, 1))]
)
def test_starting_replicas_count_for_the_time_in_which_they_serve(
    start_seconds: float, want: tuple[int, int]
) -> None:
    """A mix is expected to last ten minutes, and a replica that starts in two serves for eight of them."""
    found = model("a", load=1, margin=0, priority=1)
    slow = replace(found, load=replace(found.load, start_seconds=start_seconds))

    assert load_weights(slow, Settings()) == want


def test_a_move_that_loses_more_while_it_starts_than_it_brings_is_not_made() -> None:
    """Two models of equal priority hold one replica each, and lack the same."""
    both = [
        model(name, host, load=2, margin=0, priority=1, anticipated=1)
        for name, host in (("a", "n0"), ("b", "n1"))
    ]

    assert placed(2, both) == {"a": 1, "b": 1}


def test_a_replica_that_is_starting_is_not_exchanged_for_a_new_one_of_an_equal_model() -> None:
    """It will be ready earlier, which is worth more than the larger load of the other model."""
    first = starting(model("first", "n0", load=2.0, margin=0, priority=1, anticipated=1))
    second = model("second", load=2.1, margin=0, priority=1)

    assert placed(1, [first, second]) == {"first": 1, "second": 0}


def starting(found: ModelDemand) -> ModelDemand:
    """Return a model none of whose replicas is ready."""
    variants = tuple(
        replace(one, replicas=tuple(replace(pod, ready=False) for pod in one.replicas))
        for one in found.variants
    )
    return replace(found, variants=variants, supply_rate=0)


def test_a_model_of_unknown_load_has_no_row_for_it() -> None:
    """Its replicas stay in any case."""
    found = model("a", "n0", load=1, margin=0, priority=1)
    unknown = replace(found, load=replace(found.load, requests_per_second=None))
    problem = formulate(world([node("n0", 1)], [unknown]), [unknown], settings=Settings())

    assert Stage.LOAD not in {row.stage for row in problem.rows}

"""Records refuse numbers that nothing can mean, all of them at once."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal

import pytest
from planning_builders import node, sample, variant

from controller.planning.settings import Settings
from controller.planning.snapshot import ReplicaSample, Snapshot, Variant


def test_a_report_names_every_number_that_is_wrong() -> None:
    """NaN is not zero, and a usage of 150 % is a mistake of units."""
    with pytest.raises(ValueError, match=r"kv_usage: must be between 0 and 1, was nan; waiting: .*, was -1$"):
        sample(kv_usage=math.nan, waiting=-1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cost_per_replica": Decimal("NaN")}, "cost_per_replica: must be between 0 and 1000000000, was NaN"),
        ({"cost_per_replica": Decimal(-1)}, "cost_per_replica: must be between 0 and 1000000000, was -1"),
        ({"current_replicas": -1}, "current_replicas: must be between 0 and 1000000, was -1"),
        ({"min_replicas": 3, "max_replicas": 2}, r"max_replicas: must be at least min_replicas \(3\), was 2"),
        ({"priority": 0}, "priority: must be between 1 and 100, was 0"),
    ],
)
def test_a_variant_names_what_is_wrong(changes: dict[str, object], words: str) -> None:
    """The message begins with the variant."""
    with pytest.raises(ValueError, match=f"llm/a: {words}"):
        variant("a", **changes)


def test_a_snapshot_counts_nothing_twice() -> None:
    """Two claims on one pod, or a node listed twice, would be counted twice."""
    with pytest.raises(ValueError, match=r"listed more than once: node n, pod llm/a-0, variant llm/a$"):
        Snapshot(nodes=(node("n", 8), node("n", 8)), variants=(variant("a", "n"), variant("a", "n")))


def test_thresholds_must_leave_a_dead_band() -> None:
    """Without one, every wobble would scale."""
    with pytest.raises(
        ValueError, match=r"scale_down_boundary: must be less than scale_up_threshold \(0.6\)"
    ):
        Settings(scale_up_threshold=0.6)


def test_records_survive_the_pipe() -> None:
    """What is sent to the child process arrives equal."""
    world = Snapshot(nodes=(node("n", 8),), variants=(variant("a", "n", report=sample()),))

    assert pickle.loads(pickle.dumps(world)) == world  # noqa: S301  # our own bytes
    assert isinstance(world.variants[0], Variant)
    assert isinstance(world.variants[0].replicas[0].sample, ReplicaSample)

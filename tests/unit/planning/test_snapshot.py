"""Range checks of records: all invalid numbers are reported at once."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from typing import Any

import pytest
from support.planning_builders import load, node, variant

from controller.planning.cluster import Budget
from controller.planning.inputs import Settings
from controller.planning.load import Capacity, CapacitySource, LimitingTarget, ModelLoad, RateLimit
from controller.planning.snapshot import Snapshot, Variant


def test_a_load_reports_every_invalid_number() -> None:
    """One number is NaN, and another one is negative."""
    says = (
        r"^llm/llama: requests_per_second: must be between 0 and 1000000000, was nan; "
        r"backlog_requests: must be between 0 and 1000000000, was -1$"
    )
    with pytest.raises(ValueError, match=says):
        load(1_000, requests_per_second=math.nan, backlog_requests=-1)


NUMBERS = (
    "signal_age_seconds",
    "ready_replicas",
    "silent_replicas",
    "requests_per_second",
    "upper_requests_per_second",
    "start_seconds",
    "backlog_requests",
    "prompt_tokens",
    "output_tokens",
    "required_requests_per_second",
    "releasable_requests_per_second",
)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.5], ids=str)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_load_rejects_numbers_that_are_infinite_negative_or_nan(name: str, value: float) -> None:
    """The error names the field."""
    with pytest.raises(ValueError, match=f"^llm/llama: {name}: must be between 0 and [0-9]+, was {value}"):
        load(0, **dict[str, Any]({"releasable_requests_per_second": 10**9, name: value}))


def test_the_releasable_rate_must_be_at_least_the_required_rate() -> None:
    """Otherwise both bounds could not hold; an unknown releasable rate contradicts nothing."""
    says = "^llm/llama: releasable_requests_per_second: must be at least required_requests_per_second$"
    with pytest.raises(ValueError, match=says):
        load(0, required_requests_per_second=2.0, releasable_requests_per_second=1.0)

    unknown = load(0, required_requests_per_second=2.0, releasable_requests_per_second=None)
    assert unknown.releasable_requests_per_second is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.5, 0.0], ids=str)
def test_an_invalid_rate_limit_is_rejected(value: float) -> None:
    """Targets that can never be met are recorded as unreachable, not as a limit of zero."""
    with pytest.raises(ValueError, match="must be greater than 0 and finite, was"):
        RateLimit(target=LimitingTarget.ITL, text="ITL 80 ms", requests_per_second=value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.5, 2e9], ids=str)
def test_an_invalid_capacity_is_rejected(value: float) -> None:
    """A capacity is at least zero, and at most the largest rate of a model."""
    says = f"^requests_per_second: must be between 0 and 1000000000, was {value}"
    with pytest.raises(ValueError, match=says):
        Capacity(requests_per_second=value, source=CapacitySource.LEARNED)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cost_per_replica": Decimal("NaN")}, "cost_per_replica: must be between 0 and 1000000000, was NaN"),
        ({"cost_per_replica": Decimal(-1)}, "cost_per_replica: must be between 0 and 1000000000, was -1"),
        ({"current_replicas": -1}, "current_replicas: must be between 0 and 1000000, was -1"),
        ({"min_replicas": 3, "max_replicas": 2}, r"max_replicas: must be at least min_replicas \(3\), was 2"),
        ({"priority": 0}, "priority: must be between 1 and 100, was 0"),
        ({"start_seconds": math.nan}, "start_seconds: must be between 0 and 1000000, was nan"),
    ],
)
def test_a_variant_reports_invalid_fields(changes: dict[str, Any], words: str) -> None:
    """The message begins with the name of the variant."""
    with pytest.raises(ValueError, match=f"llm/a: {words}"):
        variant("a", **changes)


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-5"])
def test_a_budget_with_an_invalid_amount_is_rejected(amount: str) -> None:
    """A saved decision can contain such an amount."""
    with pytest.raises(ValueError, match=f"^budget b: cost_per_hour: must be .*, was {amount}$"):
        Budget(name="b", cost_per_hour=Decimal(amount))


def test_a_snapshot_rejects_duplicates() -> None:
    """A pod or a node that is listed twice would be counted twice."""
    says = "listed more than once: load of llm/llama, node n, pod llm/a-0, variant llm/a$"
    with pytest.raises(ValueError, match=says):
        Snapshot(
            nodes=(node("n", 8), node("n", 8)),
            variants=(variant("a", "n"), variant("a", "n")),
            loads=(load(1_000), load(2_000)),
        )


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        pytest.param(0.0, "must be greater than 0", id="zero"),
        pytest.param(-1.0, "must be finite and at least 0, was -1.0", id="less than zero"),
        pytest.param(math.inf, "must be finite and at least 0, was inf", id="infinite time"),
        pytest.param(math.nan, "must be finite and at least 0, was nan", id="not a number"),
    ],
)
def test_an_invalid_standing_time_is_rejected(seconds: float, says: str) -> None:
    """The price of a start is divided by it."""
    with pytest.raises(ValueError, match=f"^standing_seconds: {says}$"):
        Settings(standing_seconds=seconds)


def test_records_are_equal_after_pickling() -> None:
    """This is how they are sent to the child process."""
    world = Snapshot(
        nodes=(node("n", 8),), variants=(variant("a", "n", serves=9_400_000),), loads=(load(1_000),)
    )

    assert pickle.loads(pickle.dumps(world)) == world  # noqa: S301 (from this test)
    assert isinstance(world.variants[0], Variant)
    assert isinstance(world.variants[0].capacity, Capacity)
    assert isinstance(world.loads[0], ModelLoad)

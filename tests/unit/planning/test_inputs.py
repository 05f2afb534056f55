"""Planning inputs: range checks of records, and their JSON for saving, reading and replaying a decision."""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from support.planning_builders import capacity, load, node, variant

from controller.planning.cluster import (
    Budget,
    MovablePod,
    NodePool,
    NodeRequirement,
    Quota,
    Taint,
    Toleration,
)
from controller.planning.inputs import PlanningInputs, Settings, from_json, to_json
from controller.planning.load import (
    Capacity,
    CapacitySource,
    LimitingTarget,
    ModelLoad,
    ReplicaRateLimit,
    Signal,
)
from controller.planning.plan import plan
from controller.planning.snapshot import PlannedModel, Snapshot, Variant

FULL = PlanningInputs(
    snapshot=Snapshot(
        nodes=(
            node(
                "n1",
                8,
                labels=frozenset({("zone", "a"), ("rack", "1")}),
                taints=frozenset({Taint(key="gpu")}),
                used=2,
                movable=(
                    MovablePod(
                        namespace="jobs",
                        name="batch",
                        accelerators=2,
                        price_class=1,
                        tolerations=frozenset({Toleration(key="gpu", operator="Exists")}),
                        disruption_budget="batch",
                        evictable=1,
                    ),
                ),
            ),
        ),
        variants=(
            variant(
                "a",
                "n1",
                None,
                cost="32.50",
                capacity=replace(
                    capacity(9_400_000),
                    limits=(
                        ReplicaRateLimit(
                            target=LimitingTarget.TTFT, text="TTFT 2 s", requests_per_second=9.4
                        ),
                    ),
                    unreachable=("ITL 5 ms cannot be met: 21 ms is the best",),
                ),
                start_seconds=140.5,
                tolerations=frozenset({Toleration(key="gpu", operator="Exists")}),
                node_affinity=((NodeRequirement(key="zone", operator="In", values=("a", "b")),),),
                pinned_replicas=3,
                disruption_budget="a",
                evictable_replicas=1,
                ready_ordinals=(1,),
            ),
        ),
        models=(PlannedModel(namespace="llm", model_id="llama", idle_seconds=30.0),),
        loads=(
            load(
                9_000_000,
                signal=Signal.QUORUM,
                ready_replicas=3,
                silent_replicas=1,
                start_seconds=140.5,
                backlog_requests=2.5,
                prompt_tokens=1155.25,
                output_tokens=211.0,
            ),
        ),
        pools=(
            NodePool(
                name="p",
                accelerator="H100",
                accelerators_per_node=8,
                price_per_node=Decimal("98.3"),
                nodes_addable=4,
            ),
        ),
        quotas=(Quota(name="q", namespace="llm", accelerators=16),),
        budgets=(Budget(name="b", cost_per_hour=Decimal(400), namespaces=frozenset({"llm", "dev"})),),
        taken_seconds=1_700_000_000.5,
    ),
    settings=Settings(most_moves=2),
)


def test_reading_returns_what_was_written() -> None:
    """Nothing is lost or rounded, and equal inputs give equal bytes."""
    text = to_json(FULL)

    assert from_json(text) == FULL
    assert to_json(from_json(text)) == text


def test_what_earlier_versions_saved_has_no_effect() -> None:
    """A saved decision with settings that no longer exist can be replayed."""
    saved = to_json(FULL).replace(b'"most_moves": 2', b'"flap_reversals": 0, "most_moves": 2')
    saved = saved.replace(b'"settings":', b'"state": {"prices": {"slots": []}}, "settings":')

    assert b"flap_reversals" in saved
    assert b"prices" in saved
    assert from_json(saved) == FULL


def test_a_missing_setting_has_its_default() -> None:
    """The document does not contain `relief_solves`."""
    text = to_json(FULL)
    shorter = re.sub(rb'\s*"relief_solves": ?[0-9]+,?', b"", text)

    assert shorter != text
    assert from_json(shorter) == FULL


def test_a_plan_made_from_saved_inputs_equals_the_original() -> None:
    """Nothing that planning uses is missing in the saved inputs."""
    before = plan(FULL.snapshot, FULL.settings)
    read = from_json(to_json(FULL))

    assert plan(read.snapshot, read.settings) == before


def test_the_order_of_variants_does_not_change_the_plan() -> None:
    """The second snapshot lists the same variants in reverse order."""
    other = variant("b", model_id="qwen", size=2)
    both = replace(FULL.snapshot, variants=(*FULL.snapshot.variants, other))
    turned = replace(both, variants=tuple(reversed(both.variants)))

    assert plan(both, FULL.settings) == plan(turned, FULL.settings)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "missing required field `snapshot`"),
        ('{"snapshot": {"nodes": [], "variants": 3}}', "snapshot.variants: must be `array`, was `int`"),
        (
            '{"snapshot": {"nodes": [], "variants": []}, "settings": {"scale_up_threshold": 7}}',
            "scale_up_threshold",
        ),
        (
            '{"snapshot": {"nodes": [], "variants": []}, "settings": {"standing_seconds": 0}}',
            "settings: standing_seconds: must be greater than 0",
        ),
        (
            '{"snapshot": {"nodes": [], "variants": [], "models":'
            ' [{"namespace": "llm", "model_id": "llama", "demand_tokens": 9000}]}}',
            "demand_tokens",
        ),
        (
            '{"snapshot": {"nodes": [], "variants": [], "loads":'
            ' [{"namespace": "llm", "model_id": "llama", "upper_requests_per_second": -3}]}}',
            "snapshot.loads[0]: llm/llama: upper_requests_per_second: must be between 0 and 1000000000, "
            "was -3",
        ),
        (
            to_json(FULL).decode().replace(" 9.4,", " -9.4,"),
            "snapshot.variants[0].capacity: requests_per_second: must be between 0 and 1000000000, was -9.4",
        ),
        (
            '{"snapshot": {"variants": [], "nodes":'
            ' [{"name": "n7", "accelerator": "H100", "accelerators_allocatable": 10001}]}}',
            "node n7: accelerators_allocatable: must be between 0 and 10000, was 10001",
        ),
        ('{"snapshot": ', "truncated"),
        (
            '{"snapshot": {"nodes": [], "variants": []}, "settings": {"standing_seconds": -1}}',
            "settings: standing_seconds: must be finite and at least 0, was -1.0",
        ),
        (
            '{"snapshot": {"nodes": [], "variants": []}, "settings": {"standing_seconds": Infinity}}',
            "JSON is malformed",
        ),
        (
            '{"snapshot": {"nodes": [], "variants": [], "taken_seconds": -3}}',
            "snapshot: taken_seconds: must be finite and at least 0, was -3.0",
        ),
    ],
)
def test_an_invalid_document_is_rejected(text: str, says: str) -> None:
    """The error names the invalid member."""
    with pytest.raises(ValueError, match=re.escape(says)):
        from_json(text)


@pytest.mark.parametrize("seconds", [math.inf, math.nan, -1.0])
def test_an_invalid_duration_is_rejected_by_the_records(seconds: float) -> None:
    """JSON cannot represent all of these values, but code that creates records can."""
    says = f"must be finite and at least 0, was {seconds}"
    with pytest.raises(ValueError, match=f"^standing_seconds: {says}$"):
        Settings(standing_seconds=seconds)
    with pytest.raises(ValueError, match=f"^taken_seconds: {says}$"):
        Snapshot(nodes=(), variants=(), taken_seconds=seconds)


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
        ReplicaRateLimit(target=LimitingTarget.ITL, text="ITL 80 ms", requests_per_second=value)


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

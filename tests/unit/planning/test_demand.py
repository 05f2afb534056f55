"""One demand per model, its grade, and the capacity that it requires."""

from __future__ import annotations

from typing import Any

import pytest
from controller.planning.saturation import Capacity
from planning_builders import sample, variant

from controller.planning.decision import CapacitySource, Signal
from controller.planning.demand import ModelDemand, model_demands, staying_replicas
from controller.planning.formulation import held_replicas
from controller.planning.settings import Settings
from controller.planning.snapshot import Replica, Snapshot, Variant

SETTINGS = Settings()


def _demand(*variants: Variant, capacity: int = 12_800) -> ModelDemand:
    known = {v.key: Capacity(tokens=capacity, source=CapacitySource.MEMORY) for v in variants}
    return model_demands(Snapshot(nodes=(), variants=tuple(variants)), known, SETTINGS)[0]


def _spread(total: int, *hosts: str | None, kv_tokens: int = 16_000) -> Variant:
    """Return a variant whose ready replicas together hold this many tokens."""
    ready = sum(host is not None for host in hosts)
    return variant("a", *hosts, report=sample(kv_tokens, in_use=total / ready))


@pytest.mark.parametrize(
    ("engines", "required", "spare"),
    [
        pytest.param(_spread(11_300, "n"), 495, 0, id="over the threshold: a little more"),
        pytest.param(_spread(10_000, "n"), 0, 0, id="inside the dead band: nothing"),
        pytest.param(_spread(1_000, None, "n", "n"), 0, 24_171, id="a pending replica is not spare"),
        pytest.param(_spread(0, "n"), 0, 12_800, id="without demand all is spare"),
    ],
)
def test_dead_band(engines: Variant, required: int, spare: int) -> None:
    """Between threshold and boundary nothing is required or spare; else it is rounded to the safe side."""
    demand = _demand(engines)

    assert max(0, demand.required_tokens - demand.anticipated_tokens) == required
    assert demand.supply_tokens - demand.continuity_tokens == spare


@pytest.mark.parametrize(
    ("in_use", "want"),
    [
        pytest.param(22_000, 25_883, id="more than it has: up to the threshold"),
        pytest.param(20_000, 25_600, id="inside the band: what it has"),
        pytest.param(7_000, 10_000, id="less than it has: down to the boundary"),
    ],
)
def test_required_capacity_is_the_current_one_moved_into_the_band(in_use: int, want: int) -> None:
    """The target is the current capacity, clamped."""
    assert _demand(_spread(in_use, "n", "n")).required_tokens == want


def test_demand_is_summed_over_all_variants_of_a_model() -> None:
    """Two variants share one demand; neither gets the whole of it for itself."""
    h100 = variant("llama-h100", "n1", report=sample(in_use=4_000))
    l40s = variant("llama-l40s", "n2", report=sample(in_use=3_000))

    demands = model_demands(Snapshot(nodes=(), variants=(l40s, h100)), {}, SETTINGS)

    assert [(d.tokens, [v.name for v in d.variants]) for d in demands] == [
        (7_000, ["llama-h100", "llama-l40s"])
    ]


def test_models_of_two_namespaces_are_two_models() -> None:
    """The same model served by two teams has two demands."""
    ours, theirs = variant("a"), variant("a", namespace="other")

    assert [
        d.namespace for d in model_demands(Snapshot(nodes=(), variants=(theirs, ours)), {}, SETTINGS)
    ] == ["llm", "other"]


def test_a_long_queue_asks_for_many_replicas_at_once() -> None:
    """A full engine caps what it holds; the queue alone says how much more is needed."""
    full = sample(16_000, in_use=15_000, waiting=200, avg_input_tokens=500.0)

    demand = _demand(variant("a", "n", report=full))

    assert demand.tokens == 115_000
    assert demand.required_tokens / 12_800 > 10


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({"avg_input_tokens": 300.0}, 1_000 + 10 * 300, id="its own mean"),
        pytest.param({"running": 4}, 1_000 + 10 * 250, id="else what a running request holds"),
        pytest.param({"running": 0}, 1_000, id="else unknown"),
    ],
)
def test_length_of_a_waiting_prompt(changes: dict[str, Any], want: int) -> None:
    """A waiting request counts with the best known prompt length."""
    report = sample(in_use=1_000, waiting=10, **changes)

    assert _demand(variant("a", "n", report=report)).tokens == want


def _pods(*reports: Any) -> Variant:
    pods = tuple(
        Replica(name=f"a-{i}", node="n", ready=True, sample=report) for i, report in enumerate(reports)
    )
    return variant("a", current_replicas=len(pods), replicas=pods)


@pytest.mark.parametrize(
    ("engines", "want"),
    [
        pytest.param(_pods(sample(), sample(age_seconds=60)), Signal.FRESH, id="all report"),
        pytest.param(_pods(sample(), sample(age_seconds=61)), Signal.HELD, id="one report is old"),
        pytest.param(_pods(sample(), None), Signal.HELD, id="one ready replica never reported"),
        pytest.param(
            _pods(sample(), sample(age_seconds=301)), Signal.HELD, id="one report is too old to use"
        ),
        pytest.param(_pods(sample(in_use=9, waiting=1, running=0)), Signal.HELD, id="unknown prompt length"),
        pytest.param(_pods(None, None), Signal.UNKNOWN, id="none reports"),
        pytest.param(_pods(sample(age_seconds=301)), Signal.UNKNOWN, id="the only report is too old"),
        pytest.param(variant("a", None), Signal.UNKNOWN, id="nothing is ready"),
        pytest.param(variant("a"), Signal.UNKNOWN, id="nothing runs"),
    ],
)
def test_grade_of_the_signal(engines: Variant, want: Signal) -> None:
    """Missing is never zero: it lowers the grade."""
    assert _demand(engines).signal is want


def test_unknown_demand_is_not_zero() -> None:
    """Without a report there is no number at all."""
    assert _demand(variant("a", "n", "n")).tokens is None


def test_a_silent_replica_is_as_loaded_as_the_others() -> None:
    """Demand does not drop because an engine stopped answering."""
    assert _demand(_pods(sample(in_use=6_000), sample(in_use=4_000), None)).tokens == 15_000


@pytest.mark.parametrize("in_use", [0, 1_000, 9_000])
def test_held_data_never_lowers_the_required_capacity(in_use: int) -> None:
    """However low a held demand is, the capacity stays."""
    old = sample(in_use=in_use, age_seconds=100)

    demand = _demand(variant("a", "n", "n", report=old))

    assert demand.required_tokens == demand.anticipated_tokens == 25_600


def test_held_data_raises_the_required_capacity() -> None:
    """A high demand is acted on even when a report is old."""
    old = sample(in_use=15_000, age_seconds=100)

    assert _demand(variant("a", "n", "n", report=old)).required_tokens == 35_295


def test_replicas_beyond_the_target_are_leaving() -> None:
    """When the scale target asks for fewer, the first in removal order don't count as supply."""
    shrinking = variant("a", "n1", "n2", "n3", report=sample(), current_replicas=2)

    assert [r.node for r in staying_replicas(shrinking)] == ["n2", "n3"]
    assert _demand(shrinking).supply_tokens == 25_600


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({"desired_replicas": 4}, 4, id="a scale-up that was decided stays decided"),
        pytest.param({"desired_replicas": 1}, 2, id="a scale-down that was decided waits"),
        pytest.param({"desired_replicas": 9, "max_replicas": 3}, 3, id="never beyond maxReplicas"),
    ],
)
def test_held_replicas(changes: dict[str, Any], want: int) -> None:
    """Nobody scales down while nobody knows."""
    assert held_replicas(variant("a", "n", "n", **changes)) == want


def test_the_best_priority_counts_and_all_must_allow_zero() -> None:
    """Variants of one model in two service classes: the better one; scale to zero only when all agree."""
    gold, free = variant("a", priority=1, may_scale_to_zero=False), variant("b", may_scale_to_zero=True)

    demand = _demand(gold, free)

    assert (demand.priority, demand.may_scale_to_zero) == (1, False)

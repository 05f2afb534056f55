"""The demand of a model and the capacity that it requires; the present load of all models comes first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.planning_builders import EFFORT, demand, load, node, variant, world

from controller.planning.demand import ModelDemand, model_demands, staying_replicas
from controller.planning.engine import place
from controller.planning.formulation import formulate, held_replicas, load_weights
from controller.planning.inputs import Settings
from controller.planning.load import ModelLoad, Signal
from controller.planning.problem import Stage
from controller.planning.snapshot import PlannedModel, Snapshot, Variant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.demand import ModelDemand

SERVES = 12_800
DECIDING = [Signal.FRESH, Signal.QUORUM]


def _demand(*variants: Variant, loads: tuple[ModelLoad, ...] = ()) -> ModelDemand:
    return model_demands(Snapshot(nodes=(), variants=tuple(variants), loads=loads))[0]


def _asked(rate: float | None, *hosts: str | None, **changes: Any) -> ModelDemand:
    """Return the demand of a model that runs one variant on some hosts and has a load."""
    return _demand(variant("a", *hosts, serves=SERVES), loads=(load(rate, **changes),))


@pytest.mark.parametrize("signal", DECIDING)
@pytest.mark.parametrize(
    ("rate", "hosts", "required", "spare"),
    [
        pytest.param(11_300, ("n",), 495, 0, id="above the current capacity: slightly more is required"),
        pytest.param(10_000, ("n",), 0, 0, id="inside the dead band: no change"),
        pytest.param(1_000, (None, "n", "n"), 0, 24_171, id="a pending replica is not spare"),
        pytest.param(0, ("n",), 0, 12_800, id="without load all capacity is spare"),
    ],
)
def test_capacity_changes_only_outside_the_dead_band(
    rate: int, hosts: tuple[str | None, ...], required: int, spare: int, signal: Signal
) -> None:
    """Outside, it is rounded to the safe side."""
    demand = _asked(rate, *hosts, signal=signal)

    assert max(0, demand.required_rate - demand.anticipated_rate) == required
    assert demand.supply_rate - demand.continuity_rate == spare


@pytest.mark.parametrize("signal", DECIDING)
@pytest.mark.parametrize(
    ("rate", "want"),
    [
        pytest.param(22_000, 25_883, id="above the current capacity: raised to the required rate"),
        pytest.param(20_000, 25_600, id="inside the band: the current capacity"),
        pytest.param(7_000, 10_000, id="below the current capacity: lowered to the releasable rate"),
    ],
)
def test_the_required_capacity_is_the_current_one_clamped_to_the_band(
    rate: int, want: int, signal: Signal
) -> None:
    """The band is between the required rate and the releasable rate."""
    assert _asked(rate, "n", "n", signal=signal).required_rate == want


@pytest.mark.parametrize("rate", [0, 7_000, 20_000, 30_000])
def test_no_capacity_is_released_if_the_releasable_rate_is_unknown(rate: int) -> None:
    """Then only the required rate is a bound."""
    demand = _asked(rate, "n", "n", releasable_requests_per_second=None)

    assert demand.required_rate == max(25_600, demand.lower_rate)
    assert demand.continuity_rate == demand.supply_rate == 25_600


@pytest.mark.parametrize("rate", [0, 1_000, 18_000])
def test_a_held_load_never_lowers_the_required_capacity(rate: int) -> None:
    """However low the load is, all current capacity stays required."""
    demand = _asked(rate, "n", "n", signal=Signal.HELD)

    assert demand.required_rate == demand.anticipated_rate == 25_600


def test_a_held_load_raises_the_required_capacity() -> None:
    """A high load takes effect even if a report is old."""
    assert _asked(30_000, "n", "n", signal=Signal.HELD).required_rate == 35_295


@pytest.mark.parametrize(
    "loads",
    [
        pytest.param((), id="no load is listed"),
        pytest.param((load(5_000, "other"),), id="only the load of another model"),
        pytest.param(
            (load(5_000, namespace="other"),), id="only the load of a namesake in another namespace"
        ),
        pytest.param((load(None),), id="an unknown load"),
    ],
)
def test_an_unknown_load_is_not_taken_for_zero(loads: tuple[ModelLoad, ...]) -> None:
    """It has no rate and requires nothing; continuity keeps all capacity that serves."""
    demand = _demand(variant("a", "n", "n", serves=SERVES), loads=loads)

    assert (demand.signal, demand.load.requests_per_second) == (Signal.UNKNOWN, None)
    assert (demand.required_rate, demand.upper_rate) == (0, None)
    assert demand.continuity_rate == demand.supply_rate == 25_600


def test_all_variants_of_a_model_share_one_demand() -> None:
    """The capacities of both variants count toward it."""
    h100 = variant("llama-h100", "n1", serves=12_800)
    l40s = variant("llama-l40s", "n2", None, serves=2_000)
    world = Snapshot(nodes=(), variants=(l40s, h100), loads=(load(7_000),))

    (demand,) = model_demands(world)

    assert [item.name for item in demand.variants] == ["llama-h100", "llama-l40s"]
    assert demand.load == world.loads[0]
    assert (demand.anticipated_rate, demand.supply_rate) == (16_800, 14_800)


def test_models_of_the_same_name_in_two_namespaces_have_separate_demands() -> None:
    """Two teams may serve the same model."""
    ours, theirs = variant("a"), variant("a", namespace="other")
    loads = (load(1_000, namespace="other"), load(2_000))

    demands = model_demands(Snapshot(nodes=(), variants=(theirs, ours), loads=loads))

    assert [(item.namespace, item.lower_rate) for item in demands] == [("llm", 2_353), ("other", 1_177)]


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({}, 25_600, id="existing and starting replicas"),
        pytest.param({"current_replicas": 5}, 64_000, id="replicas still to be created"),
        pytest.param({"max_replicas": 1}, 12_800, id="no replicas beyond maxReplicas"),
        pytest.param({"capacity": None}, 0, id="no replicas of unknown capacity"),
        pytest.param({"serves": 0}, 0, id="no replicas that serve nothing within their targets"),
    ],
)
def test_anticipated_capacity_counts_all_requested_replicas(changes: dict[str, Any], want: int) -> None:
    """Replicas count as soon as the scale target requests them."""
    assert _demand(variant("a", None, "n", **{"serves": SERVES} | changes)).anticipated_rate == want


@pytest.mark.parametrize(
    ("required", "want"),
    [
        pytest.param(0.1, 100_000, id="a fraction that is not exact in binary"),
        pytest.param(0.1 + 0.2, 300_000, id="a floating-point error"),
        pytest.param(1e-9, 1, id="less than one unit"),
        pytest.param(9.4000001, 9_400_001, id="a real remainder"),
    ],
)
def test_the_required_rate_is_rounded_up_except_for_floating_point_errors(required: float, want: int) -> None:
    """Rounding up such an error could add a replica too many."""
    asked = load(0, required_requests_per_second=required, releasable_requests_per_second=required)

    demand = _demand(variant("a"), loads=(asked,))

    assert (demand.lower_rate, demand.upper_rate) == (want, want)


def test_capacity_is_rounded_down_except_for_floating_point_errors() -> None:
    """Only a rate that is surely served counts."""
    assert _demand(variant("a", "n", serves=300_000)).supply_rate == 300_000
    assert _demand(variant("a", "n", serves=0.9)).supply_rate == 0


def test_replicas_beyond_the_scale_target_do_not_count_as_supply() -> None:
    """The first ones in removal order are those that leave."""
    shrinking = variant("a", "n1", "n2", "n3", serves=SERVES, current_replicas=2)

    assert [r.node for r in staying_replicas(shrinking)] == ["n2", "n3"]
    assert _demand(shrinking).supply_rate == 25_600


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({"desired_replicas": 4}, 4, id="a decided scale-up stays"),
        pytest.param({"desired_replicas": 1}, 2, id="a decided scale-down is postponed"),
        pytest.param({"desired_replicas": 9, "max_replicas": 3}, 3, id="never beyond maxReplicas"),
    ],
)
def test_held_replicas_are_the_larger_of_current_and_desired_within_the_maximum(
    changes: dict[str, Any], want: int
) -> None:
    """Without data nothing is scaled down."""
    assert held_replicas(variant("a", "n", "n", **changes)) == want


def test_the_best_priority_counts_and_all_variants_must_allow_scale_to_zero() -> None:
    """Variants of one model may be in different service classes."""
    gold, free = variant("a", priority=1, may_scale_to_zero=False), variant("b", may_scale_to_zero=True)

    demand = _demand(gold, free)

    assert (demand.priority, demand.may_scale_to_zero) == (1, False)


@pytest.mark.parametrize(
    ("idle_seconds", "may_go"), [(None, True), (30.0, False), (59.9, False), (60.0, True)]
)
def test_the_last_replica_stays_for_the_grace_period_after_the_last_request(
    idle_seconds: float | None, *, may_go: bool
) -> None:
    """If the time of the last request is unknown, other rules decide."""
    model = PlannedModel(namespace="llm", model_id="llama", idle_seconds=idle_seconds, grace_seconds=60.0)
    world = Snapshot(nodes=(), variants=(variant("a", may_scale_to_zero=True),), models=(model,))

    assert model_demands(world)[0].may_scale_to_zero is may_go


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

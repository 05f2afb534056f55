"""The lower bound of the cost: examples computed by hand, and policies, none of which may cost less."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.simulation.lower_bound import least_work, lower_bound
from controller.simulation.outcome import PolicyOutcome
from controller.simulation.run import simulate
from controller.simulation.scenario import Scenario
from controller.simulation.workload import Request
from controller.sizing.records import Targets


def steady(scenario: Scenario, *, per_second: int, until: float = 600.0) -> dict[str, list[Request]]:
    """Return equal requests at equal intervals: 1000 prompt tokens and 101 output tokens."""
    count = round(per_second * until)
    return {
        scenario.models[0].model_id: [
            Request(
                request_id=number,
                arrival_us=number * 1_000_000 // per_second,
                prompt_tokens=1000,
                output_tokens=101,
            )
            for number in range(count)
        ]
    }


def hours(outcome: PolicyOutcome) -> list[float]:
    """Return the replica-hours of each variant."""
    return [variant.replica_hours for variant in outcome.variants]


def only_h100(scenario: Scenario) -> Scenario:
    """Return the scenario with one variant, and as if it had always run."""
    return replace(scenario, variants=scenario.variants[:1], warm_up_seconds=600.0)


def after_warm_up(requests: dict[str, list[Request]]) -> dict[str, list[Request]]:
    """Return the requests as they arrive in the scored time."""
    return {
        name: [replace(item, arrival_us=item.arrival_us + 600_000_000) for item in items]
        for name, items in requests.items()
    }


def test_the_work_of_a_request_is_that_of_a_full_batch(scenario: Scenario) -> None:
    """1000 x 0.03 ms for the prompt, and 100 iterations of 0.05 ms and a 256th of 8 ms."""
    request = Request(request_id=0, arrival_us=0, prompt_tokens=1000, output_tokens=101)

    work = least_work(scenario.variants[0], scenario.models[0], [request])(request)

    assert work == pytest.approx(0.030 + 100 * (0.00005 + 0.008 / 256))


def test_a_constant_load_costs_its_work(scenario: Scenario) -> None:
    """The replica-hours of ten minutes are those in which the work fits; 300 s after the end are free."""
    scenario = only_h100(scenario)
    asked = after_warm_up(steady(scenario, per_second=20))

    outcome = lower_bound(scenario, attainment=1.0, requests=asked)

    whole = 20 * 600 * (0.030 + 100 * (0.00005 + 0.008 / 256)) / 3600
    due = 20 * 10.0 * (0.030 + 100 * (0.00005 + 0.008 / 256)) / 3600  # of the last 2 + 100 x 0.08 s
    assert outcome.requests == 12_000
    assert outcome.missed == 0
    assert whole - 4 * due <= hours(outcome)[0] <= whole * 1.001
    assert outcome.cost == pytest.approx(100 * hours(outcome)[0])


def test_dropped_requests_cost_nothing(scenario: Scenario) -> None:
    """All requests are alike, so a tenth of them is about a tenth of the cost."""
    scenario = only_h100(scenario)
    asked = after_warm_up(steady(scenario, per_second=20))

    whole = lower_bound(scenario, attainment=1.0, requests=asked)
    less = lower_bound(scenario, attainment=0.9, requests=asked)

    assert less.missed == pytest.approx(0.1)
    assert less.cost == pytest.approx(0.9 * whole.cost, rel=0.01)


def test_replicas_for_a_burst_are_held_for_the_start_up_time_before(scenario: Scenario) -> None:
    """All requests arrive in the last minute, for which replicas have started 1 or 6 minutes before."""
    scenario = only_h100(scenario)
    late = {
        name: [item for item in items if item.arrival_us >= 1_140_000_000]
        for name, items in after_warm_up(steady(scenario, per_second=50)).items()
    }

    def cost(start_up_seconds: float) -> float:
        (variant,) = scenario.variants
        slow = replace(variant, start_up_seconds=start_up_seconds)
        return lower_bound(replace(scenario, variants=(slow,)), attainment=1.0, requests=late).cost

    assert cost(0.0) < cost(60.0) < cost(360.0)
    assert cost(360.0) > 3 * cost(60.0)


def test_only_initial_replicas_serve_at_a_cold_start(scenario: Scenario) -> None:
    """Without any, the requests of the first minute are late: a tenth of all."""
    scenario = replace(scenario, variants=scenario.variants[:1])
    cold = replace(scenario, variants=(replace(scenario.variants[0], initial_replicas=0),))
    asked = steady(scenario, per_second=20)

    assert lower_bound(scenario, attainment=1.0, requests=asked).cost > 0
    assert lower_bound(cold, attainment=0.9, requests=asked).cost > 0


def test_requests_that_cannot_be_in_time_are_dropped(scenario: Scenario) -> None:
    """A prompt of 1000 tokens takes 30 ms on one variant and 110 ms on the other."""

    def found(ttft_seconds: float) -> PolicyOutcome:
        model = replace(scenario.models[0], targets=Targets(ttft_seconds=ttft_seconds))
        cheap = (scenario.variants[0], replace(scenario.variants[1], price_per_hour=1.0))
        changed = replace(scenario, models=(model,), variants=cheap)
        return lower_bound(changed, attainment=0.99, requests=steady(scenario, per_second=1))

    neither = found(0.02)
    assert neither.missed == 1
    assert neither.cost == 0
    both, one = hours(found(0.2)), hours(found(0.1))
    assert both[1] > 0
    assert one[1] == 0 < one[0]


POLICIES = ("constant:1@h100", "constant:2@l40s", "concurrency:30@h100", "stowplan")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("warm_up_seconds", [0.0, 150.0], ids=["cold", "warm"])
def test_no_policy_costs_less_than_the_bound_for_what_it_misses(
    scenario: Scenario, policy: str, warm_up_seconds: float
) -> None:
    """The bound is given the share of requests that the policy served in time."""
    scenario = replace(scenario, warm_up_seconds=warm_up_seconds, duration_seconds=150.0)
    outcome = simulate(scenario, policy)

    bound = lower_bound(scenario, attainment=1 - outcome.missed)

    assert 0 < bound.cost <= outcome.cost


def test_the_bound_is_a_policy_by_name(scenario: Scenario) -> None:
    """It has no points, and names what it promises."""
    outcome = simulate(scenario, "lower-bound:95")

    assert outcome.policy == "lower-bound:95"
    assert outcome.missed == pytest.approx(0.05)
    assert "serving 95 % of each model's requests in time" in outcome.note
    assert outcome == simulate(scenario, "lower-bound:95")
    assert simulate(scenario, "lower-bound").missed == pytest.approx(0.01)
    assert not outcome.points

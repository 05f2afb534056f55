"""Complete simulations: every policy in closed loop, costs, missed shares and policy names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controller.simulation.cluster import VirtualCluster
from controller.simulation.outcome import PolicyOutcome, quantile, reversals
from controller.simulation.policies import ConstantPolicy, LoadPolicy
from controller.simulation.profile import EngineProfile
from controller.simulation.reconciler import series_of
from controller.simulation.run import play, policy_name, policy_problem, simulate
from controller.simulation.scenario import NodeGroup, Scenario, VariantSetup
from controller.simulation.server import Server, exposition
from controller.simulation.workload import Curve, DrawnArrivals, Request
from controller.sizing.records import SizingSettings, Targets
from controller.variants.variantautoscaling import CycleSettings

POLICIES = (
    "stowplan",
    "concurrency:30@h100",
    "queue:5@l40s",
    "constant:2@h100",
)


def variant_costs(outcome: PolicyOutcome) -> dict[str, float]:
    """Return the cost of each variant."""
    return {variant.name: variant.cost for variant in outcome.variants}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_serves_a_constant_load_and_is_reproducible(scenario: Scenario, policy: str) -> None:
    """The simulation lasts three minutes; a second one has an equal outcome."""
    scenario = replace(scenario, duration_seconds=180.0)
    outcome = simulate(scenario, policy)

    assert outcome == simulate(scenario, policy)
    assert outcome.policy == policy
    assert outcome.requests == len(scenario.requests()["m"])
    assert outcome.never_finished == 0
    assert len(outcome.points) == 12
    assert outcome.cost == pytest.approx(sum(variant_costs(outcome).values()))
    assert outcome.points[0].models[0].arrivals_per_second == 0  # nothing has arrived at the start
    assert sum(point.models[0].arrivals_per_second for point in outcome.points) == pytest.approx(
        10 * 11, rel=0.1
    )


INTERVALS = {"less than a sync": (5.0, 15.0), "four syncs": (60.0, 60.0), "between two syncs": (40.0, 15.0)}


@pytest.mark.parametrize(("interval", "step"), INTERVALS.values(), ids=INTERVALS)
def test_metrics_are_published_when_they_are_due(scenario: Scenario, interval: float, step: float) -> None:
    """They are published at syncs of the autoscalers, on average at the policy's interval if it is longer."""
    scenario = replace(scenario, duration_seconds=300.0)
    policy = ConstantPolicy(replicas=1, scaled=frozenset({"h100"}), interval_seconds=interval)
    moments: list[float] = []

    class Watches(ConstantPolicy):
        async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
            moments.append(cluster.now_seconds)
            return await policy.publish(cluster)

    asyncio.run(play(scenario, Watches(replicas=1, scaled=policy.scaled, interval_seconds=interval)))

    assert all(moment % step == 0 for moment in moments)
    assert len(moments) == -(-300 // max(interval, 15.0))


def test_autoscalers_sync_at_the_interval_of_the_scenario(scenario: Scenario) -> None:
    """A metric that the autoscaler reads directly is as recent as its sync."""
    scenario = replace(scenario, duration_seconds=60.0, sync_seconds=2.0)
    policy = LoadPolicy(scenario=scenario, per_replica=4, scaled=frozenset({"h100"}), name="plain")

    outcome = asyncio.run(play(scenario, policy))

    assert [point.seconds for point in outcome.points] == [2.0 * number for number in range(30)]
    changes = [
        after.seconds
        for before, after in pairwise(outcome.points)
        if before.variants[0].published != after.variants[0].published
    ]
    assert min(after - before for before, after in pairwise(changes)) == 2.0


def test_a_constant_fleet_costs_its_price_and_has_no_reversals(scenario: Scenario) -> None:
    """Two replicas are ready from the beginning, although the scenario has one initial replica."""
    outcome = simulate(scenario, "constant:2@h100")

    assert variant_costs(outcome) == {"h100": pytest.approx(200 / 6), "l40s": 0.0}
    assert outcome.reversals_per_hour == 0
    assert outcome.variants[0].peak_replicas == 2
    assert outcome.points[0].variants[0].ready == 2


def test_a_warm_start_scores_the_same_requests_and_duration_as_a_cold_start(scenario: Scenario) -> None:
    """The points of the warm-up come first and have negative seconds."""
    scenario = replace(scenario, duration_seconds=150.0)
    cold = simulate(scenario, "constant:2@h100")
    warm = simulate(replace(scenario, warm_up_seconds=300.0), "constant:2@h100")

    assert warm.requests == cold.requests
    assert warm.cost == pytest.approx(cold.cost)
    assert [point.seconds for point in warm.points[:2]] == [-300.0, -285.0]
    assert len(warm.points) == len(cold.points) + 20


def test_unattainable_latency_targets_are_missed_by_all_requests(scenario: Scenario) -> None:
    """Without targets, nothing is missed; each target is counted separately."""
    (model,) = scenario.models

    def missed(targets: Targets) -> tuple[float, float, float]:
        played = replace(scenario, models=(replace(model, targets=targets),), duration_seconds=120.0)
        outcome = simulate(played, "constant:2@h100")
        return outcome.missed, outcome.missed_ttft, outcome.missed_itl

    assert missed(Targets()) == (0, 0, 0)
    assert missed(Targets(ttft_seconds=1e-6)) == (1, 1, 0)
    _, missed_ttft, missed_itl = missed(Targets(itl_seconds=1e-6))
    assert missed_ttft == 0
    assert missed_itl > 0.99


def test_clients_that_give_up_count_as_missed_and_abandoned(scenario: Scenario) -> None:
    """One replica cannot serve 60 requests/s. Without patience all wait, and most exceed the target."""
    (model,) = scenario.models
    lengths = scenario.models[0].workload
    assert isinstance(lengths, DrawnArrivals)
    load = replace(lengths, curve=Curve(shape="constant", high=60))
    scenario = replace(scenario, models=(replace(model, workload=load),), duration_seconds=120.0)

    hasty = simulate(replace(scenario, patience_seconds=1.5), "constant:1@h100")
    patient = simulate(replace(scenario, patience_seconds=None), "constant:1@h100")

    assert patient.abandoned == 0
    assert hasty.abandoned > 0.2
    assert hasty.never_finished == hasty.abandoned
    assert hasty.abandoned <= hasty.missed
    assert (hasty.models[0].ttft_seconds.p99 or 0) <= 1.5 < (patient.models[0].ttft_seconds.p99 or 0)


def test_requests_without_an_engine_never_finish(scenario: Scenario) -> None:
    """There are no replicas at all."""
    outcome = simulate(scenario, "constant:0")

    assert (outcome.missed, outcome.never_finished, outcome.cost) == (1, 1, 0)


def test_an_autoscaler_misses_more_requests_after_a_step_if_replicas_start_more_slowly(
    scenario: Scenario,
) -> None:
    """The load grows tenfold, and some requests miss their targets until replicas are ready."""
    (model,) = scenario.models
    assert isinstance(model.workload, DrawnArrivals)
    step = replace(model.workload, curve=Curve(shape="step", low=5, high=50, at_seconds=60))

    def played(start_up_seconds: float) -> PolicyOutcome:
        variants = tuple(replace(item, start_up_seconds=start_up_seconds) for item in scenario.variants)
        models = (replace(model, workload=step),)
        changed = replace(scenario, models=models, variants=variants, duration_seconds=360.0)
        return simulate(changed, "concurrency:30@h100")

    quick, slow = played(15), played(180)
    assert quick.variants[0].peak_replicas > 1
    assert quick.missed < slow.missed


def test_stowplan_explains_decisions_for_each_variant(scenario: Scenario) -> None:
    """The sentence names the variant."""
    outcome = simulate(replace(scenario, duration_seconds=120.0), "stowplan")

    assert {item.variant for item in outcome.decisions} == {"h100", "l40s"}
    assert all(item.variant in item.sentence for item in outcome.decisions)
    assert outcome.points[-1].variants[0].published is not None


def _rising(scenario: Scenario) -> Scenario:
    """Return a scenario whose load soon exceeds what one replica serves."""
    (model,) = scenario.models
    assert isinstance(model.workload, DrawnArrivals)
    rising = replace(model.workload, curve=Curve(shape="ramp", low=10, high=60, length_seconds=240))
    return replace(scenario, models=(replace(model, workload=rising),), duration_seconds=240.0)


def test_a_stated_profile_is_used_from_the_first_decision(scenario: Scenario) -> None:
    """With a profile ten times too fast, the controller starts a variant that otherwise gets no replica."""
    scenario = _rising(scenario)
    l40s = scenario.variants[1]
    fast = replace(l40s.profile, alpha_ms=1.8, beta_ms=0.012, delta_ms=0.011)
    stated = (scenario.variants[0], replace(l40s, initial_replicas=0, stated_profile=fast))
    unsaid = (scenario.variants[0], replace(l40s, initial_replicas=0))

    def peak(variants: tuple[VariantSetup, ...]) -> int:
        return simulate(replace(scenario, variants=variants), "stowplan").variants[1].peak_replicas

    assert peak(stated) > 0
    assert peak(unsaid) == 0


def test_a_setting_allows_the_controller_to_try_unknown_variants(scenario: Scenario) -> None:
    """Without it, a cheap variant that never ran gets no replica."""
    scenario = _rising(scenario)
    cheap = replace(scenario.variants[1], initial_replicas=0, price_per_hour=5.0)
    unknown = replace(scenario, variants=(scenario.variants[0], cheap))
    trying = CycleSettings(scale_to_zero=False, sizing=SizingSettings(tries_unknown_variants=True))

    assert simulate(unknown, "stowplan").variants[1].peak_replicas == 0
    assert simulate(unknown, "stowplan", cycle_settings=trying).variants[1].peak_replicas > 0


def test_replicas_without_a_node_are_requested_but_cost_nothing(scenario: Scenario) -> None:
    """Of ten requested replicas, only four have room."""
    nodes = (NodeGroup(accelerator="H100", accelerators=4, count=1),)
    outcome = simulate(replace(scenario, nodes=nodes), "constant:10@h100")

    assert outcome.variants[0].cost == pytest.approx(400 / 6)
    assert outcome.points[-1].variants[0].spec == 10
    assert outcome.points[-1].variants[0].starting == 6


def test_models_are_scored_separately_and_together(scenario: Scenario) -> None:
    """A policy scales the first variant of each model, or the one that it names."""
    (first,), variant = scenario.models, scenario.variants[1]
    profile = replace(variant.profile, model_id="n")
    both = replace(
        scenario,
        models=(first, replace(first, model_id="n", targets=Targets(ttft_seconds=1e-6))),
        variants=(*scenario.variants, replace(variant, name="n-l40s", profile=profile)),
        duration_seconds=150.0,
    )
    outcome = simulate(both, "constant:2@h100")

    assert [model.missed for model in outcome.models] == [0, 1]
    assert outcome.missed == pytest.approx(outcome.models[1].requests / outcome.requests)
    assert {item.name: item.peak_replicas for item in outcome.variants} == {"h100": 2, "l40s": 0, "n-l40s": 2}
    assert {item.variant for item in simulate(both, "stowplan").decisions} == {"h100", "l40s", "n-l40s"}


def test_load_scales_all_variants_of_a_model_unless_one_is_named(scenario: Scenario) -> None:
    """So that no rival is limited to one of them; others have their least replicas."""
    first, second = scenario.variants
    bounded = replace(
        scenario,
        variants=(replace(first, max_replicas=1), replace(second, min_replicas=1, max_replicas=3)),
        duration_seconds=180.0,
    )

    def peaks(policy: str) -> dict[str, int]:
        outcome = simulate(bounded, policy)
        return {item.name: item.peak_replicas for item in outcome.variants}

    assert peaks("concurrency:2") == {"h100": 1, "l40s": 3}
    assert peaks("concurrency:2@h100") == {"h100": 1, "l40s": 1}
    assert peaks("concurrency:2@h100,l40s") == {"h100": 1, "l40s": 3}


def test_the_controller_reads_every_series_that_an_engine_serves() -> None:
    """The shortcut without the text format omits no series."""
    engine = Server(
        EngineProfile(model_id="m", alpha_ms=8, beta_ms=1, gamma_ms=0, delta_ms=1, num_gpu_blocks=100)
    )
    engine.submit(Request(request_id=1, arrival_us=0, prompt_tokens=100, output_tokens=10), now_us=0)
    engine.advance(10**7)
    families = text_string_to_metric_families(exposition(engine).decode())
    served = {(s.name, tuple(sorted(s.labels.items())), s.value) for f in families for s in f.samples}

    assert {(s.name, tuple(sorted(s.labels.items())), s.value) for s in series_of(engine)} == served


INVALID_NAMES = {
    "there is no policy": ("", "concurrency", "magic:3", "stowplan:1", "wva"),
    "must be lower-bound:N": ("lower-bound:0", "lower-bound:101", "lower-bound:x"),
    "where N is a whole number from 0 to 999999": (
        *("constant:1000000", "constant:-1", "constant:1.5", "constant:0.5@v"),
    ),
    "where N is from 0.001 to 999999.999": ("concurrency:0", "concurrency:x", "queue:0", "queue:many"),
}


@pytest.mark.parametrize(
    ("text", "reason"), [(text, reason) for reason, texts in INVALID_NAMES.items() for text in texts]
)
def test_invalid_policy_names_are_rejected(text: str, reason: str) -> None:
    """The error lists the policies, or the forms and the range of its number."""
    kind = text.partition(":")[0]
    with pytest.raises(ValueError, match=reason) as caught:
        policy_name(text)

    assert "N is" not in reason or f"must be {kind}:N or {kind}:N@VARIANT" in str(caught.value)


def test_a_policy_may_name_only_existing_variants(scenario: Scenario) -> None:
    """The error lists the existing ones."""
    assert policy_problem(policy_name("concurrency:40@l40s"), scenario) == ""
    assert "the variants are h100, l40s" in policy_problem(policy_name("concurrency:40@a100"), scenario)
    with pytest.raises(ValueError, match="there is no variant 'a100'"):
        simulate(scenario, "constant:1@a100")


def test_a_constant_fleet_is_of_one_variant_of_each_model(scenario: Scenario) -> None:
    """Only one of two would run."""
    assert policy_problem(policy_name("concurrency:40@h100,l40s"), scenario) == ""
    with pytest.raises(ValueError, match="must name one variant of model 'm'"):
        simulate(scenario, "constant:1@h100,l40s")


@pytest.mark.parametrize(
    ("course", "expected"),
    [
        ([], 0),
        ([2, 2, 2], 0),
        ([1, 3, 3, 5], 0),
        ([1, 3, 3, 2, 2, 4], 2),
        ([5, 4, 5, 4], 2),
        ([0, 1, 1, 2, 5], 0),
    ],
)
def test_reversals_are_counted(course: list[int], expected: int) -> None:
    """A constant number is no change of direction."""
    assert reversals(course) == expected


def test_quantiles_are_observed_values() -> None:
    """A quantile is the smallest value that at least the given share of values does not exceed."""
    values = [float(n) for n in range(1, 101)]

    assert [quantile(values, share) for share in (0.5, 0.9, 0.99)] == [50, 90, 99]
    assert quantile([], 0.5) is None

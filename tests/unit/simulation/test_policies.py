"""Policies that decide like the controller: an AutoscalingPolicy, and the reconciler of variants."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from apiserver.schema.json import Json
from controller.engines.readings import reading_of
from controller.engines.scraping import ScrapeResult
from controller.observe.gather import PlanningTerms
from controller.policies.policy import read_policy
from controller.simulation.cluster import VirtualCluster
from controller.simulation.manifests import Manifests, manifests_of, moment
from controller.simulation.outcome import PolicyOutcome
from controller.simulation.policies import PolicyFile
from controller.simulation.reconciler import ReconciledPolicy, series_of
from controller.simulation.run import PolicyName, play, silent, simulate_policy
from controller.simulation.scenario import Scenario
from controller.simulation.server import Server
from controller.simulation.workload import TraceEntry, TraceReplay
from controller.variants.variantautoscaling import CycleSettings

RUNNING = "vllm:num_requests_running"


def played(scenario: Scenario, *metrics: Json) -> PolicyOutcome:
    """Return the outcome of a policy with the given metrics."""
    policy = read_policy(
        {
            "apiVersion": "registry.volcano.sh/v1alpha1",
            "kind": "AutoscalingPolicy",
            "metadata": {"name": "p"},
            "spec": {"metrics": [*metrics], "tolerancePercent": 0},
        }
    )
    name = PolicyName(text="p.yaml", kind="file", file=PolicyFile(policy=policy))
    return asyncio.run(simulate_policy(scenario, name))


def test_recommendations_follow_the_metric_and_decisions_are_published(
    scenario: Scenario,
) -> None:
    """There is a decision for every interval, warm-up included."""
    outcome = played(replace(scenario, warm_up_seconds=60.0), {"metricName": RUNNING, "targetValue": 6})
    (decided,) = outcome.decided

    assert decided.targets == ("h100",)
    assert [point.seconds for point in decided.points] == [point.seconds for point in outcome.points]
    assert decided.points[0].seconds == -60
    exact = []
    for point, seen in zip(decided.points, outcome.points, strict=True):
        asked = math.ceil((point.values[RUNNING] or 0.0) / 6)
        if seen.variants[0].ready == point.current_replicas:
            exact.append(point.recommended == asked)
        else:  # a pod that is not ready prevents scaling down
            assert point.recommended is None or point.recommended >= asked
        assert point.replicas == sum(point.targets) == seen.variants[0].published
        assert point.current_replicas <= max(point.replicas, seen.variants[0].spec)
    assert all(exact)
    assert len(exact) > len(decided.points) / 2
    assert len({point.recommended for point in decided.points}) > 2
    assert any(point.recommended != point.replicas for point in decided.points)


@pytest.mark.parametrize("has_other", [False, True], ids=["alone", "beside a known metric"])
def test_an_unknown_metric_is_not_zero(scenario: Scenario, has_other: bool) -> None:
    """Its value is None; if it is the only metric, there is no recommendation."""
    known = [{"metricName": RUNNING, "targetValue": 3}] if has_other else []
    scenario = replace(scenario, duration_seconds=120.0)
    (decided,) = played(scenario, {"metricName": "nobody_has_this", "targetValue": 1}, *known).decided

    assert {point.values["nobody_has_this"] for point in decided.points} == {None}
    assert all((point.recommended is None) != has_other for point in decided.points[1:])


def test_each_model_has_its_own_decisions(scenario: Scenario) -> None:
    """Without a binding, one variant of each model is scaled."""
    (model,) = scenario.models
    first, second = scenario.variants
    other = replace(second, profile=replace(second.profile, model_id="other"))
    both = replace(
        scenario,
        models=(model, replace(model, model_id="other")),
        variants=(first, other),
        duration_seconds=240.0,
    )
    outcome = played(both, {"metricName": RUNNING, "targetValue": 6})

    assert [item.targets for item in outcome.decided] == [("h100",), ("l40s",)]
    assert len({tuple(point.replicas for point in item.points) for item in outcome.decided}) == 2


@dataclass(kw_only=True)
class CountingSource:
    """A source of metrics of idle engines that counts the requests to each pod."""

    server: Server
    now_seconds: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)

    async def scrape(self, pods: Sequence[Json]) -> ScrapeResult:
        """Return a reading for each pod."""
        names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]
        self.asked.update(name for _, name in names)
        series, seconds = series_of(self.server), moment(self.now_seconds).timestamp()
        readings = {key: reading_of(series, time_seconds=seconds) for key in names}
        return ScrapeResult(readings=readings, failures={})


async def test_a_cycle_asks_each_ready_pod_once(scenario: Scenario) -> None:
    """Three cycles with four ready pods of two variants."""
    variants = tuple(replace(item, initial_replicas=2) for item in scenario.variants)
    several = replace(scenario, variants=variants)
    source = CountingSource(server=Server(variants[0].profile))
    policy = ReconciledPolicy(several, source=source)
    cluster = VirtualCluster(several, manifests_of(several), {"m": []})

    for cycle in range(1, 4):
        source.now_seconds = 15.0 * cycle
        cluster.advance(source.now_seconds)
        with silent():
            await policy.publish(cluster)

        assert source.asked == dict.fromkeys(cluster.pods, cycle)
    assert len(cluster.pods) == 4


def annotated(manifests: Manifests) -> Manifests:
    """Return manifests in which annotations say what the VariantAutoscalings say."""
    variants = {}
    for name, item in manifests.variants.items():
        spec = item.owner["spec"]
        terms = {
            "llm-d.ai/managed": "true",
            "llm-d.ai/model-id": spec["modelID"],
            "llm-d.ai/variant-cost": spec["variantCost"],
        }
        assert item.autoscaler is not None
        labels = {"inference.optimization/acceleratorName": spec["accelerator"]}
        metadata = item.autoscaler["metadata"] | {"annotations": terms, "labels": labels}
        autoscaler = item.autoscaler | {"metadata": metadata}
        variants[name] = replace(item, owner=autoscaler, autoscaler=autoscaler)
    return replace(manifests, variants=variants)


def test_annotations_have_the_outcome_of_a_variant_autoscaling(scenario: Scenario) -> None:
    """Decisions, and what is learned from cycle to cycle, are kept in records instead of statuses."""
    plain = replace(
        scenario,
        duration_seconds=150.0,
        variants=tuple(replace(item, stated_profile=None) for item in scenario.variants),
    )
    manifests = manifests_of(plain)
    outcomes = [
        asyncio.run(play(plain, ReconciledPolicy(plain, manifests=given), manifests=given))
        for given in (manifests, annotated(manifests))
    ]

    assert outcomes[0].points[-1].variants
    assert outcomes[0] == outcomes[1]


GRACE_SECONDS = 120.0
RETURN_SECONDS = 1200
"""When requests arrive again after a long pause."""


def replicas_over_time(scenario: Scenario, seconds: list[int], *, until: float) -> list[tuple[float, int]]:
    """Return the times and the replicas of all variants, with one request at each of some seconds."""
    trace = tuple(
        TraceEntry(offset_ms=second * 1000, prompt_tokens=500, output_tokens=50) for second in seconds
    )
    model = replace(scenario.models[0], workload=TraceReplay(trace=trace))
    sparse = replace(scenario, models=(model,), duration_seconds=until)
    settings = CycleSettings(scale_to_zero=True, terms=PlanningTerms(grace_seconds=GRACE_SECONDS))
    outcome = asyncio.run(play(sparse, ReconciledPolicy(sparse, cycle_settings=settings)))
    return [(point.seconds, sum(item.spec for item in point.variants)) for point in outcome.points]


def test_a_model_scales_to_zero_and_starts_one_replica_for_requests_that_wait(scenario: Scenario) -> None:
    """It has no replica in the pause, one soon after it, and none long after the last request."""
    seconds = [*range(60), *range(RETURN_SECONDS, RETURN_SECONDS + 120)]

    course = replicas_over_time(scenario, seconds, until=2400.0)

    assert 0 in {count for time, count in course if 600 < time < RETURN_SECONDS}
    awake = [count for time, count in course if RETURN_SECONDS + 60 <= time < RETURN_SECONDS + 180]
    assert min(awake) == 1, course
    assert course[-1][1] == 0, course


def test_a_model_stays_at_zero_while_nobody_sends_requests(scenario: Scenario) -> None:
    """Nothing else starts a replica."""
    course = replicas_over_time(scenario, [*range(60)], until=1500.0)

    assert {count for time, count in course if time > 900} == {0}, course

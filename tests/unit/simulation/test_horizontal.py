"""The policy `hpa`: autoscalers of an export, by their own metrics, targets and bounds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.schema.json import Json
from controller.simulation.autoscaler import as_behaviour
from controller.simulation.horizontal import HorizontalPolicy, proposal_by_pods, scalers_of
from controller.simulation.manifests import Manifests, manifests_of
from controller.simulation.outcome import PolicyOutcome
from controller.simulation.run import policy_name, policy_problem, simulate, simulate_policy
from controller.simulation.scaling_rules import (
    Matcher,
    Scaler,
    Term,
    UnsupportedRuleError,
    refusal_text,
    scaler_of,
    terms_of,
)
from controller.simulation.scenario import Scenario

RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"


def hpa(*metrics: Json, **spec: Any) -> Json:
    """Return a HorizontalPodAutoscaler."""
    return {
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "own"},
        "spec": {"minReplicas": 1, "maxReplicas": 9, "metrics": [*metrics], **spec},
    }


def pods_metric(name: str, average: str) -> Json:
    """Return a metric of type Pods."""
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def external(name: str, labels: Json | None = None, **target: str) -> Json:
    """Return a metric of type External."""
    metric = {"name": name, "selector": {"matchLabels": labels or {}}}
    kind = "AverageValue" if "averageValue" in target else "Value"
    return {"type": "External", "external": {"metric": metric, "target": {"type": kind, **target}}}


def keda(*queries: str, threshold: str = "5", **spec: Any) -> Json:
    """Return a ScaledObject with one trigger for each query."""
    triggers = [
        {"type": "prometheus", "metadata": {"query": query, "threshold": threshold}} for query in queries
    ]
    return {"kind": "ScaledObject", "metadata": {"name": "own"}, "spec": {"triggers": triggers, **spec}}


def with_scalers(
    scenario: Scenario, *, autoscaler: Json | None = None, scaled: Json | None = None
) -> Manifests:
    """Return the objects of a scenario whose first variant has an autoscaler, and whose others have none."""
    made = manifests_of(scenario)
    first = scenario.variants[0].name
    return replace(
        made,
        variants={
            name: replace(
                item,
                autoscaler=autoscaler if name == first else None,
                scaled_object=scaled if name == first else None,
            )
            for name, item in made.variants.items()
        },
    )


def played(scenario: Scenario, manifests: Manifests) -> PolicyOutcome:
    """Return the outcome of the policy."""
    return asyncio.run(simulate_policy(scenario, policy_name("hpa"), manifests=manifests))


OWN = {"pod": Matcher(label="pod", comparison="=~", value="a-.*")}
QUERIES: dict[str, tuple[str, tuple[Term, ...]]] = {
    "a sum": (f"sum({WAITING})", (Term(gauge="waiting"),)),
    "with matchers": (
        f'max({RUNNING}{{namespace="chat", pod=~"a-.*",}})',
        (
            Term(
                gauge="running",
                aggregation="max",
                matchers=(Matcher(label="namespace", comparison="=", value="chat"), OWN["pod"]),
            ),
        ),
    ),
    "several": (
        f'sum({RUNNING}{{pod=~"a-.*"}}) + avg( vllm:gpu_cache_usage_perc )',
        (Term(gauge="running", matchers=(OWN["pod"],)), Term(gauge="kv_usage", aggregation="avg")),
    ),
    "a plus sign within quotes": (
        f'sum({RUNNING}{{pod!~"a+"}})',
        (Term(gauge="running", matchers=(Matcher(label="pod", comparison="!~", value="a+"),)),),
    ),
    "zero without series": (f"sum({WAITING}) or vector(0)", (Term(gauge="waiting"),)),
    "labels of a job are those of the own pods": (
        f'sum({WAITING}{{job="chat"}})',
        (Term(gauge="waiting", is_own=True),),
    ),
    "SGLang": ("sum(sglang:num_queue_reqs)", (Term(gauge="waiting"),)),
}


@pytest.mark.parametrize(("query", "terms"), QUERIES.values(), ids=QUERIES)
def test_queries_are_understood(query: str, terms: tuple[Term, ...]) -> None:
    """Sums of aggregated gauges."""
    assert terms_of(query) == terms


REFUSED = {
    "a rate": (f"sum(rate({WAITING}[1m]))", "is not understood"),
    "no aggregation": (WAITING, "has a value for each pod"),
    "a quotient": (f"sum({WAITING}) / 2", "is not understood"),
    "another metric": ("sum(DCGM_FI_DEV_GPU_UTIL)", "'DCGM_FI_DEV_GPU_UTIL' is no metric"),
    "a decision": ("sum(wva_desired_replicas)", "simulate the policy stowplan instead"),
    "an invalid expression": (f'sum({WAITING}{{pod=~"("}})', "is no regular expression"),
    "broken matchers": (f"sum({WAITING}{{pod}})", "are not understood"),
    "nothing": ("", "is not understood"),
    "a long query": ("sum(x)" * 1000, "of at most 4096"),
    "many terms": ("+".join([f"sum({WAITING})"] * 20), "of at most 8"),
}


@pytest.mark.parametrize(("query", "reason"), REFUSED.values(), ids=REFUSED)
def test_other_queries_are_refused_with_a_reason(query: str, reason: str) -> None:
    """Nothing is approximated silently."""
    with pytest.raises(UnsupportedRuleError, match=reason):
        terms_of(query)


@given(st.text(max_size=200))
def test_any_query_is_understood_or_refused(query: str) -> None:
    """They come from users."""
    terms: tuple[Term, ...] = ()
    reason = ""
    try:
        terms = terms_of(query)
    except UnsupportedRuleError as error:
        reason = str(error)

    assert bool(terms) != bool(reason)


UNSUPPORTED = {
    "CPU": (hpa({"type": "Resource", "resource": {"name": "cpu"}}), None, "cpu is no metric of engines"),
    "an object": (hpa({"type": "Object", "object": {}}), None, "metrics of type Object are not simulated"),
    "no target": (hpa(pods_metric(RUNNING, "x")), None, "is no positive quantity"),
    "no metric": (hpa(), None, "an autoscaler without metrics"),
    "malformed metrics": (hpa() | {"spec": {"maxReplicas": 1, "metrics": [5]}}, None, "are not simulated"),
    "a decision": (hpa(external("wva_desired_replicas", averageValue="1")), None, "policy stowplan"),
    "a cron trigger": (
        None,
        {"kind": "ScaledObject", "metadata": {"name": "own"}, "spec": {"triggers": [{"type": "cron"}]}},
        "triggers of type 'cron' are not simulated",
    ),
    "no threshold": (None, keda(f"sum({WAITING})", threshold="many"), "its threshold"),
}


@pytest.mark.parametrize(("own", "scaled", "reason"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_what_cannot_be_simulated_is_a_problem(own: Json | None, scaled: Json | None, reason: str) -> None:
    """It names the object and the metric."""
    scaler, problems = scaler_of(own, scaled)

    assert scaler is None
    assert reason in refusal_text(problems)
    assert (own or scaled or {})["kind"] in refusal_text(problems)


def test_one_unsupported_metric_of_several_is_a_remark(scenario: Scenario) -> None:
    """The others scale."""
    scaler, problems = scaler_of(
        hpa(pods_metric("vllm_num_requests_running", "8"), {"type": "Resource", "resource": {"name": "cpu"}}),
        None,
    )

    assert problems == ()
    assert scaler is not None
    assert len(scaler.rules) == 1
    text = HorizontalPolicy(scenario=scenario, scalers={scenario.variants[0].name: scaler}).note
    assert text.startswith("cpu is no metric of engines (metric 2 of HorizontalPodAutoscaler")
    assert "; the other metrics of these autoscalers are simulated" in text


def test_a_reason_is_given_once_for_all_autoscalers() -> None:
    """And so is the list of what is supported, however many there are."""
    cpu = {"type": "Resource", "resource": {"name": "cpu"}}
    refused = [item for number in range(40) for item in scaler_of(hpa(cpu, cpu) | named(number), None)[1]]

    text = refusal_text(refused)

    assert text.count("cpu is no metric of engines") == text.count("vllm:num_requests_waiting") == 1
    assert text.count("HorizontalPodAutoscaler") == 80
    assert "metric 2 of HorizontalPodAutoscaler 'scaler-7', " in text


def named(number: int) -> Json:
    """Return the metadata of one of many autoscalers."""
    return {"metadata": {"name": f"scaler-{number}"}}


def test_a_policy_is_for_exports_only(scenario: Scenario) -> None:
    """A scenario has no autoscalers, and those of an export that follow decisions are named."""
    name = policy_name("hpa")

    assert "use -f FILE" in policy_problem(name, scenario)
    assert "policy stowplan" in policy_problem(name, scenario, manifests_of(scenario))
    fine = with_scalers(scenario, autoscaler=hpa(pods_metric(RUNNING, "8")))
    assert policy_problem(name, scenario, fine) == ""


def test_a_scaled_object_on_load_is_the_policy_concurrency(scenario: Scenario) -> None:
    """With the same target, bounds and behavior; KEDA's bounds and behavior are those of the object."""
    scenario = replace(scenario, duration_seconds=300.0)
    setup = scenario.variants[0]
    own = f'{{pod=~"{setup.name}-.*"}}'
    scaled = keda(
        f"sum({RUNNING}{own}) + sum({WAITING}{own})",
        threshold="12",
        minReplicaCount=1,
        maxReplicaCount=setup.max_replicas,
        advanced={"horizontalPodAutoscalerConfig": {"behavior": as_behaviour(scenario.behaviour)}},
    )

    outcome = played(scenario, with_scalers(scenario, scaled=scaled))
    others = (replace(item, min_replicas=item.initial_replicas) for item in scenario.variants[1:])
    kept = replace(scenario, variants=(setup, *others))
    load = simulate(kept, f"concurrency:12@{setup.name}")

    assert (outcome.cost, outcome.missed) == (load.cost, load.missed)
    assert [point.variants[0].spec for point in outcome.points] == [
        point.variants[0].spec for point in load.points
    ]
    assert outcome.note == f"no autoscaler scales {scenario.variants[1].name}, so their replicas stay"


def test_each_kind_of_target_scales_within_the_bounds(scenario: Scenario) -> None:
    """A mean over pods, a total per replica, and a value."""
    scenario = replace(scenario, duration_seconds=240.0)
    name = scenario.variants[0].name
    labels = {"pod": "nobody"}
    peaks = {}
    for text, metric in {
        "pods": pods_metric(RUNNING, "2"),
        "average": external(RUNNING, averageValue="2"),
        "value": external(WAITING, value="1"),
        "nobody": external(RUNNING, labels, averageValue="2"),
        "idle": pods_metric(RUNNING, "1k"),
    }.items():
        outcome = played(scenario, with_scalers(scenario, autoscaler=hpa(metric, maxReplicas=4)))
        peaks[text] = {item.name: item.peak_replicas for item in outcome.variants}[name]

    initial = scenario.variants[0].initial_replicas
    assert peaks == {
        "pods": 4,
        "average": 4,
        "value": peaks["value"],
        "nobody": max(1, initial),  # an unknown metric changes nothing
        "idle": max(1, initial),
    }
    assert 1 <= peaks["value"] <= 4


def test_keda_scales_up_from_zero(scenario: Scenario) -> None:
    """An HPA leaves a target alone that something else scaled to zero."""
    first, *others = scenario.variants
    empty = replace(scenario, variants=(replace(first, initial_replicas=0), *others), duration_seconds=240.0)
    scaled, own = keda(f"sum({WAITING})", minReplicaCount=2), hpa(pods_metric(WAITING, "5"), minReplicas=2)

    def peak(**objects: Json) -> int:
        return played(empty, with_scalers(empty, **objects)).variants[0].peak_replicas

    assert peak(scaled=scaled) >= 2
    assert peak(autoscaler=own) == 0


@pytest.mark.parametrize(
    ("values", "pods", "replicas", "proposal"),
    [
        ([20.0, 20.0], 2, 2, 4),
        ([10.5, 10.0], 2, 2, 2),
        ([2.0, 2.0], 4, 4, 3),  # missing pods count as the target
        ([30.0, 30.0], 4, 4, 6),  # or as zero
        ([11.5, 11.5], 4, 4, 4),  # which would turn it into scaling down
        ([], 4, 4, None),
    ],
)
def test_missing_pods_dampen_a_mean(
    values: list[float], pods: int, replicas: int, proposal: int | None
) -> None:
    """As in the real controller, for a target of 10."""
    scaler, _ = scaler_of(hpa(pods_metric(RUNNING, "10")), None)
    assert isinstance(scaler, Scaler)

    assert proposal_by_pods(values, 10.0, scaler, pods=pods, replicas=replicas) == proposal


def test_a_variant_without_autoscaler_is_no_problem(scenario: Scenario) -> None:
    """Its replicas stay."""
    scalers, problems = scalers_of(with_scalers(scenario))

    assert (dict(scalers), problems) == ({}, "")

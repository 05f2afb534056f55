"""Declared profiles, latency targets and published performance of variants."""

from __future__ import annotations

from typing import Any

import pytest
from support.gathering import A100, gathered, placed, pod
from support.manifests import PERF_PARMS, deployment, variant
from support.observations import claim

from apiserver.schema.json import Json, JsonValue
from controller.observe.performance import targets_of
from controller.observe.policies import Policies, ServiceClass
from controller.sizing.records import LearnedProfile, Profile, StepParameters, Targets, VariantFacts

KEY = ("ns", "chat")
SHOWN: Json = {
    "decodeParms": {"alpha": "13.2", "beta": "0.105"},
    "prefillParms": {"delta": "0.066"},
    "samples": 100,
    "startSeconds": 140,
    "kvCacheTokens": 160_000,
}
LEARNED = LearnedProfile(
    parameters=StepParameters(alpha_ms=13.2, beta_ms=0.105, delta_ms=0.066), samples=100.0, kv_tokens=160_000
)


def facts(
    status: Json | None = None, pods: tuple[Json, ...] = (), **spec: Any
) -> tuple[VariantFacts, tuple[str, ...]]:
    """Return the facts of one variant, and the problems in reading them."""
    value = placed(variant("chat", **spec)) | {"status": status or {}}
    seen = gathered(value, pods=pods)
    assert seen.unplanned == {}
    return seen.observed[KEY].facts, seen.observed[KEY].claim.problems


def published(**changes: Any) -> Json:
    """Return a status with performance data; a member that is None is left out."""
    performance = {name: item for name, item in (SHOWN | changes).items() if item is not None}
    return {"decision": {"reason": "Steady", "message": "", "performance": performance}}


def test_without_declared_or_published_values_only_the_catalog_is_known() -> None:
    """That of the model and the accelerator, and the maximum batch of the engine's arguments."""
    seen, problems = facts()

    assert seen == VariantFacts(max_num_seqs=64, estimate=seen.estimate)
    assert seen.estimate is not None
    assert seen.estimate.basis == "Llama-3.1-8B with 16-bit weights on 2 x A100"
    assert problems == ()


def test_a_declared_profile_is_read() -> None:
    """Its maximum batch applies if the engine's arguments give none."""
    profile = {"perfParms": PERF_PARMS, "maxBatchSize": 48}
    plain = placed(deployment("chat", product=A100, accelerators=2))
    plain["spec"]["template"]["spec"]["containers"][0]["args"] = []

    seen = gathered(placed(variant("chat", variantProfile=profile)), deployments=(plain,))

    found = seen.observed[KEY]
    assert found.facts.profile == Profile(
        parameters=StepParameters(alpha_ms=20.58, beta_ms=0.41, gamma_ms=5.2, delta_ms=0.1), max_batch_size=48
    )
    assert (found.facts.max_num_seqs, found.claim.problems) == (48, ())


DECODE, PREFILL = PERF_PARMS["decodeParms"], PERF_PARMS["prefillParms"]
UNUSABLE: dict[str, tuple[Json, Json, str]] = {
    "a parameter is missing": ({"alpha": "20"}, PREFILL, "decodeParms.beta"),
    "several parameters are missing": (
        {"beta": "0"},
        {"gamma": "1"},
        "decodeParms.alpha, prefillParms.delta",
    ),
    "a step takes no time": (DECODE | {"alpha": "0"}, PREFILL, "decodeParms.alpha"),
    "a token takes too little time": (DECODE | {"beta": "1e-200"}, PREFILL, "decodeParms.beta"),
    "a prompt takes too long": (DECODE, PREFILL | {"delta": "9" * 30}, "prefillParms.delta"),
}


@pytest.mark.parametrize(("decode", "prefill", "named"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_unusable_profile_is_reported(decode: Json, prefill: Json, named: str) -> None:
    """The variant is still planned."""
    parms = {"decodeParms": decode, "prefillParms": prefill}

    found, doubts = facts(variantProfile={"perfParms": parms, "maxBatchSize": 48})

    assert found.profile is None
    assert doubts == (
        f"variantProfile.perfParms is not used: {named} must be 0 or 1e-06 to 1000000000 ms, alpha not 0",
    )


def test_learned_parameters_are_restored_from_the_status() -> None:
    """A restarted controller continues with them."""
    found, _ = facts(published())

    assert (found.learned, found.known_start_seconds) == (LEARNED, 140.0)


NOT_LEARNED: dict[str, Json] = {
    "nothing published": {},
    "no samples": published(samples=0),
    "samples that are not a number": published(samples="many"),
    "a step that takes no time": published(decodeParms={"alpha": "0", "beta": "0.1"}),
    "a parameter is missing": published(decodeParms={"alpha": "13.2"}),
    "a negative parameter": published(prefillParms={"delta": "-1"}),
    "a parameter that is not a number": published(prefillParms={"delta": "NaN"}),
    "a boolean parameter": published(decodeParms={"alpha": True, "beta": "0.1"}),
    "an unplanned variant": {"decision": {"reason": "Unplanned", "message": ""}},
}


@pytest.mark.parametrize("status", NOT_LEARNED.values(), ids=NOT_LEARNED.keys())
def test_an_unusable_status_restores_no_learned_parameters(status: Json) -> None:
    """Learning starts over."""
    assert facts(status)[0].learned is None


@pytest.mark.parametrize(
    ("told", "want"),
    [(None, None), (0, 0.0), (1_000_000, 1e6), (1_000_001, None), (-5, None), ("NaN", None), (1e999, None)],
)
def test_an_out_of_range_start_up_time_is_ignored(told: JsonValue, want: float | None) -> None:
    """One invalid number in a status does not stop planning."""
    assert facts(published(startSeconds=told))[0].known_start_seconds == want


@pytest.mark.parametrize("told", [None, 0, -1, "160000"])
def test_an_invalid_cache_size_is_ignored(told: JsonValue) -> None:
    """The other learned values are kept."""
    found = facts(published(kvCacheTokens=told))[0].learned

    assert found is not None
    assert found.kv_tokens is None
    assert found.parameters == LEARNED.parameters


def started(name: str, *, start: str | None, ready: str | None) -> Json:
    """Return a pod with a start time and the time at which it became ready."""
    value = pod(name)
    value["status"] = {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": ready or start}
        ],
    } | ({"startTime": start} if start else {})
    return value


def test_start_up_times_are_measured_from_ready_pods_only() -> None:
    """They range from the pod's start time to its readiness."""
    pods = (
        started("a", start="2025-12-31T23:50:00Z", ready="2025-12-31T23:52:20Z"),
        started("b", start="2025-12-31T23:50:00Z", ready="2025-12-31T23:51:30Z"),
        started("c", start="2025-12-31T23:50:00Z", ready=None),
        started("d", start=None, ready="2025-12-31T23:51:30Z"),
    )

    assert sorted(facts(pods=pods)[0].start_seconds) == [90.0, 140.0]


CLASS = ServiceClass(
    name="Premium", priority=1, ttft_ms={"llama": 1500, "other": 9}, tpot_ms={"llama": 80, "odd": 0}
)
POLICIES = Policies(classes={("classes", "premium"): CLASS})


@pytest.mark.parametrize(
    ("model", "want"),
    [
        pytest.param("llama", Targets(ttft_seconds=1.5, itl_seconds=0.08), id="both targets"),
        pytest.param("other", Targets(ttft_seconds=0.009), id="one target only"),
        pytest.param("odd", Targets(), id="no valid target"),
        pytest.param("unheard-of", Targets(), id="a model without a class"),
    ],
)
def test_latency_targets_are_those_of_the_service_class_for_the_model(model: str, want: Targets) -> None:
    """They are converted to seconds."""
    assert targets_of(claim(model_id=model), POLICIES) == want

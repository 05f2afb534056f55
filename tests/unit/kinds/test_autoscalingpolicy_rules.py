"""Validation, defaults and warnings of an AutoscalingPolicy."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY, effective_policy
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicy, policy_advice
from apiserver.schema.defaulting import complete
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

VERSION = AUTOSCALING_POLICY.storage_version
METRIC = {"metricName": "vllm:num_requests_waiting", "targetValue": 4}
STABLE = {"instances": 1, "percent": 100, "period": "15s", "selectPolicy": "Or"}
UP = STABLE | {"stabilizationWindow": "0s"}
DOWN = STABLE | {"stabilizationWindow": "5m"}
PANIC = {"period": "1m", "percent": 1000, "panicThresholdPercent": 200, "panicModeHold": "60s"}


def policy(**spec: Any) -> Json:
    """Return a policy spec with one metric unless others are given."""
    return {"metrics": [METRIC], **spec}


def metric(**members: Any) -> Json:
    """Return a policy spec with one metric, some members of which are changed."""
    return policy(metrics=[METRIC | members])


def down(**members: Any) -> Json:
    """Return a policy spec with a scale-down block."""
    return policy(behavior={"scaleDown": members})


def up(**blocks: Any) -> Json:
    """Return a policy spec with a scale-up block."""
    return policy(behavior={"scaleUp": blocks})


ACCEPTED = {
    "a metric alone": policy(),
    "two metrics": policy(metrics=[METRIC, METRIC | {"metricName": "another"}]),
    "a target value as text": metric(targetValue="700m"),
    "the smallest target value that is allowed": metric(targetValue="1n"),
    "the largest target value that is allowed": metric(targetValue="9223372036854775807"),
    "no tolerance": policy(tolerancePercent=0),
    "full tolerance": policy(tolerancePercent=100),
    "times of half an hour": down(period="30m", stabilizationWindow="0.5h"),
    "times of zero": down(period="0", stabilizationWindow="0s"),
    "a panic policy with only a period": up(panicPolicy={"period": "1m"}),
    "empty blocks": policy(behavior={"scaleUp": {"stablePolicy": {}}, "scaleDown": {}}),
    "limits of 0": down(instances=0, percent=0, selectPolicy="And"),
    "limits at their maximum": down(percent=1000, instances=10**9),
}

DOWN_AT, UP_AT = "spec.behavior.scaleDown", "spec.behavior.scaleUp.stablePolicy"
PANIC_AT = "spec.behavior.scaleUp.panicPolicy"
KEPT = "must be between 1n and 9223372036854775807"
POSITIVE = "must be a quantity greater than 0, such as 2, 500m or 80Gi"
TIME = "must be a length of time such as 15s, 1m30s or 100ms"
HALF_HOUR = "must be between 0s and 30m"

REFUSED = {
    "no metrics": ({}, ["spec.metrics: Required value"]),
    "an empty metric": (
        policy(metrics=[{}]),
        ["spec.metrics[0].metricName: Required value", "spec.metrics[0].targetValue: Required value"],
    ),
    "a target of zero": (
        metric(targetValue=0),
        ["spec.metrics[0].targetValue: Invalid value: 0: must be greater than or equal to 1"],
    ),
    "a target of zero as text": (
        metric(targetValue="0.00"),
        [f'spec.metrics[0].targetValue: Invalid value: "0.00": {POSITIVE}'],
    ),
    "a target below zero": (
        metric(targetValue="-1"),
        [f'spec.metrics[0].targetValue: Invalid value: "-1": {POSITIVE}'],
    ),
    "a target value below the smallest allowed": (
        metric(targetValue="0.1n"),
        [f'spec.metrics[0].targetValue: Invalid value: "0.1n": {KEPT}'],
    ),
    "a target value above the largest allowed": (
        metric(targetValue="10E"),
        [f'spec.metrics[0].targetValue: Invalid value: "10E": {KEPT}'],
    ),
    "a target value with a huge exponent": (
        metric(targetValue="1e9999"),
        [f'spec.metrics[0].targetValue: Invalid value: "1e9999": {KEPT}'],
    ),
    "a target that is a list": (
        metric(targetValue=[4]),
        ["spec.metrics[0].targetValue: Invalid value: [4]: must be an integer or a string"],
    ),
    "times longer than half an hour": (
        down(period="30m1ns", stabilizationWindow="31m"),
        [
            f'spec.behavior.scaleDown.period: Invalid value: "30m1ns": {HALF_HOUR}',
            f'spec.behavior.scaleDown.stabilizationWindow: Invalid value: "31m": {HALF_HOUR}',
        ],
    ),
    "a negative time": (
        down(period="-1s"),
        [f'spec.behavior.scaleDown.period: Invalid value: "-1s": {TIME}'],
    ),
    "a time in days": (
        up(stablePolicy={"period": "1d"}),
        [f'spec.behavior.scaleUp.stablePolicy.period: Invalid value: "1d": {TIME}'],
    ),
    "a panic policy beyond all bounds": (
        up(panicPolicy={"period": "1h", "percent": -1, "panicThresholdPercent": 109, "panicModeHold": "40m"}),
        [
            f"{PANIC_AT}.percent: Invalid value: -1: must be greater than or equal to 0",
            f'spec.behavior.scaleUp.panicPolicy.period: Invalid value: "1h": {HALF_HOUR}',
            "spec.behavior.scaleUp.panicPolicy.panicThresholdPercent: Invalid value: 109:"
            " must be greater than or equal to 110",
            f'spec.behavior.scaleUp.panicPolicy.panicModeHold: Invalid value: "40m": {HALF_HOUR}',
        ],
    ),
}

WARNED = "spec.behavior: filled in stabilizationWindow "
FILLED = {
    "no behavior": (
        policy(),
        {"scaleUp": {"stablePolicy": UP}, "scaleDown": DOWN},
        [f"{WARNED}0s for scaleUp and 5m for scaleDown"],
    ),
    "an empty behavior": (
        policy(behavior={}),
        {"scaleUp": {"stablePolicy": UP}, "scaleDown": DOWN},
        [f"{WARNED}0s for scaleUp and 5m for scaleDown"],
    ),
    "blocks without windows": (
        policy(behavior={"scaleUp": {"stablePolicy": {"instances": 4}}, "scaleDown": {"percent": 10}}),
        {"scaleUp": {"stablePolicy": UP | {"instances": 4}}, "scaleDown": DOWN | {"percent": 10}},
        [f"{WARNED}0s for scaleUp and 5m for scaleDown"],
    ),
    "a scale-down block alone": (
        down(stabilizationWindow="1m"),
        {"scaleUp": {"stablePolicy": UP}, "scaleDown": STABLE | {"stabilizationWindow": "1m"}},
        [f"{WARNED}0s for scaleUp"],
    ),
    "a panic policy alone": (
        up(panicPolicy={"period": "1m"}),
        {"scaleUp": {"stablePolicy": UP, "panicPolicy": PANIC}, "scaleDown": DOWN},
        [f"{WARNED}0s for scaleUp and 5m for scaleDown"],
    ),
    "both windows": (
        policy(
            behavior={
                "scaleUp": {"stablePolicy": {"stabilizationWindow": "10s"}},
                "scaleDown": {"stabilizationWindow": "0s"},
            }
        ),
        {
            "scaleUp": {"stablePolicy": STABLE | {"stabilizationWindow": "10s"}},
            "scaleDown": STABLE | {"stabilizationWindow": "0s"},
        },
        [],
    ),
}

INTERVAL = "is below 15s, the usual interval"
ADVISED = {
    "a metric alone": (policy(), []),
    "all defaults": (policy(behavior={"scaleUp": {"stablePolicy": UP}, "scaleDown": DOWN}), []),
    "a panic policy with its defaults": (up(panicPolicy=PANIC), []),
    "instances alone": (down(instances=2, percent=0), []),
    "percent alone": (up(stablePolicy={"instances": 0}), []),
    "a name that no Prometheus metric can have": (
        metric(metricName="queue length"),
        ["spec.metrics[0].metricName: not a Prometheus metric name; no pod can expose it"],
    ),
    "full tolerance": (
        policy(tolerancePercent=100),
        ["spec.tolerancePercent: at 100, nothing is scaled down except to 0"],
    ),
    "no period": (down(period="0s", percent=0), [f"{DOWN_AT}: period 0s lifts both limits"]),
    "a short period": (up(stablePolicy={"period": "14s"}), [f"{UP_AT}: period {INTERVAL}"]),
    "a short window": (down(stabilizationWindow="1s"), [f"{DOWN_AT}: stabilizationWindow {INTERVAL}"]),
    "And with an instances limit of 0": (
        down(selectPolicy="And", instances=0),
        [f"{DOWN_AT}: And with a limit of 0 never scales down"],
    ),
    "And with a percent limit of 0": (
        up(stablePolicy={"selectPolicy": "And", "percent": 0}),
        [f"{UP_AT}: And with a limit of 0 never scales up"],
    ),
    "neither instances nor percent": (
        up(stablePolicy={"instances": 0, "percent": 0}),
        [f"{UP_AT}: instances 0 and percent 0 never scale up"],
    ),
    "a panic policy without a limit": (
        up(panicPolicy=PANIC | {"period": "0s"}),
        [f"{PANIC_AT}: period 0s lifts the limit"],
    ),
    "a panic policy with a limit of 0": (
        up(panicPolicy=PANIC | {"percent": 0}),
        [f"{PANIC_AT}: percent 0 never scales up while panic lasts"],
    ),
    "a panic policy slower than the stable policy": (
        up(panicPolicy=PANIC | {"percent": 50}, stablePolicy=UP),
        [f"{PANIC_AT}: slower than stablePolicy, in percent and period"],
    ),
    "a stable policy without a limit beside a panic policy with one": (
        up(panicPolicy=PANIC, stablePolicy={"period": "0s"}),
        [
            f"{UP_AT}: period 0s lifts both limits",
            f"{PANIC_AT}: slower than stablePolicy, in percent and period",
        ],
    ),
    "a panic threshold within the tolerance": (
        up(panicPolicy=PANIC | {"panicThresholdPercent": 110}),
        [f"{PANIC_AT}: with tolerancePercent 10, every scale-up is a panic"],
    ),
    "a panic hold of zero": (
        up(panicPolicy=PANIC | {"panicModeHold": "0s"}),
        [f"{PANIC_AT}: panicModeHold {INTERVAL}"],
    ),
}

BLOCKS = st.fixed_dictionaries(
    {}, optional={"instances": st.integers(0, 9), "stabilizationWindow": st.sampled_from(["0s", "1m"])}
)
BEHAVIORS = st.fixed_dictionaries(
    {},
    optional={
        "scaleUp": st.fixed_dictionaries(
            {}, optional={"stablePolicy": BLOCKS, "panicPolicy": st.just({"period": "1m"})}
        ),
        "scaleDown": BLOCKS,
    },
)
NAMES = st.sampled_from(["scaleUp", "scaleDown", "stablePolicy", "panicPolicy", "period", "percent"])
SPECS = st.fixed_dictionaries({"metrics": st.just([METRIC])}, optional={"behavior": BEHAVIORS})


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_valid_policy_is_accepted(spec: Json) -> None:
    """Bounds are inclusive."""
    assert validate(AutoscalingPolicy, {"spec": spec}) == []


@pytest.mark.parametrize(("spec", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_each_invalid_field_gets_its_own_error(spec: Json, want: list[str]) -> None:
    """The list of errors is complete."""
    assert [str(error) for error in validate(AutoscalingPolicy, {"spec": spec})] == want


@pytest.mark.parametrize(("spec", "behavior", "warnings"), FILLED.values(), ids=FILLED.keys())
def test_omitted_fields_get_defaults_and_windows_cause_one_warning(
    spec: Json, behavior: Json, warnings: list[str]
) -> None:
    """The defaults are the same however much is omitted; fields that are set are unchanged."""
    value = {"spec": copy.deepcopy(spec)}

    completion = complete(VERSION, value)

    assert value["spec"]["behavior"] == behavior
    assert completion.warnings == warnings


@pytest.mark.parametrize(("spec", "want"), ADVISED.values(), ids=ADVISED.keys())
def test_probably_unintended_values_cause_warnings(spec: Json, want: list[str]) -> None:
    """They are valid; usual values cause no warning."""
    assert validate(AutoscalingPolicy, {"spec": spec}) == []
    assert policy_advice(spec, ("spec",)) == want


def test_warnings_about_an_embedded_policy_begin_with_its_path() -> None:
    """Models contain policies in deep places; each warning still has at most 120 characters."""
    worst = {
        "tolerancePercent": 100,
        "metrics": [METRIC | {"metricName": "a b"}],
        "behavior": {
            "scaleUp": {
                "stablePolicy": {"period": "1s", "stabilizationWindow": "1s", "instances": 0, "percent": 0},
                "panicPolicy": {"period": "5s", "percent": 0, "panicModeHold": "0s"},
            },
            "scaleDown": {"period": "0s"},
        },
    }

    advice = policy_advice(worst, ("spec", "backends", 99, "autoscalingPolicy"))

    assert all(text.startswith("spec.backends[99].autoscalingPolicy.") for text in advice)
    assert max(map(len, advice)) <= 120


@given(spec=SPECS)
def test_defaulting_twice_changes_nothing(spec: Json) -> None:
    """A policy with its defaults is complete and valid, and no panic policy is added."""
    whole = effective_policy(spec)

    assert validate(AutoscalingPolicy, {"spec": whole}) == []
    assert complete(VERSION, {"spec": copy.deepcopy(whole)}).additions == []
    assert "panicPolicy" not in whole["behavior"]["scaleUp"] or "panicPolicy" in spec["behavior"]["scaleUp"]

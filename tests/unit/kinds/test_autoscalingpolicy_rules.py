"""What a policy may say, what is filled in where it says nothing, and what is hardly meant."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY, effective_policy
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicy
from apiserver.kinds.kthena.autoscalingpolicy_advice import policy_advice
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
    """Return a policy spec whose one metric is changed."""
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
    "the smallest target value that is kept": metric(targetValue="1n"),
    "the largest target value that is kept": metric(targetValue="9223372036854775807"),
    "no tolerance": policy(tolerancePercent=0),
    "full tolerance": policy(tolerancePercent=100),
    "half an hour": down(period="30m", stabilizationWindow="0.5h"),
    "no time at all": down(period="0", stabilizationWindow="0s"),
    "panic with nothing but a period": up(panicPolicy={"period": "1m"}),
    "nothing in every block": policy(behavior={"scaleUp": {"stablePolicy": {}}, "scaleDown": {}}),
    "limits of 0": down(instances=0, percent=0, selectPolicy="And"),
    "limits at their most": down(percent=1000, instances=10**9),
}

DOWN_AT, UP_AT = "spec.behavior.scaleDown", "spec.behavior.scaleUp.stablePolicy"
PANIC_AT = "spec.behavior.scaleUp.panicPolicy"
KEPT = "must be between 1n and 9223372036854775807"
POSITIVE = "must be a quantity greater than 0, such as 2, 500m or 80Gi"
TIME = "must be a length of time such as 15s, 1m30s or 100ms"
HALF_HOUR = "must be between 0s and 30m"

REFUSED = {
    "no metrics": ({}, ["spec.metrics: Required value"]),
    "an empty list of metrics": (
        policy(metrics=[]),
        ["spec.metrics: Invalid value: []: must have at least 1 item"],
    ),
    "a metric without a name": (
        metric(metricName=""),
        ['spec.metrics[0].metricName: Invalid value: "": must be at least 1 character long'],
    ),
    "a metric with nothing": (
        policy(metrics=[{}]),
        ["spec.metrics[0].metricName: Required value", "spec.metrics[0].targetValue: Required value"],
    ),
    "one metric twice": (
        policy(metrics=[METRIC, METRIC | {"targetValue": 5}]),
        ['spec.metrics[1]: Duplicate value: {"metricName":"vllm:num_requests_waiting"}'],
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
    "a target too fine to keep": (
        metric(targetValue="0.1n"),
        [f'spec.metrics[0].targetValue: Invalid value: "0.1n": {KEPT}'],
    ),
    "a target too large to keep": (
        metric(targetValue="10E"),
        [f'spec.metrics[0].targetValue: Invalid value: "10E": {KEPT}'],
    ),
    "a target beyond counting": (
        metric(targetValue="1e9999"),
        [f'spec.metrics[0].targetValue: Invalid value: "1e9999": {KEPT}'],
    ),
    "a target that is a list": (
        metric(targetValue=[4]),
        ["spec.metrics[0].targetValue: Invalid value: [4]: must be an integer or a string"],
    ),
    "more tolerance than all": (
        policy(tolerancePercent=101),
        ["spec.tolerancePercent: Invalid value: 101: must be less than or equal to 100"],
    ),
    "longer than half an hour": (
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
    "a choice in lower case": (
        down(selectPolicy="or"),
        [
            'spec.behavior.scaleDown.selectPolicy: Unsupported value: "or": supported values: "Or", "And"',
        ],
    ),
    "panic without a period": (
        up(panicPolicy={}),
        ["spec.behavior.scaleUp.panicPolicy.period: Required value"],
    ),
    "panic out of every bound": (
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
    "nothing about scaling up": (
        down(stabilizationWindow="1m"),
        {"scaleUp": {"stablePolicy": UP}, "scaleDown": STABLE | {"stabilizationWindow": "1m"}},
        [f"{WARNED}0s for scaleUp"],
    ),
    "panic alone": (
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
    "nothing but a metric": (policy(), []),
    "all defaults": (policy(behavior={"scaleUp": {"stablePolicy": UP}, "scaleDown": DOWN}), []),
    "panic with its defaults": (up(panicPolicy=PANIC), []),
    "instances alone": (down(instances=2, percent=0), []),
    "percent alone": (up(stablePolicy={"instances": 0}), []),
    "a metric that no page can hold": (
        metric(metricName="queue length"),
        ["spec.metrics[0].metricName: not a Prometheus metric name; no pod can expose it"],
    ),
    "full tolerance": (
        policy(tolerancePercent=100),
        ["spec.tolerancePercent: at 100, nothing is scaled down except to 0"],
    ),
    "no period": (down(period="0s", percent=0), [f"{DOWN_AT}: period 0s lifts both limits"]),
    "a short period": (up(stablePolicy={"period": "14s"}), [f"{UP_AT}: period {INTERVAL}"]),
    "a short window": (
        down(stabilizationWindow="1s"),
        [f"{DOWN_AT}: stabilizationWindow {INTERVAL}"],
    ),
    "And with no instances": (
        down(selectPolicy="And", instances=0),
        [f"{DOWN_AT}: And with a limit of 0 never scales down"],
    ),
    "And with no percent": (
        up(stablePolicy={"selectPolicy": "And", "percent": 0}),
        [f"{UP_AT}: And with a limit of 0 never scales up"],
    ),
    "neither instances nor percent": (
        up(stablePolicy={"instances": 0, "percent": 0}),
        [f"{UP_AT}: instances 0 and percent 0 never scale up"],
    ),
    "panic without limit": (
        up(panicPolicy=PANIC | {"period": "0s"}),
        [f"{PANIC_AT}: period 0s lifts the limit"],
    ),
    "panic that stands still": (
        up(panicPolicy=PANIC | {"percent": 0}),
        [f"{PANIC_AT}: percent 0 never scales up while panic lasts"],
    ),
    "panic slower than calm": (
        up(panicPolicy=PANIC | {"percent": 50}, stablePolicy=UP),
        [f"{PANIC_AT}: slower than stablePolicy, in percent and period"],
    ),
    "calm without limit beside panic with one": (
        up(panicPolicy=PANIC, stablePolicy={"period": "0s"}),
        [
            f"{UP_AT}: period 0s lifts both limits",
            f"{PANIC_AT}: slower than stablePolicy, in percent and period",
        ],
    ),
    "a threshold within tolerance": (
        up(panicPolicy=PANIC | {"panicThresholdPercent": 110}),
        [f"{PANIC_AT}: with tolerancePercent 10, every scale-up is a panic"],
    ),
    "panic that ends at once": (
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
def test_what_makes_sense_is_accepted(spec: Json) -> None:
    """Bounds are part of what they bound."""
    assert validate(AutoscalingPolicy, {"spec": spec}) == []


@pytest.mark.parametrize(("spec", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_what_makes_none_is_refused_field_by_field(spec: Json, want: list[str]) -> None:
    """Each wrong field has its own error."""
    assert [str(error) for error in validate(AutoscalingPolicy, {"spec": spec})] == want


@pytest.mark.parametrize(("spec", "behavior", "warnings"), FILLED.values(), ids=FILLED.keys())
def test_what_is_left_out_is_filled_in_with_one_warning(
    spec: Json, behavior: Json, warnings: list[str]
) -> None:
    """One set of defaults, however much is left out; what is there stays."""
    value = {"spec": copy.deepcopy(spec)}

    completion = complete(VERSION, value)

    assert value["spec"]["behavior"] == behavior
    assert completion.warnings == warnings


@pytest.mark.parametrize(("spec", "want"), ADVISED.values(), ids=ADVISED.keys())
def test_what_is_hardly_meant_is_told(spec: Json, want: list[str]) -> None:
    """Legal, but worth a warning; what is usual is worth none."""
    assert validate(AutoscalingPolicy, {"spec": spec}) == []
    assert policy_advice(spec, ("spec",)) == want


def test_advice_names_the_field_wherever_the_spec_stands() -> None:
    """A model holds policies in place, deep inside, and each sentence still fits a terminal."""
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
def test_filling_in_twice_changes_nothing(spec: Json) -> None:
    """What was filled in is complete, valid, and no longer filled in."""
    whole = effective_policy(spec)

    assert validate(AutoscalingPolicy, {"spec": whole}) == []
    assert complete(VERSION, {"spec": copy.deepcopy(whole)}).additions == []
    assert "panicPolicy" not in whole["behavior"]["scaleUp"] or "panicPolicy" in spec["behavior"]["scaleUp"]

"""Lengths and rates of a model's requests: means, forecasts, and those of pods that share requests."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gathering import A100, gathered, placed
from support.manifests import deployment, variant
from support.sizing_cycles import TARGETS, Watch, interval, report
from support.sizing_cycles import variant as sized_variant

from controller.observe.policies import Policies, ServiceClass
from controller.planning.load import LimitingTarget, ModelLoad
from controller.sizing.arrivals import MEAN_TICKS, SPREAD_TICKS, forecast
from controller.sizing.demand import joint_load
from controller.sizing.lengths import Lengths, lengths_of
from controller.sizing.records import LengthCounts, Targets, VariantFacts
from controller.sizing.sizing import SizingResult

FORMER = Lengths(prompt=500, computed=500, output=300)


def counts(*, begun: float, finished: float, ended: float, tokens: float) -> LengthCounts:
    """Return counts of requests with prompts of 1000 tokens, and of the tokens that they generated."""
    return LengthCounts(
        begun=begun,
        prompt_tokens=1000 * begun,
        examined_prompt_tokens=1000 * finished,
        computed_prompt_tokens=1000 * finished,
        generation_tokens=tokens,
        finished=finished,
        ended=ended,
    )


def test_the_mean_answer_is_tokens_per_finished_request() -> None:
    """Requests with a prompt in progress have not ended."""
    found = lengths_of(counts(begun=60, finished=60, ended=55, tokens=12_000), FORMER)

    assert found is not None
    assert (found.output, found.computed) == (200, 1000)


@pytest.mark.parametrize("finished", [30, 90])
def test_the_computed_share_is_that_of_finished_requests(finished: float) -> None:
    """Those that began in the same time can be more, as in a jump of the load, or fewer, as after one."""
    some = counts(begun=60, finished=finished, ended=60, tokens=9_000)
    half = replace(some, computed_prompt_tokens=500 * finished)

    found = lengths_of(half, FORMER)

    assert found is not None
    assert (found.prompt, found.computed) == (1000, 500)


@pytest.mark.parametrize("ended", [0, -3])
def test_the_former_lengths_apply_until_a_request_has_ended(ended: float) -> None:
    """Requests whose answers take minutes have all begun and none has ended."""
    some = replace(counts(begun=40, finished=0, ended=ended, tokens=9_000), computed_prompt_tokens=0)

    found = lengths_of(some, FORMER)

    assert found is not None
    assert (found.output, found.computed) == (300, 1000)
    assert lengths_of(some, None) is None


def test_prompts_that_were_all_transferred_from_elsewhere_cost_a_token() -> None:
    """This is the case in the decoding pods of a disaggregated engine."""
    transferred = replace(counts(begun=60, finished=60, ended=60, tokens=12_000), computed_prompt_tokens=0.0)

    found = lengths_of(transferred, FORMER)

    assert found is not None
    assert (found.prompt, found.computed) == (1000, 1)


EXAMPLES = {
    "a constant load has no bound above it": ([60.0] * 40, 60.0, 60.0),
    "noise adds its spread to the mean": ([58.0, 62.0] * 20, 60.0, 62.886),
    "the forecast of a rise is ahead of it by its spread, not by its slope": (
        [40.0 + number for number in range(40)],
        78.0,
        92.154,
    ),
    "one high rate is not yet a jump": ([30.0] * 39 + [90.0], 37.5, 51.015),
    "two high rates are one": ([30.0] * 38 + [90.0, 92.0], 90.0, 90.0),
    "a load that has ended is no deviation from the present one": ([90.0] * 20 + [30.0] * 20, 30.0, 30.0),
    "a single rate": ([7.0], 7.0, 7.0),
}

HISTORIES = st.lists(st.floats(0, 1e4), min_size=1, max_size=60)


@pytest.mark.parametrize("name", EXAMPLES)
def test_forecasts_equal_those_of_worked_examples(name: str) -> None:
    """The present rate is the mean of eight values, or the lower one of the last two if that is higher."""
    rates, now, upper = EXAMPLES[name]

    found = forecast(rates)

    assert (found.now, round(found.upper, 3)) == (now, upper)


def test_a_forecast_needs_a_rate() -> None:
    """No load is never zero load."""
    with pytest.raises(ValueError, match="at least one rate"):
        forecast([])


@given(HISTORIES)
def test_the_bound_is_never_below_the_present_rate(rates: list[float]) -> None:
    """The present rate is never above the highest one."""
    found = forecast(rates)

    assert found.upper >= found.now
    assert found.now <= max(rates) * (1 + 1e-9)


@given(HISTORIES, st.floats(0.1, 10))
def test_a_forecast_scales_with_the_load(rates: list[float], factor: float) -> None:
    """Twice the load has twice the forecast."""
    found, scaled = forecast(rates), forecast([rate * factor for rate in rates])

    assert scaled.now == pytest.approx(found.now * factor)
    assert scaled.upper == pytest.approx(found.upper * factor, abs=1e-6)


@given(HISTORIES, HISTORIES)
def test_only_recent_rates_count(old: list[float], recent: list[float]) -> None:
    """Older rates than those of the spread have no influence."""
    window = (recent * SPREAD_TICKS)[:SPREAD_TICKS]

    assert len(window) > MEAN_TICKS
    assert forecast([*old, *window]) == forecast(window)


CLASSES = Policies(
    classes={("classes", "a"): ServiceClass(name="a", priority=1, ttft_ms={"m": 500}, tpot_ms={"m": 40})}
)
TARGETS_BY_ROLE = {"prefill": (0.5, None), "decode": (None, 0.04), "both": (0.5, 0.04)}


@pytest.mark.parametrize(("role", "want"), TARGETS_BY_ROLE.items(), ids=TARGETS_BY_ROLE)
def test_each_role_has_the_target_that_it_determines(
    role: str, want: tuple[float | None, float | None]
) -> None:
    """Slow prompts are no reason for more decode pods, nor slow answers for more prefill pods."""
    workload = placed(deployment("chat", product=A100, accelerators=1))
    workload["spec"]["template"]["metadata"]["labels"]["llm-d.ai/role"] = role
    value = placed(variant("chat", modelID="m", sloClassRef={"name": "classes", "key": "a"}))
    seen = gathered(value, deployments=(workload,), policies=CLASSES)
    facts, (planned,) = seen.observed["ns", "chat"].facts, seen.snapshot.variants

    assert (facts.targets.ttft_seconds, facts.targets.itl_seconds) == want
    assert facts.computes_prompts is (role != "decode")
    assert (planned.role, planned.pair) == (("", "") if role == "both" else (role, "m"))


def sized(prefill_rate: float, decode_rate: float) -> SizingResult:
    """Return the result of some cycles with these requests per second on one engine of each role.

    Engines of the decode role count the tokens of prompts, too, as releases do that don't know better.
    """
    variants = (
        sized_variant("prefill", ready=1, model_id="m (prefill)", role="prefill", pair="m"),
        sized_variant("decode", ready=1, model_id="m (decode)", role="decode", pair="m"),
    )
    facts = {
        ("llm", "prefill"): VariantFacts(targets=Targets(ttft_seconds=2.0)),
        ("llm", "decode"): VariantFacts(
            targets=Targets(itl_seconds=TARGETS.itl_seconds), computes_prompts=False
        ),
    }
    watch, result = Watch(variants=variants, facts=facts), None
    for _ in range(30):
        result = watch.see(
            {
                "prefill-0": report(
                    interval(prefill_rate, output=1.0, inter_tokens=0.0, inter_token_seconds=0.0)
                ),
                "decode-0": report(interval(decode_rate, prompt=1000.0)),
            }
        )
    assert result is not None
    return result


def test_both_roles_are_sized_for_the_requests_of_the_model() -> None:
    """If prefill pods are too few, fewer requests reach the decode pods, which must not shrink for it."""
    loads = {load.model_id: load for load in sized(20.0, 8.0).snapshot.loads}

    assert loads["m (prefill)"].requests_per_second == pytest.approx(20.0)
    assert loads["m (decode)"].requests_per_second == pytest.approx(20.0)
    assert loads["m (decode)"].required_requests_per_second == pytest.approx(20.0)


def test_the_capacity_of_each_role_is_limited_by_its_target() -> None:
    """Prompts cost decode pods nothing, whatever their engines count."""
    capacities = {item.name: item.capacity for item in sized(20.0, 20.0).snapshot.variants}
    prefill, decode = capacities["prefill"], capacities["decode"]

    assert prefill is not None
    assert decode is not None
    assert decode.limits[0].target is LimitingTarget.ITL
    assert prefill.limits[0].target is not LimitingTarget.ITL


def test_a_load_of_which_one_role_does_not_know_the_past_removes_nothing() -> None:
    """The other role may have needed more."""
    known = ModelLoad(
        namespace="llm",
        model_id="a",
        requests_per_second=2.0,
        upper_requests_per_second=3.0,
        required_requests_per_second=3.0,
        releasable_requests_per_second=4.0,
    )
    new = ModelLoad(
        namespace="llm",
        model_id="b",
        requests_per_second=5.0,
        upper_requests_per_second=5.0,
        required_requests_per_second=5.0,
        is_growing=True,
    )
    joint = joint_load(known, [known, new])

    assert (joint.model_id, joint.requests_per_second, joint.required_requests_per_second) == ("a", 5.0, 5.0)
    assert joint.releasable_requests_per_second is None
    assert joint.is_growing

"""Prefill and decode: each role is sized by what it does, for the requests that need both."""

from __future__ import annotations

import pytest
from support.gathering import A100, gathered, placed
from support.manifests import deployment, variant
from support.sizing_cycles import TARGETS, Watch, interval, report
from support.sizing_cycles import variant as sized_variant

from controller.observe.policies import Policies, ServiceClass
from controller.planning.load import LimitingTarget, ModelLoad
from controller.sizing.demand import joint_load
from controller.sizing.records import Targets, VariantFacts
from controller.sizing.sizing import SizingResult

CLASSES = Policies(
    classes={("classes", "a"): ServiceClass(name="a", priority=1, ttft_ms={"m": 500}, tpot_ms={"m": 40})}
)
TARGETS_BY_ROLE = {
    "prefill": (0.5, None),
    "decode": (None, 0.04),
    "both": (0.5, 0.04),
}


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

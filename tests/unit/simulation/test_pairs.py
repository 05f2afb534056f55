"""Engines in pairs: one computes prompts, the other generates answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from controller.simulation.batch import CompletedRequest
from controller.simulation.fleet import Fleet
from controller.simulation.outcome import PolicyOutcome
from controller.simulation.policies import ConstantPolicy, Policy, chosen_variants
from controller.simulation.profile import DECODE, PREFILL, EngineProfile
from controller.simulation.reconciler import ReconciledPolicy
from controller.simulation.run import play, simulate
from controller.simulation.scenario import NodeGroup, Scenario, VariantSetup
from controller.simulation.server import Server
from controller.simulation.workload import Curve, DrawnArrivals, Request, load_trace

L40S = EngineProfile(model_id="m", alpha_ms=24, beta_ms=0.15, gamma_ms=0, delta_ms=0.1, num_gpu_blocks=24_000)
PER_SECOND = 16.0


def request(number: int, *, prompt: int = 1000, output: int = 100) -> Request:
    """Return one of ten requests per second."""
    return Request(request_id=number, arrival_us=number * 100_000, prompt_tokens=prompt, output_tokens=output)


def served(requests: list[Request], *, leaves: bool = False) -> tuple[list[CompletedRequest], Fleet]:
    """Serve requests by two servers of each role, of which one decode server leaves if asked."""
    fleet = Fleet({"m": iter(requests)}, pairs={"m"})
    for role in (PREFILL, DECODE):
        for number in range(2):
            fleet.join(f"{role}{number}", Server(replace(L40S, role=role)), now_us=0)
    if leaves:
        fleet.leave(f"{DECODE}0", model_id="m", now_us=2_000_000)
    fleet.advance(10**12)
    return fleet.finished["m"], fleet


def test_every_request_is_finished_once_with_its_own_lengths() -> None:
    """Also those of a single token, and those whose second server leaves."""
    requests = [request(number, output=1 + number % 60) for number in range(100)]

    finished, fleet = served(requests, leaves=True)

    assert sorted((done.request for done in finished), key=lambda item: item.request_id) == requests
    assert all(done.request.arrival_us < done.first_token_us <= done.finish_us for done in finished)
    assert fleet.routers["m"].unfinished == 0


def test_prompts_do_not_delay_answers() -> None:
    """A long prompt stops the answers of engines that do both, and not those of a pair."""
    requests = [request(number, prompt=6000 if number % 10 == 0 else 100) for number in range(100)]
    alone = Fleet({"m": iter(requests)})
    for number in range(4):
        alone.join(f"e{number}", Server(L40S), now_us=0)
    alone.advance(10**12)

    pairs, _ = served(requests)

    slowest = max(done.inter_token_latency_seconds for done in pairs)
    assert slowest < 0.9 * max(done.inter_token_latency_seconds for done in alone.finished["m"])


def scenario_of_pairs(scenario: Scenario) -> Scenario:
    """Return a scenario with variants of two roles, and a load that needs several replicas of each."""
    variants = tuple(
        VariantSetup(
            name=role,
            profile=replace(L40S, role=role),
            accelerator="L40S",
            price_per_hour=100,
            start_up_seconds=60,
            min_replicas=1,
        )
        for role in (PREFILL, DECODE)
    )
    curve = Curve(shape="constant", high=PER_SECOND)
    model = replace(
        scenario.models[0], workload=DrawnArrivals(curve=curve, lengths=load_trace("azure-llm-2023-conv"))
    )
    return replace(
        scenario,
        models=(replace(model, targets=replace(model.targets, ttft_seconds=3.0, itl_seconds=0.09)),),
        variants=variants,
        nodes=(NodeGroup(accelerator="L40S", accelerators=40, count=1),),
        warm_up_seconds=300.0,
        duration_seconds=150.0,
    )


def test_a_lower_bound_for_engines_with_a_role_is_refused(scenario: Scenario) -> None:
    """It knows no roles: its result would be wrong."""
    with pytest.raises(ValueError, match="policy lower-bound: not for engines with a role; use stowplan"):
        simulate(scenario_of_pairs(scenario), "lower-bound")


def test_an_autoscaler_on_concurrency_scales_each_role(scenario: Scenario) -> None:
    """Of several variants of a role, the first one, or the one that is named."""
    pairs = scenario_of_pairs(scenario)
    other = replace(pairs.variants[1], name="other")
    both = replace(pairs, variants=(*pairs.variants, other))

    assert chosen_variants(both) == {PREFILL, DECODE}
    assert chosen_variants(both, "other") == {PREFILL, "other"}


def outcome_of(policy: Policy, scenario: Scenario) -> PolicyOutcome:
    """Return the outcome of a policy."""
    return asyncio.run(play(scenario, policy))


def test_each_role_gets_the_replicas_that_it_needs(scenario: Scenario) -> None:
    """One of each cannot serve the load, and prefill needs more replicas than decode."""
    pairs = scenario_of_pairs(scenario)
    policy = ReconciledPolicy(pairs)
    outcome = outcome_of(policy, pairs)
    last = {item.name: item.spec for item in outcome.points[-1].variants}

    assert outcome.missed < 0.05
    assert last[PREFILL] > last[DECODE] > 1
    fixed = ConstantPolicy(replicas=last[PREFILL], scaled=frozenset({PREFILL, DECODE}))
    assert outcome.cost < outcome_of(fixed, pairs).cost

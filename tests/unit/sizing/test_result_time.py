"""Capacity of engines whose requests have one result, such as those of embedding models."""

from __future__ import annotations

import functools
import random
from dataclasses import replace

import pytest

from controller.engines.readings import reading_of
from controller.engines.records import EngineRecords
from controller.planning.load import CapacitySource, LimitingTarget
from controller.simulation.profile import EngineProfile
from controller.simulation.reconciler import series_of
from controller.simulation.server import Server
from controller.simulation.workload import Request
from controller.sizing.lengths import Lengths, lengths_of, total
from controller.sizing.performance import Performance, capacity_of, performance
from controller.sizing.records import (
    EngineInterval,
    EngineReport,
    LengthCounts,
    StepParameters,
    Targets,
    VariantFacts,
)
from controller.sizing.step_time import result_time

EMBEDDING = EngineProfile(
    model_id="m", alpha_ms=8, beta_ms=0.1, gamma_ms=4, delta_ms=0.02, num_gpu_blocks=20_000
)
"""A prompt of 500 tokens takes 14 ms alone, and 10 ms in a large batch: 71 to 100 requests per second."""

TARGETS = Targets(ttft_seconds=0.1, itl_seconds=0.02)
KEY = ("ns", "p")


@functools.cache
def served(requests_per_second: float, *, tokens: int = 1, cycles: int = 30) -> tuple[Performance, Lengths]:
    """Return what is learned from an engine with this load, and the lengths of the requests."""
    chance, server, records = random.Random(1), Server(EMBEDDING), EngineRecords()
    arrival_seconds, number, memory = 0.0, 0, None
    lengths: Lengths | None = None
    counts: list[LengthCounts] = []
    for cycle in range(1, cycles + 1):
        now_seconds = 15.0 * cycle
        while arrival_seconds < now_seconds:
            now_us = int(arrival_seconds * 1e6)
            prompt = max(1, int(chance.expovariate(1 / 500)))
            server.advance(now_us)
            server.submit(
                Request(request_id=number, arrival_us=now_us, prompt_tokens=prompt, output_tokens=tokens),
                now_us=now_us,
            )
            number += 1
            arrival_seconds += chance.expovariate(requests_per_second)
        server.advance(int(now_seconds * 1e6))
        reading = reading_of(series_of(server), time_seconds=now_seconds)
        records = records.update({KEY: reading}, [KEY], scraped_keys=[KEY], now_seconds=now_seconds)
        report = records.reports(now_seconds=now_seconds)[KEY]
        counts += [report.interval] if report.interval else []
        lengths = lengths_of(total(counts), lengths)
        found = performance(VariantFacts(), memory, [report], lengths=lengths, utilization=0.0)
        memory = found.memory
    assert lengths is not None
    return found, lengths


@pytest.mark.parametrize("requests_per_second", [5, 30, 60, 85])
def test_the_capacity_is_at_least_what_an_engine_serves_and_at_most_what_it_can(
    requests_per_second: float,
) -> None:
    """It is learned at any load, and rises with it."""
    found, lengths = served(requests_per_second)

    size = capacity_of(found, VariantFacts(), lengths)

    assert size is not None
    assert max(65, requests_per_second) < size.full_rate < 100
    assert (size.capacity.source, found.is_new) == (CapacitySource.LEARNED, False)


def test_a_target_between_tokens_is_no_limit_of_requests_with_one_result() -> None:
    """The time to first token is that of the whole request."""
    found, lengths = served(60)

    size = capacity_of(found, VariantFacts(targets=TARGETS), lengths)

    assert size is not None
    assert [item.target for item in size.capacity.limits] == [LimitingTarget.TTFT, LimitingTarget.BATCH]
    assert not size.capacity.unreachable


def test_learning_continues_from_the_status() -> None:
    """After a restart, the capacity is the same before any response."""
    found, lengths = served(60)

    facts = VariantFacts(learned=found.learned)
    again = performance(facts, None, [], lengths=None, utilization=0.0)

    first, second = (capacity_of(item, VariantFacts(), lengths) for item in (found, again))
    assert first is not None
    assert second is not None
    assert second.full_rate == pytest.approx(first.full_rate)
    assert second.capacity.source is CapacitySource.LAST_KNOWN


def test_requests_with_several_tokens_have_step_times() -> None:
    """Step times are learned from the times between tokens."""
    found, _ = served(5, tokens=20)

    assert found.memory.result is None
    assert found.parameters is not None


KNOWN = StepParameters(alpha_ms=0.1, beta_ms=0.0, delta_ms=0.0198)
ONE = Lengths(prompt=500, computed=500, output=1)
INTERVAL = EngineInterval(
    seconds=10.0,
    first_tokens=100.0,
    first_token_seconds=5.0,
    waiting_change=0.0,
    begun=100.0,
    prompt_tokens=50_000.0,
    examined_prompt_tokens=0.0,
    computed_prompt_tokens=0.0,
    generation_tokens=100.0,
    finished=100.0,
    ended=100.0,
    inter_token_seconds=0.0,
    inter_tokens=0.0,
)
UNCHANGED = {
    "no request": replace(INTERVAL, first_tokens=0.0, first_token_seconds=0.0),
    "a time of 0": replace(INTERVAL, first_token_seconds=0.0),
    "an interval with several tokens per request": replace(INTERVAL, inter_tokens=5.0),
}


@pytest.mark.parametrize("interval", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_an_interval_without_results_changes_nothing(interval: EngineInterval) -> None:
    """What was learned before is kept."""
    assert result_time(KNOWN, [(report(), interval)], lengths=ONE) is KNOWN


def report(engines: int = 1) -> EngineReport:
    """Return a report of a replica with some engines."""
    return EngineReport(age_seconds=0.0, waiting=0, running=0, kv_tokens=None, engines=engines)


def test_the_time_follows_from_that_of_a_request_and_the_requests_present() -> None:
    """100 requests of 50 ms in 10 s are half a request at any time, or a quarter in each of two engines."""
    for engines, want in ((1, 50 / 1.5), (2, 50 / 1.25)):
        found = result_time(None, [(report(engines), INTERVAL)], lengths=ONE)
        assert found is not None
        assert found.alpha_ms + found.delta_ms * 500 == pytest.approx(want)


def test_lengths_of_several_tokens_or_none_end_what_was_learned() -> None:
    """It would be wrong for them."""
    for lengths in (None, replace(ONE, output=1.5)):
        assert result_time(KNOWN, [(report(), INTERVAL)], lengths=lengths) is None

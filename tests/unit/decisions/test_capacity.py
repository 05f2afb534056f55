"""The capacity of a replica, by simulation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.simulation.scenario import ScenarioModel
from controller.simulation.workload import TraceEntry, TraceReplay
from controller.sizing.records import Targets
from hack.decisions import fleet
from hack.decisions.capacity import capacity


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_capacity_is_close_below_the_rate_that_an_engine_can_compute(ranks: int) -> None:
    """A prompt takes 500 ms, so a rank serves less than 2 requests/s, and waits stay below 10 s up to 1.6."""
    lengths = (TraceEntry(offset_ms=0, prompt_tokens=1000, output_tokens=1),)
    variant = fleet.pair()[0]
    variant = replace(variant, profile=replace(variant.profile, delta_ms=0.5, ranks=ranks))
    targets = Targets(ttft_seconds=10.0)
    model = ScenarioModel(model_id=fleet.MODEL, workload=TraceReplay(trace=lengths), targets=targets)

    assert 1.6 * ranks <= capacity(variant, model, lengths) < 2.0 * ranks

"""Fixture of a small scenario: one model, two variants, ten requests per second."""

from __future__ import annotations

import pytest

from controller.simulation.profile import EngineProfile
from controller.simulation.scenario import NodeGroup, Scenario, ScenarioModel, VariantSetup
from controller.simulation.workload import Curve, DrawnArrivals, load_trace
from controller.sizing.records import Targets

H100 = EngineProfile(model_id="m", alpha_ms=8, beta_ms=0.05, gamma_ms=0, delta_ms=0.03, num_gpu_blocks=24_000)
L40S = EngineProfile(model_id="m", alpha_ms=18, beta_ms=0.12, gamma_ms=0, delta_ms=0.11, num_gpu_blocks=9000)


@pytest.fixture
def scenario() -> Scenario:
    """Return a cold-start scenario with ten requests per second for ten minutes."""
    lengths = load_trace("azure-llm-2023-conv")
    return Scenario(
        name="small",
        models=(
            ScenarioModel(
                model_id="m",
                workload=DrawnArrivals(curve=Curve(shape="constant", high=10), lengths=lengths),
                targets=Targets(ttft_seconds=2.0, itl_seconds=0.08),
            ),
        ),
        variants=(
            VariantSetup(
                name="h100", profile=H100, accelerator="H100", price_per_hour=100, start_up_seconds=60
            ),
            VariantSetup(
                name="l40s", profile=L40S, accelerator="L40S", price_per_hour=32, start_up_seconds=60
            ),
        ),
        nodes=(
            NodeGroup(accelerator="H100", accelerators=4, count=2),
            NodeGroup(accelerator="L40S", accelerators=2, count=2),
        ),
        duration_seconds=600.0,
        warm_up_seconds=0.0,
    )

"""Statements in the comments of the samples, compared with their simulation."""

from __future__ import annotations

import re
from pathlib import Path

from controller.closedloop.named import simulate
from controller.commands.check.documents import Source
from controller.commands.simulate.scenario_file import read_scenario

SURGE = Path(__file__).resolve().parents[3] / "manifests" / "samples" / "simulate" / "surge.yaml"
STEP_SECONDS = 600.0


def test_the_surge_sample_misses_the_share_stated_in_its_comment() -> None:
    """TTFT exceeds its target only within 150 s after the step, while replicas start and queues drain."""
    scenario = read_scenario(Source(name=str(SURGE), data=SURGE.read_bytes())).scenario
    assert scenario is not None
    outcome = simulate(scenario, "stowplan")

    said = re.search(r"(\d+\.\d) % of the requests miss", SURGE.read_text())
    assert said is not None
    assert f"{100 * outcome.missed:.1f}" == said[1]
    (targets,) = [model.targets for model in scenario.models]
    assert targets.ttft_seconds is not None
    late = [
        point.seconds
        for point in outcome.points
        for seen in point.models
        if point.seconds >= 0 and (seen.ttft_p90_seconds or 0.0) > targets.ttft_seconds
    ]
    assert min(late) > STEP_SECONDS
    assert max(late) <= STEP_SECONDS + 150

"""The hours before the start of `stowplan dashboard`, from a real Prometheus."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.engine_history import Past, prometheus_with

from controller.commands.dashboard.history import ModelSample, read_past
from controller.engines.prometheus_history import PrometheusHistory
from controller.engines.requests import NO_CREDENTIALS

pytestmark = pytest.mark.controlplane


async def test_the_hours_before_come_from_prometheus(tmp_path: Path) -> None:
    """Variants of a model are added up, and whoever is not shown is left out."""
    past = Past()
    for page in range(9):
        past.add(
            "stowplan-controller-1", [_scraped(page)], namespace="stowplan-system", until_seconds=15.0 * page
        )
    models = {("chat", "a"): ("chat", "m"), ("chat", "b"): ("chat", "m")}
    with prometheus_with(past, tmp_path) as url:
        async with PrometheusHistory(url, credentials=NO_CREDENTIALS) as source:
            now = datetime.fromtimestamp(past.ended_seconds + 60, UTC)
            history = await read_past(source, models, now=now)

    samples = history["chat", "m"]
    assert {*history} == {("chat", "m")}
    assert len(samples) >= 2
    assert samples[-1] == ModelSample(
        time=samples[-1].time,
        requests_per_second=4.0,
        ready=3,
        granted=5,
        unmet=0.25,
        within_ttft=0.97,
        within_itl=None,
    )


def _scraped(page: int) -> str:
    """Return metrics of the controller; the load grows back in time."""
    model = 'exported_namespace="chat",model_id="m",priority="1"'
    of_variants = "".join(
        f'{name}{{exported_namespace="chat",variant_name="{variant_name}"}} {value}\n'
        for name, values in (("stowplan_ready_replicas", (1, 2)), ("stowplan_desired_replicas", (2, 3)))
        for variant_name, value in zip("ab", values, strict=True)
    )
    return (
        f"stowplan_demand_requests_per_second{{{model}}} {4 + page // 4}\n"
        f'stowplan_demand_requests_per_second{{exported_namespace="chat",model_id="other"}} 9\n'
        f"stowplan_unmet_ratio{{{model}}} 0.25\nstowplan_ttft_attained_ratio{{{model}}} 0.97\n"
        f"{of_variants}vllm:num_requests_running 0\n"
    )

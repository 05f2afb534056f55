"""Parts of the demo's history: a variant, an observation of two models, and results of requests."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from controller.simulation.batch import CompletedRequest
from controller.simulation.scenario import ScenarioModel
from controller.simulation.workload import Request, TraceReplay
from controller.sizing.records import Targets
from hack.demo.observation import ClientView, DemoObservation, ModelView, ServedRequests, VariantView

QUIET = ClientView(requests_per_second=1.0, ttft_p90_ms=100.0, unfinished_requests=1)


def variant(name: str, replicas: int, *, desired: int | None = None, **changes: object) -> VariantView:
    """Return a view of a variant in a steady state."""
    view = VariantView(
        name=name,
        shape="current",
        accelerator="A100",
        accelerators_per_replica=1,
        cost_per_replica=Decimal(40),
        current_replicas=replicas,
        placed_replicas=replicas,
        ready_replicas=replicas,
        desired_replicas=replicas if desired is None else desired,
        reason="Steady",
        bound_by="Demand",
        message="",
    )
    return replace(view, **changes)  # type: ignore[arg-type] # tests name the fields


def answered(*, late_at: tuple[float, ...] = (), count: int = 300) -> ServedRequests:
    """Return one request per second of the premium model; those at `late_at` miss the TTFT target."""
    model = ScenarioModel(
        model_id="big", workload=TraceReplay(trace=()), targets=Targets(ttft_seconds=1.0), priority=1
    )
    requests = [
        Request(request_id=n, arrival_us=n * 1_000_000, prompt_tokens=1, output_tokens=1)
        for n in range(count)
    ]
    done = [
        CompletedRequest(
            request=request,
            first_token_us=request.arrival_us + (3_000_000 if request.request_id in late_at else 100_000),
            finish_us=request.arrival_us + 3_000_000,
        )
        for request in requests
    ]
    return ServedRequests(model=model, requests=requests, finished=done)


def seen(
    seconds: float, premium: VariantView, freemium: VariantView, *standard: VariantView
) -> DemoObservation:
    """Return an observation of models with one variant each."""
    models = [
        ModelView(
            model_id=name,
            class_name=name,
            priority=priority,
            ttft_target_ms=1000,
            clients=QUIET,
            variants=(view,),
        )
        for name, priority, view in (
            ("big", 1, premium),
            *(("middle", 5, view) for view in standard),
            ("small", 10, freemium),
        )
    ]
    return DemoObservation(seconds=seconds, models=tuple(models), accelerators=())


def course(*rows: tuple[float, int, int]) -> list[DemoObservation]:
    """Return observations of premium with these times, replicas and decisions; freemium is steady."""
    return [
        seen(seconds, variant("big-h100", current, desired=desired), variant("small-a100", 1))
        for seconds, current, desired in rows
    ]

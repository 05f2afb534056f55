"""The results of a simulation: as one JSON document, and in words and short numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import msgspec

from apiserver.schema.json import Json
from controller.commands.simulate.engines import EngineOrigins
from controller.simulation.outcome import ModelOutcome, PolicyOutcome
from controller.simulation.scenario import Scenario, ScenarioModel, VariantSetup
from controller.sizing.capacity import duration
from controller.sizing.records import Targets

_LEAST_INTEGER: Final = 100
"""The cost from which integers have at least three digits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """One scenario under several policies, in the requested order."""

    scenario: Scenario
    outcomes: tuple[PolicyOutcome, ...]
    warnings: tuple[str, ...] = ()
    origins: tuple[EngineOrigins, ...] = ()
    """Where the numbers about exported engines are from."""

    assumed: tuple[str, ...] = ()
    """Exported workloads for which variants are assumed."""


def as_document(results: Results) -> Json:
    """Return the scenario and every outcome with its time series; shares are 0 to 1."""
    scenario = results.scenario
    return {
        "scenario": {
            "name": scenario.name,
            "duration_seconds": scenario.duration_seconds,
            "warm_up_seconds": scenario.warm_up_seconds,
            "patience_seconds": scenario.patience_seconds,
            "routing": msgspec.to_builtins(scenario.routing),
            "seed": scenario.seed,
            "models": [
                {
                    "model_id": model.model_id,
                    "priority": model.priority,
                    "targets": msgspec.to_builtins(model.targets),
                }
                for model in scenario.models
            ],
            "variants": [msgspec.to_builtins(variant) for variant in scenario.variants],
            "nodes": [msgspec.to_builtins(group) for group in scenario.nodes],
            "engines": [msgspec.to_builtins(item) for item in results.origins],
        },
        "warnings": list(results.warnings),
        "assumed": list(results.assumed),
        "outcomes": [
            {**msgspec.to_builtins(item), "reversals_per_hour": item.reversals_per_hour}
            for item in results.outcomes
        ],
    }


def summary(results: Results) -> str:
    """Return what was simulated, in one line."""
    scenario = results.scenario
    requests = results.outcomes[0].requests if results.outcomes else 0
    start = "warm" if scenario.warm_up_seconds else "cold"
    rate = requests / scenario.duration_seconds
    patience = scenario.patience_seconds
    waiting = "unlimited patience" if patience is None else f"patience {patience:g} s"
    return (
        f"{scenario.name}: {requests} requests in {clock(scenario.duration_seconds)}"
        f" ({rate:.1f}/s), {start} start, seed {scenario.seed}, {waiting}"
    )


def model_text(scenario: Scenario, model: ScenarioModel) -> str:
    """Return a model's targets and its variants, in one line."""
    ways = ", ".join(map(_way, scenario.variants_of(model.model_id)))
    return f"{model.model_id}: {_targets(model)}; {ways}"


def _way(variant: VariantSetup) -> str:
    place = f"{variant.accelerator} x{variant.accelerators_per_replica}"
    price, start_up = f"{variant.price_per_hour:g} per hour", f"starts in {variant.start_up_seconds:g} s"
    return f"{variant.name} ({place}, {price}, {start_up})"


def _targets(model: ScenarioModel) -> str:
    targets = {"TTFT": model.targets.ttft_seconds, "ITL": model.targets.itl_seconds}
    texts = [f"{name} {duration(seconds)}" for name, seconds in targets.items() if seconds is not None]
    return " and ".join(texts) or "no targets"


def engine_text(variant: VariantSetup, origins: EngineOrigins) -> str:
    """Return the numbers about an exported engine, and where each is from, in one line."""
    engine, basis = variant.profile, f": {origins.basis}" if origins.basis else ""
    times = f"alpha {engine.alpha_ms:.3g}, beta {engine.beta_ms:.3g}, delta {engine.delta_ms:.3g} ms"
    return (
        f"{variant.name}: {times} ({origins.step_times}{basis}), KV cache {engine.kv_tokens} tokens"
        f" ({origins.kv_tokens}), starts in {variant.start_up_seconds:.0f} s ({origins.start_up})"
    )


def target_warnings(scenario: Scenario) -> Iterator[str]:
    """Yield a warning for each model without latency targets."""
    for model in scenario.models:
        if model.targets == Targets():
            yield (
                f"{model.model_id} has no latency targets, so none of its requests can be late: set"
                " ttftMilliseconds and itlMilliseconds in a scenario, or slo-ttft and slo-tpot in a"
                " service class"
            )


def metric_warnings(outcomes: Iterable[PolicyOutcome]) -> Iterator[str]:
    """Yield a warning for each policy with metrics that the simulated engine does not report."""
    for outcome in outcomes:
        names = dict.fromkeys(name for decided in outcome.decided for name in decided.unreported)
        if names:
            missing = ", ".join(names)
            yield f"{outcome.policy}: the simulated engine does not report {missing}: nothing is scaled down"


def row_of(outcome: PolicyOutcome, scenario: Scenario) -> tuple[str, ...]:
    """Return a policy's cost, missed shares as `_missed_shares` lists them, latencies, and reversals.

    For the lower bound, which is not simulated, most are `-`.
    """
    cost, peaks = amount(outcome.cost), [f"{item.name} {item.peak_replicas}" for item in outcome.variants]
    if not outcome.points and not outcome.models:
        return outcome.policy, cost, percent(outcome.missed), *["-"] * 8, ", ".join(peaks)
    shares, reversals = _missed_shares(outcome, scenario.models), f"{outcome.reversals_per_hour:.1f}"
    return outcome.policy, cost, *shares, *_slowest(outcome.models), reversals, ", ".join(peaks)


def _slowest(models: Sequence[ModelOutcome]) -> tuple[str, str, str]:
    """Return each quantile of the model with the highest value."""

    def worst(values: list[float | None]) -> str:
        known = [value for value in values if value is not None]
        return duration(max(known)) if known else "-"

    return (
        worst([model.ttft_seconds.p90 for model in models]),
        worst([model.ttft_seconds.p99 for model in models]),
        worst([model.itl_seconds.p99 for model in models]),
    )


def _missed_shares(outcome: PolicyOutcome | ModelOutcome, models: Sequence[ScenarioModel]) -> tuple[str, ...]:
    """Return missed shares: all, TTFT, ITL, never finished, abandoned.

    It is `-` where no model has such a target.
    """
    has_ttft = any(model.targets.ttft_seconds is not None for model in models)
    has_itl = any(model.targets.itl_seconds is not None for model in models)
    shares = (
        (has_ttft or has_itl, outcome.missed),
        (has_ttft, outcome.missed_ttft),
        (has_itl, outcome.missed_itl),
        (True, outcome.never_finished),
        (True, outcome.abandoned),
    )
    return tuple(percent(share) if is_known else "-" for is_known, share in shares)


def model_row(outcome: PolicyOutcome, model: ModelOutcome, scenario: Scenario) -> tuple[str, ...]:
    """Return the row of one model under a policy, with its number of requests."""
    _, ttft, itl = _slowest([model])
    return (
        outcome.policy,
        model.model_id,
        str(model.requests),
        *_missed_shares(model, [item for item in scenario.models if item.model_id == model.model_id]),
        ttft,
        itl,
    )


def amount(cost: float) -> str:
    """Return a cost with three significant digits, or as an integer from 100: 0.12, 1.67, 31, 1250."""
    if cost >= _LEAST_INTEGER:
        return f"{cost:.0f}"
    return f"{Decimal(f'{cost:.3g}'):f}"


def percent(share: float) -> str:
    """Return a share of 1 as `3.51%`."""
    return f"{100 * share:.2f}%"


def clock(seconds: float) -> str:
    """Return a time as `0:02:30`; one of the warm-up, which is negative, as `-0:02:30`."""
    minutes, rest = divmod(abs(round(seconds)), 60)
    return f"{'-' if round(seconds) < 0 else ''}{minutes // 60}:{minutes % 60:02}:{rest:02}"


def moment(seconds: float) -> str:
    """Return a time for the time axis, without seconds if these are zero."""
    text = clock(seconds)
    return text.removesuffix(":00") if text.count(":") > 1 and round(seconds) % 60 == 0 else text

"""The results of a simulation, independent of their presentation, and as one JSON document."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from apiserver.schema.json import Json
from controller.closedloop.outcome import PolicyOutcome
from controller.closedloop.scenario import Scenario


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """One scenario under several policies, in the requested order."""

    scenario: Scenario
    outcomes: tuple[PolicyOutcome, ...]
    warnings: tuple[str, ...] = ()


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
        },
        "warnings": list(results.warnings),
        "outcomes": [
            {**msgspec.to_builtins(item), "reversals_per_hour": item.reversals_per_hour}
            for item in results.outcomes
        ],
    }

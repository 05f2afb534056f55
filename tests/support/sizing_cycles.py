"""Cycles of sizing over engines with given loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from apiserver.kinds.identity import Key
from controller.planning.load import ModelLoad
from controller.planning.snapshot import Replica, Snapshot, Variant
from controller.sizing.memory import SizingMemory
from controller.sizing.records import (
    EngineInterval,
    EngineReport,
    SizingSettings,
    StepParameters,
    Targets,
    VariantFacts,
)
from controller.sizing.sizing import SizingResult, size_models

H100 = StepParameters(alpha_ms=8.0, beta_ms=0.05, delta_ms=0.03)
TARGETS = Targets(ttft_seconds=2.0, itl_seconds=0.08)
CYCLE_SECONDS = 15.0


def variant(name: str = "llama", *, ready: int = 2, **changes: Any) -> Variant:
    """Return a variant whose replicas are all ready."""
    pods = tuple(Replica(name=f"{name}-{number}", node="n", ready=True) for number in range(ready))
    fields: dict[str, Any] = {
        "namespace": "llm",
        "name": name,
        "model_id": "llama",
        "accelerator": "H100",
        "accelerators_per_replica": 1,
        "cost_per_replica": Decimal(100),
        "current_replicas": ready,
        "replicas": pods,
    }
    return Variant(**fields | changes)


def interval(
    rate: float,
    *,
    engine: StepParameters = H100,
    prompt: float = 1000.0,
    output: float = 200.0,
    **changes: Any,
) -> EngineInterval:
    """Return one cycle's metrics of an engine that serves a number of requests per second."""
    busy = 1 - rate * (engine.beta_ms * output + engine.delta_ms * prompt) / 1e3
    tau, count = engine.alpha_ms / 1e3 / busy, rate * CYCLE_SECONDS
    fields: dict[str, Any] = {
        "seconds": CYCLE_SECONDS,
        "first_tokens": count,
        "first_token_seconds": count * 0.1,
        "waiting_change": 0.0,
        "prompt_tokens": count * prompt,
        "computed_prompt_tokens": count * prompt,
        "examined_prompt_tokens": count * prompt,
        "generation_tokens": count * output,
        "begun": count,
        "finished": count,
        "ended": count,
        "inter_token_seconds": count * output * tau,
        "inter_tokens": count * output,
    }
    return EngineInterval(**fields | changes)


def report(found: EngineInterval | None, **changes: Any) -> EngineReport:
    """Return a recent report."""
    fields: dict[str, Any] = {"age_seconds": 1.0, "waiting": 0, "running": 1, "kv_tokens": 384_000}
    return EngineReport(**fields | {"interval": found} | changes)


@dataclass
class Watch:
    """Cycles over the same variants, with memory."""

    variants: tuple[Variant, ...]
    facts: Mapping[Key, VariantFacts] = field(default_factory=dict)
    settings: SizingSettings = SizingSettings()  # noqa: RUF009 (frozen)
    memory: SizingMemory = field(default_factory=SizingMemory)
    now: float = 100_000.0

    def see(self, reports: Mapping[str, EngineReport]) -> SizingResult:
        """Run sizing once, one cycle later; reports are by pod."""
        self.now += CYCLE_SECONDS
        snapshot = Snapshot(nodes=(), variants=self.variants, taken_seconds=self.now)
        known = {("llm", pod): item for pod, item in reports.items()}
        found = size_models(snapshot, self.facts, known, self.memory, self.settings)
        self.memory = found.memory
        return found

    def keep(self, ready: int) -> None:
        """Keep only the first pods."""
        self.variants = (variant(ready=ready),)

    def pods(self) -> Iterator[str]:
        """Yield all pods."""
        yield from (pod.name for item in self.variants for pod in item.replicas)

    def steady(self, cycles: int, each: float = 10.0, **changes: Any) -> SizingResult:
        """Run cycles in which every engine serves a number of requests per second."""
        found = [
            self.see({pod: report(interval(each, **changes)) for pod in self.pods()}) for _ in range(cycles)
        ]
        return found[-1]


def load(found: SizingResult) -> ModelLoad:
    """Return the load of the only model."""
    assert len(found.snapshot.loads) == 1
    return found.snapshot.loads[0]


def facts(**changes: Any) -> dict[Key, VariantFacts]:
    """Return the facts of the variant."""
    return {("llm", "llama"): VariantFacts(targets=TARGETS, **changes)}

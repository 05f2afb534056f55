"""A row: a load on a fleet, with its goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controller.closedloop.scenario import Model, Scenario, VariantSetup
from controller.reconcilers.variantautoscaling import CycleSettings
from controller.simulation.curve import Curve
from controller.simulation.trace import load_trace
from controller.simulation.workload import Drawn, Played, Workload
from controller.sizing.records import Targets
from hack.bench.decisions import fleet

CONVERSATIONS: Final = "azure-llm-2023-conv"
CODE: Final = "azure-llm-2023-code"
_NOISE: Final = 0.1
_SEEDS: Final = (1, 2, 3)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One load on one fleet."""

    scenario: Scenario
    is_real: bool = False
    """Whether it is real traffic, whose promise counts; no chance is involved, so one seed is enough."""

    before: tuple[float, float] | None = None
    """Cost and missed percentage of an earlier version, for rows that should not become worse."""

    most_missed: Mapping[int, float] = field(default_factory=dict)
    """Goals of shortages: the maximum missed percentage by priority; 0 for all requests together."""

    most_reversals: float = 10.0
    """The maximum of decided reversals per hour."""

    cycle_settings: CycleSettings | None = None
    """Cycle settings of Stowplan; None for the defaults."""

    scaled: tuple[str, ...] = ("h100", "l40s")
    """The variants that rivals scale, one per run; an empty name means the first variant of each model."""

    rivals_of: str = ""
    """The row whose rivals are used, because the rows only differ for Stowplan; empty for its own."""

    @property
    def name(self) -> str:
        """The name on the command line and in tables."""
        return self.scenario.name

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of a full run."""
        return _SEEDS[:1] if self.is_real else _SEEDS

    @property
    def is_short(self) -> bool:
        """Whether the nodes are too few, so that the misses of each priority count and not the cost."""
        return bool(self.most_missed)

    @property
    def promised(self) -> float:
        """Promised share of requests within their targets."""
        return self.scenario.models[0].targets.attainment

    @property
    def priorities(self) -> tuple[int, ...]:
        """The priorities of its models, the most important first."""
        return tuple(sorted({model.priority for model in self.scenario.models}))


def scenario_of(
    name: str,
    workload: Workload,
    variants: tuple[VariantSetup, ...],
    *,
    targets: Targets = fleet.TARGETS,
) -> Scenario:
    """Return an hour of a load of one model, with enough nodes."""
    model = Model(model_id=fleet.MODEL, workload=workload, targets=targets)
    return Scenario(name=name, models=(model,), variants=variants, nodes=fleet.NODES)


def recorded(trace: str, copies: int = 1) -> Workload:
    """Return a shipped trace with each request sent `copies` times, with jitter."""
    return Played(trace=load_trace(trace), copies=copies)


def drawn(curve: Curve, *, noise: float = _NOISE) -> Workload:
    """Return conversations with Poisson arrivals whose rate follows a curve, with slow noise."""
    return Drawn(curve=curve, lengths=load_trace(CONVERSATIONS), noise=noise)

"""The numbers that a person may choose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controller.planning.ranges import negative_or_endless


class UnmetUnit(StrEnum):
    """What a share of a model's demand that is not met counts for, beside others of the same priority."""

    VALUE = "value"
    """What it costs to serve it, and at least a quarter of the level's average: most value is served."""

    MODEL = "model"
    """The same for every model: most models are served."""


class Strategy(StrEnum):
    """Who decides."""

    OPTIMAL = "optimal"
    """The solver: the best plan for all models together, with its distance from the proven bound."""

    WVA_GREEDY = "wva-greedy"
    """One variant per model, by priority and then regret, as the workload-variant autoscaler allocates."""

    WVA_COST_AWARE = "wva-cost-aware"
    """From what runs: more of the best cost per capacity, less of the dearest; then a limiter."""

    KTHENA_EXPANSION = "kthena-expansion"
    """Blocks of doubling size in order of their cost, as Kthena's autoscaler expands."""


class Fallback(StrEnum):
    """What is done when no answer can be had in time, or none that can be trusted."""

    HOLD = "hold"
    """What runs stands, or what was last decided if that is more."""

    WVA_GREEDY = "wva-greedy"
    WVA_COST_AWARE = "wva-cost-aware"
    KTHENA_EXPANSION = "kthena-expansion"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Thresholds, prices and limits of planning.

    Raises ValueError when the thresholds contradict each other or a duration is none.
    """

    scale_up_threshold: float = 0.85
    """Share of the capacity that demand may take before more is wanted."""

    scale_down_boundary: float = 0.70
    """Share of the remaining capacity that demand must not exceed after a scale-down."""

    kv_cache_threshold: float = 0.80
    """Share of the KV cache that counts as capacity."""

    queue_length_threshold: int = 5
    """Waiting requests from which an engine counts as full."""

    window_length: int = 10
    """Observed capacities that are remembered per model, accelerator and output length."""

    window_expiry_cycles: int = 1440
    """Cycles without a full engine after which the remembered capacities are forgotten."""

    fresh_seconds: float = 60.0
    """Age up to which a sample is acted on in both directions."""

    held_seconds: float = 300.0
    """Age up to which a sample still counts, though nothing is scaled down on it."""

    start_price_percent: int = 10
    """Price of starting a replica, in percent of its cost per hour: no churn for pennies."""

    stop_price_percent: int = 10
    """Price of stopping a replica, in percent of its cost per hour."""

    strategy: Strategy = Strategy.OPTIMAL
    """Who decides."""

    fallback: Fallback = Fallback.HOLD
    """What is done without an answer."""

    flap_reversals: int = 0
    """How often a variant may change direction within the window before cost alone turns it no more; 0 for
    as often as it likes."""

    flap_window_seconds: float = 3600.0
    """Length of that window."""

    most_preempted: int = 10**6
    """How many replicas that their models need one plan may take from them for higher priorities."""

    unmet_unit: UnmetUnit = UnmetUnit.VALUE
    """Who goes short among models of one priority."""

    most_moves: int = 0
    """How many replicas one plan may evict to bring together what is free; with 0 it only says how many."""

    relief_solves: int = 12
    """How many changes that might help those who go short are tried, by planning again, for one plan."""

    certificate: bool = True
    """Whether the solver also says what no replica mix at all can beat, and adds mixes that it had missed."""

    thorough_seconds: float = 300.0
    """For how long after a thorough search plans of many models may leave levels at twice the distance from
    their bounds at which that one left them; 0 makes every search a thorough one."""

    deterministic_seconds: float = 1.0
    """Effort limit in CP-SAT's own reproducible unit, for up to 2,500 models on five types of nodes; for more
    of them, and where they share more places, in proportion."""

    wall_seconds: float = 20.0
    """Safety limit by the clock; a plan that hits it may differ from run to run."""

    seed: int = 1
    """Of the solver's random choices."""

    def __post_init__(self) -> None:
        """Refuse a dead band of no width, shares beyond 0..1, and durations without an end."""
        wrong = [
            f"{name}: must be greater than 0 and at most 1, was {value}"
            for name, value in (
                ("scale_up_threshold", self.scale_up_threshold),
                ("scale_down_boundary", self.scale_down_boundary),
                ("kv_cache_threshold", self.kv_cache_threshold),
            )
            if not 0 < value <= 1
        ]
        if not self.scale_down_boundary < self.scale_up_threshold:
            wrong.append(
                f"scale_down_boundary: must be less than scale_up_threshold ({self.scale_up_threshold}), "
                f"was {self.scale_down_boundary}"
            )
        if not self.fresh_seconds <= self.held_seconds:
            wrong.append(
                f"held_seconds: must be at least fresh_seconds ({self.fresh_seconds}), "
                f"was {self.held_seconds}"
            )
        wrong += negative_or_endless(thorough_seconds=self.thorough_seconds)
        if wrong:
            raise ValueError("; ".join(wrong))

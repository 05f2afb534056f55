"""The rows of the benchmark: loads on fleets, and their goals.

Shortages are of three models on few nodes. An H100 serves about 18 requests/s of the conversations, an L40S
4.5. Unless stated otherwise, the models have priority 1, 5 and 10, three H100 and six L40S are there, and the
load can be served until the first model's jumps: from then on three quarters of the third one's can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from controller.simulation.scenario import NodeGroup, Outage, Scenario, ScenarioModel, VariantSetup
from controller.simulation.workload import Curve, DrawnArrivals, TraceReplay, Workload, load_trace
from controller.sizing.records import ATTAINMENT, SizingSettings, Targets
from controller.variants.variantautoscaling import CycleSettings
from hack.decisions import fleet

CONVERSATIONS: Final = "azure-llm-2023-conv"
CODE: Final = "azure-llm-2023-code"
PRODUCTION: Final = ("mid-a", "mid-b", "small")
"""The traces `servegen-m-...`, which are played without copies."""

_PRODUCTION_SECONDS: Final = 9000.0
_START_UP_SECONDS: Final = 180
_TENFOLD_SECONDS: Final = 4 * 3600.0
_NOISE: Final = 0.1
_SEEDS: Final = (1, 2, 3)
_LONG_SECONDS: Final = 600.0
_NAMES: Final = ("first", "second", "third")
_PRIORITIES: Final = (1, 5, 10)

_Counts = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""Initial replicas of each model, on H100 and on L40S."""

_JUMP: Final = Curve(shape="step", low=10, high=33, at_seconds=1200)
_PULSE: Final = Curve(shape="spike", low=10, high=33, at_seconds=1200, length_seconds=_LONG_SECONDS)
_SURGE: Final = Curve(shape="step", low=25, high=75, at_seconds=1200)
_CALM: Final = Curve(shape="constant", high=10)
_SECOND: Final = Curve(shape="constant", high=20)
_THIRD: Final = Curve(shape="constant", high=25)


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

    is_variation: bool = False
    """Whether it repeats another row with another start-up time or window: quick runs leave it out."""

    cycle_settings: CycleSettings | None = None
    """Cycle settings of Stowplan; None for the defaults."""

    scaled: tuple[str, ...] = ("h100", "l40s")
    """The variants that rivals scale, for each run: one, or several of different models."""

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


@cache
def rows() -> Mapping[str, Row]:
    """Return all rows by name, in the order of the table."""
    every_row = [*_real(), *_starts(), *_loads(), *_cheap(), *_shortages()]
    return {row.name: row for row in every_row}


def _real() -> list[Row]:
    """Return the rows of real traffic: start-up times at one promise, and promises at one start-up time."""

    def row(trace: str, start_up_seconds: int, attainment: float) -> Row:
        name = f"{trace}-{start_up_seconds}"
        targets = Targets(ttft_seconds=3.0, itl_seconds=0.25, attainment=attainment)
        is_usual = attainment == ATTAINMENT
        scenario = scenario_of(
            name if is_usual else f"{name}-{attainment:g}",
            trace_workload(f"servegen-m-{trace}"),
            fleet.pair(fleet.LARGE, start_up_seconds=start_up_seconds),
            targets=targets,
        )
        scenario = replace(scenario, duration_seconds=_PRODUCTION_SECONDS)
        return Row(
            scenario=scenario,
            is_real=True,
            is_variation=start_up_seconds != _START_UP_SECONDS,
            rivals_of="" if is_usual else name,
        )

    usual = _START_UP_SECONDS
    cases = [(60, ATTAINMENT), (usual, ATTAINMENT), (420, ATTAINMENT), (usual, 0.9), (usual, 0.99)]
    return [row(trace, *case) for trace in PRODUCTION for case in cases]


def _starts() -> list[Row]:
    """Return the rows of conversations with several start-up times, and from a cold start."""

    def row(name: str, before: tuple[float, float], seconds: float = fleet.START_UP_SECONDS) -> Row:
        variants = fleet.pair(start_up_seconds=seconds)
        scenario = scenario_of(name, trace_workload(CONVERSATIONS, 12), variants)
        return Row(scenario=scenario, before=before, is_variation=seconds != fleet.START_UP_SECONDS)

    cold = row("conv-x12-cold", (732, 3.5))
    return [
        row("conv-x12", (730, 0.13)),
        replace(cold, scenario=replace(cold.scenario, warm_up_seconds=0.0)),
        row("conv-x12-start-5", (697, 0.10), 5.0),
        row("conv-x12-start-300", (833, 0.08), 300.0),
    ]


def _loads() -> list[Row]:
    """Return the rows of other loads on the same fleet."""
    spikes = Curve(shape="spike", low=40, high=160, at_seconds=600, length_seconds=120, period_seconds=1200)
    loads: dict[str, tuple[Workload, tuple[float, float]]] = {
        "code-x12": (trace_workload(CODE, 12), (3080, 11.6)),
        "ramp": (poisson_workload(Curve(shape="ramp", low=20, high=120, length_seconds=3600)), (627, 0.02)),
        "sine": (poisson_workload(Curve(shape="sine", low=20, high=100, period_seconds=2400)), (622, 0.08)),
        "step": (poisson_workload(Curve(shape="step", low=30, high=90, at_seconds=1800)), (576, 6.9)),
        "spikes": (poisson_workload(spikes), (936, 31.0)),
        "constant-28": (poisson_workload(Curve(shape="constant", high=28), noise=0.0), (232, 0.02)),
        "constant-60": (poisson_workload(Curve(shape="constant", high=60), noise=0.0), (437, 0.02)),
        "tenfold": (
            poisson_workload(Curve(shape="sine", low=5, high=50, period_seconds=_TENFOLD_SECONDS)),
            (1227, 0.18),
        ),
    }
    by_name = {
        name: Row(scenario=scenario_of(name, workload, fleet.pair()), before=before)
        for name, (workload, before) in loads.items()
    }
    for name in ("constant-28", "constant-60"):
        by_name[name] = replace(by_name[name], most_reversals=0.0)
    long = by_name["tenfold"]
    by_name["tenfold"] = replace(long, scenario=replace(long.scenario, duration_seconds=_TENFOLD_SECONDS))
    return [*by_name.values()]


def _cheap() -> list[Row]:
    """Return conversations with a cheap L40S that never ran, also with the setting that tries such ones."""
    variants = fleet.pair(fleet.CHEAP, initial=(4, 0))
    scenario = scenario_of("cheap-unknown", trace_workload(CONVERSATIONS, 12), variants)
    trying = CycleSettings(scale_to_zero=False, sizing=SizingSettings(tries_unknown_variants=True))
    first = Row(scenario=scenario, before=(710, 0.13))
    tried = replace(first, before=(658, 0.19), cycle_settings=trying, rivals_of=first.name)
    return [first, replace(tried, scenario=replace(scenario, name="cheap-tried"))]


def _shortages() -> Iterator[Row]:
    """Yield the rows in which accelerators run out."""
    jump = (poisson_workload(_JUMP), poisson_workload(_SECOND), poisson_workload(_THIRD))
    first = _short("scarcity", jump, (12, 7, 45))
    yield first
    for window in (60, 300):
        other = _short(f"scarcity-window-{window}", jump, (12, 7, 45), window_seconds=window)
        yield replace(other, rivals_of=first.name)
    yield _short("scarcity-start-60", jump, (10, 4, 45), start_up_seconds=60.0)
    yield _short("scarcity-start-300", jump, (20, 15, 60), start_up_seconds=300.0)
    yield _short(
        "bursts",
        (trace_workload(CONVERSATIONS, 4), trace_workload(CODE), poisson_workload(_THIRD)),
        (0.5, 20, 2),
        nodes={"H100": 4, "L40S": 8},
        initial=((2, 0), (1, 2), (1, 6)),
    )
    lost = _short(
        "node-lost",
        (poisson_workload(_CALM), poisson_workload(_SECOND), poisson_workload(_THIRD)),
        (2.3, 0.7, 5.5),
        nodes_of=1,
    )
    outage = Outage(node="h100-0-0", from_seconds=1200.0, to_seconds=1200.0 + _LONG_SECONDS)
    yield replace(lost, scenario=replace(lost.scenario, outages=(outage,)))
    yield _short(
        "pulse", (poisson_workload(_PULSE), poisson_workload(_SECOND), poisson_workload(_THIRD)), (22, 4, 28)
    )
    yield _short(
        "lowest-surges",
        (poisson_workload(_CALM), poisson_workload(_SECOND), poisson_workload(_SURGE)),
        (0.5, 1, 50),
    )
    yield _short("deep", jump, (8, 50, 80), nodes={"H100": 2, "L40S": 3}, initial=((1, 0), (1, 0), (0, 3)))
    equal = _short("equal-priorities", jump, (0, 0, 0))
    models = tuple(replace(model, priority=10) for model in equal.scenario.models)
    # What the best version so far lets all three models miss together.
    yield replace(equal, scenario=replace(equal.scenario, models=models), most_missed={0: 38.0})


def _short(
    name: str,
    loads: tuple[Workload, Workload, Workload],
    most_missed: tuple[float, float, float],
    *,
    nodes: Mapping[str, int] | None = None,
    nodes_of: int = 0,
    initial: _Counts = ((1, 0), (2, 0), (0, 6)),
    start_up_seconds: float = fleet.START_UP_SECONDS,
    window_seconds: int = 0,
) -> Row:
    """Return a row with accelerators by type, on one node of each type, or on nodes with so many."""
    pair = fleet.pair(start_up_seconds=start_up_seconds, window_seconds=window_seconds)
    models = tuple(
        ScenarioModel(model_id=model, workload=workload, targets=fleet.TARGETS, priority=priority)
        for model, workload, priority in zip(_NAMES, loads, _PRIORITIES, strict=True)
    )
    variants = tuple(
        fleet.of_model(variant, model, count)
        for model, counts in zip(_NAMES, initial, strict=True)
        for variant, count in sorted(zip(pair, counts, strict=True), key=lambda item: -item[1])
    )  # the running variant comes first, because rivals scale it
    first = ",".join(item.name for item in variants[:: len(pair)])
    groups = tuple(
        NodeGroup(accelerator=kind, accelerators=nodes_of or count, count=count // (nodes_of or count))
        for kind, count in (nodes or {"H100": 3, "L40S": 6}).items()
    )
    scenario = Scenario(name=name, models=models, variants=fleet.with_stated_profiles(variants), nodes=groups)
    goals = dict(zip(_PRIORITIES, most_missed, strict=True))
    is_variation = window_seconds != 0 or start_up_seconds != fleet.START_UP_SECONDS
    return Row(scenario=scenario, most_missed=goals, is_variation=is_variation, scaled=(first,))


def scenario_of(
    name: str,
    workload: Workload,
    variants: tuple[VariantSetup, ...],
    *,
    targets: Targets = fleet.TARGETS,
) -> Scenario:
    """Return an hour of a load of one model, with enough nodes."""
    model = ScenarioModel(model_id=fleet.MODEL, workload=workload, targets=targets)
    return Scenario(name=name, models=(model,), variants=variants, nodes=fleet.NODES)


def trace_workload(trace: str, copies: int = 1) -> Workload:
    """Return a shipped trace with each request sent `copies` times, with jitter."""
    return TraceReplay(trace=load_trace(trace), copies=copies)


def poisson_workload(curve: Curve, *, noise: float = _NOISE) -> Workload:
    """Return conversations with Poisson arrivals whose rate follows a curve, with slow noise."""
    return DrawnArrivals(curve=curve, lengths=load_trace(CONVERSATIONS), noise=noise)

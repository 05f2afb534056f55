"""The rows of the benchmark: loads on fleets, and their goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from controller.closedloop.behaviour import DEFAULT_BEHAVIOUR, Behaviour
from controller.closedloop.scenario import Model, NodeGroup, Scenario, VariantSetup
from controller.reconcilers.variantautoscaling import CycleSettings
from controller.simulation.curve import Curve
from controller.simulation.trace import load_trace
from controller.simulation.workload import Drawn, Played, Workload
from controller.sizing.records import SizingSettings
from hack.bench.decisions import fleet

TENFOLD_SECONDS: Final = 4 * 3600.0
CONVERSATIONS: Final = "azure-llm-2023-conv"
CODE: Final = "azure-llm-2023-code"
_NOISE: Final = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Most:
    """The goals of a row, as maximums; None for goals that it does not have."""

    of_concurrency: float = 1.0
    """Cost relative to the best setting of an HPA on concurrency that misses about as little."""

    of_clairvoyant: float | None = None
    of_constant: float | None = None
    missed_percent: float | None = None
    reversals_per_hour: float = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One load on one fleet."""

    scenario: Scenario
    most: Most = Most()
    cycle_settings: CycleSettings | None = None
    """Cycle settings of Stowplan; None for the defaults."""

    scaled: tuple[str, ...] = ("h100", "l40s")
    """The variants that rivals scale, one per run; an empty name means the first variant of each model."""

    rivals_of: str = ""
    """The row whose rivals are used, because the rows only differ for Stowplan; empty for its own."""

    has_clairvoyant: bool = True
    """Whether the clairvoyant runs; it does not consider limits."""

    @property
    def name(self) -> str:
        """The name on the command line and in tables."""
        return self.scenario.name

    @property
    def priorities(self) -> tuple[int, ...]:
        """The priorities of its models, the most important first."""
        return tuple(sorted({model.priority for model in self.scenario.models}))


@cache
def rows() -> Mapping[str, Row]:
    """Return all rows by name, in the order of the table."""
    found = [*_starts(), *_traces(), *_curves(), *_knowledge(), *_misfits(), _tenfold(), *_scarcities()]
    return {row.name: row for row in found}


def _starts() -> list[Row]:
    """Return the rows of conversations with several start-up times and stabilization windows."""
    low = 0.15

    def row(name: str, most: Most, *, start_up_seconds: float = fleet.START_UP_SECONDS) -> Row:
        variants = fleet.pair(start_up_seconds=start_up_seconds)
        return Row(scenario=_scenario(name, recorded(CONVERSATIONS, 12), variants), most=most)

    usual = Most(of_concurrency=0.78, of_clairvoyant=1.15, missed_percent=low)
    warm = row("conv-x12", usual)
    cold = row("conv-x12-cold", Most(missed_percent=3.0))
    short = row("conv-x12-window-60", Most(of_concurrency=0.65, missed_percent=low))
    return [
        warm,
        replace(cold, scenario=replace(cold.scenario, warm_up_seconds=0.0)),
        row("conv-x12-start-5", Most(missed_percent=low), start_up_seconds=5.0),
        row("conv-x12-start-60", Most(missed_percent=low), start_up_seconds=60.0),
        row("conv-x12-start-300", Most(of_clairvoyant=1.30, missed_percent=low), start_up_seconds=300.0),
        replace(short, scenario=replace(short.scenario, behaviour=_window(60))),
    ]


def _traces() -> list[Row]:
    return [
        Row(
            scenario=_scenario("conv-x4", recorded(CONVERSATIONS, 4), fleet.pair()),
            most=Most(of_clairvoyant=1.30, missed_percent=0.15),
        ),
        Row(scenario=_scenario("code-x12", recorded(CODE, 12), fleet.pair())),
    ]


def _curves() -> list[Row]:
    swinging = Most(of_clairvoyant=1.30, missed_percent=0.15)
    spikes = Curve(shape="spike", low=40, high=160, at_seconds=600, length_seconds=120, period_seconds=1200)
    curves = {
        "ramp": (drawn(Curve(shape="ramp", low=20, high=120, length_seconds=3600)), swinging),
        "sine": (drawn(Curve(shape="sine", low=20, high=100, period_seconds=2400)), swinging),
        "step": (
            drawn(Curve(shape="step", low=30, high=90, at_seconds=1800)),
            Most(of_concurrency=0.65, missed_percent=6.0),
        ),
        "spikes": (drawn(spikes), Most()),
        "constant-28": (
            drawn(Curve(shape="constant", high=28), noise=0.0),
            Most(reversals_per_hour=0.0),
        ),
        "constant-60": (
            drawn(Curve(shape="constant", high=60), noise=0.0),
            Most(reversals_per_hour=0.0),
        ),
    }
    return [
        Row(scenario=_scenario(name, workload, fleet.pair()), most=most)
        for name, (workload, most) in curves.items()
    ]


def _knowledge() -> list[Row]:
    """Return the rows of conversations with a cheap L40S: its capacity is known, unknown, tried or declared.

    The rivals are those of the first row, because an HPA does nothing without a replica of its variant.
    """
    workload = recorded(CONVERSATIONS, 12)
    known = fleet.pair(l40s_price=fleet.CHEAP_L40S_PRICE)
    unknown = fleet.pair(initial=(4, 0), l40s_price=fleet.CHEAP_L40S_PRICE)
    trying = CycleSettings(scale_to_zero=False, sizing=SizingSettings(tries_unknown_variants=True))
    first = Row(scenario=_scenario("cheap-known", workload, known))
    left = Row(scenario=_scenario("cheap-unknown", workload, unknown), rivals_of=first.name)
    tried = Row(
        scenario=_scenario("cheap-tried", workload, unknown),
        cycle_settings=trying,
        rivals_of=first.name,
    )
    told = _scenario("cheap-declared", workload, fleet.stating(unknown))
    return [first, left, tried, Row(scenario=told, rivals_of=first.name)]


def _misfits() -> list[Row]:
    workload, variants = recorded(CONVERSATIONS, 12), fleet.misfit(fleet.pair())
    plain = Row(scenario=_scenario("misfit", workload, variants))
    stale = _scenario("misfit-stale-profile", workload, fleet.stating(variants))
    return [plain, Row(scenario=stale, rivals_of=plain.name)]


def _tenfold() -> Row:
    curve = Curve(shape="sine", low=5, high=50, period_seconds=TENFOLD_SECONDS)
    scenario = _scenario("tenfold", drawn(curve), fleet.pair())
    return Row(scenario=replace(scenario, duration_seconds=TENFOLD_SECONDS), most=Most(of_constant=0.5))


def _scarcities() -> list[Row]:
    """Return rows of three models on nodes without room for all of them.

    In the first row, that is so once the load of the first model jumps: then it and the second one can be
    served completely, and three quarters of the third one's load. In the other row the first two have
    recorded loads, so what they leave to the third one changes with each burst.
    """
    steady = {
        "first": (1, drawn(Curve(shape="step", low=10, high=33, at_seconds=1200)), (1, 0)),
        "second": (5, drawn(Curve(shape="constant", high=20)), (2, 0)),
        "third": (10, drawn(Curve(shape="constant", high=25)), (0, 6)),
    }
    bursts = {
        "first": (1, recorded(CONVERSATIONS, 4), (2, 0)),
        "second": (5, recorded(CODE, 1), (1, 2)),
        "third": (10, drawn(Curve(shape="constant", high=25)), (1, 6)),
    }
    return [
        _short("scarcity", steady, h100=3, l40s=6),
        _short("scarcity-bursts", bursts, h100=4, l40s=8),
    ]


def _short(name: str, given: Mapping[str, tuple[int, Workload, tuple[int, int]]], **nodes: int) -> Row:
    """Return a row of models, each with priority, load and initial replicas, on one node of each type."""
    models = tuple(
        Model(model_id=model, workload=workload, targets=fleet.TARGETS, priority=priority)
        for model, (priority, workload, _) in given.items()
    )
    variants = [
        fleet.of_model(variant, model, initial)
        for model, (_, _, counts) in given.items()
        for variant, initial in sorted(
            zip(fleet.pair(), counts, strict=True), key=lambda item: -item[1]
        )  # the running variant comes first, because rivals scale it
    ]
    groups = tuple(
        NodeGroup(accelerator=type_.upper(), accelerators=size, count=1) for type_, size in nodes.items()
    )
    scenario = Scenario(name=name, models=models, variants=fleet.stating(tuple(variants)), nodes=groups)
    return Row(scenario=scenario, scaled=("",), has_clairvoyant=False)


def _scenario(name: str, workload: Workload, variants: tuple[VariantSetup, ...]) -> Scenario:
    model = Model(model_id=fleet.MODEL, workload=workload, targets=fleet.TARGETS)
    return Scenario(name=name, models=(model,), variants=variants, nodes=fleet.NODES)


def _window(seconds: int) -> Behaviour:
    return replace(DEFAULT_BEHAVIOUR, down=replace(DEFAULT_BEHAVIOUR.down, window_seconds=seconds))


def recorded(trace: str, copies: int) -> Workload:
    """Return a shipped trace with each request sent `copies` times, with jitter."""
    return Played(trace=load_trace(trace), copies=copies)


def drawn(curve: Curve, *, noise: float = _NOISE) -> Workload:
    """Return conversations with Poisson arrivals whose rate follows a curve, with slow noise."""
    return Drawn(curve=curve, lengths=load_trace(CONVERSATIONS), noise=noise)

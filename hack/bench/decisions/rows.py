"""The rows of the benchmark: loads on fleets, and their goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from controller.reconcilers.variantautoscaling import CycleSettings
from controller.simulation.curve import Curve
from controller.simulation.workload import Workload
from controller.sizing.records import ATTAINMENT, SizingSettings, Targets
from hack.bench.decisions import fleet
from hack.bench.decisions.row import CODE, CONVERSATIONS, Row, drawn, recorded, scenario_of
from hack.bench.decisions.shortages import shortages

PRODUCTION: Final = ("mid-a", "mid-b", "small")
"""The traces `servegen-m-...`, which are played as they were recorded."""

_PRODUCTION_SECONDS: Final = 9000.0
_TENFOLD_SECONDS: Final = 4 * 3600.0


@cache
def rows() -> Mapping[str, Row]:
    """Return all rows by name, in the order of the table."""
    found = [*_real(), *_starts(), *_loads(), *_cheap(), *shortages()]
    return {row.name: row for row in found}


def _real() -> list[Row]:
    """Return the rows of real traffic: start-up times at one promise, and promises at one start-up time."""

    def row(trace: str, start_up_seconds: int, attainment: float) -> Row:
        name = f"{trace}-{start_up_seconds}"
        targets = Targets(ttft_seconds=3.0, itl_seconds=0.25, attainment=attainment)
        is_usual = attainment == ATTAINMENT
        scenario = scenario_of(
            name if is_usual else f"{name}-{attainment:g}",
            recorded(f"servegen-m-{trace}"),
            fleet.pair(fleet.LARGE, start_up_seconds=start_up_seconds),
            targets=targets,
        )
        scenario = replace(scenario, duration_seconds=_PRODUCTION_SECONDS)
        return Row(scenario=scenario, is_real=True, rivals_of="" if is_usual else name)

    cases = [(60, ATTAINMENT), (180, ATTAINMENT), (420, ATTAINMENT), (180, 0.9), (180, 0.99)]
    return [row(trace, *case) for trace in PRODUCTION for case in cases]


def _starts() -> list[Row]:
    """Return the rows of conversations with several start-up times, and from a cold start."""

    def row(name: str, before: tuple[float, float], seconds: float = fleet.START_UP_SECONDS) -> Row:
        variants = fleet.pair(start_up_seconds=seconds)
        return Row(scenario=scenario_of(name, recorded(CONVERSATIONS, 12), variants), before=before)

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
        "code-x12": (recorded(CODE, 12), (3080, 11.6)),
        "ramp": (drawn(Curve(shape="ramp", low=20, high=120, length_seconds=3600)), (627, 0.02)),
        "sine": (drawn(Curve(shape="sine", low=20, high=100, period_seconds=2400)), (622, 0.08)),
        "step": (drawn(Curve(shape="step", low=30, high=90, at_seconds=1800)), (576, 6.9)),
        "spikes": (drawn(spikes), (936, 31.0)),
        "constant-28": (drawn(Curve(shape="constant", high=28), noise=0.0), (232, 0.02)),
        "constant-60": (drawn(Curve(shape="constant", high=60), noise=0.0), (437, 0.02)),
        "tenfold": (
            drawn(Curve(shape="sine", low=5, high=50, period_seconds=_TENFOLD_SECONDS)),
            (1227, 0.18),
        ),
    }
    found = {
        name: Row(scenario=scenario_of(name, workload, fleet.pair()), before=before)
        for name, (workload, before) in loads.items()
    }
    for name in ("constant-28", "constant-60"):
        found[name] = replace(found[name], most_reversals=0.0)
    long = found["tenfold"]
    found["tenfold"] = replace(long, scenario=replace(long.scenario, duration_seconds=_TENFOLD_SECONDS))
    return [*found.values()]


def _cheap() -> list[Row]:
    """Return conversations with a cheap L40S that never ran, also with the setting that tries such ones."""
    variants = fleet.pair(fleet.CHEAP, initial=(4, 0))
    scenario = scenario_of("cheap-unknown", recorded(CONVERSATIONS, 12), variants)
    trying = CycleSettings(scale_to_zero=False, sizing=SizingSettings(tries_unknown_variants=True))
    first = Row(scenario=scenario, before=(710, 0.13))
    tried = replace(first, before=(658, 0.19), cycle_settings=trying, rivals_of=first.name)
    return [first, replace(tried, scenario=replace(scenario, name="cheap-tried"))]

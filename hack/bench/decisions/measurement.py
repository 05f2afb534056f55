"""One run: all rows that were chosen, what sizing costs, and what a cycle asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hack.bench.admission_reviews import create
from hack.bench.decisions.asking import Asking, asking
from hack.bench.decisions.goals import goals
from hack.bench.decisions.report import rows_table
from hack.bench.decisions.rows import Row
from hack.bench.decisions.running import play_rows
from hack.bench.decisions.sizing_cost import SizingCost, sizing_cost
from hack.bench.decisions.sweeping import RowResult, Sweep
from hack.bench.goals import Goal
from hack.bench.machine import look
from hack.bench.measurement import Measurement, Settings
from hack.bench.model import model
from hack.bench.pace import LOADS_US, Pace, loads_us


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionSettings(Settings):
    """What to measure of decisions."""

    rows: tuple[str, ...]
    sweep: Sweep
    processes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionMeasurement(Measurement):
    """What came of measuring decisions."""

    settings: DecisionSettings
    results: tuple[RowResult, ...]
    sizing: SizingCost
    asking: Asking

    @property
    def goals(self) -> list[Goal]:
        """The goals that were measured."""
        return goals(self.results, self.sizing, self.asking, slowness=self.pace.slowness)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows for a results file."""
        return {
            "rows": [asdict(result) for result in self.results],
            "sizing": [asdict(self.sizing)],
            "asking": [asdict(self.asking)],
        }

    def printed_tables(self) -> Iterator[Sequence[str]]:
        """Yield the tables for people, as lines."""
        yield rows_table(self.results)
        cost, asked = self.sizing, self.asking
        sizing = f"sizing {cost.variants} variants of {cost.models} models with {cost.pods} pods"
        cycle = f"a cycle with {asked.pods} pods: {asked.requests} requests"
        yield [
            f"{sizing}: {cost.cpu_seconds:.2f} s of CPU",
            f"{cycle}, at most {asked.most_per_pod} per pod",
        ]


def measure(
    rows: Sequence[Row], settings: DecisionSettings, *, progress: Callable[[str], None]
) -> DecisionMeasurement:
    """Measure everything; what is timed comes first, while no other process of ours runs."""
    before = look()
    pace = Pace(here_us=loads_us(create(model())), there_us=LOADS_US)
    progress("sizing 10,000 variants, and what a cycle asks of 1,000 pods")
    cost, asked = sizing_cost(), asking()
    began = time.monotonic()
    results, failures = play_rows(rows, settings.sweep, processes=settings.processes, progress=progress)
    progress(f"{len(results)} rows in {time.monotonic() - began:.0f} s")
    return DecisionMeasurement(
        settings=settings,
        machine=(before, look()),
        pace=pace,
        failure="; ".join(failures),
        results=tuple(results),
        sizing=cost,
        asking=asked,
    )

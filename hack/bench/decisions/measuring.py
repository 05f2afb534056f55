"""One run: the selected rows, the CPU time of sizing, and the requests of a cycle."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from hack.bench.decisions.asking import asking
from hack.bench.decisions.goals import goals
from hack.bench.decisions.report import rows_table
from hack.bench.decisions.rows import rows
from hack.bench.decisions.running import play_rows
from hack.bench.decisions.sizing_cost import sizing_cost
from hack.bench.decisions.sweeping import Sweep
from hack.bench.frame import Frame
from hack.bench.measurement import Part, part_of


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionSettings:
    """The selected measurements of decisions."""

    rows: tuple[str, ...]
    sweep: Sweep
    processes: int


def measure(settings: DecisionSettings, frame: Frame) -> Iterator[Sequence[Part]]:
    """Measure everything; timed parts come first, before the other processes start."""
    frame.step("sizing of 10,000 variants, and requests of a cycle to 1,000 pods")
    cost, asked = sizing_cost(), asking()
    began = time.monotonic()
    chosen = [rows()[name] for name in settings.rows]
    results, failures = play_rows(
        chosen, settings.sweep, processes=settings.processes, progress=frame.progress
    )
    frame.progress(f"{len(results)} rows in {time.monotonic() - began:.0f} s")
    frame.failures += ["; ".join(failures)] if failures else []
    sizing = f"sizing of {cost.variants} variants of {cost.models} models with {cost.pods} pods"
    cycle = f"a cycle with {asked.pods} pods: {asked.requests} requests"
    lines = [
        f"{sizing}: {cost.cpu_seconds:.2f} s of CPU",
        f"{cycle}, at most {asked.most_per_pod} per pod",
    ]
    yield [
        Part(name="rows", rows=[asdict(result) for result in results], tables=[rows_table(results)]),
        part_of("sizing", [cost], lines),
        part_of("asking", [asked], goals=goals(results, cost, asked, slowness=frame.pace().slowness)),
    ]

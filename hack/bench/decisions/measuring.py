"""One run: the selected rows and engines, and the CPU time of sizing; or the missing rivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from hack.bench.compared import OURS
from hack.bench.decisions.engines import COLUMNS, ENGINES, Learning, learning
from hack.bench.decisions.report import rows_table
from hack.bench.decisions.running import in_pool
from hack.bench.decisions.sizing_cost import sizing_cost, sizing_goals
from hack.bench.frame import Frame
from hack.bench.measurement import Part, part_of
from hack.decisions.goals import row_goals
from hack.decisions.points import Played, Point, play
from hack.decisions.results import fixed_everywhere, results, rivals_or_none
from hack.decisions.rivals import Kept, measure_rivals, owner, read, write
from hack.decisions.rows import rows


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionSettings:
    """The selected measurements of decisions."""

    rows: tuple[str, ...]
    engines: bool
    is_quick: bool
    """Whether only the first seed runs."""

    rivals: bool
    """Whether the missing rivals are measured, and nothing else."""

    processes: int


def measure(settings: DecisionSettings, frame: Frame) -> Iterator[Sequence[Part]]:
    """Measure everything; timed parts come first, before the other processes start."""
    if settings.rivals:
        frame.step("rivals")
        yield from _measured_rivals(settings, frame)
        return
    frame.step("sizing of 10,000 variants")
    cost = sizing_cost()
    sizing = f"sizing of {cost.variants} variants of {cost.models} models with {cost.pods} pods"
    lines = [f"{sizing}: {cost.cpu_seconds:.2f} s of CPU"]
    costs = [part_of("sizing", [cost], lines, goals=sizing_goals(cost, slowness=frame.pace().slowness))]
    kept, played = read(), dict[Point, Played]()
    points = [
        Point(row=name, policy=OURS, seed=seed)
        for name in settings.rows
        for seed in rows()[name].seeds[: 1 if settings.is_quick else None]
    ]
    yield costs
    for point, item in in_pool(play, points, processes=settings.processes, failures=frame.failures):
        played[point] = item
        frame.progress(
            f"{point.row}, seed {point.seed}: cost {item.cost:.0f}, {item.missed:.2%} missed"
            f" ({item.seconds:.0f} s)"
        )
        yield [_rows_part(played, kept), *costs]
    if settings.engines:
        items: dict[str, Learning] = {}
        pool = in_pool(learning, [*ENGINES], processes=settings.processes, failures=frame.failures)
        for name, learned in pool:
            items[name] = learned
            frame.progress(f"engine {name}")
            ordered = [items[name] for name in ENGINES if name in items]
            yield [_rows_part(played, kept), part_of("engines", ordered, columns=COLUMNS), *costs]


def _rows_part(played: Mapping[Point, Played], kept: Mapping[str, Kept]) -> Part:
    items, everywhere = results(played, kept), fixed_everywhere(kept)
    return Part(
        name="rows",
        rows=[asdict(result) for result in items],
        tables=[rows_table(items, everywhere)],
        goals=row_goals(items, everywhere),
    )


def _measured_rivals(settings: DecisionSettings, frame: Frame) -> Iterator[Sequence[Part]]:
    """Measure the rivals that are missing, and store those of each row as soon as they are complete."""
    kept = read()
    missing: dict[str, list[str]] = {}
    for name in settings.rows:
        if rivals_or_none(rows()[name], kept) is None:
            missing.setdefault(owner(rows()[name]), []).append(name)
    tasks = [(tuple(names), kept.get(name)) for name, names in missing.items()]
    lines = [f"rivals of {len(tasks)} rows were missing"]
    yield [Part(tables=[lines])]
    for (names, _), items in in_pool(
        _measure_task, tasks, processes=settings.processes, failures=frame.failures
    ):
        kept[owner(rows()[names[0]])] = items
        write(kept)
        frame.progress(f"rivals of {', '.join(names)}")


def _measure_task(task: tuple[tuple[str, ...], Kept | None]) -> Kept:
    return measure_rivals(*task)

"""`python -m hack.bench.decisions`: compare cost and missed requests in a closed loop with other policies."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from hack.bench.decisions.engines import COLUMNS, ENGINES, Learning, learning_of
from hack.bench.decisions.sizing_cost import sizing_cost, sizing_goals
from hack.bench.processes import in_pool
from hack.bench.run import OURS, BenchmarkRun, NothingChosenError, ResultPart, add_count, main, part_of
from hack.decisions.points import PointResult, SimulationPoint, play
from hack.decisions.results import fixed_everywhere, results, rivals_or_none, row_goals, rows_table
from hack.decisions.rivals import StoredRivals, measure_rivals, owner, read_stored, write
from hack.decisions.rows import rows

_ENGINES: Final = "engines"
"""The name of the table of engines."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.bench.decisions", description=__doc__)
    names = ", ".join([*rows(), _ENGINES])
    parser.add_argument("--rows", default="", metavar="NAME,...", help=f"rows to run [all: {names}]")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run one seed; unless rows are selected, without variations and engines",
    )
    parser.add_argument(
        "--rivals", action="store_true", help="only measure the rivals of the rows that are not in the file"
    )
    cores = len(os.sched_getaffinity(0))
    add_count(parser, "--processes", default=cores, text="concurrent processes")
    return parser


def choose_rows(text: str) -> tuple[str, ...]:
    """Return the named rows in the order of the table; all if none is named.

    Raises NothingChosenError for unknown names.
    """
    named = {name.strip() for name in text.split(",") if name.strip()}
    known = (*rows(), _ENGINES)
    if unknown := named.difference(known):
        wrong = ", ".join(sorted(unknown))
        raise NothingChosenError(f"--rows: unknown: {wrong}; known: {', '.join(known)}")
    return tuple(name for name in known if not named or name in named)


def _measure(options: argparse.Namespace, run: BenchmarkRun) -> Iterator[Sequence[ResultPart]]:
    """Measure everything; timed parts come first, before the other processes start."""
    names = choose_rows(options.rows)
    is_short = options.quick and not options.rows
    chosen = [name for name in names if name in rows() and not (is_short and rows()[name].is_variation)]
    if options.rivals:
        run.step("rivals")
        yield from _missing_rivals(chosen, options.processes, run)
        return
    run.step("sizing of 10,000 variants")
    cost = sizing_cost()
    sizing = f"sizing of {cost.variants} variants of {cost.models} models with {cost.pods} pods"
    lines = [f"{sizing}: {cost.cpu_seconds:.2f} s of CPU"]
    costs = [part_of("sizing", [cost], lines, goals=sizing_goals(cost, slowness=run.slowness))]
    yield costs
    kept, played = read_stored(), dict[SimulationPoint, PointResult]()
    points = [
        SimulationPoint(row=name, policy=OURS, seed=seed)
        for name in chosen
        for seed in rows()[name].seeds[: 1 if options.quick else None]
    ]
    for point, item in in_pool(play, points, processes=options.processes, failures=run.failures):
        played[point] = item
        result = f"cost {item.cost:.0f}, {item.missed:.2%} missed ({item.seconds:.0f} s)"
        run.say(f"{point.row}, seed {point.seed}: {result}")
        yield [_rows_part(played, kept), *costs]
    if _ENGINES in names and not is_short:
        items: dict[str, Learning] = {}
        pool = in_pool(learning_of, [*ENGINES], processes=options.processes, failures=run.failures)
        for name, learned in pool:
            items[name] = learned
            run.say(f"engine {name}")
            ordered = [items[name] for name in ENGINES if name in items]
            yield [_rows_part(played, kept), part_of("engines", ordered, columns=COLUMNS), *costs]


def _rows_part(played: Mapping[SimulationPoint, PointResult], kept: Mapping[str, StoredRivals]) -> ResultPart:
    items, everywhere = results(played, kept), fixed_everywhere(kept)
    return ResultPart(
        name="rows",
        rows=[asdict(result) for result in items],
        tables=[rows_table(items, everywhere)],
        goals=row_goals(items, everywhere),
    )


def _missing_rivals(
    chosen: Sequence[str], processes: int, run: BenchmarkRun
) -> Iterator[Sequence[ResultPart]]:
    """Measure the rivals that are missing, and store those of each row as soon as they are complete."""
    kept = read_stored()
    missing: dict[str, list[str]] = {}
    for name in chosen:
        if rivals_or_none(rows()[name], kept) is None:
            missing.setdefault(owner(rows()[name]), []).append(name)
    tasks = [(tuple(names), kept.get(name)) for name, names in missing.items()]
    yield [ResultPart(tables=[[f"rivals of {len(tasks)} rows were missing"]])]
    for (names, _), items in in_pool(_measure_task, tasks, processes=processes, failures=run.failures):
        kept[owner(rows()[names[0]])] = items
        write(kept)
        run.say(f"rivals of {', '.join(names)}")


def _measure_task(task: tuple[tuple[str, ...], StoredRivals | None]) -> StoredRivals:
    return measure_rivals(*task)


if __name__ == "__main__":
    sys.exit(main("decisions", _parser(), _measure))

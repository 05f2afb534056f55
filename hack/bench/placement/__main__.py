"""`python -m hack.bench.placement`: quality and CPU cost of placements, compared with other engines.

Fleets of up to 100 models are placed at most three times, of up to 200 twice, larger ones once. --seconds is
the wall-clock limit of each solve. With --json, the file always contains the results so far.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, TypeVar

from hack.bench.placement import moving, planning
from hack.bench.placement.child import measured_apart
from hack.bench.placement.engines import COMPARED, HIGHS
from hack.bench.placement.goals import goals
from hack.bench.placement.report import answers_table, duels_table, failures
from hack.bench.placement.result import EngineResult, Job
from hack.bench.run import BenchmarkRun, NothingChosenError, ResultPart, add_count, main, part_of
from hack.fleets.catalogue import FAMILIES, RULED, SIZES, Instance, select_names

_KNOWN: Final = (*FAMILIES, *moving.FAMILIES, *planning.FAMILIES)
_MOST_ROUNDS: Final = {100: 3, 200: 2}
"""The maximum number of repeats, by the largest number of models; larger fleets are placed once."""

_MOST_HIGHS: Final = 100
"""Maximum number of models of fleets that HiGHS places."""

Found = EngineResult | moving.MoveFigures | planning.PlanFigures
T = TypeVar("T", EngineResult, moving.MoveFigures, planning.PlanFigures)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.bench.placement", description=__doc__)
    parser.add_argument(
        "--families", nargs="+", default=[], metavar="F", help="families, such as F4 or F14-ties [all]"
    )
    sizes = f"numbers of models [{' '.join(map(str, SIZES))}; of whole plans the two largest]"
    parser.add_argument("--sizes", nargs="+", type=int, default=[], metavar="N", help=sizes)
    parser.add_argument("--engines", nargs="+", default=[], metavar="E", help="engines to compare [all]")
    add_count(parser, "--rounds", default=3, text="maximum number of repeats")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="S", help="limit of each solve [20]")
    return parser


def _measure(options: argparse.Namespace, run: BenchmarkRun) -> Iterator[Sequence[ResultPart]]:
    """Measure everything that the options select; an error ends only one group of measurements.

    Raises NothingChosenError for unknown names, and if nothing is measured at the selected sizes.
    """
    families, results = _families(options), list[Found]()
    with run.pin():
        for kind in _kinds(options, families, run):
            try:
                for one in kind:
                    results.append(one)
                    yield _parts(results, slowness=run.slowness)
            except (OSError, RuntimeError) as error:
                run.failures.append(f"broken: {error}")
    if not run.loads_us:
        raise NothingChosenError("nothing that was chosen is measured at these sizes")


def _families(options: argparse.Namespace) -> list[str]:
    if unknown := set(options.engines) - set(COMPARED):
        wrong = ", ".join(sorted(unknown))
        raise NothingChosenError(f"--engines: unknown: {wrong}; known: {', '.join(COMPARED)}")
    try:
        return select_names(options.families, _KNOWN)
    except KeyError as error:
        raise NothingChosenError(f"--families: unknown: {error}; known: {', '.join(_KNOWN)}") from error


def _kinds(options: argparse.Namespace, families: list[str], run: BenchmarkRun) -> Iterator[Iterator[Found]]:
    """Yield groups of measurements, which run when they are iterated; the longest come last."""
    yield _moves(options, families, run)
    yield _results(options, families, run)
    for size in sorted({*(options.sizes or SIZES)} & {*planning.CHANGES}):
        yield from (_plans(options, one, size, run) for one in families if one in planning.FAMILIES)


def _moves(
    options: argparse.Namespace, families: list[str], run: BenchmarkRun
) -> Iterator[moving.MoveFigures]:
    """Measure every fragmented cluster in this process, which takes little time and memory."""
    for family, nodes in product(families, moving.NODES):
        if family in moving.FAMILIES:
            run.step(f"{family}/{nodes}")
            for used in moving.USED_PERCENT:
                yield moving.measure_moves(
                    family, nodes, used, rounds=options.rounds, seconds=options.seconds
                )


def _results(options: argparse.Namespace, families: list[str], run: BenchmarkRun) -> Iterator[EngineResult]:
    """Measure all engines on one fleet after the other, small fleets first."""
    for size, family in product(options.sizes or SIZES, families):
        if family not in FAMILIES:
            continue
        instance = Instance(family=family, size=size, seed=0)
        most = next((most for models, most in _MOST_ROUNDS.items() if size <= models), 1)
        for engine in options.engines or COMPARED:
            if engine == HIGHS and (family in RULED or size > _MOST_HIGHS):
                continue
            rounds = 1 if engine == HIGHS else min(options.rounds, most)
            run.step(f"{instance.name}: {engine}")
            job = Job(instance=instance, engine=engine, seconds=options.seconds, rounds=rounds)
            yield measured_apart(job, run.cores)


def _plans(
    options: argparse.Namespace, family: str, size: int, run: BenchmarkRun
) -> Iterator[planning.PlanFigures]:
    """Measure whole plans of one world in this process."""
    run.step(f"{family}/{size}")
    yield from planning.measure_plans(family, size, seconds=options.seconds)


def _parts(items: Sequence[Found], *, slowness: float) -> list[ResultPart]:
    """Return the parts of the results so far; goals are ordered by number, those without one come last."""
    results = _only(items, EngineResult)
    moves, plans = _only(items, moving.MoveFigures), _only(items, planning.PlanFigures)
    reached = [
        *goals(results, slowness=slowness),
        *moving.moving_goals(moves, slowness=slowness),
        *planning.planning_goals(plans, slowness=slowness),
    ]
    reached.sort(key=lambda goal: goal.name[:2] if goal.name.startswith("T") else "U")
    return [
        part_of("outcomes", results, answers_table(results), duels_table(results)),
        part_of("moves", moves, moving.moving_table(moves)),
        part_of("plans", plans, planning.planning_table(plans)),
        ResultPart(tables=[failures(results)], goals=reached),
    ]


def _only(results: Sequence[Found], kind: type[T]) -> list[T]:
    return [one for one in results if isinstance(one, kind)]


if __name__ == "__main__":
    sys.exit(main("placement", _parser(), _measure))

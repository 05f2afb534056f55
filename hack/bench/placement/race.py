"""Our engine compared with HiGHS on a plain mixed-integer program: CPU time to an equal gap at every level.

HiGHS has a limit of CPU time, all of it for the first level that it cannot prove. If it is stopped there, the
time spent is a lower bound, and so is the ratio. The optimum is only tried if a gap of 0.1 % was reached,
because it takes at least as long. Gaps are relative to all that is wanted at a level, like ours; HiGHS may
also stop at the same gap relative to its value.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hack.bench.compared import OURS
from hack.bench.goals import Goal, short_number
from hack.bench.placement.child import run
from hack.bench.placement.engines import GAPS, HIGHS, HIGHS_ROUGH
from hack.bench.placement.result import EngineResult, Job
from hack.bench.table import Columns
from hack.calling.cores import Cores
from hack.fleets.catalogue import Instance

FAMILY: Final = "race"
"""Name of the race, among the families."""

RACED: Final = ("F4-tight", 2000)
TIMES: Final = {HIGHS_ROUGH: 10.0, HIGHS: 100.0}
"""The goals: the factor of our CPU time that HiGHS needs at least, by gap."""

_TO: Final = {HIGHS_ROUGH: "the_same_gap", HIGHS: "the_optimum"}
_OURS_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Race:
    """HiGHS compared with our engine on one instance."""

    instance: Instance
    engine: str
    """The engine, which defines the gap."""

    our_cpu_seconds: float
    our_gap_percent: float | None
    cpu_seconds: float
    """CPU time of HiGHS, until it ended or was stopped."""

    wall_seconds: float
    stopped_at: str
    """The first level that was not proven; empty if all were."""

    stopped_gap_percent: float | None
    """Gap at that level; None without an answer."""

    times: float
    """Ratio of its CPU time to ours; a lower bound if it was stopped."""


def race(cores: Cores, *, seed: int, seconds: float) -> Iterator[Race]:
    """Run to the gap of 0.1 %, and to the optimum if this was reached; stop if an engine has no answer."""
    family, size = RACED
    instance = Instance(family=family, size=size, seed=seed)
    ours = run(Job(instance=instance, engine=OURS, seconds=_OURS_SECONDS, rounds=3), cores)
    for engine in (HIGHS_ROUGH, HIGHS):
        job = Job(instance=instance, engine=engine, seconds=seconds, rounds=1, is_race=True)
        theirs = run(job, cores)
        if not (ours.levels and theirs.levels):
            return
        result = raced(ours, theirs)
        yield result
        if result.stopped_at:
            return


def raced(ours: EngineResult, theirs: EngineResult) -> Race:
    """Return the result of the race."""
    stopped_at, gap = _stop(theirs)
    our_cpu_seconds = statistics.median(ours.cpu_seconds)
    return Race(
        instance=theirs.instance,
        engine=theirs.engine,
        our_cpu_seconds=our_cpu_seconds,
        our_gap_percent=ours.worst_gap_percent,
        cpu_seconds=theirs.cpu_seconds[0],
        wall_seconds=theirs.wall_seconds[0],
        stopped_at=stopped_at,
        stopped_gap_percent=gap,
        times=theirs.cpu_seconds[0] / our_cpu_seconds,
    )


def _stop(theirs: EngineResult) -> tuple[str, float | None]:
    """Return the first level that is not proven, and its gap."""
    for level in theirs.levels:
        gap = theirs.bounds[level].gap_percent if level in theirs.bounds else None
        if gap is None or gap > 100 * GAPS[theirs.engine]:
            return level, gap
    return "", None


def _ending(one: Race) -> str:
    if not one.stopped_at:
        return "within its gap"
    gap = "without an answer" if one.stopped_gap_percent is None else f"at {one.stopped_gap_percent:.3g} %"
    return f"stopped at {one.stopped_at}, {gap}"


COLUMNS: Final[Columns[Race]] = (
    ("race", lambda one: one.instance.family),
    ("models", lambda one: str(one.instance.size)),
    ("against", lambda one: one.engine),
    ("CPU s", lambda one: short_number(one.cpu_seconds)),
    ("wall s", lambda one: short_number(one.wall_seconds)),
    ("our CPU s", lambda one: short_number(one.our_cpu_seconds)),
    ("our gap %", lambda one: "-" if one.our_gap_percent is None else f"{one.our_gap_percent:.4f}"),
    ("times ours", lambda one: f"{'at least ' if one.stopped_at else ''}{short_number(one.times)}"),
    ("ended", _ending),
)

"""Columns of the table, with one line per race."""


def race_goals(results: Sequence[Race]) -> Iterator[Goal]:
    """Yield our CPU time as a share of HiGHS's; an upper bound if HiGHS was stopped.

    A race that was stopped before the gap of 0.1 % also counts for the optimum, which was not reached either.
    """
    for engine, times in TIMES.items():
        spent = [one for one in results if one.engine == engine] or [one for one in results if one.stopped_at]
        if spent:
            yield Goal(
                name=f"T7_cpu_share_of_highs_to_{_TO[engine]}_at_{RACED[1]}",
                value=statistics.median(100 / one.times for one in spent),
                unit="%",
                most=100 / times,
                is_upper_bound=any(one.stopped_at for one in spent),
            )

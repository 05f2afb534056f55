"""One run of the placement benchmark, which yields all results so far after each measurement."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

from hack.bench.command import NothingChosenError
from hack.bench.frame import Frame
from hack.bench.measurement import Part, part_of
from hack.bench.placement.child import run
from hack.bench.placement.goals import goals, small_goals
from hack.bench.placement.joint import COLUMNS as OF_JOINT
from hack.bench.placement.joint import Joint, joint_goals
from hack.bench.placement.joint import run as run_joint
from hack.bench.placement.moving import USED_PERCENT, Moving, moved, moving_goals, moving_table
from hack.bench.placement.planning import CHANGES, Planned, planned, planning_goals, planning_table
from hack.bench.placement.race import COLUMNS as OF_RACES
from hack.bench.placement.race import FAMILY as RACE
from hack.bench.placement.race import Race, race, race_goals
from hack.bench.placement.repeating import COLUMNS as OF_AGAIN
from hack.bench.placement.repeating import REPEATS, Again, again, again_goals
from hack.bench.placement.report import (
    answers_table,
    duels_table,
    failures,
    goals_table,
    sequences_table,
    small_table,
)
from hack.bench.placement.result import EngineResult
from hack.bench.placement.schedule import PlacementSettings

JOINT = "joint"
"""Name of placing and then moving, among the families."""

Found = EngineResult | Moving | Planned | Again | Race | Joint
T = TypeVar("T", EngineResult, Moving, Planned, Again, Race, Joint)


def measure(settings: PlacementSettings, frame: Frame) -> Iterator[Sequence[Part]]:
    """Measure everything that the settings select; an error ends only one group of measurements.

    Raises NothingChosenError if nothing is measured at the selected sizes.
    """
    began, say, results = time.monotonic(), frame.progress, list[Found]()
    frame.progress = lambda text: say(f"{_clock(time.monotonic() - began)} {text}")
    with frame.pinned():
        for kind in _kinds(settings, frame):
            try:
                for one in kind:
                    results.append(one)
                    yield parts(results, slowness=frame.pace().slowness)
            except (OSError, RuntimeError) as error:
                frame.progress(f"broken: {error}")
                frame.failures.append(str(error))
    if not frame.loads:
        raise NothingChosenError("nothing that was chosen is measured at these sizes")
    yield parts(results, slowness=frame.pace().slowness)


def _kinds(asked: PlacementSettings, frame: Frame) -> Iterator[Iterator[Found]]:
    """Yield groups of measurements, which run when they are iterated; the longest come last."""
    yield _moves(asked, frame)
    yield _results(asked, frame)
    for size in sorted({*asked.sizes} & {*CHANGES}):
        yield from (_plans(asked, frame, one, size, seed) for one in asked.plans for seed in asked.seeds)
    for size in sorted({*asked.sizes} & {*REPEATS}):
        yield from (_again(asked, frame, one, size, seed) for one in asked.again for seed in asked.seeds)
    yield _joint(asked, frame)
    yield _races(asked, frame)


def _moves(asked: PlacementSettings, frame: Frame) -> Iterator[Moving]:
    """Measure every fragmented cluster in this process, which takes little time and memory."""
    for family in asked.fragmented:
        for nodes in asked.nodes:
            frame.step(f"{family}/{nodes}")
            for used in USED_PERCENT:
                for seed in asked.seeds:
                    yield moved(family, nodes, used, seed=seed, rounds=asked.rounds, seconds=asked.seconds)


def _results(asked: PlacementSettings, frame: Frame) -> Iterator[EngineResult]:
    for job in asked.jobs():
        frame.step(f"{job.instance.name}: {job.engine}")
        yield run(job, frame.cores)


def _plans(asked: PlacementSettings, frame: Frame, family: str, size: int, seed: int) -> Iterator[Planned]:
    """Measure whole plans of one world in this process."""
    frame.step(f"{family}/{size}/{seed}")
    yield from planned(family, size, seed=seed, seconds=asked.seconds, changes=CHANGES[size])


def _again(asked: PlacementSettings, frame: Frame, family: str, size: int, seed: int) -> Iterator[Again]:
    frame.step(f"{family}/{size}/{seed}")
    yield again(frame.cores, family, size, seed=seed, repeats=asked.repeats or REPEATS[size])


def _joint(asked: PlacementSettings, frame: Frame) -> Iterator[Joint]:
    if asked.is_joint:
        frame.step(JOINT)
        yield run_joint(frame.cores, seconds=asked.seconds)


def _races(asked: PlacementSettings, frame: Frame) -> Iterator[Race]:
    for seed in asked.seeds if asked.is_raced else ():
        frame.step(f"{RACE}: HiGHS is limited to {asked.highs_seconds:.0f} s of CPU")
        yield from race(frame.cores, seed=seed, seconds=asked.highs_seconds)


def parts(items: Sequence[Found], *, slowness: float) -> list[Part]:
    """Return the parts of the results so far; goals are ordered by number, those without one come last."""
    results, races = _only(items, EngineResult), _only(items, Race)
    moves, plans, agains = _only(items, Moving), _only(items, Planned), _only(items, Again)
    joints = _only(items, Joint)
    reached = [
        *goals(results, slowness=slowness),
        *small_goals(results, slowness=slowness),
        *race_goals(races),
        *moving_goals(moves, slowness=slowness),
        *planning_goals(plans, slowness=slowness),
        *again_goals(agains),
        *joint_goals(joints, slowness=slowness),
    ]
    reached.sort(key=lambda goal: goal.name[:2] if goal.name.startswith("T") else "U")
    return [
        part_of(
            "outcomes",
            results,
            answers_table(results),
            sequences_table(results),
            duels_table(results),
            small_table(results, slowness=slowness),
        ),
        part_of("races", races, columns=OF_RACES),
        part_of("moves", moves, moving_table(moves)),
        part_of("plans", plans, planning_table(plans)),
        part_of("again", agains, columns=OF_AGAIN),
        part_of("joint", joints, columns=OF_JOINT),
        Part(tables=[failures(results), goals_table(reached)], goals=reached),
    ]


def _only(results: Sequence[Found], kind: type[T]) -> list[T]:
    return [one for one in results if isinstance(one, kind)]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:3}:{rest:02}"

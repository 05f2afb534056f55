"""One run: cycles of many bindings, and the plain way to read the same pods."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from controller.closedloop.named import silent
from controller.uncollected import uncollected
from hack.bench.admission_reviews import create
from hack.bench.goals import Goal
from hack.bench.machine import look
from hack.bench.measurement import Measurement, Settings
from hack.bench.model import model
from hack.bench.pace import LOADS_US, Pace, loads_us
from hack.bench.policies.trajectories import Course, Trajectory, trajectories
from hack.bench.policies.world import BindingFleet
from hack.bench.table import Row, aligned, ratio_of

_MOST_SECONDS: Final = 5.0
"""One cycle of 1,000 bindings on one core."""

_GOAL_BINDINGS: Final = 1000
_STEEP: Final = ("spike", "ramp")
_MOST_SHARE: Final = 0.8
"""A fifth fewer overload-seconds than the reference, at as many replica-hours."""

_WARM_CYCLES: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicySettings(Settings):
    """How many bindings, and how many cycles medians are of."""

    bindings: int
    cycles: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyMeasurement(Measurement):
    """CPU seconds: the first cycle, which reads every object, a later one, and the plain way to read pods."""

    settings: PolicySettings
    pods: int
    first_seconds: float
    cycle_seconds: float
    plain_seconds: float
    writes_per_cycle: float
    courses: tuple[Trajectory, ...]

    @property
    def goals(self) -> list[Goal]:
        """The goals that were measured."""
        never_more = Goal(
            name="overload beside the mended reference, at worst",
            value=max(map(_share, self.courses)),
            unit="of its seconds",
            most=1.0,
        )
        steep = [
            _share(item) for item in self.courses if item.shape in _STEEP and item.mended.overload_seconds
        ]
        fewer = Goal(
            name="overload on spikes and ramps, on average",
            value=statistics.mean(steep),
            unit="of its seconds",
            most=_MOST_SHARE,
        )
        if self.settings.bindings < _GOAL_BINDINGS:
            return [never_more, fewer]
        slowest = max(self.first_seconds, self.cycle_seconds)
        cycle = Goal(name="cycle of 1,000 bindings", value=slowest, unit="s of CPU", most=_MOST_SECONDS)
        return [cycle, never_more, fewer]

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows for a results file."""
        names = ("pods", "first_seconds", "cycle_seconds", "plain_seconds", "writes_per_cycle")
        return {
            "policies": [asdict(self.settings) | {name: getattr(self, name) for name in names}],
            "trajectories": [asdict(item) for item in self.courses],
        }

    def printed_tables(self) -> Iterator[Sequence[str]]:
        """Yield the tables for people, as lines."""
        ratio = ratio_of(self.cycle_seconds, self.plain_seconds)
        settings, writes = self.settings, self.writes_per_cycle
        first, later = f"{self.first_seconds:.2f} s of CPU", f"{self.cycle_seconds:.2f} s"
        cycle = f"the first cycle takes {first}, a later one {later}, with {writes:.0f} statuses written"
        plain = f"parsing the same answers of the pods in full, alone, takes {self.plain_seconds:.2f} s"
        yield [
            f"{settings.bindings} bindings with {self.pods} pods: {cycle}",
            f"{plain}: a whole cycle is {ratio} of that",
        ]
        heads = ("load", "start", "released: h", "overload", "mended: h", "overload")
        rows = [(*heads, "ours: h", "overload", "exact: h", "overload"), *map(_row, self.courses)]
        yield [
            "",
            "replica-hours and overload-seconds of an hour: the reference as released and as mended, ours by",
            "the same policy, and ours without its tolerance, which the reference does not keep",
            *aligned(rows),
        ]


def measure(settings: PolicySettings, *, progress: Callable[[str], None]) -> PolicyMeasurement:
    """Measure in this process, without the garbage collector, as the controller's cycle is."""
    before = look()
    pace = Pace(here_us=loads_us(create(model())), there_us=LOADS_US)
    fleet = BindingFleet(bindings=settings.bindings)
    progress(f"{settings.bindings} bindings with {len(fleet.pods)} pods")
    with uncollected(), silent():
        spent, written = asyncio.run(_cycles(fleet, settings.cycles))
        progress("the plain way")
        plain = _plain(fleet)
    return PolicyMeasurement(
        settings=settings,
        machine=(before, look()),
        pace=pace,
        pods=len(fleet.pods),
        first_seconds=spent[0],
        cycle_seconds=statistics.median(spent[1 + _WARM_CYCLES :]),
        plain_seconds=plain,
        writes_per_cycle=statistics.median(written[1 + _WARM_CYCLES :]),
        courses=tuple(trajectories()),
    )


def _share(item: Trajectory) -> float:
    """Return our overload as a share of the mended reference's; 1 where there is none on either side."""
    if not item.mended.overload_seconds:
        return 1.0 + item.exact.overload_seconds
    return item.exact.overload_seconds / item.mended.overload_seconds


def _row(item: Trajectory) -> Row:
    def shown(course: Course) -> tuple[str, str]:
        return f"{course.replica_hours:.2f}", f"{course.overload_seconds:.0f} s"

    courses = (item.released, item.mended, item.ours, item.exact)
    return (
        item.shape,
        f"{item.start_seconds:.0f} s",
        *(text for course in courses for text in shown(course)),
    )


async def _cycles(fleet: BindingFleet, count: int) -> tuple[list[float], list[int]]:
    spent, written = [], []
    for _ in range(1 + _WARM_CYCLES + count):
        began, before = time.process_time(), fleet.written
        await fleet.cycle()
        spent.append(time.process_time() - began)
        written.append(fleet.written - before)
    return spent, written


def _plain(fleet: BindingFleet) -> float:
    """Return what it takes to parse the whole text of every pod, and to do nothing with it."""
    began = time.process_time()
    for _ in fleet.pods:
        list(text_string_to_metric_families(fleet.text))
    return time.process_time() - began

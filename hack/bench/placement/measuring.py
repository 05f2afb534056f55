"""One run of the placement benchmark, part after part; whoever asks is given what there is after each."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hack.bench.frame import Frame, framed
from hack.bench.placement.children import run
from hack.bench.placement.joint import Joint
from hack.bench.placement.joint import run as run_joint
from hack.bench.placement.measurement import PlacementMeasurement
from hack.bench.placement.moving import USED_PERCENT, Moving, moved
from hack.bench.placement.outcome import Outcome
from hack.bench.placement.planning import CHANGES, Planned, planned
from hack.bench.placement.race import FAMILY as RACE
from hack.bench.placement.race import Race, race
from hack.bench.placement.repeating import REPEATS, Again, again
from hack.bench.placement.schedule import PlacementSettings

JOINT = "joint"
"""Stands among the families for placing and then moving."""

Part = Outcome | Moving | Planned | Again | Race | Joint


@dataclass(frozen=True, kw_only=True, slots=True)
class Measuring:
    """What was measured so far."""

    settings: PlacementSettings
    frame: Frame
    parts: list[Part] = field(default_factory=list)

    def so_far(self, failure: str = "") -> PlacementMeasurement:
        """Return it as if that were all."""
        joints = [part for part in self.parts if isinstance(part, Joint)]
        return PlacementMeasurement(
            settings=self.settings,
            machine=self.frame.machine(),
            pace=self.frame.pace(),
            failure=failure,
            outcomes=tuple(part for part in self.parts if isinstance(part, Outcome)),
            moves=tuple(part for part in self.parts if isinstance(part, Moving)),
            plans=tuple(part for part in self.parts if isinstance(part, Planned)),
            again=tuple(part for part in self.parts if isinstance(part, Again)),
            races=tuple(part for part in self.parts if isinstance(part, Race)),
            joint=joints[0] if joints else None,
        )

    def kinds(self) -> Iterator[Iterator[Part]]:
        """Yield what may break alone; its parts are measured as they are asked for, what takes long last."""
        asked = self.settings
        yield self._moves()
        yield self._outcomes()
        for size in sorted({*asked.sizes} & {*CHANGES}):
            yield from (self._plans(one, size, seed) for one in asked.plans for seed in asked.seeds)
        for size in sorted({*asked.sizes} & {*REPEATS}):
            yield from (self._again(one, size, seed) for one in asked.again for seed in asked.seeds)
        yield self._joint()
        yield self._races()

    def _moves(self) -> Iterator[Moving]:
        """Measure every fragmented cluster, here: it takes little of anything."""
        asked = self.settings
        for family in asked.fragmented:
            for nodes in asked.nodes:
                self.frame.step(f"{family}/{nodes}")
                for used in USED_PERCENT:
                    for seed in asked.seeds:
                        yield moved(
                            family, nodes, used, seed=seed, rounds=asked.rounds, seconds=asked.seconds
                        )

    def _outcomes(self) -> Iterator[Outcome]:
        for job in self.settings.jobs():
            self.frame.step(f"{job.instance.name}: {job.engine}")
            yield run(job, self.frame.cores)

    def _plans(self, family: str, size: int, seed: int) -> Iterator[Planned]:
        """Measure whole plans of one world, here."""
        self.frame.step(f"{family}/{size}/{seed}")
        yield from planned(family, size, seed=seed, seconds=self.settings.seconds, changes=CHANGES[size])

    def _again(self, family: str, size: int, seed: int) -> Iterator[Again]:
        self.frame.step(f"{family}/{size}/{seed}")
        repeats = self.settings.repeats or REPEATS[size]
        yield again(self.frame.cores, family, size, seed=seed, repeats=repeats)

    def _joint(self) -> Iterator[Joint]:
        if self.settings.is_joint:
            self.frame.step(JOINT)
            yield run_joint(self.frame.cores, seconds=self.settings.seconds)

    def _races(self) -> Iterator[Race]:
        for seed in self.settings.seeds if self.settings.is_raced else ():
            self.frame.step(f"{RACE}: HiGHS has {self.settings.highs_seconds:.0f} s of CPU")
            yield from race(self.frame.cores, seed=seed, seconds=self.settings.highs_seconds)


def measure(
    settings: PlacementSettings,
    *,
    progress: Callable[[str], None],
    keep: Callable[[PlacementMeasurement], None],
) -> PlacementMeasurement:
    """Measure all that is asked for; what breaks ends alone, and who interrupts has what there is."""
    began = time.monotonic()
    failures = []
    with framed(progress=lambda text: progress(f"{_clock(time.monotonic() - began)} {text}")) as frame:
        measuring = Measuring(settings=settings, frame=frame)
        try:
            for kind in measuring.kinds():
                try:
                    for part in kind:
                        measuring.parts.append(part)
                        keep(measuring.so_far())
                except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                    frame.progress(f"broken: {error}")
                    failures.append(str(error))
        except KeyboardInterrupt:
            failures.append("interrupted: the rest was not measured")
        return measuring.so_far("\n".join(failures))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:3}:{rest:02}"

"""One row: our results with every seed, and the best setting of each rival."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hack.bench.compared import OURS
from hack.bench.decisions.choosing import candidates, confirmed, is_dearer_for_good, misses_as_little
from hack.bench.decisions.points import CLAIRVOYANT, Played, Point, mean
from hack.bench.decisions.rows import Row

FIXED: Final = (16, 32)
"""Targets of the HPA on concurrency that run in all rows, for users who do not tune it."""

SATURATION: Final = ("wva-v1", "wva-v2")
_MOST_REPLICAS: Final = 64
_HOUR_SECONDS: Final = 3600.0

Player = Callable[[Sequence[Point]], list[Played]]
"""Simulates points, each of them once and several at a time, and returns their results."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """The seeds and settings to try."""

    seeds: tuple[int, ...]
    targets: tuple[int, ...]
    """Targets of the HPA on concurrency, in descending order."""

    queues: tuple[int, ...]
    """Targets of the HPA on the queue."""

    saturation: bool
    """Whether the saturation rules run."""

    constants: bool
    """Whether the best constant fleet is searched in every row, or only in rows with a goal for it."""


FULL: Final = Sweep(
    seeds=(1, 2, 3),
    targets=(64, 48, 40, 32, 24, 16, 8, 4),
    queues=(8, 2),
    saturation=True,
    constants=True,
)
QUICK: Final = Sweep(seeds=(1,), targets=(64, 48, 32, 16), queues=(), saturation=False, constants=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class RowResult:
    """The results of one row: means over all seeds, except for those that only run with the first one.

    These are the clairvoyant and `others`: the HPAs on the queue and the saturation rules.
    """

    name: str
    ours: Played
    ours_first: Played
    """Our result with the first seed, for comparison with policies that only ran with it."""

    fixed: tuple[Played, ...]
    concurrency: Played | None
    """The best setting; None if no setting misses about as little as ours."""

    constant: Played | None
    others: tuple[Played, ...]
    clairvoyant: Played | None
    swept: tuple[Played, ...] = ()
    """All rivals' results with the first seed."""


def swept(row: Row, sweep: Sweep, play: Player) -> RowResult:
    """Run one row."""
    return _Sweeping(row, sweep, play).result()


class _Sweeping:
    """The points of one row."""

    def __init__(self, row: Row, sweep: Sweep, play: Player) -> None:
        self._row, self._sweep, self._play = row, sweep, play
        self._rivals = row.rivals_of or row.name
        self._first, *self._later = sweep.seeds
        self._known: dict[Point, Played] = {}
        self._ours: list[Played] = []

    def result(self) -> RowResult:
        """Return the results of the row."""
        sweep, row = self._sweep, self._row
        self._ours = self._play([Point(row=row.name, policy=OURS, seed=seed) for seed in sweep.seeds])
        fixed = self._fixed()
        concurrency = confirmed(self._concurrency(), self._ours, self._more)
        wants_constant = sweep.constants or row.most.of_constant is not None
        constant = confirmed(self._constants(), self._ours, self._more) if wants_constant else None
        clairvoyant = self._seen(CLAIRVOYANT) if row.has_clairvoyant else None
        return RowResult(
            name=row.name,
            ours=mean(self._ours),
            ours_first=self._ours[0],
            fixed=fixed,
            concurrency=concurrency,
            constant=constant,
            others=self._others(),
            clairvoyant=clairvoyant,
            swept=tuple(item for point, item in self._known.items() if point.seed == self._first),
        )

    def _fixed(self) -> tuple[Played, ...]:
        names = [f"concurrency:{target}{_at(self._row.scaled[0])}" for target in FIXED]
        self._all([(name, seed) for name in names for seed in self._sweep.seeds])
        return tuple(mean([self._seen(name), *self._more(name)]) for name in names)

    def _concurrency(self) -> list[Played]:
        """Return the results of each variant, from the highest target down to where costs only rise."""
        found: list[Played] = []
        for variant in self._row.scaled:
            course: list[Played] = []
            for target in self._sweep.targets:
                course.append(self._seen(f"concurrency:{target}{_at(variant)}"))
                best = next(iter(candidates([*found, *course], self._ours[0])), None)
                if best and is_dearer_for_good(course, best):
                    break
            found += course
        return found

    def _constants(self) -> list[Played]:
        """Return the smallest constant fleet of each variant that misses about as little as ours."""
        found: list[Played] = []
        for name in self._row.scaled:
            if smallest := self._smallest(name, most_cost=min((one.cost for one in found), default=math.inf)):
                found.append(smallest)
        return found

    def _smallest(self, variant: str, *, most_cost: float) -> Played | None:
        """Return it, found by doubling and then halving steps.

        None if it needs too many replicas, or costs at least `most_cost`, the best known cost.
        """
        low, step = self._too_few(variant), 1
        best = self._constant(low + step, variant)
        while not misses_as_little(best, self._ours[0]):
            if low + step >= _MOST_REPLICAS or best.cost >= most_cost:
                return None
            low, step = low + step, step * 2
            best = self._constant(low + step, variant)
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            tried = self._constant(middle, variant)
            if misses_as_little(tried, self._ours[0]):
                best, high = tried, middle
            else:
                low = middle
        return best

    def _constant(self, replicas: int, variant: str) -> Played:
        return self._seen(f"constant:{replicas}{_at(variant)}")

    def _too_few(self, name: str) -> int:
        """Return the replicas that cost a third of ours, assumed to be too few; 0 without a variant."""
        scenario = self._row.scenario
        prices = {item.name: item.price_per_hour for item in scenario.variants}
        if name not in prices:
            return 0
        whole = prices[name] * scenario.duration_seconds / _HOUR_SECONDS
        return int(self._ours[0].cost / 3 / whole)

    def _others(self) -> tuple[Played, ...]:
        names = [f"queue:{count}{_at(self._row.scaled[0])}" for count in self._sweep.queues]
        names += SATURATION if self._sweep.saturation else ()
        self._all([(name, self._first) for name in names])
        return tuple(self._seen(name) for name in names)

    def _more(self, policy: str) -> list[Played]:
        """Return the results of a policy with the later seeds."""
        return self._all([(policy, seed) for seed in self._later])

    def _seen(self, policy: str) -> Played:
        return self._all([(policy, self._first)])[0]

    def _all(self, named: Sequence[tuple[str, int]]) -> list[Played]:
        points = [Point(row=self._rivals, policy=policy, seed=seed) for policy, seed in named]
        found = self._play(points)
        self._known |= dict(zip(points, found, strict=True))
        return found


def _at(variant: str) -> str:
    return f"@{variant}" if variant else ""

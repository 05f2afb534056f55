"""The rivals of a row: HPAs, constant fleets, the reference autoscaler's rules, and the lower bound.

They are kept in a file beside the rows, because they only change with a row or with the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from hack.decisions.capacity import sizes_of
from hack.decisions.points import PointResult, SimulationPoint, play
from hack.decisions.rows import Row, rows
from hack.decisions.saturation import RULES

VERSION: Final = 1
"""Raise it after a change of the simulation or of a rival that changes results: then all count as missing."""

PATH: Final = Path(__file__).with_name("rivals.json")
CONCURRENCIES: Final = (8, 16, 32, 64)
"""Requests per replica that HPAs aim at."""

SEED: Final = 1
"""The only seed of rivals; they are compared with Stowplan's result for the same requests."""

_MOST_REPLICAS: Final = 100

Sizes = Mapping[str, tuple[int, int]]
"""Replicas of each variant that serve the mean rate, and the highest one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRivals:
    """What was measured for one row, by policy."""

    digest: str
    sizes: Sizes = field(default_factory=dict)
    played: dict[str, PointResult] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rivals:
    """The rivals of one row; None for constant fleets and a bound that a row does not have."""

    fixed: tuple[PointResult, ...]
    """HPAs on concurrency, each target with each variant."""

    rules: tuple[PointResult, ...]
    mean: PointResult | None = None
    """The constant fleet of one variant that is sized for the mean rate, at least cost."""

    peak: PointResult | None = None
    """The same for the highest rate."""

    constant: PointResult | None = None
    """The cheapest constant fleet of one variant that keeps the promise of the row."""

    bound: PointResult | None = None

    def cheapest_fixed(self, promised: float) -> PointResult | None:
        """Return the cheapest HPA on concurrency that keeps a promise; None if none does."""
        return min((one for one in self.fixed if keeps(one, promised)), key=_cost, default=None)


class NotMeasuredError(Exception):
    """A result is not in the file."""


def keeps(played: PointResult, promised: float) -> bool:
    """Tell whether the promised share of requests was within the targets."""
    return played.missed <= 1 - promised + 1e-9


def read_stored(path: Path = PATH) -> dict[str, StoredRivals]:
    """Return what is kept by row; nothing if there is no file. Raises OSError, msgspec.ValidationError."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, StoredRivals]) if path.exists() else {}


def write(kept: Mapping[str, StoredRivals], path: Path = PATH) -> None:
    """Replace the file; rows that no longer exist are left out. Raises OSError."""
    current = {name: kept[name] for name in rows() if name in kept}
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(current), indent=1) + b"\n")
    unfinished.replace(path)


@cache
def digest(name: str) -> str:
    """Return a digest of all that determines the results of a row's rivals."""
    return digest_of(rows()[name])


def digest_of(row: Row) -> str:
    """Return it for any row: of its scenario, which includes traces, engines and seed, and the version."""
    inputs = (VERSION, SEED, row.scaled, row.scenario)
    return sha256(msgspec.json.encode(inputs)).hexdigest()[:16]


def kept_rivals(row: Row, kept: Mapping[str, StoredRivals]) -> Rivals:
    """Return the rivals of a row. Raises NotMeasuredError if they are missing, or the row has changed."""
    stored = kept.get(owner(row))
    if stored is None or stored.digest != digest(owner(row)):
        raise NotMeasuredError(row.name)

    def stored_result(policy: str) -> PointResult:
        if policy not in stored.played:
            raise NotMeasuredError(f"{row.name}: {policy}")
        return stored.played[policy]

    return _rivals(row, stored.sizes, stored_result)


def measure_rivals(names: tuple[str, ...], before: StoredRivals | None) -> StoredRivals:
    """Measure what is missing for rows with the same rivals, and return all of it."""
    row = rows()[owner(rows()[names[0]])]
    if before is None or before.digest != digest(row.name):
        sizes = {} if row.is_short else sizes_of(row)
        before = StoredRivals(digest=digest(row.name), sizes=sizes)

    def result_of(policy: str) -> PointResult:
        if policy not in before.played:
            before.played[policy] = play(SimulationPoint(row=row.name, policy=policy, seed=SEED))
        return before.played[policy]

    for name in names:
        _rivals(rows()[name], before.sizes, result_of)
    return before


def owner(row: Row) -> str:
    """Return the name of the row under which the rivals of a row are kept."""
    return row.rivals_of or row.name


def _rivals(row: Row, sizes: Sizes, result_of: Callable[[str], PointResult]) -> Rivals:
    """Return the rivals of a row; all results come from `result_of`."""
    fixed = tuple(
        result_of(f"concurrency:{count}@{variants}") for variants in row.scaled for count in CONCURRENCIES
    )
    rules = tuple(map(result_of, RULES))
    if row.is_short:
        return Rivals(fixed=fixed, rules=rules)
    prices = {item.name: item.price_per_hour for item in row.scenario.variants}

    def constant_of(place: int) -> PointResult:
        chosen = min(sizes, key=lambda name: sizes[name][place] * prices[name])
        return result_of(_constant(sizes[chosen][place], chosen))

    return Rivals(
        fixed=fixed,
        rules=rules,
        mean=constant_of(0),
        peak=constant_of(1),
        constant=_best_constant(row, sizes, result_of),
        bound=result_of(f"lower-bound:{100 * row.promised:g}"),
    )


def _best_constant(row: Row, sizes: Sizes, played: Callable[[str], PointResult]) -> PointResult | None:
    """Return the cheapest constant fleet of one variant that keeps the promise.

    The more replicas, the fewer requests miss: from the size for the mean rate it goes up in growing steps,
    and then the last step is halved; or down, one by one.
    """
    best: PointResult | None = None
    for variant, (begin, _) in sizes.items():
        low, high, step = 0, begin, 1
        while not keeps(candidate := played(_constant(high, variant)), row.promised):
            low, high, step = high, high + step, step * 2
            if high > _MOST_REPLICAS or (best and candidate.cost >= best.cost):
                break
        else:
            while high - low > 1:
                middle = high - 1 if low == 0 else (low + high) // 2
                tried = played(_constant(middle, variant))
                if keeps(tried, row.promised):
                    candidate, high = tried, middle
                else:
                    low = middle
            best = min(candidate, best or candidate, key=_cost)
    return best


def _constant(replicas: int, variant: str) -> str:
    return f"constant:{replicas}@{variant}"


def _cost(played: PointResult) -> float:
    return played.cost

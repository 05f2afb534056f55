"""Repeated plans of one world, which must be identical.

Whole plans are compared, because users see these, and `plan()` sorts its inputs: the same world must give the
same bytes in every run and process, and with its lists in any order. A run makes two plans; the second starts
from the state of the first, after a few loads changed. The state is compared, too. The pods of a variant keep
their order, which determines the removal order. The wall-clock limit is disabled, because it makes results
depend on speed. Bare problems with shuffled models are not measured: they may have another answer of equal
value, and the planner never states them in this way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot
from hack.bench.child import ChildError, in_child
from hack.bench.goals import Goal
from hack.bench.placement.planning import SHARE
from hack.bench.table import Columns
from hack.calling.cores import Cores
from hack.fleets.worlds import FACTORS, carried_out, changed, world

FAMILIES: Final = {f"again-{name.removeprefix('plan-')}": name for name in FACTORS}
"""Worlds of whole plans, by name of the family that plans them repeatedly."""

REPEATS: Final = {20: 5, 500: 1, 2000: 1}
"""Number of runs with and without shuffling each, by number of models."""

T = TypeVar("T")

_AS_IT_IS: Final = 0
"""The order number that does not shuffle; every other number is a random order."""

_PROCESSES: Final = 2
"""Number of processes; each has its own random seed of string hashes."""

_PLANS: Final = 2
_LISTS: Final = ("variants", "models", "loads", "pools", "quotas", "budgets")
_NO_CLOCK_SECONDS: Final = 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Again:
    """The results of one world that was planned several times."""

    family: str
    size: int
    seed: int
    plain: tuple[str, ...]
    """Digest of each run with unchanged lists."""

    shuffled: tuple[str, ...]
    """Digest of each run with shuffled lists."""

    @property
    def different(self) -> int:
        """The number of different results."""
        return len({*self.plain, *self.shuffled})


def again(cores: Cores, family: str, size: int, *, seed: int, repeats: int) -> Again:
    """Plan in two processes, one after the other. Raises ChildError if one fails."""
    orders = [*[_AS_IT_IS] * repeats, *range(1, repeats + 1)]
    by_order: list[tuple[int, str]] = []
    for part in (orders[number::_PROCESSES] for number in range(_PROCESSES)):
        try:
            made = in_child(cores, None, digests, family, size, seed, part)
        except ChildError as error:
            raise ChildError(f"planning {family}/{size}/{seed} again: {error}") from error
        by_order += zip(part, made, strict=True)
    return Again(
        family=family,
        size=size,
        seed=seed,
        plain=tuple(digest for order, digest in by_order if order == _AS_IT_IS),
        shuffled=tuple(digest for order, digest in by_order if order != _AS_IT_IS),
    )


def digests(family: str, size: int, seed: int, orders: Sequence[int]) -> list[str]:
    """Return the digest of a run in each order."""
    return [digest(family, size, seed=seed, order=order) for order in orders]


def digest(family: str, size: int, *, seed: int, order: int) -> str:
    """Return a digest that two runs share only if their plans are equal, byte for byte."""
    settings = Settings(wall_seconds=_NO_CLOCK_SECONDS)
    current = world(FAMILIES[family], size, seed=seed)
    seen = hashlib.sha256()
    for number in range(_PLANS):
        made = plan(shuffled(current, order=order), settings)
        seen.update(json.dumps(asdict(made), default=str).encode())
        current = changed(carried_out(current, made), share=SHARE, seed=seed + number)
    return seen.hexdigest()[:16]


def shuffled(snapshot: Snapshot, *, order: int) -> Snapshot:
    """Return the snapshot with all its lists shuffled, or unchanged for order 0."""
    if order == _AS_IT_IS:
        return snapshot
    rng = np.random.default_rng(order)
    nodes = _shuffle(rng, [replace(node, movable=_shuffle(rng, node.movable)) for node in snapshot.nodes])
    others: dict[str, Any] = {name: _shuffle(rng, getattr(snapshot, name)) for name in _LISTS}
    return replace(snapshot, nodes=nodes, **others)


def _shuffle(rng: np.random.Generator, items: Sequence[T]) -> tuple[T, ...]:
    return tuple(items[index] for index in rng.permutation(len(items)).tolist())


COLUMNS: Final[Columns[Again]] = (
    ("repeated plans", lambda one: one.family),
    ("models", lambda one: str(one.size)),
    ("seed", lambda one: str(one.seed)),
    ("in order", lambda one: str(len(one.plain))),
    ("shuffled", lambda one: str(len(one.shuffled))),
    ("different results", lambda one: str(one.different)),
)

"""Columns of the table, with one line per world."""


def again_goals(results: Sequence[Again]) -> Iterator[Goal]:
    """Yield the largest number of different results for one world."""
    if results:
        most = max(one.different for one in results)
        yield Goal(name="T9_different_plans_of_the_same_world", value=most, unit="plans", most=1)

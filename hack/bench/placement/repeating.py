"""Plan one world again and again.

Whole plans are what users have, and `plan()` sorts what it is given: the same world has to give the same
bytes however often it is planned, in whichever process, and in whatever order its lists come. A run makes two
plans, the second after a few loads changed, from what the first remembered; what is remembered counts, too.
The pods of a variant keep their order: it says which one leaves first. The limit by the clock is out of the
way, for it promises nothing of the kind. A problem whose models are shuffled may well have another answer
that is as good: nobody ever states one that way, so that is not measured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState
from hack.bench.child import ChildError, in_child
from hack.bench.cores import Cores
from hack.bench.goals import Goal
from hack.bench.placement.planning import SHARE
from hack.bench.table import Columns
from hack.fleets.worlds import FACTORS, carried_out, changed, world

FAMILIES: Final = {f"again-{name.removeprefix('plan-')}": name for name in FACTORS}
"""The worlds of whole plans, by the name of planning them again."""

REPEATS: Final = {20: 5, 500: 1, 2000: 1}
"""Runs in each order, by models."""

T = TypeVar("T")

_AS_IT_IS: Final = 0
"""The order that is none: every other number shuffles."""

_PROCESSES: Final = 2
"""Each has a seed of its own for the hashes of texts."""

_PLANS: Final = 2
_LISTS: Final = ("variants", "models", "loads", "pools", "quotas", "budgets")
_NO_CLOCK_SECONDS: Final = 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Again:
    """What came of one world, planned several times."""

    family: str
    size: int
    seed: int
    plain: tuple[str, ...]
    """Digest of each run with the lists as they are."""

    shuffled: tuple[str, ...]
    """Of each run with every list in another order."""

    @property
    def different(self) -> int:
        """How many different results there are."""
        return len({*self.plain, *self.shuffled})


def again(cores: Cores, family: str, size: int, *, seed: int, repeats: int) -> Again:
    """Plan in two processes, one after the other; raises ChildError where one does not end well."""
    orders = [*[_AS_IT_IS] * repeats, *range(1, repeats + 1)]
    found: list[tuple[int, str]] = []
    for part in (orders[number::_PROCESSES] for number in range(_PROCESSES)):
        try:
            made = in_child(cores, None, digests, family, size, seed, part)
        except ChildError as error:
            raise ChildError(f"planning {family}/{size}/{seed} again: {error}") from error
        found += zip(part, made, strict=True)
    return Again(
        family=family,
        size=size,
        seed=seed,
        plain=tuple(digest for order, digest in found if order == _AS_IT_IS),
        shuffled=tuple(digest for order, digest in found if order != _AS_IT_IS),
    )


def digests(family: str, size: int, seed: int, orders: Sequence[int]) -> list[str]:
    """Return the digest of every order."""
    return [digest(family, size, seed=seed, order=order) for order in orders]


def digest(family: str, size: int, *, seed: int, order: int) -> str:
    """Return what two runs share only if they plan and remember the same, byte for byte."""
    settings = Settings(wall_seconds=_NO_CLOCK_SECONDS)
    found, state = world(FAMILIES[family], size, seed=seed), PlanningState()
    seen = hashlib.sha256()
    for number in range(_PLANS):
        made, state = plan(shuffled(found, order=order), state, settings)
        for part in (asdict(made), asdict(state)):
            seen.update(json.dumps(part, default=str).encode())
        found = changed(carried_out(found, made), share=SHARE, seed=seed + number)
    return seen.hexdigest()[:16]


def shuffled(found: Snapshot, *, order: int) -> Snapshot:
    """Return the snapshot with all its lists in another order, or as it is."""
    if order == _AS_IT_IS:
        return found
    rng = np.random.default_rng(order)
    nodes = _mixed(rng, [replace(node, movable=_mixed(rng, node.movable)) for node in found.nodes])
    others: dict[str, Any] = {name: _mixed(rng, getattr(found, name)) for name in _LISTS}
    return replace(found, nodes=nodes, **others)


def _mixed(rng: np.random.Generator, items: Sequence[T]) -> tuple[T, ...]:
    return tuple(items[index] for index in rng.permutation(len(items)).tolist())


COLUMNS: Final[Columns[Again]] = (
    ("the same again", lambda one: one.family),
    ("models", lambda one: str(one.size)),
    ("seed", lambda one: str(one.seed)),
    ("as it is", lambda one: str(len(one.plain))),
    ("shuffled", lambda one: str(len(one.shuffled))),
    ("different results", lambda one: str(one.different)),
)

"""Of the table: a line for each."""


def again_goals(found: Sequence[Again]) -> Iterator[Goal]:
    """Yield whether all that is the same is planned alike."""
    if found:
        most = max(one.different for one in found)
        yield Goal(name="T9_different_plans_of_the_same_world", value=most, unit="plans", most=1)

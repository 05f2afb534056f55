"""`python -m hack.bench.placement.repeating JOB`: plan one world again and again; digests are printed.

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
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState
from hack.bench.cores import Cores
from hack.bench.goals import Goal
from hack.bench.placement.planning import SHARE
from hack.bench.table import Row, aligned
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

    def as_json(self) -> dict[str, Any]:
        """Return it as a member of a document."""
        return asdict(self)


def again(cores: Cores, family: str, size: int, *, seed: int, repeats: int) -> Again:
    """Plan in two processes, one after the other; raises OSError where one does not end well."""
    orders = [*[_AS_IT_IS] * repeats, *range(1, repeats + 1)]
    parts = [orders[number::_PROCESSES] for number in range(_PROCESSES)]
    found = [pair for part in parts if part for pair in _run(cores, family, size, seed, part)]
    return Again(
        family=family,
        size=size,
        seed=seed,
        plain=tuple(digest for order, digest in found if order == _AS_IT_IS),
        shuffled=tuple(digest for order, digest in found if order != _AS_IT_IS),
    )


def _run(cores: Cores, family: str, size: int, seed: int, orders: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield the digest of every order, from a process of its own."""
    job = json.dumps({"family": family, "size": size, "seed": seed, "orders": orders})
    command = [sys.executable, "-m", "hack.bench.placement.repeating", job]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        cores.pin_server(process.pid)
        printed, complaints = process.communicate()
    if process.returncode:
        complaint = (complaints.strip().splitlines() or [""])[-1]
        raise OSError(f"planning {family}/{size}/{seed} again ended with {process.returncode}: {complaint}")
    yield from zip(orders, json.loads(printed.splitlines()[-1]), strict=True)


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
    return replace(
        found,
        nodes=_mixed(rng, [replace(node, movable=_mixed(rng, node.movable)) for node in found.nodes]),
        variants=_mixed(rng, found.variants),
        models=_mixed(rng, found.models),
        loads=_mixed(rng, found.loads),
        pools=_mixed(rng, found.pools),
        quotas=_mixed(rng, found.quotas),
        budgets=_mixed(rng, found.budgets),
    )


def _mixed(rng: np.random.Generator, items: Sequence[T]) -> tuple[T, ...]:
    return tuple(items[index] for index in rng.permutation(len(items)).tolist())


def again_table(found: Sequence[Again]) -> list[str]:
    """Return the lines of the table: a line for each world."""
    rows: list[Row] = [("the same again", "models", "seed", "as it is", "shuffled", "different results")]
    rows += (
        (
            one.family,
            str(one.size),
            str(one.seed),
            str(len(one.plain)),
            str(len(one.shuffled)),
            str(one.different),
        )
        for one in found
    )
    return aligned(rows)


def again_goals(found: Sequence[Again]) -> Iterator[Goal]:
    """Yield whether all that is the same is planned alike."""
    if found:
        most = max(one.different for one in found)
        yield Goal(name="T9_different_plans_of_the_same_world", value=most, unit="plans", most=1)


def main(text: str) -> int:
    """Plan what a job says and print the digests."""
    job = json.loads(text)
    world_of = (job["family"], job["size"])
    print(json.dumps([digest(*world_of, seed=job["seed"], order=order) for order in job["orders"]]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

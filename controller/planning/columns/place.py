"""Placement by pattern columns and prices: near-optimal with a proof at any size, optimal at small ones.

Sources: column generation and Lagrangian bounds (Geoffrion, 1974), the core concept (Balas and Zemel, 1980).
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.alternatives import alternatives_to
from controller.planning.columns.asked import Asking
from controller.planning.columns.certificate.levels import Certifier
from controller.planning.columns.cohorts import cohorts_of, levels_of
from controller.planning.columns.earlier import Earlier, known_prices
from controller.planning.columns.exact import better, is_open, is_small, settled
from controller.planning.columns.mixes import first_mixes
from controller.planning.columns.naming import name_nodes
from controller.planning.columns.pool import pool_of
from controller.planning.columns.resources import resources_of
from controller.planning.columns.running import Running
from controller.planning.columns.search import scope_of, search
from controller.planning.columns.selection import (
    Found,
    Selection,
    asked_of,
    asks_of,
    level_values,
    replicas_of,
    total_values,
)
from controller.planning.housing import house
from controller.planning.lexicographic import NoSolutionError
from controller.planning.magnitude import check_magnitude
from controller.planning.problem import Proof, Solution
from controller.planning.proofs import proven, with_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.naming import Places
    from controller.planning.columns.pool import Pool
    from controller.planning.known_prices import KnownPrices
    from controller.planning.lexicographic import Limits
    from controller.planning.problem import PlacementProblem


NARROWINGS = 2
"""How often a problem is solved again because replicas that were chosen found no place."""

LEAST_SECONDS = 0.1
"""What is left of the time at least, by the clock, for what comes after a search."""


def place(problem: PlacementProblem, *, limits: Limits, certifies: bool = False) -> Solution:
    """Return a placement, how good it is at each level, and over what that holds.

    With a certificate it says so over every replica mix, too, however many there are.

    Raises NumbersTooLargeError, and NoSolutionError when the limits allow no answer.
    """
    return ColumnModel(problem, certifies=certifies).place(limits)


def place_again(
    problem: PlacementProblem, *, limits: Limits, like: Solution, is_rough: bool = False
) -> Solution:
    """Return a placement for a problem that differs little from one that is solved.

    A rough one shows what a change is good for, and may miss what is little. Raises as `place` does.
    """
    model = ColumnModel(problem)
    return model.attempt(limits, known=like.prices, replicas=like.replicas, is_rough=is_rough)


class ColumnModel:
    """A problem in columns. Raises NumbersTooLargeError."""

    def __init__(
        self, problem: PlacementProblem, *, certifies: bool = False, narrowings: int = NARROWINGS
    ) -> None:
        check_magnitude(problem)
        self._narrowings = narrowings
        self._certifies = certifies
        self._problem = problem
        self._resources = resources_of(problem)
        self._levels = levels_of(problem)
        cohorts = cohorts_of(problem, self._resources, self._levels)
        self._pools = [pool_of(cohort, first_mixes(cohort)).compact() for cohort in cohorts]
        self._alone = self._best_alone()
        self._certifier = Certifier(self._pools, self._resources, self._levels) if certifies else None
        if self._certifier:
            self._pools = self._certifier.with_best_alone(self._pools, self._alone)
            self._alone = self._best_alone()

    def alone(self) -> tuple[int, ...]:
        """Return the replicas that each model would have if it had everything to itself."""
        return self._replicas(self._pools, self._alone)

    def place(
        self,
        limits: Limits,
        *,
        known: KnownPrices | None = None,
        replicas: Sequence[int] | None = None,
        is_brief: bool = False,
    ) -> Solution:
        """Return the best placement that the limits allow; at once, where there is room for everybody.

        With known prices the search begins from some replicas, by default from those that run. A brief one
        ends at twice the distance from each bound at which the search stayed that the prices are of, if that
        had as much effort.
        """
        if not self._problem.variants:
            return Solution(replicas=(), placements=())
        running = self._running(known, replicas, limits, is_brief=is_brief) if known else None
        found, best = self._settled(limits, running)
        return replace(best, alternatives=alternatives_to(best.replicas, found, self._resources))

    def attempt(
        self,
        limits: Limits,
        *,
        known: KnownPrices | None = None,
        replicas: Sequence[int] | None = None,
        is_rough: bool = False,
    ) -> Solution:
        """Return what a search alone comes to, without alternatives; a rough one solves a core of each level.

        Nobody asks whether the textbook model does better.
        """
        if not self._problem.variants:
            return Solution(replicas=(), placements=())
        running = self._running(known, replicas, limits) if known else None
        return self._searched(limits, running, is_rough=is_rough)[1]

    def _settled(self, limits: Limits, running: Running | None) -> tuple[Found, Solution]:
        """Return the best placement: a small problem's by a rough search first, and the textbook model."""
        if not is_small(self._problem):
            return self._searched(limits, running)
        until_seconds = monotonic() + limits.wall_seconds
        found, made = self._searched(limits, running, is_rough=True)
        if is_open(made):
            made = settled(self._problem, made, limits=_until(until_seconds, limits))
        if not is_open(made) or monotonic() >= until_seconds:
            return found, made
        try:
            found, other = self._searched(_until(until_seconds, limits), running)
        except NoSolutionError:  # there is an answer
            return found, made
        return found, better(other, made)

    def _searched(
        self, limits: Limits, running: Running | None, *, is_rough: bool = False
    ) -> tuple[Found, Solution]:
        """Return what the search over columns comes to; without one, where there is room for everybody."""
        until_seconds = monotonic() + limits.wall_seconds
        found = self._everybody()
        places = self._places(found, limits) if self._might_fit(self._alone) else None
        if places is None:
            found = search(
                self._pools,
                self._resources,
                Asking(self._problem, self._resources),
                self._levels,
                limits,
                running=running,
                certifies=self._certifies and not is_rough,
                is_rough=is_rough,
            )
            places = self._places(found, limits)
        if places is not None:
            return found, self._solution(found, places)
        return found, self._narrowed(found, _until(until_seconds, limits))

    def _running(
        self, known: KnownPrices, replicas: Sequence[int] | None, limits: Limits, *, is_brief: bool = False
    ) -> Running:
        return Running(
            is_brief=is_brief and known.effort_seconds >= limits.deterministic_seconds,
            earlier=Earlier(known, self._problem, self._resources, self._levels),
            replicas=np.array(
                [terms.current for terms in self._problem.variants] if replicas is None else replicas,
                dtype=np.int64,
            ),
        )

    def _narrowed(self, found: Found, limits: Limits) -> Solution:
        """Return the answer without what found no place, or a better one to a problem that knows of it.

        Rules that room alone does not tell can leave replicas without a place, although there is room.
        """
        cut = self._cut(found)
        if not self._narrowings:
            return cut
        variants = tuple(
            replace(terms, upper=max(terms.lower, count)) if count < chosen else terms
            for terms, count, chosen in zip(
                self._problem.variants,
                cut.replicas,
                self._replicas(found.pools, found.selection),
                strict=True,
            )
        )
        narrow = ColumnModel(
            replace(self._problem, variants=variants),
            certifies=self._certifies,
            narrowings=self._narrowings - 1,
        )
        other = narrow.attempt(limits)
        values = [proof.value for proof in other.proofs]
        if values >= [proof.value for proof in cut.proofs]:
            return cut
        return proven(other, with_values(found.proofs, values))

    def _cut(self, found: Found) -> Solution:
        """Return the answer without the replicas that found no place."""
        added = found.selection.added.tolist()
        housed = house(self._problem, self._replicas(found.pools, found.selection), added=added)
        values = self._levels.values(self._problem, housed.replicas, added)
        solution = Solution(
            replicas=housed.replicas,
            placements=housed.placements,
            grown=housed.grown,
            added=tuple(added),
            prices=self._prices(found),
        )
        return proven(solution, with_values(found.proofs, values))

    def _solution(self, found: Found, places: Places) -> Solution:
        replicas = self._replicas(found.pools, found.selection)
        proofs = found.proofs
        if places.added != tuple(found.selection.added.tolist()):
            proofs = with_values(proofs, self._levels.values(self._problem, replicas, places.added))
        solution = Solution(
            replicas=replicas,
            placements=places.placements,
            grown=places.grown,
            added=places.added,
            prices=self._prices(found),
        )
        return proven(solution, proofs)

    def _prices(self, found: Found) -> KnownPrices | None:
        return known_prices(self._problem, self._resources, found) if found.level_prices else None

    def _everybody(self) -> Found:
        """Return the answer in which each model has what is best for it alone: nothing can be better."""
        values = level_values(self._pools, self._resources, self._levels, self._alone)
        scope = scope_of(self._pools)
        totals = [*total_values(self._pools, self._levels), values[-1]]
        proofs = [
            Proof(level=self._levels.name(level), value=value, bound=value, scope=scope, total=total)
            for level, (value, total) in enumerate(zip(values, totals, strict=True))
        ]
        return Found(
            pools=tuple(self._pools),
            selection=self._alone,
            proofs=self._certifier.certified(proofs) if self._certifier else tuple(proofs),
            rows=np.zeros(len(self._resources.capacity)),
            joint=np.zeros(len(self._resources.capacity)),
            level_prices=(),
        )

    def _best_alone(self) -> Selection:
        return Selection(
            columns=tuple(pool.best_alone() for pool in self._pools),
            added=np.zeros_like(self._resources.growth_limit),
        )

    def _might_fit(self, selection: Selection) -> bool:
        """Tell whether limits are kept, and room suffices for those who could not go elsewhere."""
        resources = self._resources
        replicas = np.array(self._replicas(self._pools, selection))
        asked = asked_of(self._pools, selection, classes=len(resources.sizes))
        bound = resources.allowed.sum(axis=1) == 1
        taken = asked[bound] @ resources.own_uses[bound]
        keeps_limits = resources.limit_amounts @ replicas <= resources.limits
        return bool(keeps_limits.all() and (taken <= resources.most_slots_grown).all())

    def _replicas(self, pools: Sequence[Pool], selection: Selection) -> tuple[int, ...]:
        return tuple(replicas_of(pools, selection, len(self._problem.variants)).tolist())

    def _places(self, found: Found, limits: Limits) -> Places | None:
        return name_nodes(
            self._problem,
            self._resources,
            self._replicas(found.pools, found.selection),
            asks_of(found.pools, found.selection),
            added=found.selection.added,
            limits=limits,
        )


def _until(until_seconds: float, limits: Limits) -> Limits:
    """Return the limits with what is left of the time, by the monotonic clock: always a little."""
    return replace(limits, wall_seconds=max(LEAST_SECONDS, until_seconds - monotonic()))

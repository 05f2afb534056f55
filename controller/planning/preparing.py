"""All data that is computed before placement, and the placement within preemption and limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from controller.planning.case import published_replicas
from controller.planning.demand import ModelDemand, model_demands
from controller.planning.formulation import formulate
from controller.planning.mixing import with_main_variants
from controller.planning.preemption import first_step
from controller.planning.problem import LimitRow, PlacementProblem, Solution
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.solved_problem import SolvedProblem


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """All data that is computed before placement."""

    snapshot: Snapshot
    settings: Settings
    demands: Sequence[ModelDemand]
    problem: PlacementProblem
    plain_problem: PlacementProblem
    """The problem with room for everything, which shows what would be wanted."""

    def grant(self, place: Callable[[PlacementProblem], Solution]) -> SolvedProblem:
        """Return the problem solved by `place`, with preemption limited by disruption budgets."""
        first = self.solved_by(self._within_limits(place, self.problem))
        step = first_step(first, self.problem)
        if step is None:
            return first
        problem, going = step
        gradual = self.solved_by(self._within_limits(place, problem))
        when = "are removed over several plans" if going else "are not removed yet"
        return replace(gradual, problem=problem, gives_way=f"replicas of lower priorities {when}")

    def _within_limits(
        self, place: Callable[[PlacementProblem], Solution], problem: PlacementProblem
    ) -> Solution:
        """Return a placement whose published replicas respect limits, counting those kept without a place."""
        solution = place(problem)
        for is_last in (False, True):
            excesses = [self._excess(row, solution) for row in problem.limits]
            if not any(excesses):
                break
            limits = tuple(
                replace(row, limit=0 if is_last else max(0, row.limit - excess)) if excess else row
                for row, excess in zip(problem.limits, excesses, strict=True)
            )
            solution = place(replace(problem, limits=limits))
        return solution

    def _excess(self, row: LimitRow, solution: Solution) -> int:
        """Return by how much the published replicas would exceed both a limit and its current use."""
        asked = [(variant, demand) for demand in self.demands for variant in demand.variants]
        published = sum(
            amount * published_replicas(*asked[v], solution.replicas[v]) for v, amount in row.terms
        )
        now = sum(amount * asked[v][0].current_replicas for v, amount in row.terms)
        return max(0, published - max(row.limit, now))

    def solved_by(self, granted: Solution) -> SolvedProblem:
        """Return the solved problem with a solution, in which the wanted replicas are the granted ones."""
        return SolvedProblem(
            snapshot=self.snapshot,
            nodes=sorted(self.snapshot.nodes, key=lambda node: node.name),
            demands=self.demands,
            problem=self.problem,
            wanted=granted,
            granted=granted,
            settings=self.settings,
        )


def prepare(snapshot: Snapshot, settings: Settings) -> Prepared:
    """Return the data computed from a snapshot."""
    demands = model_demands(snapshot)
    formulated = formulate(snapshot, demands, settings=settings)
    return Prepared(
        snapshot=snapshot,
        settings=settings,
        demands=demands,
        problem=with_main_variants(formulated, demands),
        plain_problem=with_main_variants(formulated, demands, is_unlimited=True),
    )

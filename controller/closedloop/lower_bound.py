"""A lower bound of the cost: no policy that serves the promised share of requests in time costs less.

It is the optimum of a linear program with all requests known in advance. Everything that it leaves out or
relaxes can only make it lower than reality:

- Replicas are real numbers, the mean over a step of time. They serve if they were held for the start-up time
  before, which is as short as the jitter allows; they leave at once, and pass their work on.
- The work of a request is the least one (`needed_work`), and can be done at any time from its arrival until
  its last token is due, in any order and by any number of replicas of one or more variants.
- Of each model, the share of requests that may be late is dropped: the ones that save most.
- Nodes, bounds of replicas, other models, and the warm-up, after which any replicas may run, do not limit it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ortools.linear_solver import pywraplp

from controller.closedloop.load_classes import Load, load_of
from controller.closedloop.needed_work import work_model
from controller.closedloop.outcome import PolicyOutcome, VariantOutcome
from controller.closedloop.run import LAST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.closedloop.scenario import Model, Scenario, VariantSetup
    from controller.simulation.request import Request

ATTAINMENT = 0.99
"""Share of the requests of each model that is served in time, unless a policy's name says otherwise."""

_STEP_SECONDS = 30.0
_MOST_STEPS = 240
"""Steps are longer in longer runs, which only relaxes the bound."""


_Shares: TypeAlias = "Mapping[str, pywraplp.Variable]"
"""Shares of a class's work by variant."""


class UnsolvedError(Exception):
    """The solver found no optimum, for numerical reasons."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replicas:
    """The replicas of one variant in an optimum, as the mean of each step, and what they cost."""

    variant: VariantSetup
    course: tuple[float, ...]
    step_seconds: float

    @property
    def hours(self) -> float:
        """Replica-hours."""
        return sum(self.course) * self.step_seconds / 3600


def lower_bound(
    scenario: Scenario,
    *,
    attainment: float = ATTAINMENT,
    requests: Mapping[str, Sequence[Request]] | None = None,
    name: str = "lower-bound",
) -> PolicyOutcome:
    """Return the bound as the outcome of a policy that was not simulated: it has no models and no points.

    `missed` is the share of requests that are dropped. It is larger than promised if that share of a model's
    requests cannot be in time even on an idle replica. Raises UnsolvedError.
    """
    asked = scenario.requests() if requests is None else requests
    found: list[Replicas] = []
    dropped = count = 0.0
    for model in scenario.models:
        program = _Program(scenario, model, asked[model.model_id], attainment)
        found += program.solve()
        dropped += program.may_drop
        count += program.load.requests
    return PolicyOutcome(
        scenario=scenario.name,
        policy=name,
        cost=sum(item.hours * item.variant.price_per_hour for item in found),
        requests=round(count),
        missed=dropped / count if count else 0.0,
        missed_ttft=0.0,
        missed_itl=0.0,
        never_finished=0.0,
        abandoned=0.0,
        models=(),
        variants=tuple(map(_outcome, found)),
        points=(),
        note=(
            f"serving {100 * attainment:g} % of each model's requests in time costs at least this; it is not"
            " simulated"
        ),
    )


def _outcome(item: Replicas) -> VariantOutcome:
    return VariantOutcome(
        name=item.variant.name,
        model_id=item.variant.model_id,
        cost=item.hours * item.variant.price_per_hour,
        replica_hours=item.hours,
        reversals_per_hour=0.0,
        decided_reversals_per_hour=0.0,
        peak_replicas=math.ceil(round(max(item.course, default=0.0), 6)),
    )


class _Program:
    """The linear program of one model; times are in steps since scoring began."""

    def __init__(
        self, scenario: Scenario, model: Model, requests: Sequence[Request], attainment: float
    ) -> None:
        self._scenario = scenario
        self._model = model
        self._variants = scenario.variants_of(model.model_id)
        self._steps = min(_MOST_STEPS, math.ceil(scenario.duration_seconds / _STEP_SECONDS))
        self._step_seconds = scenario.duration_seconds / self._steps
        self._ends = self._steps + math.ceil(LAST_SECONDS / self._step_seconds)
        works = {item.name: work_model(item, model, requests).seconds for item in self._variants}
        self.load: Load = load_of(
            requests,
            works,
            since_us=round(scenario.warm_up_seconds * 1e6),
            step_seconds=self._step_seconds,
        )
        self.may_drop = max((1 - attainment) * self.load.requests, self.load.hopeless)
        """Requests that may be late, with those that must."""

        self._solver = pywraplp.Solver.CreateSolver("GLOP")

    def solve(self) -> list[Replicas]:
        """Return the replicas of each variant in an optimum. Raises UnsolvedError."""
        solver, hours = self._solver, self._step_seconds / 3600
        assigned = self._assigned()
        held = {item.name: [_real(solver) for _ in range(self._steps)] for item in self._variants}
        for variant in self._variants:
            ready = [_real(solver) for _ in range(self._ends)]
            self._start(variant, held[variant.name], ready)
            self._serve(variant, assigned, ready)
        solver.Minimize(
            solver.Sum([item.price_per_hour * hours * n for item in self._variants for n in held[item.name]])
        )
        if solver.Solve() != pywraplp.Solver.OPTIMAL:
            raise UnsolvedError(f"no lower bound was found for model {self._model.model_id}")
        return [
            Replicas(
                variant=item,
                course=tuple(n.solution_value() for n in held[item.name]),
                step_seconds=self._step_seconds,
            )
            for item in self._variants
        ]

    def _assigned(self) -> list[_Shares]:
        """Return for each class the share of its work on each variant that this variant does."""
        solver, dropped = self._solver, []
        shares: list[_Shares] = []
        for item in self.load.classes:
            share = {name: solver.NumVar(0.0, 1.0, "") for name in item.work_seconds}
            lost = solver.NumVar(0.0, item.requests, "")
            solver.Add(solver.Sum(list(share.values())) + item.most * lost >= item.needed)
            shares.append(share)
            dropped.append(lost)
        solver.Add(solver.Sum(dropped) <= self.may_drop - self.load.hopeless)
        return shares

    def _start(
        self, variant: VariantSetup, held: Sequence[pywraplp.Variable], ready: Sequence[pywraplp.Variable]
    ) -> None:
        """Limit what is ready by what was held for the start-up time before, and until then.

        After the end, the replicas that are ready then finish their work, without cost.
        """
        start_up = max(0.0, variant.start_up_seconds - variant.start_up_jitter_seconds)
        steps = int(start_up / self._step_seconds)
        is_cold = not self._scenario.warm_up_seconds
        for step, serving in enumerate(ready):
            last = min(step, self._steps - 1)
            for before in range(max(0, last - steps), last + 1):
                self._solver.Add(serving <= held[before])
            if is_cold and last < steps:
                self._solver.Add(serving <= variant.initial_replicas)

    def _serve(
        self,
        variant: VariantSetup,
        assigned: Sequence[Mapping[str, pywraplp.Variable]],
        ready: Sequence[pywraplp.Variable],
    ) -> None:
        """Let ready replicas do the work of each lag group, between its arrival and the time it is due."""
        solver, name = self._solver, variant.name
        done: list[list[pywraplp.Variable]] = []
        for lag, output in enumerate(self.load.outputs):
            arrives: list[list[pywraplp.Variable]] = [[] for _ in range(self._steps)]
            for item, share in zip(self.load.classes, assigned, strict=True):
                if item.lag == lag and name in share:
                    arrives[item.step].append(item.work_seconds[name] * share[name])
            came, served = [_real(solver) for _ in range(self._ends)], []
            before: pywraplp.Variable | float = 0.0
            for step, total in enumerate(came):
                new = solver.Sum(arrives[step]) if step < self._steps else 0.0
                solver.Add(total == before + new)
                served.append(_real(solver))
                solver.Add(served[step] <= total)
                if step:
                    solver.Add(served[step] >= served[step - 1])
                if step >= (due := self._due_steps(output)):
                    solver.Add(served[step] >= came[step - due])
                before = total
            solver.Add(served[-1] >= came[-1])
            done.append(served)
        capacity = self._step_seconds * variant.profile.ranks
        for step, serving in enumerate(ready):
            gained = [course[step] - course[step - 1] if step else course[0] for course in done]
            solver.Add(solver.Sum(gained) <= capacity * serving)

    def _due_steps(self, output_tokens: int) -> int:
        """Return the steps after the one of its arrival in which a request can still be served in time."""
        targets, patience = self._model.targets, self._scenario.patience_seconds
        first = min((item for item in (targets.ttft_seconds, patience) if item is not None), default=math.inf)
        rest = math.inf if targets.itl_seconds is None else targets.itl_seconds * (output_tokens - 1)
        if output_tokens == 1:
            rest = 0.0
        return min(self._ends, math.ceil(min(1e9, first + rest) / self._step_seconds))


def _real(solver: pywraplp.Solver) -> pywraplp.Variable:
    """Return a variable that is not negative."""
    return solver.NumVar(0.0, solver.infinity(), "")

"""A lower bound of the cost: no policy that serves the promised share of requests in time costs less.

It is the optimum of a linear program with all requests known in advance. Everything that it leaves out or
relaxes can only make it lower than reality:

- Replicas are real numbers, the mean over a step of time. They serve if they were held for the start-up time
  before, which is as short as the jitter allows; they leave at once, and pass their work on.
- The work of a request is the least one, and can be done at any time from its arrival until its last token is
  due, in any order and by any number of replicas of one or more variants.
- Of each model, the share of requests that may be late is dropped: the ones that save most.
- Nodes, bounds of replicas, other models, and the warm-up, after which any replicas may run, do not limit it.

The least work is what no scheduling can avoid. An iteration with n decoding sequences takes alpha + beta x n.
A request with o output tokens takes part in (o - 1) / a iterations, where a are the tokens per step. So its
work is at least delta per computed prompt token, beta per iteration, and its share of the alphas. At most n
sequences share one, where n is limited by the batch, by the KV cache, and by the ITL target: if the mean time
of a token of each request is at most T, the number of sequences in an iteration, averaged over all sequences,
is at most (a x T - alpha) / beta, even if no prompt ever delays a decoding sequence.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ortools.linear_solver import pywraplp

from controller.simulation.outcome import PolicyOutcome, VariantOutcome
from controller.simulation.scenario import LAST_SECONDS, Scenario, ScenarioModel, VariantSetup
from controller.simulation.workload import Request

ATTAINMENT = 0.99
"""Share of the requests of each model that is served in time, unless a policy's name says otherwise."""

_STEP_SECONDS = 30.0
_MOST_STEPS = 240
"""Steps are longer in longer runs, which only relaxes the bound."""

_OUTPUT_SHARES = (0.5, 0.8, 0.95, 0.99)
_PROMPT_SHARES = (0.5, 0.8, 0.95)
"""Shares of the requests at which groups of lengths end. A program with variables for each request would be
too large; of a group, only sums and extremes are known, which relaxes the bound.
"""

_Shares: TypeAlias = "Mapping[str, pywraplp.Variable]"
"""Shares of a class's work by variant."""

Work: TypeAlias = "Callable[[Request], float]"
"""The least work of a request on one variant, in engine-seconds; infinite if it cannot be in time."""


class UnsolvedError(Exception):
    """The solver found no optimum, for numerical reasons."""


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
    arrivals = scenario.requests() if requests is None else requests
    variants: list[VariantOutcome] = []
    dropped = count = 0.0
    for model in scenario.models:
        program = _Program(scenario, model, arrivals[model.model_id], attainment)
        variants += program.solve()
        dropped += program.may_drop
        count += program.requests
    return PolicyOutcome(
        scenario=scenario.name,
        policy=name,
        cost=sum(item.cost for item in variants),
        requests=round(count),
        missed=dropped / count if count else 0.0,
        variants=tuple(variants),
        note=(
            f"serving {100 * attainment:g} % of each model's requests in time costs at least this; it is not"
            " simulated"
        ),
    )


def least_work(variant: VariantSetup, model: ScenarioModel, requests: Sequence[Request]) -> Work:
    """Return the least work of requests on a variant.

    Sequences share an iteration by their number or by their tokens in the cache. Either is a bound for all
    requests together, and the greater one is used.
    """
    profile, targets = variant.profile, model.targets
    accepted, itl_ms = profile.accepted_tokens_per_step, math.inf
    sequences = float(profile.max_num_seqs)
    if targets.itl_seconds is not None:
        itl_ms = targets.itl_seconds * 1000 * accepted
        if profile.beta_ms:
            sequences = max(1.0, min(sequences, (itl_ms - profile.alpha_ms) / profile.beta_ms))
    by_number = sum(request.output_tokens - 1 for request in requests) / sequences
    by_tokens = sum((request.output_tokens - 1) * _cached_tokens(request) for request in requests)
    is_cache_bound = by_tokens / profile.kv_tokens > by_number

    def seconds(request: Request) -> float:
        found_tokens = profile.found_tokens(request.request_id, prompt_tokens=request.prompt_tokens)
        computed_tokens = request.prompt_tokens - found_tokens
        prefill_ms = (profile.delta_ms + profile.gamma_ms / profile.max_num_batched_tokens) * computed_tokens
        if targets.ttft_seconds is not None and prefill_ms / 1000 > targets.ttft_seconds:
            return math.inf
        if request.output_tokens == 1:
            return prefill_ms / 1000
        if profile.alpha_ms + profile.beta_ms > itl_ms:
            return math.inf
        cached = _cached_tokens(request)
        alphas = 1 / profile.kv_tokens * cached if is_cache_bound else 1 / sequences
        step_ms = profile.alpha_ms * alphas + profile.beta_ms + profile.context_us_per_token * cached / 1000
        return (prefill_ms + step_ms * (request.output_tokens - 1) / accepted) / 1000

    return seconds


def _cached_tokens(request: Request) -> float:
    """Return the least mean number of tokens in the KV cache while a request decodes."""
    return request.prompt_tokens + (request.output_tokens - 1) / 2


@dataclass(kw_only=True, slots=True)
class _LoadClass:
    """Requests of one step and similar lengths; `lag` groups those with similar output lengths.

    `needed` is the sum over its requests of the least share, over all variants, that a request has of the
    class's work on a variant, and `most` the maximum of a request. If all work on a variant counts as 1, the
    requests that are served need at least `needed` less `most` for each one that is dropped.
    """

    step: int
    lag: int
    requests: int
    work_seconds: Mapping[str, float]
    """Work of all requests that a variant can serve in time, by variant."""

    needed: float
    most: float


def _bounds(lengths: Sequence[int], shares: Sequence[float]) -> list[int]:
    """Return the lengths at these shares of the requests, and the longest."""
    ordered = sorted(lengths)
    return [ordered[int(share * (len(ordered) - 1))] for share in (*shares, 1.0)] if ordered else []


def _class(step: int, lag: int, works: Sequence[Mapping[str, float]]) -> _LoadClass:
    totals: dict[str, float] = {}
    for item in works:
        for name, work in item.items():
            totals[name] = totals.get(name, 0.0) + work
    least = [min(work / totals[name] for name, work in item.items()) for item in works]
    return _LoadClass(
        step=step,
        lag=lag,
        requests=len(works),
        work_seconds=totals,
        needed=sum(least),
        most=max(least),
    )


class _Program:
    """The linear program of one model; times are in steps since scoring began."""

    def __init__(
        self, scenario: Scenario, model: ScenarioModel, requests: Sequence[Request], attainment: float
    ) -> None:
        self._scenario = scenario
        self._model = model
        self._variants = scenario.variants_of(model.model_id)
        self._steps = min(_MOST_STEPS, math.ceil(scenario.duration_seconds / _STEP_SECONDS))
        self._step_seconds = scenario.duration_seconds / self._steps
        self._ends = self._steps + math.ceil(LAST_SECONDS / self._step_seconds)
        works = {item.name: least_work(item, model, requests) for item in self._variants}
        since_us = round(scenario.warm_up_seconds * 1e6)
        scored = [request for request in requests if request.arrival_us >= since_us]
        self.requests = len(scored)
        self._outputs = _bounds([request.output_tokens for request in scored], _OUTPUT_SHARES)
        """The longest output of each lag group."""

        self._hopeless = 0
        """Requests that no variant serves in time."""

        prompts = _bounds([request.prompt_tokens for request in scored], _PROMPT_SHARES)
        classes: dict[tuple[int, int, int], list[dict[str, float]]] = {}
        for request in scored:
            seconds = {name: work(request) for name, work in works.items()}
            seconds = {name: work for name, work in seconds.items() if work < math.inf}
            if not seconds:
                self._hopeless += 1
                continue
            step = int((request.arrival_us - since_us) / 1e6 / self._step_seconds)
            lag = bisect_left(self._outputs, request.output_tokens)
            key = step, lag, bisect_left(prompts, request.prompt_tokens)
            classes.setdefault(key, []).append(seconds)
        self._classes = [_class(step, lag, items) for (step, lag, _), items in sorted(classes.items())]
        self.may_drop = max((1 - attainment) * self.requests, self._hopeless)
        """Requests that may be late, with those that must."""

        self._solver = pywraplp.Solver.CreateSolver("GLOP")

    def solve(self) -> list[VariantOutcome]:
        """Return the outcome of each variant in an optimum. Raises UnsolvedError."""
        solver, hours = self._solver, self._step_seconds / 3600
        assigned = self._assignment()
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
        return [self._outcome(item, [n.solution_value() for n in held[item.name]]) for item in self._variants]

    def _outcome(self, variant: VariantSetup, replicas: Sequence[float]) -> VariantOutcome:
        """Return the outcome of a variant with these replicas, the mean of each step."""
        hours = sum(replicas) * self._step_seconds / 3600
        return VariantOutcome(
            name=variant.name,
            model_id=variant.model_id,
            cost=hours * variant.price_per_hour,
            replica_hours=hours,
            peak_replicas=math.ceil(round(max(replicas, default=0.0), 6)),
        )

    def _assignment(self) -> list[_Shares]:
        """Return for each class the share of its work on each variant that this variant does."""
        solver, dropped = self._solver, []
        shares: list[_Shares] = []
        for item in self._classes:
            share = {name: solver.NumVar(0.0, 1.0, "") for name in item.work_seconds}
            lost = solver.NumVar(0.0, item.requests, "")
            solver.Add(solver.Sum(list(share.values())) + item.most * lost >= item.needed)
            shares.append(share)
            dropped.append(lost)
        solver.Add(solver.Sum(dropped) <= self.may_drop - self._hopeless)
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
        for lag, output in enumerate(self._outputs):
            arrives: list[list[pywraplp.Variable]] = [[] for _ in range(self._steps)]
            for item, share in zip(self._classes, assigned, strict=True):
                if item.lag == lag and name in share:
                    arrives[item.step].append(item.work_seconds[name] * share[name])
            # Sums since the beginning: of the work that came, and of what was served. Served work is at most
            # what has come, and at least what came `due` steps before.
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

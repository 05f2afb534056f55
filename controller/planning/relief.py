"""What would change the answer: found by changing one thing and planning again, never by guessing.

For each model that goes short, what might help it is tried: a free node, a larger quota, budget or maximum, a
better priority. A change is reported if less goes short with it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controller.planning.decision import Relief, ReliefKind
from controller.planning.defragment import defragmentations
from controller.planning.problem import NO_DOMAIN, LimitKind
from controller.planning.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from controller.planning.answer import Answer
    from controller.planning.cpsat import Limits
    from controller.planning.problem import PlacementProblem

    Solve = Callable[[PlacementProblem, Sequence[int]], tuple[int, ...]]
    """Returns the replicas of each variant, to learn what some models have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One thing made different."""

    kind: ReliefKind
    text: str
    problem: PlacementProblem
    models: tuple[int, ...]
    """Whom it might help."""


def reliefs(
    answer: Answer, solve: Solve, *, most_solves: int, limits: Limits
) -> Mapping[int, tuple[Relief, ...]]:
    """Return by model what would serve it better; so many changes are tried, higher priorities first."""
    short = [
        model
        for model, demand in enumerate(answer.demands)
        if demand.signal.decides and answer.shortage_per_mille(model, answer.granted.replicas)
    ]
    short.sort(key=lambda model: (answer.demands[model].priority, model))
    found: dict[int, list[Relief]] = defaultdict(list)
    for model, relief in _moves(answer, short, limits):
        found[model].append(relief)
    for change, _ in zip(_changes(answer, short), range(most_solves), strict=False):
        replicas = solve(change.problem, change.models)
        for model in change.models:
            unmet = answer.shortage_per_mille(model, replicas)
            if unmet < answer.shortage_per_mille(model, answer.granted.replicas):
                found[model].append(Relief(kind=change.kind, text=change.text, unmet_per_mille=unmet))
    return {model: tuple(listed) for model, listed in found.items()}


def _changes(answer: Answer, short: Sequence[int]) -> Iterator[Change]:
    """Yield what to try: first what may help several models, then what is for one."""
    yield from _nodes(answer, short)
    yield from _limits(answer, short)
    for model in short:
        yield from _maximums(answer, model)
        yield from _priorities(answer, model)


def _moves(answer: Answer, short: Sequence[int], limits: Limits) -> Iterator[tuple[int, Relief]]:
    """Yield for each model what moving replicas of others would do for it."""
    for found in defragmentations(answer, most=None, limits=limits) if short else ():
        replicas = list(answer.granted.replicas)
        for v, more in found.replicas.items():
            replicas[v] += more
        for model in short:
            unmet = answer.shortage_per_mille(model, replicas)
            if unmet < answer.shortage_per_mille(model, answer.granted.replicas):
                text = f"moving {count(found.moved, 'replica')} of others"
                yield model, Relief(kind=ReliefKind.MOVES, text=text, unmet_per_mille=unmet)


def _nodes(answer: Answer, short: Sequence[int]) -> Iterator[Change]:
    """Yield one more empty node in each bin that a model which goes short may use."""
    problem = answer.problem
    for index, bin_ in enumerate(problem.bins):
        models = tuple(model for model in short if set(answer.variants_of(model)) & set(bin_.variants))
        if models:
            sizes = [answer.nodes[node].accelerators_allocatable for node in bin_.nodes]
            size = max([*sizes, bin_.sizes[-1]])
            more = replace(bin_, nodes=(*bin_.nodes, len(problem.free)))
            bins = (*problem.bins[:index], more, *problem.bins[index + 1 :])
            yield Change(
                kind=ReliefKind.NODE,
                text=f"+1 free {size}-accelerator {_type(answer, index)} node",
                problem=replace(
                    problem,
                    free=(*problem.free, size),
                    bins=bins,
                    topologies=tuple(
                        (*domains, domains[bin_.nodes[0]] if bin_.nodes else NO_DOMAIN)
                        for domains in problem.topologies
                    ),
                ),
                models=models,
            )


def _type(answer: Answer, bin_: int) -> str:
    """Return the accelerators of a bin's nodes, or of the variants that may use it."""
    found = {answer.nodes[node].accelerator for node in answer.problem.bins[bin_].nodes}
    found |= set() if found else {answer.variants[v].accelerator for v in answer.problem.bins[bin_].variants}
    return "/".join(sorted(found - {""})) or "accelerator"


def _limits(answer: Answer, short: Sequence[int]) -> Iterator[Change]:
    """Yield each quota and budget with room for one more replica of those who go short and use it."""
    kinds = {LimitKind.QUOTA: ReliefKind.QUOTA, LimitKind.BUDGET: ReliefKind.BUDGET}
    problem = answer.problem
    for index, row in enumerate(problem.limits):
        amounts = dict(row.terms)
        models = tuple(model for model in short if set(answer.variants_of(model)) & set(amounts))
        used = sum(amount * answer.granted.replicas[v] for v, amount in row.terms)
        wanted = [amounts[v] for model in models for v in answer.variants_of(model) if amounts.get(v)]
        is_exceeded = row.allowed is not None  # by how much is said by every decision under it
        if row.kind in kinds and wanted and not is_exceeded and used + min(wanted) > row.limit:
            raised = replace(row, limit=used + max(wanted))
            limits = (*problem.limits[:index], raised, *problem.limits[index + 1 :])
            yield Change(
                kind=kinds[row.kind],
                text=f"{row.kind} {row.name} of at least {answer.limit_text(raised)}",
                problem=replace(problem, limits=limits),
                models=models,
            )


def _maximums(answer: Answer, model: int) -> Iterator[Change]:
    """Yield a larger maximum for each variant that has reached its own."""
    problem = answer.problem
    for v in answer.variants_of(model):
        variant, terms = answer.variants[v], problem.variants[v]
        if variant.max_replicas is not None and answer.granted.replicas[v] >= variant.max_replicas:
            raised = replace(terms, upper=terms.upper + 1)
            variants = (*problem.variants[:v], raised, *problem.variants[v + 1 :])
            yield Change(
                kind=ReliefKind.MAX_REPLICAS,
                text=f"maxReplicas of {variant.name} above {variant.max_replicas}",
                problem=replace(problem, variants=variants),
                models=(model,),
            )


def _priorities(answer: Answer, model: int) -> Iterator[Change]:
    """Yield the next better priority that anybody has who holds what the model could use."""
    own = answer.demands[model].priority
    rivals = {
        answer.demands[other].priority
        for other, granted in enumerate(answer.granted_by_model)
        if granted and answer.demands[other].priority < own
    }
    if not rivals:
        return
    better = max(1, max(rivals) - 1)
    rows = tuple(replace(row, priority=better) if row.model == model else row for row in answer.problem.rows)
    yield Change(
        kind=ReliefKind.PRIORITY,
        text=f"priority {better} (1 is served first)",
        problem=replace(answer.problem, rows=rows),
        models=(model,),
    )

"""Find changes that would reduce a shortage, by changing one thing in the snapshot and planning again.

For each model that is short of capacity, candidates are a free node, a larger quota, budget or maximum, a
lower minimum of a lower priority, and a better priority. The most important models come first, and of these
the shortest. A change is reported if it reduces the shortage, with the shortage that the new plan leaves: a
user who makes the change gets that plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

from controller.planning.cluster import Budget, Node, Quota
from controller.planning.cpsat import Effort
from controller.planning.decision import Relief, ReliefKind
from controller.planning.defragment import defragmentations
from controller.planning.inventory import NodeAddition, admits, new_nodes
from controller.planning.limits import current_use, stated_limits
from controller.planning.pod_rules import allowed_on_node
from controller.planning.problem import CountedReplicas, Level, RowName, level_name, provided_by
from controller.planning.ranges import cost_of
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.solved_problem import OTHERS, SolvedProblem
from controller.planning.wording import count

Again = Callable[[Snapshot], SolvedProblem | None]
"""Plans another snapshot in the same way; returns None if that cannot be planned."""


_OF_VARIANTS: Final = (ReliefKind.MAX_REPLICAS, ReliefKind.MIN_REPLICAS, ReliefKind.PRIORITY)
"""Changes of variants, which come after those of the cluster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CandidateChange:
    """One candidate change of the snapshot."""

    kind: ReliefKind
    text: str
    changed_snapshot: Callable[[], Snapshot]
    models: tuple[int, ...]
    """The short models that the change might help."""

    rows: Sequence[tuple[RowName, int]] = ()
    """The rows shared by models that the change enlarges, and by how much; empty if unknown."""


def reliefs(
    solved: SolvedProblem, again: Again, *, usual_solves: int, most_solves: int, effort: Effort
) -> Mapping[int, tuple[Relief, ...]]:
    """Return the reliefs of each model, from `usual_solves` changes.

    If none of these helps the most important short model, its other changes follow, up to `most_solves` in
    all.
    """
    before = {
        model: solved.shortage_per_mille(model, solved.granted.replicas)
        for model, demand in enumerate(solved.demands)
        if demand.signal.decides
    }
    lacking = (model for model, unmet in before.items() if unmet)
    short = sorted(lacking, key=lambda model: (solved.demands[model].priority, -before[model], model))
    by_model: dict[int, list[Relief]] = defaultdict(list)
    for model, relief in _moves(solved, short, effort):
        by_model[model].append(relief)
    changes = _in_turn(_rank_candidates(solved, short), short, by_model) if most_solves else ()
    for number, change in enumerate(islice(changes, most_solves)):
        # More than usual are tried only for the most important model, and only until one helps it.
        if number >= usual_solves and (by_model[short[0]] or short[0] not in change.models):
            break
        after = again(change.changed_snapshot())
        if after is None:
            continue
        then = {model: after.shortage_per_mille(model, after.granted.replicas) for model in before}
        losers = sum(then[model] > unmet for model, unmet in before.items())
        text = f"{change.text} at the expense of {count(losers, 'other model')}" if losers else change.text
        # A node of another type helps where other models move to it.
        for model in short if change.kind is ReliefKind.NODE else change.models:
            if then[model] < before[model]:
                by_model[model].append(Relief(kind=change.kind, text=text, unmet_per_mille=then[model]))
    return {model: tuple(listed) for model, listed in by_model.items()}


def _in_turn(
    changes: Sequence[CandidateChange], short: Sequence[int], reliefs_of: Mapping[int, list[Relief]]
) -> Iterator[CandidateChange]:
    """Yield the changes for each short model in turn until one is found that helps it, then all others.

    For each model that is the most promising change, then those for it alone: what others share may help
    these others instead. The consumer adds to `reliefs_of` meanwhile.
    """
    left = list(changes)
    for model in short:
        own = [change for change in left if model in change.models]
        for change in sorted(own, key=lambda change: change is not own[0] and len(change.models) > 1):
            if reliefs_of.get(model):
                break
            left.remove(change)
            yield change
    yield from left


def _rank_candidates(solved: SolvedProblem, short: Sequence[int]) -> Sequence[CandidateChange]:
    """Return the candidate changes: those of the cluster first, then by how much they may serve.

    That estimate is the models' shortfall, capped by the dual prices of the rows that the change enlarges.
    Amounts are negative, and in the order of levels: what may serve most at the first of them comes first.
    """
    missing = _weighted_shortfalls(solved)
    prices = solved.granted.prices

    def rank(change: CandidateChange) -> tuple[bool, list[tuple[Level, float]]]:
        worth: dict[Level, float] = defaultdict(float)
        for model in change.models:
            for level, amount in missing[model]:
                worth[level] -= amount
        for level in worth if change.rows else ():
            if known := prices.get(level_name(*level)):
                promised = sum((known.get(row, 0.0) * more for row, more in change.rows), 0.0)
                worth[level] = max(worth[level], -promised)
        return change.kind in _OF_VARIANTS, sorted(worth.items())

    own = (
        change
        for model in short
        for change in (*_maximums(solved, model), *_minimums(solved, model), *_priorities(solved, model))
    )
    changes = (*_nodes(solved, short), *_limits(solved, short), *own)
    return sorted((change for change in changes if change.models), key=rank)


def _weighted_shortfalls(solved: SolvedProblem) -> Mapping[int, Sequence[tuple[Level, int]]]:
    """Return the weighted shortfalls of each model, with their levels."""
    shortfalls: dict[int, list[tuple[Level, int]]] = defaultdict(list)
    for row in solved.problem.rows:
        short = row.shortfall(provided_by(solved.problem, row, solved.granted.replicas))
        if short and row.counted is CountedReplicas.ALL:
            shortfalls[row.model].append((row.level, row.weight * short))
    return shortfalls


def _moves(solved: SolvedProblem, short: Sequence[int], effort: Effort) -> Iterator[tuple[int, Relief]]:
    """Yield for each model what moving replicas of other models would achieve."""
    for group in defragmentations(solved, most=None, effort=effort) if short else ():
        replicas = list(solved.granted.replicas)
        for v, more in group.replicas.items():
            replicas[v] += more
        for model in short:
            unmet = solved.shortage_per_mille(model, replicas)
            if unmet < solved.shortage_per_mille(model, solved.granted.replicas):
                text = f"moving {count(group.move_count, 'replica')} of others"
                yield model, Relief(kind=ReliefKind.MOVES, text=text, unmet_per_mille=unmet)


def _nodes(solved: SolvedProblem, short: Sequence[int]) -> Iterator[CandidateChange]:
    """Yield empty nodes of each type that short models may use, in the largest size of that type.

    It is one node, and as many as one replica of several pods needs.
    """
    wanting = {
        model: [v for v in _growable_variants(solved, model) if not solved.exceeded_limit(v)]
        for model in short
    }
    sizes: dict[str, int] = defaultdict(int)
    for node in solved.nodes:
        sizes[node.accelerator] = max(sizes[node.accelerator], node.accelerators_allocatable)
    for variant in (solved.variants[v] for numbers in wanting.values() for v in numbers):
        sizes[variant.accelerator] = max(sizes[variant.accelerator], variant.accelerators_per_pod)
    snapshot = solved.snapshot
    for kind, size in sorted(sizes.items()):
        if not (kind and size):
            continue
        (one,) = new_nodes(snapshot, NodeAddition(accelerator=kind, accelerators=size))
        users = {
            model: [
                variant
                for v in numbers
                if 0 < (variant := solved.variants[v]).accelerators_per_pod <= size and admits(one, variant)
            ]
            for model, numbers in wanting.items()
        }
        helped = tuple(model for model, variants in users.items() if variants)
        for number in sorted({1, *(_nodes_of(variant, one) for model in helped for variant in users[model])}):
            more = new_nodes(snapshot, NodeAddition(accelerator=kind, accelerators=size, nodes=number))
            yield CandidateChange(
                kind=ReliefKind.NODE,
                text=f"+{number} free {size}-accelerator {kind} node{'s' if number > 1 else ''}",
                changed_snapshot=partial(replace, snapshot, nodes=(*snapshot.nodes, *more)),
                models=helped,
                rows=_slots(solved, one, number),
            )


def _nodes_of(variant: Variant, node: Node) -> int:
    """Return how many such nodes one replica needs if they are empty."""
    pods = node.accelerators_allocatable // variant.accelerators_per_pod
    return -(-variant.pods_per_replica // allowed_on_node(variant.rules.most_per_node, 0, pods))


def _slots(solved: SolvedProblem, node: Node, number: int) -> Sequence[tuple[RowName, int]]:
    """Return the slots that such nodes add to the bin of their users; empty if there is no such bin."""
    users = tuple(
        v for v, one in enumerate(solved.variants) if one.accelerators_per_pod and admits(node, one)
    )
    bins = [index for index, bin_ in enumerate(solved.problem.bins) if bin_.variants == users]
    if not bins:
        return ()
    rows = {row for prices in solved.granted.prices.values() for row in prices if not isinstance(row, str)}
    return [
        (row, number * node.accelerators_allocatable // row[1] // row[2])
        for row in sorted(rows)
        if row[0] == bins[0]
    ]


def _growable_variants(solved: SolvedProblem, model: int) -> list[int]:
    """Return the variants of a model whose granted replicas are below their upper bound."""
    problem, replicas = solved.problem, solved.granted.replicas
    return [v for v in solved.variants_of(model) if replicas[v] < problem.variants[v].upper]


def _limits(solved: SolvedProblem, short: Sequence[int]) -> Iterator[CandidateChange]:
    """Yield each binding quota and budget, raised by one more replica of the short models that use it."""
    for limit, row, is_exceeded in stated_limits(solved.snapshot, solved.variants, solved.problem.variants):
        amounts = dict(row.terms)
        amounts_short = [
            amounts[v] for model in short for v in _growable_variants(solved, model) if amounts.get(v)
        ]
        used = sum(amount * solved.granted.replicas[v] for v, amount in row.terms)
        if is_exceeded:  # nothing starts until current use is within the limit
            used = max(used, current_use(row, solved.problem.variants))
        if amounts_short and (is_exceeded or used + min(amounts_short) > row.limit):
            others = limit.used_by_others if isinstance(limit, Quota) else 0
            raised = replace(row, limit=used + max(amounts_short), others=others)
            yield CandidateChange(
                kind=ReliefKind.QUOTA if isinstance(limit, Quota) else ReliefKind.BUDGET,
                text=f"{row.kind} {row.name} raised to {solved.limit_text(raised)}",
                changed_snapshot=partial(_with_limit, solved.snapshot, limit, raised.limit),
                models=tuple(m for m in short if amounts.keys() & set(solved.variants_of(m))),
                rows=[(f"{row.kind} {row.name}", raised.limit - row.limit)],
            )


def _with_limit(snapshot: Snapshot, limit: Quota | Budget, amount: int) -> Snapshot:
    if isinstance(limit, Quota):
        quota = replace(limit, accelerators=amount)
        return replace(snapshot, quotas=tuple(quota if q is limit else q for q in snapshot.quotas))
    budget = replace(limit, cost_per_hour=cost_of(amount))
    return replace(snapshot, budgets=tuple(budget if b is limit else b for b in snapshot.budgets))


def _maximums(solved: SolvedProblem, model: int) -> Iterator[CandidateChange]:
    """Yield a `max_replicas` raised by one for each variant that has reached its own."""
    for v in solved.variants_of(model):
        variant = solved.variants[v]
        if variant.max_replicas is not None and solved.granted.replicas[v] >= variant.max_replicas:
            raised = replace(variant, max_replicas=variant.max_replicas + 1)
            text = f"maxReplicas of {variant.name} raised to {raised.max_replicas}"
            text = text if variant.max_replicas else f"an enabled autoscaler of {variant.name}"
            yield CandidateChange(
                kind=ReliefKind.MAX_REPLICAS,
                text=text,
                changed_snapshot=partial(_with_variants, solved.snapshot, raised),
                models=(model,),
            )


def _minimums(solved: SolvedProblem, model: int) -> Iterator[CandidateChange]:
    """Yield the lowered minimum of the least important holder, for one more replica of the model.

    It is a holder of what the first growing variant of the model lacks, of a lower priority, with no more
    than its minimum.
    """
    for v in _growable_variants(solved, model)[:1]:
        scarcity, variant = solved.scarcity(v), solved.variants[v]
        for holder, _ in scarcity.holders if scarcity else ():
            other = solved.variants[holder] if holder != OTHERS else variant
            is_named = solved.settings.names_all or other.namespace == variant.namespace
            if other.priority <= variant.priority:
                return
            if is_named and 0 < solved.granted.replicas[holder] <= other.min_replicas:
                each = max(1, other.accelerators_per_replica)
                lowered = max(0, other.min_replicas - -(-variant.accelerators_per_replica // each))
                space = "" if other.namespace == variant.namespace else f"{other.namespace}/"
                yield CandidateChange(
                    kind=ReliefKind.MIN_REPLICAS,
                    text=f"minReplicas of {space}{other.name} lowered to {lowered}",
                    changed_snapshot=partial(
                        _with_variants, solved.snapshot, replace(other, min_replicas=lowered)
                    ),
                    models=(model,),
                )
                return


def _priorities(solved: SolvedProblem, model: int) -> Iterator[CandidateChange]:
    """Yield the priority just above the nearest better one among models with granted replicas."""
    own = solved.demands[model].priority
    if not _growable_variants(solved, model):
        return
    rivals = {
        solved.demands[other].priority
        for other, granted in enumerate(solved.granted_by_model)
        if granted and solved.demands[other].priority < own
    }
    if not rivals:
        return
    better = max(1, max(rivals) - 1)
    variants = [replace(variant, priority=better) for variant in solved.demands[model].variants]
    yield CandidateChange(
        kind=ReliefKind.PRIORITY,
        text=f"priority {better} (1 is served first)",
        changed_snapshot=partial(_with_variants, solved.snapshot, *variants),
        models=(model,),
    )


def _with_variants(snapshot: Snapshot, *variants: Variant) -> Snapshot:
    others = {variant.key: variant for variant in variants}
    return replace(snapshot, variants=tuple(others.get(item.key, item) for item in snapshot.variants))

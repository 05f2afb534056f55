"""Hypothetical changes of a snapshot: other demands, nodes and budgets. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Final

from controller.commands.plan.naming import first_of
from controller.planning.cluster import Budget
from controller.planning.inputs import PlanningInputs
from controller.planning.inventory import Addition, new_nodes
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.planning.snapshot import Snapshot, Variant

Key = tuple[str, str]

BUDGET_NAME: Final = "given"
_MOST_NAMED: Final = 5


class UnknownNameError(ValueError):
    """A given name matches nothing, or several things."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """Requests per second of a model or variant, whose name may include the namespace."""

    name: str
    requests_per_second: float
    lengths: tuple[float, float] | None = None
    """Mean tokens of a prompt and of an answer; None to keep the known ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """All changes to make."""

    demands: Sequence[Rate] = ()
    capacities: Sequence[Rate] = ()
    additions: Sequence[Addition] = ()
    drained: Sequence[str] = ()
    budget: Decimal | None = None
    scales_to_zero: bool = False


@dataclass(slots=True)
class _Work:
    snapshot: Snapshot
    problems: list[str] = field(default_factory=list)


def apply_changes(inputs: PlanningInputs, changes: Changes) -> tuple[PlanningInputs, tuple[str, ...]]:
    """Return the inputs with all changes made, and a message for each that cannot be made."""
    work = _Work(inputs.snapshot)
    _demands(work, changes)
    _capacities(work, changes.capacities)
    _additions(work, changes.additions)
    _drains(work, changes.drained)
    if changes.budget is not None:
        budget = Budget(name=BUDGET_NAME, cost_per_hour=changes.budget)
        others = (item for item in work.snapshot.budgets if item.name != BUDGET_NAME)
        work.snapshot = replace(work.snapshot, budgets=(*others, budget))
    if changes.scales_to_zero:
        freed = tuple(replace(variant, may_scale_to_zero=True) for variant in work.snapshot.variants)
        work.snapshot = replace(work.snapshot, variants=freed)
    return replace(inputs, snapshot=work.snapshot), tuple(work.problems)


def stated_load(model: Key, requests_per_second: float, known: ModelLoad | None) -> ModelLoad:
    """Return the load of a model as stated, which is constant."""
    return ModelLoad(
        namespace=model[0],
        model_id=model[1],
        requests_per_second=requests_per_second,
        upper_requests_per_second=requests_per_second,
        prompt_tokens=known.prompt_tokens if known else None,
        output_tokens=known.output_tokens if known else None,
        required_requests_per_second=requests_per_second,
        releasable_requests_per_second=requests_per_second,
    )


def with_loads(snapshot: Snapshot, loads: Iterable[ModelLoad]) -> Snapshot:
    """Return the snapshot with some loads added or replaced."""
    known = {(load.namespace, load.model_id): load for load in snapshot.loads}
    known |= {(load.namespace, load.model_id): load for load in loads}
    return replace(snapshot, loads=tuple(known.values()))


def resolve(name: str, keys: Iterable[Key], *, what: str) -> Key:
    """Return the key that `NAMESPACE/NAME` or `NAME` refers to; if both match, the former.

    Raises UnknownNameError.
    """
    known = sorted(set(keys))
    spelled = {f"{namespace}/{own}": (namespace, own) for namespace, own in known}
    if name in spelled:
        return spelled[name]
    matching = [key for key in known if key[1] == name]
    if len(matching) == 1:
        return matching[0]
    if matching:
        namespaces = ", ".join(f"{namespace}/{own}" for namespace, own in matching)
        raise UnknownNameError(f"{what} {name!r} is in several namespaces: specify one of {namespaces}")
    raise UnknownNameError(f"no {what} {name!r}: {_there_are([*spelled], name)}")


def _by_key(
    work: _Work, rates: Iterable[Rate], keys: Collection[Key], *, option: str, what: str
) -> dict[Key, Rate]:
    """Return the rates by what they are for; report names that are unknown or given more than once."""
    by_key: dict[Key, Rate] = {}
    for rate in rates:
        try:
            key = resolve(rate.name, keys, what=what)
        except UnknownNameError as error:
            work.problems.append(f"{option}: {error}")
            continue
        if key in by_key:
            work.problems.append(f"{option}: {what} {'/'.join(key)} is given more than once")
        by_key[key] = rate
    return by_key


def _demands(work: _Work, changes: Changes) -> None:
    known = {(load.namespace, load.model_id): load for load in work.snapshot.loads}
    models: dict[Key, set[Key]] = defaultdict(set)
    for variant in work.snapshot.variants:
        planned = variant.namespace, variant.model_id
        models[planned].add(planned)
        models[variant.namespace, variant.pair or variant.model_id].add(planned)  # requests need all roles
    for key, rate in _by_key(work, changes.demands, models, option="--demand", what="model").items():
        for model in sorted(models[key]):
            load = stated_load(model, rate.requests_per_second, known.get(model))
            if rate.lengths is not None:
                load = replace(load, prompt_tokens=rate.lengths[0], output_tokens=rate.lengths[1])
            work.snapshot = with_loads(work.snapshot, [load])


def _capacities(work: _Work, rates: Sequence[Rate]) -> None:
    variants = {variant.key: variant for variant in work.snapshot.variants}
    for key, rate in _by_key(work, rates, variants, option="--capacity", what="variant").items():
        capacity = Capacity(requests_per_second=rate.requests_per_second, source=CapacitySource.STATED)
        variants[key] = replace(variants[key], capacity=capacity)
    work.snapshot = replace(work.snapshot, variants=tuple(variants.values()))


def _additions(work: _Work, additions: Sequence[Addition]) -> None:
    for addition in additions:
        nodes = (*work.snapshot.nodes, *new_nodes(work.snapshot, addition))
        work.snapshot = replace(work.snapshot, nodes=nodes)


def _drains(work: _Work, names: Sequence[str]) -> None:
    known = [node.name for node in work.snapshot.nodes]
    gone = frozenset(names)
    for name in sorted(gone - set(known)):
        work.problems.append(f"--drain: no node {name!r}: {_there_are(known, name)}")
    work.snapshot = replace(
        work.snapshot,
        nodes=tuple(
            replace(n, schedulable=n.schedulable and n.name not in gone) for n in work.snapshot.nodes
        ),
        variants=tuple(_evict(variant, gone) for variant in work.snapshot.variants),
    )


def _evict(variant: Variant, gone: frozenset[str]) -> Variant:
    """Return a variant whose pods on the given nodes are unbound, and first in removal order."""
    replicas = [
        replace(replica, node=None, further_nodes=(), ready=False) if gone & {*replica.nodes} else replica
        for replica in variant.replicas
    ]
    replicas.sort(key=lambda replica: bool(replica.nodes))
    return replace(variant, replicas=tuple(replicas))


def _there_are(known: Sequence[str], name: str) -> str:
    if not known:
        return "there is none"
    close = get_close_matches(name, known, n=_MOST_NAMED, cutoff=0.5) or sorted(known)[:_MOST_NAMED]
    others = sorted({*known} - {*close})
    return f"there are {first_of([*close, *others], len(close))}"

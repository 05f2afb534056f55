"""Hypothetical changes of a snapshot: other demands, nodes and budgets. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Final

from controller.planning.cluster import Budget
from controller.planning.inputs import PlanningInputs
from controller.planning.inventory import NodeAddition, new_nodes
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import first_of

Key = tuple[str, str]

BUDGET_NAME: Final = "(--budget)"
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
    additions: Sequence[NodeAddition] = ()
    drained: Sequence[str] = ()
    budget: Decimal | None = None
    scales_to_zero: bool = False


def apply_changes(inputs: PlanningInputs, changes: Changes) -> tuple[PlanningInputs, tuple[str, ...]]:
    """Return the inputs with all changes made, and a message for each that cannot be made."""
    problems: list[str] = []
    snapshot = _with_demands(inputs.snapshot, changes.demands, problems)
    snapshot = _with_capacities(snapshot, changes.capacities, problems)
    for addition in changes.additions:
        snapshot = replace(snapshot, nodes=(*snapshot.nodes, *new_nodes(snapshot, addition)))
    snapshot = _without_nodes(snapshot, changes.drained, problems)
    if changes.budget is not None:
        budget = Budget(name=BUDGET_NAME, cost_per_hour=changes.budget)
        others = (item for item in snapshot.budgets if item.name != BUDGET_NAME)
        snapshot = replace(snapshot, budgets=(*others, budget))
    if changes.scales_to_zero:
        freed = tuple(replace(variant, may_scale_to_zero=True) for variant in snapshot.variants)
        snapshot = replace(snapshot, variants=freed)
    return replace(inputs, snapshot=snapshot), tuple(problems)


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
    rates: Iterable[Rate], keys: Collection[Key], problems: list[str], *, option: str, what: str
) -> dict[Key, Rate]:
    """Return the rates by what they are for; report names that are unknown or given more than once."""
    by_key: dict[Key, Rate] = {}
    for rate in rates:
        try:
            key = resolve(rate.name, keys, what=what)
        except UnknownNameError as error:
            problems.append(f"{option}: {error}")
            continue
        if key in by_key:
            problems.append(f"{option}: {what} {'/'.join(key)} is given more than once")
        by_key[key] = rate
    return by_key


def _with_demands(snapshot: Snapshot, demands: Sequence[Rate], problems: list[str]) -> Snapshot:
    known = {(load.namespace, load.model_id): load for load in snapshot.loads}
    models: dict[Key, set[Key]] = defaultdict(set)
    for variant in snapshot.variants:
        planned = variant.namespace, variant.model_id
        models[planned].add(planned)
        models[variant.namespace, variant.pair or variant.model_id].add(planned)  # requests need all roles
    for key, rate in _by_key(demands, models, problems, option="--demand", what="model").items():
        for model in sorted(models[key]):
            load = stated_load(model, rate.requests_per_second, known.get(model))
            if rate.lengths is not None:
                load = replace(load, prompt_tokens=rate.lengths[0], output_tokens=rate.lengths[1])
            snapshot = with_loads(snapshot, [load])
    return snapshot


def _with_capacities(snapshot: Snapshot, rates: Sequence[Rate], problems: list[str]) -> Snapshot:
    variants = {variant.key: variant for variant in snapshot.variants}
    for key, rate in _by_key(rates, variants, problems, option="--capacity", what="variant").items():
        capacity = Capacity(requests_per_second=rate.requests_per_second, source=CapacitySource.STATED)
        variants[key] = replace(variants[key], capacity=capacity)
    return replace(snapshot, variants=tuple(variants.values()))


def _without_nodes(snapshot: Snapshot, names: Sequence[str], problems: list[str]) -> Snapshot:
    """Return the snapshot with some nodes drained."""
    known, drained = [node.name for node in snapshot.nodes], frozenset(names)
    problems += [
        f"--drain: no node {name!r}: {_there_are(known, name)}" for name in sorted(drained - {*known})
    ]
    nodes = (replace(node, schedulable=False) if node.name in drained else node for node in snapshot.nodes)
    variants = tuple(_evict(variant, drained) for variant in snapshot.variants)
    return replace(snapshot, nodes=tuple(nodes), variants=variants)


def _evict(variant: Variant, drained: frozenset[str]) -> Variant:
    """Return a variant whose pods on the given nodes are unbound, and first in removal order."""
    replicas = [
        replace(replica, node=None, further_nodes=(), ready=False) if drained & {*replica.nodes} else replica
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

"""From what is to what somebody asks about: other demands, nodes, budgets. Pure, over any snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Final

from controller.observe.scheduling import NAME_FIELD
from controller.planning.cluster import Budget, Node
from controller.planning.inputs import PlanningInputs
from controller.planning.settings import Strategy, UnmetUnit
from controller.planning.snapshot import ModelRule, Snapshot, Variant

Key = tuple[str, str]

BUDGET_NAME: Final = "given"
_MOST_NAMED: Final = 5
OWN_LABELS: Final = frozenset({NAME_FIELD, "kubernetes.io/hostname"})
"""Labels in which every node differs from every other."""


class UnknownNameError(ValueError):
    """Nothing has a name that was given, or more than one thing has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """Tokens of something that is named, perhaps with its namespace in front."""

    name: str
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Addition:
    """Nodes of one shape that are not there."""

    accelerator: str
    accelerators: int
    nodes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """All that is to be different."""

    demands: Sequence[Amount] = ()
    capacities: Sequence[Amount] = ()
    additions: Sequence[Addition] = ()
    drained: Sequence[str] = ()
    budget: Decimal | None = None
    unmet: UnmetUnit | None = None
    strategy: Strategy | None = None
    certificate: bool | None = None
    scales_to_zero: bool = False


@dataclass(slots=True)
class _Work:
    snapshot: Snapshot
    problems: list[str] = field(default_factory=list)


def changed(inputs: PlanningInputs, changes: Changes) -> tuple[PlanningInputs, tuple[str, ...]]:
    """Return the inputs with all changes made, and a sentence for each that cannot be made."""
    work = _Work(inputs.snapshot)
    _demands(work, changes.demands)
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
    settings = replace(inputs.settings, unmet_unit=changes.unmet) if changes.unmet else inputs.settings
    settings = replace(settings, strategy=changes.strategy) if changes.strategy else settings
    if changes.certificate is not None:
        settings = replace(settings, certificate=changes.certificate)
    return replace(inputs, snapshot=work.snapshot, settings=settings), tuple(work.problems)


def with_demand(snapshot: Snapshot, model: Key, tokens: int) -> Snapshot:
    """Return the snapshot with a model's demand as it is stated."""
    namespace, model_id = model
    rules = {(rule.namespace, rule.model_id): rule for rule in snapshot.models}
    rule = rules.get(model, ModelRule(namespace=namespace, model_id=model_id))
    rules[model] = replace(rule, demand_tokens=tokens)
    return replace(snapshot, models=tuple(rules.values()))


def resolved(name: str, keys: Iterable[Key], *, what: str) -> Key:
    """Return the key that `NAMESPACE/NAME` or `NAME` means; where both readings fit, the first.

    Raises UnknownNameError.
    """
    known = sorted(set(keys))
    spelled = {f"{namespace}/{own}": (namespace, own) for namespace, own in known}
    if name in spelled:
        return spelled[name]
    found = [key for key in known if key[1] == name]
    if len(found) == 1:
        return found[0]
    if found:
        namespaces = ", ".join(f"{namespace}/{own}" for namespace, own in found)
        raise UnknownNameError(f"{what} {name!r} is in several namespaces: say which, as in {namespaces}")
    raise UnknownNameError(f"no {what} {name!r}: {_there_are([*spelled], name)}")


def _demands(work: _Work, amounts: Sequence[Amount]) -> None:
    for amount in amounts:
        models = {(variant.namespace, variant.model_id) for variant in work.snapshot.variants}
        try:
            model = resolved(amount.name, models, what="model")
        except UnknownNameError as error:
            work.problems.append(f"--demand: {error}")
        else:
            work.snapshot = with_demand(work.snapshot, model, amount.tokens)


def _capacities(work: _Work, amounts: Sequence[Amount]) -> None:
    variants = {variant.key: variant for variant in work.snapshot.variants}
    for amount in amounts:
        try:
            key = resolved(amount.name, variants, what="variant")
        except UnknownNameError as error:
            work.problems.append(f"--capacity: {error}")
        else:
            variants[key] = replace(variants[key], published_capacity_tokens=amount.tokens or None)
    work.snapshot = replace(work.snapshot, variants=tuple(variants.values()))


def _additions(work: _Work, additions: Sequence[Addition]) -> None:
    for addition in additions:
        nodes = (*work.snapshot.nodes, *_new_nodes(work.snapshot, addition))
        work.snapshot = replace(work.snapshot, nodes=nodes)


def _new_nodes(snapshot: Snapshot, addition: Addition) -> Iterator[Node]:
    alike = [node for node in snapshot.nodes if node.accelerator == addition.accelerator]
    names = {node.name for node in snapshot.nodes}
    number = 0
    for _ in range(addition.nodes):
        number += 1
        while (name := f"new-{addition.accelerator.lower()}-{number}") in names:
            number += 1
        yield Node(
            name=name,
            accelerator=addition.accelerator,
            accelerators_allocatable=addition.accelerators,
            labels=_shared_labels(alike) if alike else _selected(snapshot, addition.accelerator),
            taints=frozenset.intersection(*(node.taints for node in alike)) if alike else frozenset(),
        )


def _shared_labels(nodes: Sequence[Node]) -> frozenset[tuple[str, str]]:
    """Return what all nodes are labelled with, other than with their names."""
    shared = frozenset.intersection(*(node.labels for node in nodes))
    return frozenset(label for label in shared if label[0] not in OWN_LABELS)


def _selected(snapshot: Snapshot, accelerator: str) -> frozenset[tuple[str, str]]:
    """Return the labels that replicas for a type select, where no node of that type shows any."""
    wanted = [variant.node_selector for variant in snapshot.variants if variant.accelerator == accelerator]
    return frozenset(dict(label for selector in wanted for label in sorted(selector)).items())


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
        variants=tuple(_evicted(variant, gone) for variant in work.snapshot.variants),
    )


def _evicted(variant: Variant, gone: frozenset[str]) -> Variant:
    """Return a variant whose pods on some nodes wait for another place: they would be removed first."""
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
    more = ", ..." if len(known) > len(close) else ""
    return f"there are {', '.join(close)}{more}"

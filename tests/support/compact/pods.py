"""Rules for pods that are spread, kept together or kept apart, node by node, as constraints."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.pod_rules import MostPerNode, SpreadTerms
from controller.planning.problem import NO_DOMAIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ortools.sat.python import cp_model

    from controller.planning.problem import PlacementProblem, VariantTerms

    Sum = cp_model.LinearExprT


@dataclass(frozen=True, kw_only=True, slots=True)
class Pods:
    """The variables of one variant's pods."""

    new: Mapping[int, cp_model.IntVar]
    """Number of new pods by node."""

    stays: Sequence[cp_model.IntVar]
    """Whether each bound replica stays."""


def keep_rules(
    model: cp_model.CpModel,
    terms: VariantTerms,
    pods: Pods,
    problem: PlacementProblem,
    home: Mapping[int, int],
) -> None:
    """Restrict a variant's new pods to what its rules admit; `home` is the bin of each node.

    Existing pods may violate a rule, as long as no new pod is added to them.
    """
    lying: dict[int, list[cp_model.IntVar]] = defaultdict(list)
    for stay, nodes in zip(pods.stays, terms.bound_replicas, strict=True):
        for node in nodes:
            lying[node].append(stay)
    for rule in terms.node_rules:
        assert isinstance(rule, MostPerNode)
        for node, new in pods.new.items():
            _if_any(model, [new], sum(lying[node]) + new <= rule.pods)
    if terms.together is not None:
        _keep_together(model, terms, pods, problem.topologies[terms.together], home)
    if terms.domain_rule is not None:
        spread = terms.domain_rule
        assert isinstance(spread, SpreadTerms)
        _keep_even(model, spread, pods.new, lying, problem.topologies[spread.topology])


def _keep_together(
    model: cp_model.CpModel,
    terms: VariantTerms,
    pods: Pods,
    domain_of: Sequence[int],
    home: Mapping[int, int],
) -> None:
    """Require whole replicas in each block."""
    blocks: dict[tuple[int, int], list[cp_model.IntVar]] = defaultdict(list)
    for node, new in pods.new.items():
        if domain_of[node] == NO_DOMAIN:
            model.add(new == 0)
        blocks[home[node], domain_of[node]].append(new)
    for block in blocks.values():
        whole = model.new_int_var(0, terms.upper, "")
        model.add(sum(block) == terms.pods * whole)


def _keep_even(
    model: cp_model.CpModel,
    spread: SpreadTerms,
    new: Mapping[int, cp_model.IntVar],
    lying: Mapping[int, Sequence[cp_model.IntVar]],
    domain_of: Sequence[int],
) -> None:
    """Limit the skew of each domain that gets a new pod."""
    added: dict[int, list[cp_model.IntVar]] = {domain: [] for domain in spread.domains}
    staying: dict[int, list[cp_model.IntVar]] = {domain: [] for domain in spread.domains}
    for node, pods in new.items():
        if domain_of[node] in added:
            added[domain_of[node]].append(pods)
        else:
            model.add(pods == 0)
    for node, stays in lying.items():
        staying.get(domain_of[node], []).extend(stays)
    most = sum(max(pods.proto.domain) for pods in new.values()) + sum(map(len, lying.values()))
    fewest = model.new_int_var(0, most, "")
    for domain in spread.domains:
        there = model.new_int_var(0, most, "")
        model.add(there == sum(added[domain]) + sum(staying[domain]))
        model.add(fewest <= there)
        _if_any(model, added[domain], there - fewest <= spread.max_skew)


def _if_any(
    model: cp_model.CpModel, pods: Iterable[cp_model.IntVar], rule: cp_model.BoundedLinearExpression | bool
) -> None:
    """Enforce a rule if any of some numbers is not zero."""
    if isinstance(rule, bool):
        return
    for number in pods:
        some = model.new_bool_var("")
        model.add(number == 0).only_enforce_if(~some)
        model.add(rule).only_enforce_if(some)

"""Files with an AutoscalingPolicy, and optionally the AutoscalingPolicyBinding with its targets.

Policies can be tried on recorded requests without a scenario: their targets then serve those of the example.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING
from apiserver.schema.json import Json, JsonValue
from controller.commands.check.documents import EXTENSIONS, read_documents
from controller.commands.check.tree import UnreadableDocumentError
from controller.commands.simulate.recordings import one_source
from controller.policies.policy import (
    PolicyTarget,
    UnreadablePolicyError,
    lone_binding,
    read_binding,
    read_policy,
)
from controller.simulation.policies import PolicyFile
from controller.simulation.scenario import Scenario, VariantSetup

_KINDS = {item.kind: item for item in (AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING)}


def is_policy_file(name: str) -> bool:
    """Return whether the name of a policy is a file name."""
    return Path(name).suffix in EXTENSIONS


def read_policy_file(name: str) -> tuple[PolicyFile | None, list[str]]:
    """Return the policy in a file, with its binding if it has one; or the problems of the file."""
    source = one_source(name, what="file with an AutoscalingPolicy")
    if source.problem:
        return None, [f"{source.name}: {source.problem}"]
    documents = list(read_documents(source.data))
    if wrong := [item for item in documents if isinstance(item, UnreadableDocumentError)]:
        return None, [f"{name}:{item.line}: {item}" for item in wrong]
    objects = [
        part
        for item in documents
        if not isinstance(item, UnreadableDocumentError)
        for part in _parts(item.value)
    ]
    policies = [item for item in objects if _is(item, "AutoscalingPolicy")]
    bindings = [item for item in objects if _is(item, "AutoscalingPolicyBinding")]
    if len(policies) != 1 or len(bindings) > 1:
        count = f"{len(policies)} policies and {len(bindings)} bindings"
        return None, [f"{name}: must contain one AutoscalingPolicy and at most one binding, contains {count}"]
    policy, problems = _policy_file(policies[0], bindings[0] if bindings else None)
    return policy, [f"{source.name}: {problem}" for problem in problems]


def _policy_file(policy: Json, binding: Json | None) -> tuple[PolicyFile | None, list[str]]:
    problems: list[str] = []
    scaling, bound = None, None
    try:
        scaling = read_policy(policy)
    except UnreadablePolicyError as error:
        problems += (f"AutoscalingPolicy: {problem}" for problem in error.problems)
    try:
        bound = None if binding is None else read_binding(binding)
    except UnreadablePolicyError as error:
        problems += (f"AutoscalingPolicyBinding: {problem}" for problem in error.problems)
    name = policy.get("metadata", {}).get("name")
    if bound is not None and bound.policy != name:
        problems.append(f"the binding names policy {bound.policy!r}, the policy is {name!r}")
    if problems or scaling is None:
        return None, problems
    return PolicyFile(policy=scaling, binding=bound), []


def _parts(value: JsonValue) -> Iterator[Json]:
    if isinstance(value, dict):
        items = value.get("items") if value.get("kind") == "List" else None
        yield from (
            [item for item in items if isinstance(item, dict)] if isinstance(items, list) else [value]
        )


def _is(value: Json, kind: str) -> bool:
    declared = _KINDS[kind]
    group = str(value.get("apiVersion", "")).rpartition("/")[0]
    return (group, value.get("kind")) == (declared.group, declared.kind)


def with_targets(example: Scenario, policies: Sequence[PolicyFile]) -> Scenario:
    """Return the example with the targets of policies as variants, which are alike, and enough nodes.

    Policies without a binding scale the first variant of the example if no other policy has a binding.
    """
    first, group = example.variants[0], example.nodes[0]
    targets = [target for item in policies if item.binding for target in item.binding.targets]
    targets = targets or list(
        lone_binding(first.name, min_replicas=1, max_replicas=first.max_replicas).targets
    )
    names = dict.fromkeys(target.target.name for target in targets)
    if any(target.cost for target in targets):  # otherwise each has the example's price
        first = replace(first, price_per_hour=0.0)
    variants = tuple(
        _variant(first, name, [item for item in targets if item.target.name == name]) for name in names
    )
    accelerators = sum(item.max_replicas * item.accelerators_per_replica for item in variants)
    count = max(group.count, math.ceil(accelerators / group.accelerators))
    return replace(example, variants=variants, nodes=(replace(group, count=count),))


def remarks(example: Scenario, policies: Sequence[PolicyFile]) -> Iterator[str]:
    """Yield warnings about what is assumed, because no scenario contains it."""
    first = example.variants[0]
    yield (
        f"there is no scenario: every target runs the engine {first.name} of the example, and the nodes have"
        " room for all replicas"
    )
    if not all(item.binding for item in policies):
        yield "a file has no binding: its policy scales one target, which has at least 1 replica"
    if any(
        item.binding and not any(target.min_replicas for target in item.binding.targets) for item in policies
    ):
        yield (
            "all minReplicas of a binding are 0: requests in front of the replicas are not simulated, so"
            " nothing starts again at 0 replicas"
        )


def _variant(first: VariantSetup, name: str, targets: Sequence[PolicyTarget]) -> VariantSetup:
    """Return the variant for a target; bounds are the widest ones if several bindings contain it."""
    fewest = min(target.min_replicas for target in targets)
    return replace(
        first,
        name=name,
        price_per_hour=float(targets[0].cost) or first.price_per_hour,
        initial_replicas=max(1, fewest),
        min_replicas=fewest,
        max_replicas=max(target.max_replicas for target in targets),
    )

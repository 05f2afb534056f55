"""The example scenario with the requests of a trace, and with the targets of policies in files.

Policies can so be tried on recorded requests without a scenario.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from controller.closedloop.bound import PolicyFile
from controller.closedloop.scenario import Scenario, VariantSetup
from controller.policies.policy import BoundTarget, lone_binding
from controller.simulation.workload import Workload


def with_trace(
    example: Scenario, workload: Workload, *, name: str, model_id: str, seconds: float
) -> Scenario:
    """Return the example with other requests, under a model ID if one is given."""
    (model,) = example.models
    chosen = model_id or model.model_id
    return replace(
        example,
        name=name,
        models=(replace(model, model_id=chosen, workload=workload),),
        variants=tuple(
            replace(item, profile=replace(item.profile, model_id=chosen)) for item in example.variants
        ),
        duration_seconds=seconds,
    )


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
    asked = sum(item.max_replicas * item.accelerators_per_replica for item in variants)
    count = max(group.count, math.ceil(asked / group.accelerators))
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


def _variant(first: VariantSetup, name: str, targets: Sequence[BoundTarget]) -> VariantSetup:
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

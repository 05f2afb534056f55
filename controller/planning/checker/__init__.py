"""Verify a plan against the snapshot alone, without sharing code with the model.

Only harmful violations are reported: a plan may be expensive, but it must be feasible.

limits  bounds of each variant, the last replica of each model, quotas, budgets and ceilings; evictions
places  a node with room for every new replica, and rules that spread pods, or keep them together or apart
"""

from __future__ import annotations

from controller.planning.checker.limits import bound_problems, limit_problems, move_problems, warmth_problems
from controller.planning.checker.places import place_problems, rule_problems
from controller.planning.decision import Plan
from controller.planning.snapshot import Snapshot


def check(snapshot: Snapshot, plan: Plan) -> tuple[str, ...]:
    """Return a message for each violation of the plan; empty if the plan may be used."""
    expected = sorted((variant.namespace, variant.name) for variant in snapshot.variants)
    if [(d.namespace, d.name) for d in plan.decisions] != expected:
        return ("the plan does not have one decision for each variant, in order",)
    decisions = {(d.namespace, d.name): d for d in plan.decisions}
    return (
        *bound_problems(snapshot, decisions),
        *warmth_problems(snapshot, decisions),
        *limit_problems(snapshot, decisions),
        *place_problems(snapshot, plan, decisions),
        *rule_problems(snapshot, plan, decisions),
        *move_problems(snapshot, plan),
    )


__all__ = ["check"]

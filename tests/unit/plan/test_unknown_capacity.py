"""`stowplan plan` for models of which it is unknown what a replica serves."""

from __future__ import annotations

import json

from support.manifests import listed
from support.plan_verb import Parts, Plan


def test_running_replicas_are_kept_if_their_capacity_is_unknown(plan: Plan, parts: Parts) -> None:
    """No pod is bound to a node in manifests, and what a replica serves is known from no other source."""
    made = parts(demand=None)
    for item in made:
        if item["kind"] == "Deployment":
            item["spec"]["replicas"] = 2
        item.pop("status", None) if item["kind"] == "VariantAutoscaling" else None

    code, out, _ = plan(
        "-f", "-", "-o", "json", "--demand", "chat=5", "--demand", "code=0", given=listed(*made)
    )

    chat, code_ = json.loads(out)["plan"]["decisions"]
    assert (chat["replicas"], chat["reason"], chat["bound_by"]) == (2, "Holding", "CapacityUnknown")
    assert (chat["unmet_per_mille"], code_["replicas"]) == (0, 1)
    assert json.loads(out)["conclusion"].endswith("models of unknown demand or capacity: default/chat")
    assert code == 0

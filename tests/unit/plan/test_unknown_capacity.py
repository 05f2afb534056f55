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


def test_a_capacity_from_the_catalog_is_marked_as_an_estimate(plan: Plan, parts: Parts) -> None:
    """In a warning, in the message of the decision, and as its source in JSON."""
    made = [item for item in parts(demand=None) if item["metadata"]["name"] != "code"]
    for item in made:
        if item["kind"] == "VariantAutoscaling":
            item["spec"]["modelID"] = "meta-llama/Llama-3.2-3B-Instruct"
            item.pop("status", None)

    demand = "meta-llama/Llama-3.2-3B-Instruct=2@1000/200"
    code, out, _ = plan("-f", "-", "-o", "json", "--demand", demand, given=listed(*made))

    found = json.loads(out)
    (chat,) = found["plan"]["decisions"]
    assert chat["capacity"]["source"] == "Catalog"
    assert chat["message"].endswith(", by an estimate from the catalog")
    assert any(
        "is estimated for Llama-3.2-3B with 16-bit weights on L4, and can be off by a factor of two" in text
        for text in found["warnings"]
    )
    assert code == 0

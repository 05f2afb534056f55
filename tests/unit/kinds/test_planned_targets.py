"""Scale targets and costs that are planned, and a warning about others."""

from __future__ import annotations

from decimal import Decimal

import pytest
from support.manifests import variant

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.registry import find_version
from controller.planning.ranges import MAX_COST

TARGETS = {
    "a Deployment": ("apps/v1", "Deployment", True),
    "a StatefulSet": ("apps/v1", "StatefulSet", True),
    "a LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", True),
    "a ModelServing": ("workload.serving.volcano.sh/v1alpha1", "ModelServing", False),
}


@pytest.mark.parametrize(("api_version", "kind", "is_planned"), TARGETS.values(), ids=TARGETS)
def test_a_target_that_is_not_planned_causes_a_warning(api_version: str, kind: str, is_planned: bool) -> None:
    """It is accepted, because something else may scale it."""
    value = variant("chat", scaleTargetRef={"apiVersion": api_version, "kind": kind, "name": "chat"})
    found = find_version("llmd.ai/v1alpha2", "VariantAutoscaling")
    assert found

    assert complete_and_judge(*found, value).errors == []
    told = [text for advise in found[1].advise for text in advise(value)]

    assert any("is planned only if the controller may read its scale" in text for text in told) != is_planned


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
@pytest.mark.parametrize(("cost", "is_planned"), [("1000000000", True), ("1000000000.01", False)])
def test_a_cost_that_is_not_planned_causes_a_warning(version: str, cost: str, is_planned: bool) -> None:
    """The field allows more, because others may use it."""
    found = find_version(f"llmd.ai/{version}", "VariantAutoscaling")
    assert found
    value = variant("chat", variantCost=cost)

    warned = any("variantCost: above" in text for advise in found[1].advise for text in advise(value))
    assert warned != is_planned
    assert (Decimal(cost) <= MAX_COST) == is_planned

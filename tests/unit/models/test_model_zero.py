"""Backends of a Model without replicas: what starts them, who routes to them, and what the status says."""

from __future__ import annotations

import pytest
from support.model_stage import ModelStage
from support.models import POLICY, backend, model, one

from apiserver.schema.json import Json
from controller.expansion.expansion import ExpansionSettings, expand
from controller.expansion.standing import ChildKey

ALWAYS: Json = {"minReplicas": 1, "maxReplicas": 4, "scalingCost": 1}
SCALED = ALWAYS | {"minReplicas": 0}


def workload(name: str) -> ChildKey:
    """Return the key of a backend's Deployment."""
    return ChildKey("Deployment", f"qwen-{name}")


def stage_of(*backends: Json) -> ModelStage:
    """Return a Model with a policy for all of its backends, and its autoscaler's view of them."""
    stage = ModelStage()
    stage.put(*backends, autoscalingPolicy=POLICY)
    return stage


def scale(stage: ModelStage, name: str, replicas: int, *, available: int | None = None) -> None:
    """Scale a backend as an autoscaler does."""
    made = stage.made[workload(name)]
    made["spec"]["replicas"] = replicas
    made["status"]["availableReplicas"] = replicas if available is None else available
    stage.touch(workload(name))


def decide(stage: ModelStage, name: str, replicas: int) -> None:
    """Publish a decision on a backend."""
    target = {"kind": "Deployment", "name": f"qwen-{name}", "replicas": replicas}
    stage.made[ChildKey("AutoscalingPolicyBinding", "qwen")]["status"] = {"targets": [target]}


def weights(stage: ModelStage) -> dict[str, int]:
    """Return the weights of the Model's route."""
    (rule,) = stage.made[ChildKey("ModelRoute", "qwen")]["spec"]["rules"]
    return {target["modelServerName"]: target["weight"] for target in rule["targetModels"]}


@pytest.mark.parametrize(
    ("least", "has_autoscalers", "replicas"),
    [(0, True, 1), (3, True, 3), (0, False, 0)],
    ids=["an autoscaler from 0", "an autoscaler from 3", "the controller itself from 0"],
)
def test_a_workload_is_created_with_a_replica_if_its_autoscaler_starts_none(
    least: int, has_autoscalers: bool, replicas: int
) -> None:
    """An autoscaler is disabled while something else set its target to 0, such as its creation."""
    value = model(
        backend("t4", **ALWAYS), backend(**SCALED | {"minReplicas": least}), autoscalingPolicy=POLICY
    )

    made = expand(value, ExpansionSettings(has_autoscalers=has_autoscalers)).objects

    assert one(made, "Deployment", "qwen-l4")["spec"]["replicas"] == replicas


async def test_an_autoscaler_that_is_added_starts_a_workload_without_replicas() -> None:
    """Afterwards, the number is the autoscaler's."""
    stage = stage_of(backend("t4", **ALWAYS), backend(**SCALED))
    await stage.settle()
    scale(stage, "l4", 0)
    await stage.settle()
    assert stage.made[workload("l4")]["spec"]["replicas"] == 0

    del stage.made[ChildKey("HorizontalPodAutoscaler", "qwen-l4")]
    await stage.settle()
    assert stage.made[workload("l4")]["spec"]["replicas"] == 1


async def test_a_route_gives_no_weight_to_a_backend_without_endpoints() -> None:
    """If no backend has any, the weights stay, so that routers see the requests."""
    stage = stage_of(backend("t4", **ALWAYS), backend("a30", **SCALED))
    seen = []
    await stage.settle()
    seen.append(weights(stage))
    for t4, a30, available in ((2, 0, 0), (2, 1, 0), (2, 1, 1), (0, 0, 0)):
        scale(stage, "t4", t4)
        scale(stage, "a30", a30, available=available)
        await stage.settle()
        seen.append(weights(stage))

    both, one_of_them = {"qwen-t4": 100, "qwen-a30": 100}, {"qwen-t4": 100, "qwen-a30": 0}
    assert seen == [both, one_of_them, one_of_them, both, both]


async def test_active_is_true_to_what_serves() -> None:
    """A backend at 0 is no problem while others serve and nothing more is decided."""
    stage = stage_of(backend("t4", **ALWAYS), backend("a30", **SCALED))
    await stage.settle()

    scale(stage, "a30", 0)
    await stage.settle()
    assert stage.reason("Active") == (
        "ModelAvailable",
        "all backends with replicas serve; a30 has none now",
    )
    decide(stage, "a30", 4)
    await stage.reconcile()
    assert stage.reason("Active") == (
        "ModelProcessing",
        "not all backends serve: a30: it has 0 replicas, and 4 are decided",
    )
    decide(stage, "a30", 0)
    scale(stage, "t4", 0)
    await stage.reconcile()
    assert stage.reason("Active") == ("ScaledToZero", "no backend has replicas now")

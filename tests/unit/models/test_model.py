"""Reconciliation of a Model: adapters at run time, backends without replicas, and the API group of routes."""

from __future__ import annotations

import pytest
from support.model_stage import ModelStage
from support.models import POLICY, backend, loading_backend, model, one

from apiserver.cluster.errors import NotFound
from apiserver.kinds.kthena.groups import NETWORKING, SERVING
from apiserver.schema.json import Json
from controller.expansion.expansion import ExpansionSettings, expand
from controller.expansion.routing import routing_group
from controller.expansion.steps import ChildKey
from controller.models.run import ModelsConfig, routing_setting


async def ask_for(stage: ModelStage, *names: str) -> None:
    """Request some adapters, and reconcile the Model until nothing changes."""
    stage.put(loading_backend(*names))
    await stage.settle()


@pytest.fixture
async def stage() -> ModelStage:
    """Return a Model with one adapter, which is loaded in both of its engines."""
    made = ModelStage()
    await ask_for(made, "law")
    for pod in ("a", "b"):
        made.pages[pod] = {}
        made.load(pod, "law")
    assert await made.settle()
    return made


async def test_requests_are_routed_to_an_adapter_after_all_engines_have_loaded_it(stage: ModelStage) -> None:
    """The list is updated before the route, and the pods are not restarted."""
    stage.applied.clear()
    await ask_for(stage, "law", "tax")
    assert (stage.listed, stage.routed) == ({"law", "tax"}, {"law"})
    assert stage.reason("Updating") == (
        "ChangeWaits",
        "the change waits for adapter tax to be loaded in 2 of 2 pods of l4",
    )

    stage.load("a", "law", "tax")
    assert not await stage.settle()
    assert stage.routed == {"law"}
    stage.load("b", "law", "tax")
    assert await stage.settle()
    assert stage.routed == {"law", "tax"}
    assert stage.reason("Updating")[0] == "NothingChanges"
    assert stage.applied == ["ConfigMap qwen-l4", "ModelRoute qwen"]


@pytest.mark.parametrize("spec", [None, {}], ids=["no spec", "no backends"])
async def test_a_stored_model_without_required_fields_fails(stage: ModelStage, spec: Json | None) -> None:
    """Upstream's definition had no required fields; other Models are reconciled as usual."""
    stage.items["bare"] = {**stage.items["qwen"], "spec": spec}
    stage.items["bare"]["metadata"] = {**stage.items["bare"]["metadata"], "name": "bare", "uid": "bare"}
    if spec is None:
        del stage.items["bare"]["spec"]

    assert await stage.settle("bare")
    assert "Required value" in stage.reason("Failed", "bare")[1]
    assert await stage.settle()


async def test_a_removed_adapter_leaves_the_route_before_the_engines(stage: ModelStage) -> None:
    """The route is changed while the list still has the adapter."""
    await ask_for(stage, "law", "tax")
    for pod in ("a", "b"):
        stage.load(pod, "law", "tax")
    await stage.settle()
    stage.applied.clear()

    await ask_for(stage, "tax")
    assert stage.applied == ["ModelRoute qwen", "ConfigMap qwen-l4"]
    assert (stage.listed, stage.routed) == ({"tax"}, {"tax"})


async def test_an_adapter_that_fails_to_load_is_named_and_affects_no_other(stage: ModelStage) -> None:
    """Loading is retried; the route keeps its adapters while the state of an engine is unknown."""
    await ask_for(stage, "law", "tax")
    for pod in ("a", "b"):
        stage.load(pod, "law", tax="404")
    assert not await stage.settle()
    assert stage.routed == {"law"}
    assert stage.reason("Failed") == (
        "AdaptersFail",
        "adapter tax is not loaded in pod a: 404; adapter tax is not loaded in pod b: 404",
    )
    assert stage.reason("Active")[0] == "ModelAvailable"

    stage.pages["a"] = {}
    await stage.settle()
    assert stage.routed == {"law"}
    assert ("container adapters of pod a does not report what is loaded: no answer") in stage.reason(
        "Failed"
    )[1]


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
    assert stage.reason("Active") == ("ModelAvailable", "all backends with replicas serve; a30 has none now")
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


CHOICES = {
    "neither is served": ("auto", (), NETWORKING),
    "only ours": ("auto", (NETWORKING,), NETWORKING),
    "only that of the releases": ("auto", (SERVING,), SERVING),
    "both": ("auto", (NETWORKING, SERVING), SERVING),
    "both, and ours is set": (NETWORKING, (NETWORKING, SERVING), NETWORKING),
    "one that is not served is set": (SERVING, (NETWORKING,), SERVING),
}


@pytest.mark.parametrize(("setting", "served", "want"), CHOICES.values(), ids=CHOICES.keys())
def test_a_set_group_is_used_and_otherwise_that_of_the_releases_if_it_is_served(
    setting: str, served: tuple[str, ...], want: str
) -> None:
    """Their router reads no other group."""
    assert routing_group(setting, served) == want


def test_behind_gateways_the_group_only_changes_if_it_is_set() -> None:
    """Installing Kthena must not interrupt requests through Gateways."""
    assert routing_setting(ModelsConfig()) == "auto"
    assert routing_setting(ModelsConfig(gateways=True)) == NETWORKING
    assert routing_setting(ModelsConfig(gateways=True, routing_group=SERVING)) == SERVING


def routing(stage: ModelStage) -> set[tuple[str, str]]:
    """Return kinds and groups of the existing objects of routing."""
    return {(key.kind, key.group) for key in stage.made if key.kind in ("ModelServer", "ModelRoute")}


OURS, THEIRS = {("ModelServer", ""), ("ModelRoute", "")}, {("ModelServer", SERVING), ("ModelRoute", SERVING)}


async def test_objects_of_the_former_group_are_deleted_once_those_of_the_new_one_exist() -> None:
    """Engines serve all the time; the change can be undone."""
    stage = ModelStage()
    stage.put(backend())
    await stage.settle()
    assert routing(stage) == OURS

    stage.group = SERVING
    await stage.reconcile()
    assert routing(stage) == OURS | THEIRS
    assert stage.reason("Updating") == (
        "ChangeWaits",
        "the change waits for all objects of the Model to be created before qwen of networking.volcano.sh,"
        " qwen-l4 of networking.volcano.sh is deleted",
    )
    assert await stage.settle()
    assert routing(stage) == THEIRS
    assert stage.deleted == ["ModelRoute qwen", "ModelServer qwen-l4"]
    assert stage.reason("Updating")[0] == "NothingChanges"

    stage.group = NETWORKING
    assert await stage.settle()
    assert routing(stage) == OURS


async def test_objects_of_others_in_the_former_group_are_kept() -> None:
    """They have the names of the Model's objects, and prevent nothing in the other group."""
    stage = ModelStage()
    key = stage.occupy("ModelRoute", "qwen")
    stage.put(backend())
    await stage.settle()
    assert stage.reason("Failed")[0] == "ObjectExists"

    stage.group = SERVING
    assert await stage.settle()
    assert key in stage.made
    assert ChildKey("ModelRoute", "qwen", SERVING) in stage.made
    assert ChildKey("ModelServer", "qwen-l4") not in stage.made
    assert stage.reason("Failed")[0] == "NothingFailed"


async def test_without_a_served_group_everything_else_is_created_and_one_condition_says_so() -> None:
    """Once the group is served, the next attempt completes the Model."""
    stage = ModelStage()
    unserved = NotFound("404 page not found", code=404)
    stage.fails = {"ModelServer": unserved, "ModelRoute": unserved}
    stage.put(backend())

    assert not await stage.settle()
    assert stage.kinds("qwen-l4") == {"Deployment", "Service"}
    assert stage.reason("Failed") == (
        "RequestRefused",
        "ModelServer qwen-l4: networking.volcano.sh/v1alpha1 is not served by this cluster: install the"
        " definition of ModelServer",
    )
    stage.fails.clear()
    assert await stage.settle()
    assert routing(stage) == OURS

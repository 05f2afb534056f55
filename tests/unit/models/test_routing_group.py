"""The API group of the ModelServers and ModelRoutes of Models: its choice, its change, and its absence."""

from __future__ import annotations

import pytest
from support.model_stage import ModelStage
from support.models import backend

from apiserver.cluster.errors import NotFound
from apiserver.kinds.kthena.groups import NETWORKING, SERVING
from controller.expansion.routing import routing_group
from controller.expansion.standing import ChildKey
from controller.models.run import ModelsConfig, routing_setting

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

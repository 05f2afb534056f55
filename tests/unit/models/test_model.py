"""A Model whose engines load adapters: the order of changes to the list, the route and the status."""

from __future__ import annotations

import pytest
from support.model_stage import ModelStage
from support.models import loading_backend

from apiserver.schema.json import Json


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

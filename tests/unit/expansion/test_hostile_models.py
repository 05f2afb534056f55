"""Models that are valid, or were stored without validation, and would take much time to expand."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from support.model_stage import ModelStage
from support.models import adapters, backend, loading_backend, split, worker

from apiserver.schema.json import Json
from controller.models.caches import UNREAD

_MOST_CPU_SECONDS: Final = 3.0
"""CPU time of a reconciliation, which the double of the API server doubles. Usually it is milliseconds."""

_ALLOWED: Final = {"name": "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "value": "1"}


def parted(number: int) -> Json:
    """Return a backend with as many workers as allowed."""
    workers = [worker(type="prefill")] * 999 + [worker(type="decode")]
    return split(f"b{number:02}", workers=workers, env=[_ALLOWED], loraAdapters=adapters("law"))


def adapting(number: int) -> Json:
    """Return a backend with as many adapters as allowed, which no other backend has."""
    return loading_backend(*(f"a{number}-{rank}" for rank in range(128)), of=f"b{number:02}")


LARGEST: Final[Mapping[str, Callable[[int], Json]]] = {"workers": parted, "adapters": adapting}


@pytest.mark.parametrize("made", LARGEST.values(), ids=LARGEST.keys())
async def test_the_largest_model_takes_a_limited_time(made: Callable[[int], Json]) -> None:
    """All Models are reconciled by one process."""
    stage = ModelStage()
    stage.put(*map(made, range(32)))
    for _ in range(2):
        began = time.process_time()
        await stage.reconcile()
        assert time.process_time() - began < _MOST_CPU_SECONDS


async def test_a_backend_with_two_workers_of_one_role_is_not_created() -> None:
    """Their workloads would have one name, and each reconciliation would replace one by the other."""
    stage = ModelStage()
    stage.put(split("pair", workers=[worker(type="prefill"), worker(type="decode"), worker(type="prefill")]))
    await stage.settle()

    assert stage.reason("Failed") == (
        "BackendNotMade",
        "spec.backends[0].workers[2].type: there is another prefill worker before it, and their workloads"
        " would have one name",
    )
    assert not stage.made


@pytest.mark.parametrize(
    "backends", [[{}], [{"name": None, "type": "vLLM"}], []], ids=["without a name", "null", "none"]
)
async def test_a_model_without_a_valid_backend_is_not_active(backends: list[Json]) -> None:
    """It was stored without validation."""
    stage = ModelStage()
    stage.put(backend())
    stage.items["qwen"]["spec"]["backends"] = backends
    await stage.settle()

    assert stage.reason("Failed")[0] == "BackendNotMade"
    assert stage.reason("Active") == ("ModelProcessing", "there is no backend")


async def test_a_model_that_is_not_read_says_why() -> None:
    """Its objects stay as they are."""
    stage = ModelStage()
    stage.put(backend())
    await stage.settle()
    before = {*stage.made}
    stage.items["qwen"] |= {"spec": {}, UNREAD: "not read, because it is too large"}
    await stage.settle()

    assert stage.reason("Failed") == ("BackendNotMade", "spec: not read, because it is too large")
    assert {*stage.made} == before


async def test_an_object_of_someone_else_without_labels_is_left_alone() -> None:
    """It has the name of a ModelServer or ModelRoute, and content that their definitions do not require."""
    stage = ModelStage()
    stage.put(loading_backend("law"))
    for kind, name in (("ModelServer", "qwen-l4"), ("ModelRoute", "qwen")):
        stage.occupy(kind, name, loraAdapters=["law"], rules=[{"targetModels": [{}]}])
    await stage.settle()

    assert stage.reason("Failed")[0] == "ObjectExists"
    assert "ConfigMap qwen-l4" in stage.applied


async def test_an_adapter_of_the_longest_list_leaves_it_after_the_route() -> None:
    """The list has all adapters that a backend may have, with sources of almost the longest length."""
    names = [f"a{rank:03}-{'a' * 58}" for rank in range(128)]
    long = [{**item, "artifactURL": f"{item['artifactURL']}/{'s' * 1900}"} for item in adapters(*names)]
    stage = ModelStage()
    stage.put(loading_backend() | {"loraAdapters": long})
    await stage.settle()
    stage.load("pod", *names)
    await stage.settle()
    assert names[0] in stage.routed

    stage.put(loading_backend() | {"loraAdapters": long[1:]})
    await stage.reconcile()
    assert names[0] not in stage.routed
    assert stage.listed == set(names)
    await stage.settle()
    assert stage.listed == set(names[1:])

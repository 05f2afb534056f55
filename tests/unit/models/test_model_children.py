"""Objects made for Models, next to objects of other owners and with errors of the API server."""

from __future__ import annotations

import copy

import pytest
from support.model_stage import ModelStage
from support.models import POLICY, backend, split

from apiserver.cluster.errors import ClusterError, error_of
from apiserver.schema.json import Json
from controller.expansion.steps import ChildKey

SCALED = {"minReplicas": 50, "maxReplicas": 90}
ACTING = {"Service", "ModelServer", "AutoscalingPolicyBinding", "HorizontalPodAutoscaler"}
"""Kinds that scale a backend, or route requests to it."""

OWN = {
    "own policies": (SCALED | {"autoscalingPolicy": POLICY}, {}),
    "the policy of the model": (SCALED, POLICY),
}


def put(stage: ModelStage, members: Json, policy: Json) -> None:
    """Store a Model with two backends of which `l4` is scaled."""
    whole: Json = {"autoscalingPolicy": policy} if policy else {}
    cost = {"scalingCost": 1} if policy else {}
    stage.put(backend(**members, **cost), backend("h100", **cost), **whole)


@pytest.mark.parametrize(("members", "policy"), OWN.values(), ids=OWN.keys())
async def test_a_workload_of_another_owner_is_not_scaled(members: Json, policy: Json) -> None:
    """A user who can write Models may not be allowed to scale it. The other backend is created."""
    stage = ModelStage()
    key = stage.occupy("Deployment", "qwen-l4", replicas=1)
    put(stage, members, policy)

    assert not await stage.settle()
    assert stage.kinds("qwen-l4") == {"Deployment"}
    assert "qwen-l4" not in str([item["spec"] for other, item in stage.made.items() if other != key])
    assert {"Deployment", "Service", "ModelServer"} <= stage.kinds("qwen-h100")
    assert stage.made[ChildKey("ModelRoute", "qwen")]["spec"]["rules"][0]["targetModels"] == [
        {"modelServerName": "qwen-h100", "weight": 100}
    ]
    assert stage.reason("Failed") == (
        "ObjectExists",
        "Deployment qwen-l4 does not belong to this Model and is not changed: delete it, or rename the"
        " backend",
    )

    del stage.made[key]
    assert await stage.settle()
    assert ACTING - {"AutoscalingPolicyBinding"} <= stage.kinds("qwen-l4")
    assert stage.reason("Failed")[0] == "NothingFailed"


@pytest.mark.parametrize(("members", "policy"), OWN.values(), ids=OWN.keys())
@pytest.mark.parametrize("is_whole", [True, False])
async def test_scaling_objects_are_deleted_when_another_owner_replaces_the_workload(
    members: Json, policy: Json, is_whole: bool
) -> None:
    """This happens at once, even if another backend cannot be created."""
    stage = ModelStage()
    put(stage, members, policy)
    await stage.settle()
    key = stage.occupy("Deployment", "qwen-l4", replicas=1)
    if not is_whole:
        del stage.items["qwen"]["spec"]["backends"][1]["workers"][0]["image"]

    await stage.settle()
    assert not stage.kinds("qwen-l4") & ACTING
    acting = [item["spec"] for other, item in stage.made.items() if other.kind in ("ModelRoute", *ACTING)]
    assert "qwen-l4" not in str(acting)
    assert stage.made[key]["spec"] == {"replicas": 1}


async def test_a_backend_with_one_workload_of_another_owner_gets_no_requests() -> None:
    """Decode workers alone cannot serve requests; they are not changed."""
    stage = ModelStage()
    stage.put(split(), backend())
    await stage.settle()
    stage.occupy("Deployment", "qwen-split-prefill")

    await stage.settle()
    assert stage.kinds("qwen-split") == set()
    assert stage.kinds("qwen-split-decode") == {"Deployment"}
    assert {"Service", "ModelServer"} <= stage.kinds("qwen-l4")


async def test_an_old_backend_serves_while_the_name_of_the_new_one_is_in_use() -> None:
    """No object that serves requests is deleted."""
    stage = ModelStage()
    stage.put(backend("old"))
    await stage.settle()
    stage.occupy("Deployment", "qwen-new")
    stage.put(backend("new"))

    await stage.settle()
    assert stage.deleted == []
    assert "qwen-old" in str(stage.made[ChildKey("ModelRoute", "qwen")]["spec"])


async def test_objects_that_the_watches_have_not_reported_are_recognized() -> None:
    """The owner reference identifies them, so they are neither another owner's nor written again."""
    stage = ModelStage()
    stage.put(backend())
    await stage.settle()
    stage.unseen = set(stage.made)
    stage.applied.clear()

    assert await stage.settle()
    assert stage.applied == []
    assert stage.reason("Failed")[0] == "NothingFailed"


async def test_an_object_without_its_label_is_recognized() -> None:
    """The label is restored, so that the watches report the object again."""
    stage = ModelStage()
    stage.put(backend())
    await stage.settle()
    key = ChildKey("Deployment", "qwen-l4")
    del stage.made[key]["metadata"]["labels"]["stowplan.dev/model"]

    assert await stage.settle()
    assert stage.made[key]["metadata"]["labels"]["stowplan.dev/model"] == "qwen"
    assert stage.reason("Failed")[0] == "NothingFailed"


async def test_a_workload_that_another_client_creates_at_the_same_time_is_not_taken_over() -> None:
    """It is created between the read and the write, and is not scaled either."""
    stage = ModelStage()
    stage.put(backend(**SCALED, autoscalingPolicy=POLICY))
    key = ChildKey("Deployment", "qwen-l4")
    stage.latecomers.add(key)

    assert not await stage.reconcile()
    assert stage.kinds("qwen-l4") == {"Deployment", "AutoscalingPolicy"}
    assert stage.made[key]["spec"] == {}
    assert not await stage.settle()
    assert stage.reason("Failed")[0] == "ObjectExists"


async def test_an_object_that_replaced_ours_is_not_written() -> None:
    """An outdated cache entry does not make it ours."""
    stage = ModelStage()
    stage.put(backend())
    await stage.settle()
    key = ChildKey("Deployment", "qwen-l4")
    stage.behind[key] = stage.made[key]
    stage.occupy(*key)
    stage.put(backend(cacheURI="pvc://models"))

    assert not await stage.reconcile()
    assert stage.made[key]["spec"] == {}
    assert stage.reason("Failed")[0] == "NothingFailed"
    stage.behind.clear()
    assert not await stage.settle()
    assert stage.reason("Failed")[0] == "ObjectExists"


async def test_a_name_in_use_by_another_model_is_retried() -> None:
    """This Model gets no event when the name becomes free."""
    stage = ModelStage()
    stage.put(backend("b-c"), name="a")
    stage.put(backend("c"), name="a-b")
    await stage.settle("a")

    assert not await stage.settle("a-b")
    assert stage.reason("Failed", "a-b")[0] == "ObjectExists"
    stage.made.clear()
    assert await stage.settle("a-b")
    assert "Deployment" in stage.kinds("a-b-c")


REFUSALS = {
    "by a webhook of another project": (
        "Service",
        error_of(500, status={"reason": "InternalError", "message": "failed calling webhook: refused"}),
    ),
    "by the schema": (
        "HorizontalPodAutoscaler",
        error_of(500, status={"message": ".spec.x: field not declared in schema"}),
    ),
    "while the server stops": ("ModelServer", error_of(503, status={"message": "not now"})),
}


@pytest.mark.parametrize(("kind", "error"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_an_object_that_the_server_fails_to_write_does_not_block_others(
    kind: str, error: ClusterError
) -> None:
    """All others are created, the status gives the reason, and the write is retried."""
    stage = ModelStage()
    stage.put(backend(**SCALED, autoscalingPolicy=POLICY))
    stage.fails[kind] = error

    assert not await stage.settle()
    assert stage.kinds("qwen-l4") == {"Deployment", "AutoscalingPolicy", *ACTING} - {kind}
    assert stage.reason("Failed") == (
        "RequestRefused",
        f"{kind} qwen-l4: {error.message}; the server failed, the write is retried",
    )
    assert stage.reason("Initialized") == ("ModelCreating", f"still to be created: {kind} qwen-l4")
    stage.fails.clear()
    assert await stage.settle()
    assert stage.reason("Failed")[0] == "NothingFailed"


async def test_a_rejected_workload_is_not_scaled() -> None:
    """Another owner may have used its name by the time of the retry."""
    stage = ModelStage()
    stage.put(backend(**SCALED, autoscalingPolicy=POLICY))
    stage.fails["Deployment"] = error_of(403, status={"message": "exceeded quota"})

    assert not await stage.settle()
    assert stage.kinds("qwen-l4") == {"AutoscalingPolicy"}
    assert stage.reason("Failed") == ("RequestRefused", "Deployment qwen-l4: exceeded quota")


@pytest.mark.parametrize("error", [error_of(503), error_of(429, status={"message": "too many"})])
async def test_an_unreachable_or_overloaded_server_ends_the_reconciliation(error: ClusterError) -> None:
    """No further calls are made until the retry."""
    stage = ModelStage()
    stage.put(backend())
    stage.fails["Deployment"] = error

    with pytest.raises(type(error)):
        await stage.reconcile()
    assert stage.applied == []


async def test_a_backend_is_deleted_although_another_backend_s_autoscaler_is_rejected() -> None:
    """Kubernetes before 1.37 rejects `minReplicas: 0`; the condition names the remedy."""
    stage = ModelStage()
    zero = backend(minReplicas=0, maxReplicas=3, scalingCost=1)
    message = 'HorizontalPodAutoscaler.autoscaling "qwen-l4" is invalid: spec.minReplicas: Invalid value: 0'
    stage.fails["HorizontalPodAutoscaler"] = error_of(422, status={"message": message})
    kept, old = (backend(name, maxReplicas=3, scalingCost=1) for name in ("kept", "old"))
    stage.put(zero, kept, old, autoscalingPolicy=POLICY)
    await stage.settle()
    stage.put(zero, kept, autoscalingPolicy=POLICY)

    assert not await stage.settle()
    assert stage.kinds("qwen-old") == set()
    reason, said = stage.reason("Failed")
    assert reason == "RequestRefused"
    assert said.endswith("HPAScaleToZero: enable it, or set minReplicas to 1")


EDITS = {
    "the pods of a Service": ("Service", "selector", {"app": "evil"}),
    "bounds": ("HorizontalPodAutoscaler", "maxReplicas", 999),
    "pods": ("Deployment", "template", {}),
    "the port that requests are sent to": ("ModelServer", "workloadPort", {"port": 1}),
}


@pytest.mark.parametrize(("kind", "member", "value"), EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("runs", [True, False])
async def test_edits_by_other_clients_are_reverted(kind: str, member: str, value: object, runs: bool) -> None:
    """This holds for every kind, also after a restart of the controller; then nothing more is written."""
    stage = ModelStage()
    stage.put(backend(**SCALED, autoscalingPolicy=POLICY))
    await stage.settle()
    before = copy.deepcopy(stage.made[ChildKey(kind, "qwen-l4")]["spec"])
    stage.made[ChildKey(kind, "qwen-l4")]["spec"][member] = value
    stage.touch(ChildKey(kind, "qwen-l4"))
    stage.applied.clear()
    if not runs:
        stage.restart()

    assert await stage.settle()
    assert stage.made[ChildKey(kind, "qwen-l4")]["spec"] == before
    assert stage.applied == [f"{kind} qwen-l4"] or not runs
    stage.applied.clear()
    assert await stage.settle()
    assert stage.applied == []


async def test_replicas_that_an_autoscaler_sets_are_not_reverted() -> None:
    """They are kept without a write; without a policy, the replicas of the Model are restored."""
    stage = ModelStage()
    stage.put(backend(**SCALED, autoscalingPolicy=POLICY), backend("fixed"))
    await stage.settle()
    for name in ("qwen-l4", "qwen-fixed"):
        stage.made[ChildKey("Deployment", name)]["spec"]["replicas"] = 60
        stage.touch(ChildKey("Deployment", name))
    stage.applied.clear()

    assert await stage.settle()
    assert stage.applied == ["Deployment qwen-fixed"]
    assert stage.made[ChildKey("Deployment", "qwen-l4")]["spec"]["replicas"] == 60
    stage.restart()
    assert await stage.settle()
    assert stage.made[ChildKey("Deployment", "qwen-l4")]["spec"]["replicas"] == 60


async def test_a_new_process_completes_the_steps_of_the_previous_one() -> None:
    """Its applies change nothing, so no event triggers the next step, and a retry is needed."""
    stage = ModelStage()
    stage.put(backend(), backend("old"))
    await stage.settle()
    stage.put(backend())
    await stage.reconcile()
    stage.restart()

    assert not await stage.reconcile()
    assert await stage.settle()
    assert stage.kinds("qwen-old") == set()

"""What the controller of Models makes beside what others have, and when the server refuses some of it."""

from __future__ import annotations

import copy

import pytest
from support.model_stage import ModelStage
from support.models import POLICY, backend, split

from apiserver.cluster.errors import ClusterError, error_of
from apiserver.schema.json import Json
from controller.models.standing import ChildKey

SCALED = {"minReplicas": 50, "maxReplicas": 90}
ACTING = {"Service", "ModelServer", "AutoscalingPolicyBinding", "HorizontalPodAutoscaler"}
"""Kinds that scale a backend, or lead requests there."""

OWN = {
    "own policies": (SCALED | {"autoscalingPolicy": POLICY}, {}),
    "the policy of the model": (SCALED, POLICY),
}


def put(stage: ModelStage, members: Json, policy: Json) -> None:
    """Have a Model ask for two backends of which `l4` is scaled."""
    whole: Json = {"autoscalingPolicy": policy} if policy else {}
    cost = {"scalingCost": 1} if policy else {}
    stage.put(backend(**members, **cost), backend("h100", **cost), **whole)


@pytest.mark.parametrize(("members", "policy"), OWN.values(), ids=OWN.keys())
async def test_nothing_scales_a_workload_of_somebody_else(members: Json, policy: Json) -> None:
    """Whoever may write Models may not be one who may scale it. The other backend is made."""
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
async def test_what_scales_a_workload_goes_when_somebody_replaces_it(
    members: Json, policy: Json, is_whole: bool
) -> None:
    """At once, also while another backend cannot be made."""
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


async def test_a_backend_of_which_one_workload_is_taken_gets_no_requests() -> None:
    """Decode workers alone serve nobody; they stay as they are."""
    stage = ModelStage()
    stage.put(split(), backend())
    await stage.settle()
    stage.occupy("Deployment", "qwen-split-prefill")

    await stage.settle()
    assert stage.kinds("qwen-split") == set()
    assert stage.kinds("qwen-split-decode") == {"Deployment"}
    assert {"Service", "ModelServer"} <= stage.kinds("qwen-l4")


async def test_an_old_backend_serves_while_the_name_of_the_new_one_is_taken() -> None:
    """Nothing that serves goes."""
    stage = ModelStage()
    stage.put(backend("old"))
    await stage.settle()
    stage.occupy("Deployment", "qwen-new")
    stage.put(backend("new"))

    await stage.settle()
    assert stage.deleted == []
    assert "qwen-old" in str(stage.made[ChildKey("ModelRoute", "qwen")]["spec"])


async def test_what_the_watches_have_not_told_is_ours() -> None:
    """It is known by its owner: neither taken for another one's, nor written again."""
    stage = ModelStage()
    stage.put(backend())
    await stage.settle()
    stage.unseen = set(stage.made)
    stage.applied.clear()

    assert await stage.settle()
    assert stage.applied == []
    assert stage.reason("Failed")[0] == "NothingFailed"


async def test_an_object_without_its_label_is_ours() -> None:
    """The label comes back, and with it the local copy."""
    stage = ModelStage()
    stage.put(backend())
    await stage.settle()
    key = ChildKey("Deployment", "qwen-l4")
    del stage.made[key]["metadata"]["labels"]["stowplan.dev/model"]

    assert await stage.settle()
    assert stage.made[key]["metadata"]["labels"]["stowplan.dev/model"] == "qwen"
    assert stage.reason("Failed")[0] == "NothingFailed"


async def test_a_workload_that_somebody_makes_at_the_same_moment_is_theirs() -> None:
    """Between the look and the write; neither taken over nor scaled."""
    stage = ModelStage()
    stage.put(backend(**SCALED, autoscalingPolicy=POLICY))
    key = ChildKey("Deployment", "qwen-l4")
    stage.latecomers.add(key)

    assert not await stage.reconcile()
    assert stage.kinds("qwen-l4") == {"Deployment", "AutoscalingPolicy"}
    assert stage.made[key]["spec"] == {}
    assert not await stage.settle()
    assert stage.reason("Failed")[0] == "ObjectExists"


async def test_what_replaced_an_object_that_was_ours_is_not_written() -> None:
    """A local copy that is behind does not make it ours."""
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


async def test_a_name_that_another_model_holds_is_asked_for_again() -> None:
    """Nobody tells this one when it is free."""
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
    "by a webhook of somebody else": (
        "Service",
        error_of(500, status={"reason": "InternalError", "message": "failed calling webhook: refused"}),
    ),
    "by the schema": (
        "HorizontalPodAutoscaler",
        error_of(500, status={"message": ".spec.x: field not declared in schema"}),
    ),
    "while it stops": ("ModelServer", error_of(503, status={"message": "not now"})),
}


@pytest.mark.parametrize(("kind", "error"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_an_object_that_the_server_fails_to_write_keeps_no_other_back(
    kind: str, error: ClusterError
) -> None:
    """All others are made, the status says why, and it is tried again."""
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


async def test_a_workload_that_is_refused_is_not_scaled() -> None:
    """Its name may be somebody else's by the time it is tried again."""
    stage = ModelStage()
    stage.put(backend(**SCALED, autoscalingPolicy=POLICY))
    stage.fails["Deployment"] = error_of(403, status={"message": "exceeded quota"})

    assert not await stage.settle()
    assert stage.kinds("qwen-l4") == {"AutoscalingPolicy"}
    assert stage.reason("Failed") == ("RequestRefused", "Deployment qwen-l4: exceeded quota")


@pytest.mark.parametrize("error", [error_of(503), error_of(429, status={"message": "too many"})])
async def test_a_server_that_does_not_answer_is_left_alone(error: ClusterError) -> None:
    """Nothing more is asked of it until later."""
    stage = ModelStage()
    stage.put(backend())
    stage.fails["Deployment"] = error

    with pytest.raises(type(error)):
        await stage.reconcile()
    assert stage.applied == []


async def test_a_backend_goes_though_an_autoscaler_of_another_one_is_refused() -> None:
    """As `minReplicas: 0` is before Kubernetes 1.37; the condition says what to do."""
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
    "what requests are sent to": ("ModelServer", "workloadPort", {"port": 1}),
}


@pytest.mark.parametrize(("kind", "member", "value"), EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("runs", [True, False])
async def test_what_somebody_edits_is_mended(kind: str, member: str, value: object, runs: bool) -> None:
    """Of every kind, whether a controller runs meanwhile or not; then nothing more is written."""
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


async def test_replicas_that_somebody_else_decides_are_no_edit() -> None:
    """They stay, and nothing is written; without a policy they are those of the Model."""
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


async def test_a_new_process_ends_what_an_old_one_left() -> None:
    """Nothing that it applies changes anything, so no event brings it back to what waits for that."""
    stage = ModelStage()
    stage.put(backend(), backend("old"))
    await stage.settle()
    stage.put(backend())
    await stage.reconcile()
    stage.restart()

    assert not await stage.reconcile()
    assert await stage.settle()
    assert stage.kinds("qwen-old") == set()

"""The conditions of a Model and their messages."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.models import backend, model, worker

from apiserver.kinds.kthena.model import ModelStatus
from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json
from apiserver.schema.model import node_of
from apiserver.schema.structural import describe_property
from apiserver.schema.validation import validate
from controller.expansion.expansion import expand
from controller.expansion.reporting import ModelCondition, ModelReason, Report, findings, model_status
from controller.expansion.steps import ChildKey, ExistingObjects, Steps, key_of
from controller.traffic.endpoints import pod_trouble
from hack.installation.manifests import ROOT

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOTHING = Steps(apply=(), delete=(), awaited=())


def test_the_reference_names_every_condition() -> None:
    """The order is that of the code, and no other names are listed."""
    (conditions,) = (prop for prop in node_of(ModelStatus).properties if prop.name == "conditions")

    assert re.findall(r"`(\w+)`:", describe_property(conditions)) == [*ModelCondition]


def report(*backends: Json, available: int = 2, **members: Any) -> Report:
    """Return the report of a Model whose objects all exist."""
    value = model(*backends, metadata={"uid": "u", "namespace": "chat", "generation": 3})
    expansion = expand(value)
    children = {}
    for item in expansion.objects:
        status = {"availableReplicas": available, "replicas": available, "updatedReplicas": available}
        children[key_of(item)] = {**item, "status": status}
    existing = ExistingObjects(children=children)
    given: dict[str, Any] = {
        "model": value,
        "expansion": expansion,
        "existing": existing,
        "steps": NOTHING,
        **members,
    }
    return Report(**given)


def pod(**status: Any) -> Json:
    """Return a pod."""
    return {"metadata": {"name": "p"}, "status": status}


def ended(state: str, **members: Any) -> Json:
    """Return a container with an earlier failure, and its current state."""
    waits = {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}
    last = {"terminated": {"exitCode": 28, **members}}
    now = waits if state == "waiting" else {}
    return {"name": "fetch-weights", "ready": False, "state": {state: now}, "lastState": last}


def test_a_model_that_serves_has_no_problems() -> None:
    """No change is in progress, and nothing failed."""
    found = findings(report())

    assert {str(kind): (holds, str(reason)) for kind, (holds, reason, _) in found.items()} == {
        "Ready": (True, "ModelAvailable"),
        "Initialized": (True, "ModelCreated"),
        "Active": (True, "ModelAvailable"),
        "Updating": (False, "NothingChanges"),
        "Failed": (False, "NothingFailed"),
        "FieldsEffective": (True, "AllFields"),
    }


FINDINGS: list[tuple[Report, str, str]] = [
    (
        report(available=0),
        "Active",
        "False ModelProcessing: not all backends serve: l4: qwen-l4 has 0 of 2 replicas available",
    ),
    (
        report(existing=ExistingObjects(children={})),
        "Initialized",
        "False ModelCreating: still to be created: Deployment qwen-l4, Service qwen-l4, ModelServer qwen-l4,"
        " ModelRoute qwen",
    ),
    (
        report(steps=Steps(apply=(), delete=(), awaited=("a to be ready", "b to be ready"))),
        "Updating",
        "True ChangeWaits: the change waits for a to be ready, and for b to be ready",
    ),
    (
        report(backend(workers=[worker(config={"model": "x"})])),
        "FieldsEffective",
        "False WithoutEffect: spec.backends[0].workers[0].config[model]: has no effect: modelURI specifies"
        " the weights",
    ),
    (
        report(backend(type="MindIE"), backend("b")),
        "Failed",
        "True BackendNotMade: spec.backends[0].type: MindIE is not supported; supported types are vLLM,"
        " vLLMDisaggregated, SGLang",
    ),
    (
        report(existing=ExistingObjects(children={ChildKey("Service", "qwen-l4"): {"metadata": {}}})),
        "Failed",
        "True ObjectExists: Service qwen-l4 does not belong to this Model and is not changed: delete it, or"
        " rename the backend",
    ),
    (
        report(existing=ExistingObjects(children={ChildKey("ModelRoute", "qwen"): {"metadata": {}}})),
        "Failed",
        "True ObjectExists: ModelRoute qwen does not belong to this Model and is not changed: delete it, or"
        " give the Model another name",
    ),
    (
        report(refused="Deployment qwen-l4: exceeded quota"),
        "Failed",
        "True RequestRefused: Deployment qwen-l4: exceeded quota",
    ),
    (
        report(upstream="modelinfers.workload.volcano.sh"),
        "Failed",
        "True UpstreamController: the definition modelinfers.workload.volcano.sh is installed, so the"
        " controller of it may act on Models, and this one leaves them alone; if that controller is gone,"
        " delete the definition",
    ),
]


@pytest.mark.parametrize(("given", "condition", "said"), FINDINGS)
def test_a_condition_has_a_reason_and_a_message(given: Report, condition: str, said: str) -> None:
    """The message names the object or the field."""
    holds, reason, text = findings(given)[ModelCondition(condition)]

    assert f"{holds} {reason}: {text}" == said


ROLLING: dict[str, tuple[str, Json, bool]] = {
    "a new workload": ("Deployment", {}, False),
    "a workload whose first pods start": (
        "Deployment",
        {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 0},
        False,
    ),
    "a change that the workload's controller has not observed": (
        "Deployment",
        {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2},
        True,
    ),
    "a workload that was just scaled": (
        "Deployment",
        {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1},
        False,
    ),
    "a workload whose pods are being replaced": (
        "Deployment",
        {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1},
        True,
    ),
    "groups, whose controller reports no observed generation": (
        "LeaderWorkerSet",
        {"replicas": 2, "updatedReplicas": 2},
        False,
    ),
    "groups that are being replaced": ("LeaderWorkerSet", {"replicas": 2, "updatedReplicas": 1}, True),
}


@pytest.mark.parametrize(("kind", "status", "is_rolling"), ROLLING.values(), ids=ROLLING.keys())
def test_a_rollout_is_reported_as_updating(kind: str, status: Json, *, is_rolling: bool) -> None:
    """The workload has two replicas, and generation 2."""
    given = report(backend(workers=[worker(pods=2 if kind == "LeaderWorkerSet" else 1)]))
    child = next(item for key, item in given.existing.children.items() if key.kind == kind)
    child["metadata"]["generation"] = 2
    child["status"] = status

    holds, reason, _ = findings(given)[ModelCondition.UPDATING]
    assert (holds, reason == ModelReason.ROLLING_OUT) == (is_rolling, is_rolling)


def test_the_message_contains_all_failures() -> None:
    """The first cause determines the reason; only one pod of each backend is named."""

    def pending(name: str, of: str) -> Json:
        conditions = [{"type": "PodScheduled", "reason": "Unschedulable", "message": f"no {of}"}]
        labels = {"stowplan.dev/backend": of}
        return {"metadata": {"name": name, "labels": labels}, "status": {"conditions": conditions}}

    backends = backend("a"), backend("b"), backend("c", type="MindIE")
    pods = [pending("a-1", "a"), pending("a-2", "a"), pending("b-1", "b")]
    _, reason, text = findings(report(*backends, namesake="older", pods=pods))[ModelCondition.FAILED]

    assert reason is ModelReason.NAME_TAKEN
    assert text.split("; ")[2:] == [
        "spec.backends[2].type: MindIE is not supported",
        "supported types are vLLM, vLLMDisaggregated, SGLang",
        "pod a-1 is not scheduled: no a",
        "pod b-1 is not scheduled: no b",
    ]


def waiting(reason: str, **members: Any) -> Json:
    """Return a container of an engine that waits."""
    return {"name": "engine", "state": {"waiting": {"reason": reason, **members}}}


UNSCHEDULED = {
    "type": "PodScheduled",
    "reason": "Unschedulable",
    "message": 'persistentvolumeclaim "models" not found',
}
ENDED = "container fetch-weights of pod p ended with code 28 and is restarted"
LOGS = "(kubectl logs p -c fetch-weights --previous)"
TROUBLES = [
    (pod(), ""),
    (pod(containerStatuses=[waiting("ContainerCreating")]), ""),
    (pod(conditions=[UNSCHEDULED]), 'pod p is not scheduled: persistentvolumeclaim "models" not found'),
    (
        pod(containerStatuses=[waiting("CreateContainerConfigError", message="couldn't find key token")]),
        "container engine of pod p: CreateContainerConfigError: couldn't find key token",
    ),
    (
        pod(initContainerStatuses=[ended("waiting", message="Fetching 8 files\nReadTimeout: timed out\n")]),
        f"{ENDED}: ReadTimeout: timed out {LOGS}",
    ),
    (pod(initContainerStatuses=[ended("running")]), f"{ENDED} {LOGS}"),
    (pod(initContainerStatuses=[ended("running") | {"ready": True}]), ""),
    (pod(phase="Failed", containerStatuses=[ended("waiting")]), ""),
]


@pytest.mark.parametrize(("given", "said"), TROUBLES)
def test_a_pod_that_needs_intervention_is_reported(given: Json, said: str) -> None:
    """A state that resolves by itself is not reported."""
    assert pod_trouble(given) == said


def test_the_status_is_valid_and_stable() -> None:
    """For the same state, a later status is identical, including times."""
    first = report()
    status = model_status(first, now=NOW)
    value = {**first.model, "status": status}
    found = find_version(value["apiVersion"], value["kind"])

    assert found is not None
    assert validate(found[1].declaration, value) == []
    again = report()
    again.model["status"] = status
    assert model_status(again, now=NOW + timedelta(hours=1)) == status


def test_the_documentation_explains_every_condition_and_reason() -> None:
    """They are listed in docs/models.md."""
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")

    assert [str(item) for item in (*ModelCondition, *ModelReason) if f"`{item}`" not in page] == []

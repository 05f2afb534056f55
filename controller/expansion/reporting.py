"""The status of a Model: conditions that describe what runs, and the replicas of each backend. Pure.

docs/models.md explains each condition and reason; a test compares the page with this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from apiserver.schema.json import Json
from controller.expansion.adapters import AdapterLoading
from controller.expansion.expansion import Expansion
from controller.expansion.parts import BACKEND_LABEL
from controller.expansion.steps import (
    ChildKey,
    ExistingObjects,
    Steps,
    available,
    belongs_to,
    decided_replicas,
    key_of,
    serves,
    wanted_replicas,
    workloads_by_backend,
)
from controller.observe.conditions import condition_list, readiness
from controller.traffic.endpoints import pod_trouble, why_left_alone

_NO_ZERO: Final = (
    "0 requires Kubernetes 1.37 or the feature gate HPAScaleToZero: enable it, or set minReplicas to 1"
)


class ModelCondition(StrEnum):
    """Condition types of a Model."""

    READY = "Ready"
    INITIALIZED = "Initialized"
    ACTIVE = "Active"
    UPDATING = "Updating"
    FAILED = "Failed"
    FIELDS_EFFECTIVE = "FieldsEffective"


class ModelReason(StrEnum):
    """Condition reasons of a Model."""

    MODEL_CREATING = "ModelCreating"
    MODEL_CREATED = "ModelCreated"
    MODEL_PROCESSING = "ModelProcessing"
    MODEL_AVAILABLE = "ModelAvailable"
    SCALED_TO_ZERO = "ScaledToZero"
    CHANGE_WAITS = "ChangeWaits"
    ROLLING_OUT = "RollingOut"
    NOTHING_CHANGES = "NothingChanges"
    NOTHING_FAILED = "NothingFailed"
    UPSTREAM_CONTROLLER = "UpstreamController"
    NAME_TAKEN = "NameTaken"
    OBJECT_EXISTS = "ObjectExists"
    BACKEND_NOT_MADE = "BackendNotMade"
    REQUEST_REFUSED = "RequestRefused"
    PODS_FAIL = "PodsFail"
    ADAPTERS_FAIL = "AdaptersFail"
    ALL_FIELDS = "AllFields"
    WITHOUT_EFFECT = "WithoutEffect"


Finding = tuple[bool, ModelReason, str]
"""Whether a condition is true, the reason, and the message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All inputs of the status of a Model."""

    model: Json
    expansion: Expansion
    existing: ExistingObjects
    steps: Steps
    pods: Sequence[Json] = ()
    """Pods of the Model."""

    upstream: str = ""
    """API of another controller of Models in the cluster, which makes this one inactive."""

    namesake: str = ""
    """The older Model with the same served name."""

    loading: AdapterLoading = field(default_factory=AdapterLoading)
    """State of adapters that engines load at run time."""

    refused: str = ""
    """The rejection by the API server, as a message."""

    @property
    def foreign(self) -> frozenset[ChildKey]:
        """Objects with names that the Model needs but that it does not own."""
        children, uid = self.existing.children, self.model["metadata"]["uid"]
        keys = map(key_of, self.expansion.objects)
        return frozenset(key for key in keys if key in children and not belongs_to(children[key], uid))

    @property
    def live(self) -> Mapping[str, Sequence[tuple[Json, Json | None]]]:
        """The wanted and the existing workloads by backend."""
        uid = self.model["metadata"]["uid"]
        return workloads_by_backend(self.expansion.objects, self.existing.children, uid)

    @property
    def existing_workloads(self) -> Sequence[Json]:
        """The existing workloads."""
        return [own for workloads in self.live.values() for _, own in workloads if own is not None]


def findings(report: Report) -> Mapping[ModelCondition, Finding]:
    """Return the conditions of a Model."""
    if report.upstream:
        text = why_left_alone("Model", report.upstream)
        return {ModelCondition.FAILED: (True, ModelReason.UPSTREAM_CONTROLLER, text)}
    results = {
        ModelCondition.INITIALIZED: _initialization(report),
        ModelCondition.ACTIVE: _active(report),
        ModelCondition.UPDATING: _progress_finding(report),
        ModelCondition.FAILED: _failure(report),
        ModelCondition.FIELDS_EFFECTIVE: _effective(report),
    }
    return {ModelCondition.READY: _ready(results), **results}


def model_status(report: Report, *, now: datetime) -> Json:
    """Return the status of a Model. The time of a condition changes only with the condition."""
    live = report.live
    backends = [
        {
            "name": backend["name"],
            "replicas": sum(available(own) for _, own in live.get(backend["name"], ()) if own),
        }
        for backend in ([] if report.upstream else report.model["spec"]["backends"])
    ]
    return {
        "observedGeneration": report.model["metadata"].get("generation", 0),
        "conditions": condition_list(report.model, findings(report), now=now),
        "backendStatuses": backends,
        "replicas": sum(backend["replicas"] for backend in backends),
    }


def _initialization(report: Report) -> Finding:
    foreign = report.foreign
    missing = [
        f"{item['kind']} {item['metadata']['name']}"
        for item in report.expansion.objects
        if key_of(item) not in report.existing.children or key_of(item) in foreign
    ]
    if missing:
        return False, ModelReason.MODEL_CREATING, f"still to be created: {', '.join(missing)}"
    return True, ModelReason.MODEL_CREATED, f"{len(report.expansion.objects)} objects were created"


def _active(report: Report) -> Finding:
    backends = report.model["spec"]["backends"]
    if not backends:
        return False, ModelReason.MODEL_PROCESSING, "there is no backend"
    live = report.live
    decided = decided_replicas(report.existing.children)
    waiting: list[str] = []
    resting: list[str] = []
    for backend in backends:
        name, workloads = backend["name"], live.get(backend["name"], [])
        if not workloads or not all(serves(own) for _, own in workloads):
            waiting.append(f"{name}: {_progress(workloads)}")
        elif idle := [own for _, own in workloads if own is not None and not available(own)]:
            replicas = max(decided.get(key_of(own), 0) for own in idle)
            waiting += [f"{name}: it has 0 replicas, and {replicas} are decided"] if replicas else []
            resting += [] if replicas else [name]
    if waiting:
        return False, ModelReason.MODEL_PROCESSING, f"not all backends serve: {'; '.join(waiting)}"
    if len(resting) == len(backends):
        return False, ModelReason.SCALED_TO_ZERO, "no backend has replicas now"
    if resting:
        text = f"all backends with replicas serve; {', '.join(resting)} has none now"
        return True, ModelReason.MODEL_AVAILABLE, text
    return True, ModelReason.MODEL_AVAILABLE, "all backends serve"


def _progress(workloads: Sequence[tuple[Json, Json | None]]) -> str:
    if not workloads:
        return "it is not created"
    return ", ".join(
        f"{item['metadata']['name']} does not exist yet"
        if own is None
        else f"{item['metadata']['name']} has {available(own)} of {wanted_replicas(own)} replicas available"
        for item, own in workloads
    )


def _progress_finding(report: Report) -> Finding:
    if awaited := (*report.steps.awaited, *report.loading.awaited):
        return True, ModelReason.CHANGE_WAITS, f"the change waits for {', and for '.join(awaited)}"
    rolling = [own["metadata"]["name"] for own in report.existing_workloads if _is_rolling(own)]
    if rolling:
        return True, ModelReason.ROLLING_OUT, f"replicas are being replaced: {', '.join(rolling)}"
    return False, ModelReason.NOTHING_CHANGES, "the running replicas match the spec"


def _is_rolling(workload: Json) -> bool:
    """Tell whether some replicas of a workload are outdated.

    The workload's own controller reports this once it has observed a change (a LeaderWorkerSet does not
    report when). Until then, a changed number of replicas is no such change, and without replicas none is
    outdated.
    """
    status, generation = workload.get("status") or {}, workload["metadata"].get("generation", 0)
    replicas = int(status.get("replicas") or 0)
    is_unseen = status.get("observedGeneration", generation) < generation
    if is_unseen and replicas == wanted_replicas(workload):
        return replicas > 0
    return int(status.get("updatedReplicas") or 0) < replicas


def _ready(results: Mapping[ModelCondition, Finding]) -> Finding:
    """Return whether requests are served: a Model that rests at 0 replicas is as ready as it should be."""
    _, active_reason, active_message = results[ModelCondition.ACTIVE]
    failed, failed_reason, failed_message = results[ModelCondition.FAILED]
    is_resting = active_reason is ModelReason.SCALED_TO_ZERO
    holds, reason, message = readiness(
        {
            ModelCondition.FAILED: (not failed, failed_reason, failed_message),
            ModelCondition.ACTIVE: (
                is_resting or results[ModelCondition.ACTIVE][0],
                active_reason,
                active_message,
            ),
            ModelCondition.FIELDS_EFFECTIVE: results[ModelCondition.FIELDS_EFFECTIVE],
        },
        needed=(ModelCondition.FAILED, ModelCondition.ACTIVE),
        fine=(active_reason, active_message),
    )
    return holds, ModelReason(reason), message


def _failure(report: Report) -> Finding:
    """Return the first reason with the messages of all failures, so that they can be fixed together."""
    failures = [(reason, texts) for reason, texts in _failures(report) if texts]
    if failures:
        return True, failures[0][0], "; ".join(text for _, texts in failures for text in texts)
    return False, ModelReason.NOTHING_FAILED, "nothing failed"


def _failures(report: Report) -> Iterator[tuple[ModelReason, Sequence[str]]]:
    """Yield the failures, causes first."""
    if report.namesake:
        name = report.model["spec"].get("name") or report.model["metadata"]["name"]
        text = (
            f"requests for {name!r} go to the older Model {report.namesake}: this one has no route;"
            " give it another spec.name"
        )
        yield ModelReason.NAME_TAKEN, [text]
    yield ModelReason.OBJECT_EXISTS, [*_name_conflicts(report)]
    yield ModelReason.BACKEND_NOT_MADE, [str(note) for note in report.expansion.notes if note.prevents]
    yield ModelReason.REQUEST_REFUSED, [_with_next_step(report.refused)] if report.refused else []
    replica_failures = [
        f"{own['metadata']['name']}: {condition.get('message', '')}"
        for own in report.existing_workloads
        for condition in (own.get("status") or {}).get("conditions") or []
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True"
    ]
    troubles: dict[str, str] = {}
    for pod in sorted(report.pods, key=lambda pod: str(pod["metadata"]["name"])):
        if text := pod_trouble(pod):  # usually the same for all pods of a backend
            troubles.setdefault(pod["metadata"].get("labels", {}).get(BACKEND_LABEL, ""), text)
    yield ModelReason.PODS_FAIL, [*replica_failures, *troubles.values()]
    yield ModelReason.ADAPTERS_FAIL, report.loading.troubles


def _name_conflicts(report: Report) -> Iterator[str]:
    """Yield what to do about each object that has a needed name but another owner."""
    foreign = report.foreign
    for item in sorted(report.expansion.objects, key=key_of):
        key = key_of(item)
        if key in foreign:
            is_of_backend = BACKEND_LABEL in item["metadata"]["labels"]
            other = "rename the backend" if is_of_backend else "give the Model another name"
            yield (
                f"{key.kind} {key.name} does not belong to this Model and is not changed: delete it, or"
                f" {other}"
            )


def _with_next_step(refused: str) -> str:
    """Return the API server's rejection, with advice if it contains none."""
    is_zero = refused.startswith("HorizontalPodAutoscaler ") and "spec.minReplicas" in refused
    return f"{refused}; {_NO_ZERO}" if is_zero else refused


def _effective(report: Report) -> Finding:
    notes = [str(note) for note in report.expansion.notes if not note.prevents]
    if notes:
        return False, ModelReason.WITHOUT_EFFECT, "; ".join(notes)
    return True, ModelReason.ALL_FIELDS, "every field has an effect"

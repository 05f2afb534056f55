"""The pods that labels select and their readiness, as conditions of what leads requests to them.

docs/models.md explains each type and reason of ModelServers, ModelRoutes and InferenceObjectives; a test
compares the page with this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from apiserver.kinds.judgement import errors_of
from apiserver.kinds.kthena.groups import SERVING
from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json
from controller.observe.pods import is_present, is_ready
from controller.planning.wording import count

_STUCK: Final = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
"""Waiting reasons of containers that do not recover by themselves."""

_OVER: Final = ("Failed", "Succeeded")
"""Phases of pods that never run again, such as evicted ones."""


class TrafficCondition(StrEnum):
    """Condition types."""

    ACCEPTED = "Accepted"
    RESOLVED_REFS = "ResolvedRefs"
    READY = "Ready"


class TrafficReason(StrEnum):
    """Condition reasons."""

    ACCEPTED = "Accepted"
    WITH_WARNINGS = "AcceptedWithWarnings"
    INVALID = "Invalid"
    NAME_TAKEN = "NameTaken"
    UPSTREAM_CONTROLLER = "UpstreamController"

    RESOLVED = "ResolvedRefs"
    NO_PODS = "NoPods"
    BACKEND_NOT_FOUND = "BackendNotFound"
    POOL_NOT_FOUND = "PoolNotFound"
    POOLS_NOT_SERVED = "PoolsNotServed"
    INVALID_KIND = "InvalidKind"

    ENDPOINTS_READY = "EndpointsReady"
    TARGETS_NOT_READY = "TargetsNotReady"
    NO_ENDPOINTS = "NoEndpoints"
    NO_PAIRS = "NoPairs"


Finding = tuple[bool | None, StrEnum, str]
"""Whether a condition is true, or None if that is unknown; the reason; and the message."""

Findings = Mapping[StrEnum, Finding]
"""Findings by condition type."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficStatus:
    """The status of one object."""

    findings: Findings
    members: Json = field(default_factory=dict)
    """Other fields of its status."""


def acceptance(value: Json, *, is_unread: bool = False) -> Finding:
    """Return whether an object is valid, with warnings: it may have been stored before our validation.

    An object `is_unread` if Kthena's releases read one of the same name in another group.
    """
    served = find_version(value["apiVersion"], value["kind"])
    if served is None:
        raise LookupError(value["kind"])
    spec = {name: item for name, item in value.items() if name != "status"}
    if errors := errors_of(*served, spec):
        return False, TrafficReason.INVALID, "; ".join(map(str, errors))
    warnings = [text for advise in served[1].advise for text in advise(spec)]
    if is_unread:
        warnings.append(f"Kthena's releases read the one of this name in {SERVING}: delete one of the two")
    if warnings:
        return True, TrafficReason.WITH_WARNINGS, "; ".join(warnings)
    return True, TrafficReason.ACCEPTED, "valid"


def left_alone(kind: str, upstream: str) -> TrafficStatus:
    """Return the status of an object whose kind another controller manages."""
    reason = TrafficReason.UPSTREAM_CONTROLLER
    return TrafficStatus(findings={TrafficCondition.ACCEPTED: (None, reason, why_left_alone(kind, upstream))})


def why_left_alone(kind: str, upstream: str) -> str:
    """Return the message that another controller may manage a kind, with advice if none does."""
    return (
        f"the definition {upstream} is installed, so the controller of it may act on {kind}s, and this one"
        " leaves them alone; if that controller is gone, delete the definition"
    )


def pod_trouble(pod: Json) -> str:
    """Return why a pod will not serve without help, or an empty string."""
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    if "deletionTimestamp" in pod["metadata"] or status.get("phase") in _OVER:
        return ""  # it was replaced
    for condition in status.get("conditions") or []:
        if condition.get("reason") == "Unschedulable":
            return f"pod {name} is not scheduled: {condition.get('message', '')}"
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for container in containers:
        if text := "" if container.get("ready") else _container_trouble(container, name):
            return text
    return ""


def _container_trouble(container: Json, pod: str) -> str:
    """Return why a container that is not ready does not run; empty if there is no known reason.

    A container that ended with an error is reported until it is ready, with the same message. This includes
    its restarts, which may go on for hours.
    """
    state, shown = container.get("state") or {}, f"container {container['name']} of pod {pod}"
    for ended in (state.get("terminated"), (container.get("lastState") or {}).get("terminated")):
        if ended and ended.get("exitCode"):
            last = str(ended.get("message") or "").strip().rpartition("\n")[2]
            why = f": {last}" if last else ""
            return (
                f"{shown} ended with code {ended['exitCode']} and is restarted{why}"
                f" (kubectl logs {pod} -c {container['name']} --previous)"
            )
    waiting = state.get("waiting") or {}
    if waiting.get("reason") in _STUCK:
        text = f": {waiting['message']}" if waiting.get("message") else ""
        return f"{shown}: {waiting['reason']}{text}"
    return ""


Labels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoints:
    """Pods that serve or should serve requests."""

    pods: tuple[Json, ...]
    ready: frozenset[str]
    """Names of the ready pods."""

    resolved: Finding
    """Whether any pod is selected."""

    readiness: Finding
    """Whether requests find a ready pod."""

    @property
    def counts(self) -> Json:
        """The numbers of pods, as status fields."""
        return {"endpoints": len(self.pods), "readyEndpoints": len(self.ready)}


def endpoints(labels: Labels, pods: Sequence[Json]) -> Endpoints:
    """Return the pods with all of some labels; `pods` are those of the namespace."""
    selected = _selected_pods(labels, pods)
    if not selected:
        missing = TrafficReason.NO_PODS, _why_none(labels, pods)
        return Endpoints(pods=(), ready=frozenset(), resolved=(False, *missing), readiness=(False, *missing))
    ready = frozenset(str(pod["metadata"]["name"]) for pod in selected if is_ready(pod))
    return Endpoints(
        pods=selected,
        ready=ready,
        resolved=(True, TrafficReason.RESOLVED, f"{_text(labels)} selects {count(len(selected), 'pod')}"),
        readiness=_readiness(selected, len(ready)),
    )


def selectors_of(server: Json) -> Mapping[str, Labels]:
    """Return a ModelServer's pod labels by role; the role is empty if there are no roles."""
    selector = _selector(server)
    shared: Labels = selector.get("matchLabels") or {}
    group = selector.get("pdGroup")
    if not group:
        return {"": shared}
    return {role: {**shared, **(group.get(f"{role}Labels") or {})} for role in ("prefill", "decode")}


def selects(labels: Labels, pod: Json) -> bool:
    """Tell whether labels select a pod; empty labels select none."""
    return bool(labels) and labels.items() <= (pod["metadata"].get("labels") or {}).items()


def server_endpoints(server: Json, pods: Sequence[Json]) -> Endpoints:
    """Return the pods of a ModelServer; `pods` are those of its namespace."""
    roles = {role: endpoints(labels, pods) for role, labels in selectors_of(server).items()}
    if "" in roles:
        return roles[""]
    every = {pod["metadata"]["name"]: pod for item in roles.values() for pod in item.pods}
    return Endpoints(
        pods=tuple(every.values()),
        ready=frozenset[str]().union(*(item.ready for item in roles.values())),
        resolved=_of_roles({role: item.resolved for role, item in roles.items()}),
        readiness=_pair_finding(roles, str(_selector(server)["pdGroup"].get("groupKey", ""))),
    )


def _selector(server: Json) -> Json:
    selector: Json = (server.get("spec") or {}).get("workloadSelector") or {}
    return selector


def _selected_pods(labels: Labels, pods: Iterable[Json]) -> tuple[Json, ...]:
    """Return the selected pods that still exist."""
    return tuple(pod for pod in pods if selects(labels, pod) and is_present(pod))


def _readiness(pods: Sequence[Json], ready: int) -> Finding:
    if ready:
        return True, TrafficReason.ENDPOINTS_READY, f"{ready} of {len(pods)} pods ready"
    troubles = {str(pod["metadata"]["name"]): text for pod in pods if (text := pod_trouble(pod))}
    trouble = troubles[min(troubles)] if troubles else ""
    text = f"0 of {len(pods)} pods ready{f': {trouble}' if trouble else ''}"
    return False, TrafficReason.NO_ENDPOINTS, text


def _pair_finding(roles: Mapping[str, Endpoints], group_key: str) -> Finding:
    """Return whether ready prefill and decode pods have a group in common."""
    readiness = _of_roles({role: item.readiness for role, item in roles.items()})
    groups = [
        {
            (pod["metadata"].get("labels") or {}).get(group_key)
            for pod in item.pods
            if pod["metadata"]["name"] in item.ready
        }
        - {None}
        for item in roles.values()
    ]
    if not readiness[0]:
        return readiness
    if pairs := len(set.intersection(*groups)):
        return (
            True,
            TrafficReason.ENDPOINTS_READY,
            f"{readiness[2]}; groups by {group_key} with both: {pairs}",
        )
    text = f"{readiness[2]}, but no value of the label {group_key} is on ready pods of both"
    return False, TrafficReason.NO_PAIRS, text


def _of_roles(findings: Mapping[str, Finding]) -> Finding:
    """Return the finding for all roles together, with the reason of the first failing role."""
    failing = [finding for finding in findings.values() if not finding[0]]
    text = "; ".join(f"{role}: {finding[2]}" for role, finding in findings.items())
    holds, reason, _ = next(iter(failing or findings.values()))
    return holds, reason, text


def _why_none(labels: Labels, pods: Sequence[Json]) -> str:
    if not labels:
        return "the selector names no label, and so selects no pod"
    unknown = {name: text for name, text in labels.items() if not _selected_pods({name: text}, pods)}
    if unknown:
        return f"no pod of the namespace has {_text(unknown)}; the workload may be scaled to 0"
    return f"no pod of the namespace has all of {_text(labels)}"


def _text(labels: Labels) -> str:
    return ",".join(f"{name}={text}" for name, text in sorted(labels.items()))

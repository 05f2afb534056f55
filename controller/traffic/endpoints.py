"""The pods that labels select, and their readiness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from apiserver.schema.json import Json
from controller.expansion.reporting import pod_trouble
from controller.observe.pods import is_present, is_ready
from controller.planning.wording import count
from controller.traffic.conditions import Finding, TrafficReason

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
        readiness=_pairing(roles, str(_selector(server)["pdGroup"].get("groupKey", ""))),
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


def _pairing(roles: Mapping[str, Endpoints], group_key: str) -> Finding:
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

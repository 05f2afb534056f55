"""Warnings about a valid ModelServer that is probably a mistake."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.schema import durations
from apiserver.schema.json import Json


def server_advice(value: Json) -> list[str]:
    """Return a warning for each part of a valid server that is probably a mistake."""
    spec: Json = value["spec"]
    return [
        *_selector_advice(spec["workloadSelector"]),
        *_port_advice(spec.get("workloadPort")),
        *_policy_advice(spec.get("trafficPolicy") or {}),
        *_connector_advice(spec),
    ]


def _selector_advice(selector: Json) -> Iterator[str]:
    group: Json | None = selector.get("pdGroup")
    if group is None:
        return
    path = "spec.workloadSelector.pdGroup"
    prefill, decode = group["prefillLabels"], group["decodeLabels"]
    if prefill.items() <= decode.items():
        yield f"{path}.decodeLabels: contain prefillLabels: a decode pod counts as a prefill pod, too"
    elif decode.items() <= prefill.items():
        yield f"{path}.prefillLabels: contain decodeLabels: a prefill pod counts as a decode pod, too"
    for role in ("prefillLabels", "decodeLabels"):
        if _contradict(selector.get("matchLabels") or {}, group[role]):
            yield f"{path}.{role}: select no pod: matchLabels has another value for one of the keys"


def _contradict(some: Json, others: Json) -> bool:
    return any(some[key] != others[key] for key in some.keys() & others.keys())


def _port_advice(port: Json | None) -> Iterator[str]:
    if port is None:
        yield "spec.workloadPort: not set: a router does not know where the pods listen"
    elif port.get("protocol") == "https":
        yield "spec.workloadPort.protocol: the router of Kthena uses http for the pods and ignores this field"


def _policy_advice(policy: Json) -> Iterator[str]:
    path = "spec.trafficPolicy"
    if "timeout" in policy and durations.nanoseconds(policy["timeout"]) == 0:
        yield f"{path}.timeout: {policy['timeout']} means no timeout; omit the field instead"
    if "retry" in policy and not policy["retry"].get("attempts"):
        yield f"{path}.retry: nothing is retried without attempts"


def _connector_advice(spec: Json) -> Iterator[str]:
    if "kvConnector" in spec and "pdGroup" not in spec["workloadSelector"]:
        yield "spec.kvConnector: has no effect without spec.workloadSelector.pdGroup"

"""Parts of a route behind Gateways: pools, requests in them, and the targets of a rule.

The InferencePool of a ModelServer is owned by the ModelRoutes that target the server, not by the server, and
is deleted with the last one. Fields that a pool cannot express cause a note. For endpoint pickers there are
objects about requests: their priority, and the engines' model name. Targets have weights, timeouts and
retries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.annotations import REQUEST_PRIORITY
from apiserver.kinds.inference.inferenceobjective import POOL_GROUP, POOL_KIND
from apiserver.schema import durations
from apiserver.schema.json import Json
from controller.expansion.parts import ENGINE_LABEL, VLLM, Note, made_metadata, owned_metadata
from controller.gateways.inputs import (
    API_VERSIONS,
    OBJECTIVES,
    POOLS,
    REWRITES,
    InstalledDefinitions,
    picker_reference,
    priority,
)

_MOST_LABELS: Final = 64


def pool_of(server: Json) -> tuple[Json | None, list[Note]]:
    """Return the InferencePool of a valid ModelServer, or None and a note if there can be none."""
    spec = server["spec"]
    labels, notes = _labels(spec["workloadSelector"])
    if "workloadPort" not in spec:
        notes.append(Note(path="spec.workloadPort", text="a pool needs the port of its pods", prevents=True))
    picker, unread = picker_reference(server)
    notes += unread
    notes += _unsaid(server)
    if any(note.prevents for note in notes):
        return None, notes
    pool = {
        "apiVersion": API_VERSIONS[POOLS],
        "kind": POOL_KIND,
        "metadata": made_metadata(server["metadata"], server["metadata"]["name"], {}),
        "spec": {
            "selector": {"matchLabels": labels},
            "targetPorts": [{"number": spec["workloadPort"]["port"]}],
            "endpointPickerRef": picker,
        },
    }
    return pool, notes


def shared_by(pool: Json, routes: Iterable[Json]) -> Json:
    """Return a pool with some ModelRoutes as its owners."""
    owners = [
        {
            "apiVersion": route["apiVersion"],
            "kind": route["kind"],
            "name": route["metadata"]["name"],
            "uid": route["metadata"]["uid"],
        }
        for route in routes
    ]
    return {**pool, "metadata": {**pool["metadata"], "ownerReferences": owners}}


def _labels(selector: Json) -> tuple[Json, list[Note]]:
    """Return the labels of the pods that receive requests, and notes about disaggregated prefill."""
    shared, group = selector.get("matchLabels") or {}, selector.get("pdGroup")
    if group is None:
        return shared, []
    path = "spec.workloadSelector.pdGroup"
    decode = group["decodeLabels"]
    text = (
        "a Gateway does not pair prefill with decode pods: requests go to decode pods, which do all the work"
    )
    notes = [Note(path=path, text=text)]
    labels = {**shared, **decode}
    if any(shared.get(name, value) != value for name, value in decode.items()):
        text = "select no pod: matchLabels has another value for one of the keys"
        notes.append(Note(path=f"{path}.decodeLabels", text=text, prevents=True))
    elif len(labels) > _MOST_LABELS:
        text = f"with matchLabels they are {len(labels)} labels: a pool selects by {_MOST_LABELS} at most"
        notes.append(Note(path=f"{path}.decodeLabels", text=text, prevents=True))
    return labels, notes


def _unsaid(server: Json) -> Iterator[Note]:
    spec, labels = server["spec"], server["metadata"].get("labels") or {}
    engine = spec["inferenceEngine"]
    if engine != VLLM and labels.get(ENGINE_LABEL) != engine.lower():
        label = f"{ENGINE_LABEL}={engine.lower()}"
        text = f"a pool does not say it: give its pods, and this ModelServer, the label {label}"
        yield Note(path="spec.inferenceEngine", text=text)
    if spec.get("workloadPort", {}).get("protocol") == "https":
        yield Note(path="spec.workloadPort.protocol", text="requests to the pods of a pool are http")
    if "kvConnector" in spec and "pdGroup" in spec["workloadSelector"]:
        yield Note(path="spec.kvConnector", text="a Gateway does not hand over KV caches")


_HEADER: Final = "x-gateway-inference-objective"
"""The header with a request's objective."""


def objectives(
    route: Json, pools: Sequence[str], installed: InstalledDefinitions
) -> tuple[list[Json], list[Note]]:
    """Return an InferenceObjective for each pool of a route whose requests have a priority."""
    value, notes = priority(route)
    path = f"metadata.annotations[{REQUEST_PRIORITY}]"
    if value is None or not pools:
        return [], notes
    if OBJECTIVES not in installed.definitions:
        return [], [Note(path=path, text=f"{OBJECTIVES} are not served by this cluster")]
    if len(pools) > 1:
        text = f"a request names one objective in {_HEADER}, and each of the pools has another one"
        notes.append(Note(path=path, text=text))
    manifests = [
        _make(route, position, OBJECTIVES, "InferenceObjective", {"priority": value, "poolRef": _pool(name)})
        for position, name in enumerate(pools)
    ]
    return manifests, notes


def rewrites(
    route: Json, servers: Mapping[str, Json], installed: InstalledDefinitions
) -> tuple[list[Json], list[Note]]:
    """Return an InferenceModelRewrite for each server whose model name differs from the route's.

    Requests that name an adapter are not changed.
    """
    model_name = route["spec"].get("modelName")
    renaming = {
        name: server["spec"]["model"]
        for name, server in servers.items()
        if model_name and server["spec"].get("model", model_name) not in ("", model_name)
    }
    if renaming and REWRITES not in installed.definitions:
        return [], [
            Note(
                path=f"ModelServer {name}: spec.model",
                text=f"requests go on to say {model_name!r}, not {model!r}: {REWRITES} are not served by this"
                " cluster",
            )
            for name, model in renaming.items()
        ]
    manifests = []
    for position, (name, model) in enumerate(renaming.items()):
        rule = {
            "matches": [{"model": {"type": "Exact", "value": model_name}}],
            "targets": [{"modelRewrite": model}],
        }
        spec = {"poolRef": _pool(name), "rules": [rule]}
        manifests.append(_make(route, position, REWRITES, "InferenceModelRewrite", spec))
    return manifests, []


def numbered_name(route: Json, position: int) -> str:
    """Return the name of an object made for a route; the first of a kind has the route's name."""
    name = str(route["metadata"]["name"])
    return f"{name}-{position + 1}" if position else name


def _make(route: Json, position: int, definition: str, kind: str, spec: Json) -> Json:
    return {
        "apiVersion": API_VERSIONS[definition],
        "kind": kind,
        "metadata": owned_metadata(route, numbered_name(route, position), {}),
        "spec": spec,
    }


def _pool(name: str) -> Json:
    return {"group": POOL_GROUP, "kind": POOL_KIND, "name": name}


_NANOSECONDS: Final = 1_000_000
"""Nanoseconds per millisecond, the resolution of a Gateway's durations."""

_UNITS: Final = (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
_DEFAULT_INTERVAL: Final = "100ms"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Policy:
    """The traffic policy of a ModelServer, in milliseconds."""

    timeout: int
    """Request timeout; 0 for none."""

    attempts: int
    interval: int


def backend_references(rule: Json) -> list[Json]:
    """Return the pools of a rule, by the names of its ModelServers, with their weights."""
    return [
        _pool(target["modelServerName"]) | {"weight": target["weight"]} for target in rule["targetModels"]
    ]


def traffic_fields(
    rule: Json, servers: Mapping[str, Json], fields: frozenset[str], path: str
) -> tuple[Json, list[Note]]:
    """Return `timeouts` and `retry` of the rule at `path`, by the policies of its servers.

    A rule has one of each: if servers differ, the longest timeout and the most attempts. `fields` are those
    that the installed definition supports.
    """
    names = dict.fromkeys(target["modelServerName"] for target in rule["targetModels"] if target["weight"])
    policies = {name: _policy(servers[name]) for name in names if name in servers}
    if not policies:
        return {}, []
    timeouts = {policy.timeout for policy in policies.values()}
    timeout = 0 if 0 in timeouts else max(timeouts)
    retry = max(policies.values(), key=lambda policy: (policy.attempts, policy.interval))
    members: Json = {"timeouts": {"request": gateway_duration(timeout)}}
    if retry.attempts:
        members["retry"] = {"attempts": retry.attempts, "backoff": gateway_duration(retry.interval)}
    notes = [
        note
        for name, policy in policies.items()
        for note in _lost_parts(
            policy, (timeout, retry), fields, at=f"ModelServer {name}: spec.trafficPolicy", rule=path
        )
    ]
    return {name: value for name, value in members.items() if name in fields}, notes


def gateway_duration(milliseconds: int) -> str:
    """Return a duration in the format of the Gateway API (GEP-2257)."""
    parts = []
    for unit, size in _UNITS:
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _policy(server: Json) -> _Policy:
    policy = server["spec"].get("trafficPolicy") or {}
    retry = policy.get("retry") or {}
    attempts = int(retry.get("attempts", 0))
    return _Policy(
        timeout=_milliseconds(policy.get("timeout", "0s")),
        attempts=attempts,
        interval=_milliseconds(retry.get("retryInterval", _DEFAULT_INTERVAL)) if attempts else 0,
    )


def _milliseconds(text: str) -> int:
    """Return a duration in milliseconds, rounded up."""
    return -(-(durations.nanoseconds(text) or 0) // _NANOSECONDS)


def _lost_parts(
    policy: _Policy, used: tuple[int, _Policy], fields: frozenset[str], *, at: str, rule: str
) -> Iterator[Note]:
    """Yield notes about parts of the policy `at` that differ from what the rule uses."""
    timeout, retry = used
    if policy.timeout and "timeouts" not in fields:
        yield Note(path=f"{at}.timeout", text=_too_old("timeouts"))
    elif policy.timeout != timeout:
        longest = gateway_duration(timeout) if timeout else "none"
        yield Note(path=f"{at}.timeout", text=f"{rule} has one timeout for all of its targets: {longest}")
    if policy.attempts and "retry" not in fields:
        yield Note(path=f"{at}.retry", text=_too_old("retry"))
    elif (policy.attempts, policy.interval) != (retry.attempts, retry.interval):
        text = f"{rule} has one retry for all of its targets: {retry.attempts} attempts"
        yield Note(path=f"{at}.retry", text=text)


def _too_old(field: str) -> str:
    return f"the installed definition of HTTPRoutes has no {field}"

"""The kinds ModelRoute and ModelServer: names, printer columns, references, warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from apiserver.kinds.kthena.groups import NETWORKING, SERVING
from apiserver.kinds.kthena.modelroute import DEFAULT_WEIGHT, ModelRoute
from apiserver.kinds.kthena.modelserver import ModelServer
from apiserver.kinds.kthena.serving import ServingModelRoute, ServingModelServer
from apiserver.kinds.meta import AGE, READY, condition
from apiserver.schema import durations
from apiserver.schema.json import Json
from apiserver.schema.kind import Column, Kind, Reference, Version
from apiserver.schema.paths import FieldPath


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


_SHOWN_NAME_CHARACTERS: Final = 24
"""The maximum number of characters of a header name in a warning, to keep it within 120 characters."""


def matches_everything(match: Json) -> bool:
    """Tell whether conditions match every request."""
    headers: Mapping[str, Json] = match.get("headers") or {}
    uri: Json = match.get("uri") or {}
    return (
        all(_holds_always(condition) for condition in headers.values())
        and (_holds_always(uri) or uri.get("prefix") == "/")
        and "model" not in (match.get("body") or {})
    )


def covers(one: Json, other: Json) -> bool:
    """Tell whether conditions certainly match every request that the others match."""
    given = {name.lower(): condition for name, condition in (other.get("headers") or {}).items()}
    headers: Mapping[str, Json] = one.get("headers") or {}
    uri: Json = one.get("uri") or {}
    body: Json = one.get("body") or {}
    return (
        all(_follows(condition, given.get(name.lower()) or {}) for name, condition in headers.items())
        and (uri.get("prefix") == "/" or _follows(uri, other.get("uri") or {}))
        and ("model" not in body or body["model"] == (other.get("body") or {}).get("model"))
    )


def match_advice(match: Json, path: str) -> Iterator[str]:
    """Yield a sentence for each condition that matches every request, or none."""
    for name, header in (match.get("headers") or {}).items():
        if _holds_always(header):
            yield f"{path}.headers[{_brief(name)}]: matches every request, with or without the header"
    uri: Json | None = match.get("uri")
    if uri is None:
        return
    if _holds_always(uri):
        yield f"{path}.uri: matches every path; set one of exact, prefix and regex"
    for name in ("exact", "prefix"):
        if uri.get(name, "/")[:1] not in {"/", ""}:
            yield f"{path}.uri.{name}: matches no path: every path begins with /"
    if uri.get("exact") == "":
        yield f"{path}.uri.exact: matches no path: every path begins with /"


def _follows(condition: Json, given: Json) -> bool:
    """Tell whether a condition certainly matches every text that another one matches."""
    if _holds_always(condition) or condition == given:
        return True
    prefix: str | None = condition.get("prefix")
    beginning: str = given.get("exact") or given.get("prefix") or ""
    return "exact" not in condition and bool(prefix and beginning.startswith(prefix))


def _holds_always(condition: Json) -> bool:
    return "exact" not in condition and not condition.get("prefix") and not condition.get("regex")


def _brief(name: str) -> str:
    return name if len(name) <= _SHOWN_NAME_CHARACTERS else f"{name[:_SHOWN_NAME_CHARACTERS]}..."


_SHORT_PROMPT_TOKENS: Final = 64
"""The smallest plausible limit on prompt tokens: a prompt longer than the limit is always rejected."""


def route_advice(value: Json) -> list[str]:
    """Return a warning for each part of a valid route that is probably a mistake."""
    spec: Json = value["spec"]
    return [*_name_advice(spec), *_rules_advice(spec), *_limit_advice(spec.get("rateLimit"))]


def _name_advice(spec: Json) -> Iterator[str]:
    adapters: Sequence[str] = spec.get("loraAdapters", ())
    for position, name in enumerate(adapters):
        if name in adapters[:position]:
            yield f"spec.loraAdapters[{position}]: listed before"


def _rules_advice(spec: Json) -> Iterator[str]:
    if not spec["rules"]:
        yield "spec.rules: empty: every request is answered with 404"
    answers_to = {spec.get("modelName", ""), *spec.get("loraAdapters", ())} - {""}
    for position, rule in enumerate(spec["rules"]):
        path = f"spec.rules[{position}]"
        match: Json = rule.get("modelMatch") or {}
        yield from match_advice(match, f"{path}.modelMatch")
        if match.get("body", {}).get("model", next(iter(answers_to))) not in answers_to:
            yield f"{path}.modelMatch.body.model: never matches: neither modelName nor one of loraAdapters"
        yield from _target_advice(rule["targetModels"], f"{path}.targetModels")
    yield from _shadow_advice(spec["rules"])
    yield from _duplicate_advice(spec["rules"])


def _target_advice(targets: Sequence[Json], path: str) -> Iterator[str]:
    weights = [target.get("weight", DEFAULT_WEIGHT) for target in targets]
    backends = [{name: text for name, text in target.items() if name != "weight"} for target in targets]
    for position, weight in enumerate(weights):
        if (first := backends.index(backends[position])) < position:
            yield f"{path}[{position}]: the same target as targetModels[{first}]"
        if weight == DEFAULT_WEIGHT and any(0 < other < DEFAULT_WEIGHT for other in weights):
            share = round(100 * weight / sum(weights))
            yield f"{path}[{position}].weight: weights are relative: {weight} of {sum(weights)} is {share} %"


def _shadow_advice(rules: Sequence[Json]) -> Iterator[str]:
    matches: list[Json] = [rule.get("modelMatch") or {} for rule in rules]
    for later, match in enumerate(matches):
        position = next((place for place in range(later) if covers(matches[place], match)), None)
        if position is None:
            continue
        why = "applies to whatever it applies to"
        if matches_everything(matches[position]):
            why = "applies to every request"
        elif matches[position] == match:
            why = "has the same modelMatch"
        yield f"spec.rules[{later}]: never used: spec.rules[{position}] {why}"


def _duplicate_advice(rules: Sequence[Json]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for position, rule in enumerate(rules):
        name = rule.get("name", "")
        if name and seen[name]:
            yield f"spec.rules[{position}].name: an earlier rule has the same name"
        seen[name] += 1


def _limit_advice(limit: Json | None) -> Iterator[str]:
    if limit is None:
        return
    path = "spec.rateLimit"
    if "inputTokensPerUnit" not in limit and "outputTokensPerUnit" not in limit:
        yield f"{path}: limits nothing; set inputTokensPerUnit or outputTokensPerUnit"
    most = limit.get("inputTokensPerUnit", _SHORT_PROMPT_TOKENS)
    if most < _SHORT_PROMPT_TOKENS:
        yield f"{path}.inputTokensPerUnit: a prompt of more than {most} tokens is always refused"
    if "global" in limit and "redis" not in limit["global"]:
        yield f"{path}.global: without redis, each router counts separately"


_ENDPOINTS: Final = Column("Endpoints", "integer", ".status.readyEndpoints", "Ready pods.")
_WHY: Final = (
    condition("Accepted", "Accepted", description="Whether the spec is valid.", priority=1),
    condition("ResolvedRefs", "Resolved", description="Whether all referenced objects exist.", priority=1),
    condition("Ready", "Message", member="message", description="Reason, in one sentence.", priority=1),
)

_ROUTE_COLUMNS: Final = (
    Column("Model", "string", ".spec.modelName", "Model whose requests it routes."),
    Column("Adapters", "string", ".spec.loraAdapters", "LoRA adapters whose requests it routes."),
    _ENDPOINTS,
    *READY,
    AGE,
    Column(
        "Input tokens",
        "integer",
        ".spec.rateLimit.inputTokensPerUnit",
        "Limit of prompt tokens per unit of time.",
        priority=1,
    ),
    Column(
        "Output tokens",
        "integer",
        ".spec.rateLimit.outputTokensPerUnit",
        "Limit of answer tokens per unit of time.",
        priority=1,
    ),
    Column("Unit", "string", ".spec.rateLimit.unit", "Unit of time of the limits.", priority=1),
    *_WHY,
)

_SERVER_COLUMNS: Final = (
    Column("Model", "string", ".spec.model", "Model that is served."),
    Column("Engine", "string", ".spec.inferenceEngine", "Engine that serves it."),
    Column("Port", "integer", ".spec.workloadPort.port", "Port of the pods."),
    _ENDPOINTS,
    *READY,
    AGE,
    Column("Pods", "integer", ".status.endpoints", "Pods selected.", priority=1),
    Column(
        "KV connector",
        "string",
        ".spec.kvConnector.type",
        "Connector for the transfer from prefill to decode.",
        priority=1,
    ),
    Column(
        "PD group",
        "string",
        ".spec.workloadSelector.pdGroup.groupKey",
        "Label that groups prefill and decode pods.",
        priority=1,
    ),
    *_WHY,
)


def _references(group: str) -> Callable[[Json], list[Reference]]:
    """Return a function that returns the references of a route to ModelServers of a group."""

    def references(value: Json) -> list[Reference]:
        # Each server once, at its first occurrence: several rules may refer to the same one.
        paths: dict[str, FieldPath] = {}
        rules = FieldPath().child("spec", "rules")
        for position, rule in enumerate(value.get("spec", {}).get("rules", ())):
            targets = rules.index(position).child("targetModels")
            for rank, target in enumerate(rule.get("targetModels", ())):
                if name := target.get("modelServerName"):
                    paths.setdefault(name, targets.index(rank).child("modelServerName"))
        return [
            Reference(path=path, group=group, kind="ModelServer", name=name) for name, path in paths.items()
        ]

    return references


MODEL_ROUTE: Final = Kind(
    group=NETWORKING,
    kind="ModelRoute",
    plural="modelroutes",
    short_names=(),
    categories=("stowplan",),
    versions=(
        Version(
            name="v1alpha1",
            declaration=ModelRoute,
            is_storage=True,
            columns=_ROUTE_COLUMNS,
            advise=(route_advice,),
            references=_references(NETWORKING),
        ),
    ),
)

MODEL_SERVER: Final = Kind(
    group=NETWORKING,
    kind="ModelServer",
    plural="modelservers",
    short_names=(),
    categories=("stowplan",),
    versions=(
        Version(
            name="v1alpha1",
            declaration=ModelServer,
            is_storage=True,
            columns=_SERVER_COLUMNS,
            advise=(server_advice,),
        ),
    ),
)

SERVING_MODEL_ROUTE: Final = replace(
    MODEL_ROUTE,
    group=SERVING,
    versions=(
        replace(MODEL_ROUTE.storage_version, declaration=ServingModelRoute, references=_references(SERVING)),
    ),
)

SERVING_MODEL_SERVER: Final = replace(
    MODEL_SERVER,
    group=SERVING,
    versions=(replace(MODEL_SERVER.storage_version, declaration=ServingModelServer),),
)

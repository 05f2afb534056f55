"""The kinds ModelRoute and ModelServer: names, printer columns, warnings and references."""

from __future__ import annotations

from typing import Final

from apiserver.kinds.columns import AGE, condition
from apiserver.kinds.kthena.groups import NETWORKING
from apiserver.kinds.kthena.modelroute import ModelRoute
from apiserver.kinds.kthena.modelroute_advice import route_advice
from apiserver.kinds.kthena.modelserver import ModelServer
from apiserver.kinds.kthena.modelserver_advice import server_advice
from apiserver.schema.json import Json
from apiserver.schema.kind import Column, Kind, Reference, Version
from apiserver.schema.paths import FieldPath

_ENDPOINTS: Final = Column("Endpoints", "integer", ".status.readyEndpoints", "Ready pods.")
_WHY: Final = (
    condition("Accepted", "Accepted", description="Whether the spec is valid.", priority=1),
    condition("ResolvedRefs", "Resolved", description="Whether all referenced objects exist.", priority=1),
    condition("Ready", "Reason", member="reason", description="Reason, in one word.", priority=1),
    condition("Ready", "Message", member="message", description="Reason, in one sentence.", priority=1),
)

_ROUTE_COLUMNS: Final = (
    Column("Model", "string", ".spec.modelName", "Model whose requests it routes."),
    Column("Adapters", "string", ".spec.loraAdapters", "LoRA adapters whose requests it routes."),
    condition("Ready", "Ready", description="Whether every target of every rule has ready pods."),
    _ENDPOINTS,
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
    condition("Ready", "Ready", description="Whether there are ready pods."),
    _ENDPOINTS,
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


def _references(value: Json) -> list[Reference]:
    # Each server once, at its first occurrence: several rules may refer to the same one.
    found: dict[str, FieldPath] = {}
    rules = FieldPath().child("spec", "rules")
    for position, rule in enumerate(value.get("spec", {}).get("rules", ())):
        targets = rules.index(position).child("targetModels")
        for rank, target in enumerate(rule.get("targetModels", ())):
            found.setdefault(target.get("modelServerName", ""), targets.index(rank).child("modelServerName"))
    return [
        Reference(path=path, group=NETWORKING, kind="ModelServer", name=name) for name, path in found.items()
    ]


MODEL_ROUTE: Final = Kind(
    group=NETWORKING,
    kind="ModelRoute",
    plural="modelroutes",
    singular="modelroute",
    short_names=(),
    categories=("stowplan",),
    versions=(
        Version(
            name="v1alpha1",
            declaration=ModelRoute,
            is_storage=True,
            columns=_ROUTE_COLUMNS,
            advise=(route_advice,),
            references=_references,
        ),
    ),
)

MODEL_SERVER: Final = Kind(
    group=NETWORKING,
    kind="ModelServer",
    plural="modelservers",
    singular="modelserver",
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

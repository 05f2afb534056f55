"""The fields that planning reads of other projects' kinds, for validation with a place in the file."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final, Literal

from apiserver.kinds.core.affinity import Affinity
from apiserver.kinds.inference.inferenceobjective import FORMER_POOL_GROUP, POOL_GROUP, POOL_KIND
from apiserver.kinds.meta import Quantity
from apiserver.schema import errors, quantities
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Length, Range
from apiserver.schema.model import Node, list_node, object_node
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly
from apiserver.schema.validation import Judge
from controller.observe.accelerators import RESOURCE_NAMES

GroupKind = tuple[str, str]

_Count = Annotated[int, Range(0)]
_Positive = Annotated[int, Range(1)]
_Texts = tuple[str, ...]
_Labels = dict[str, str]
_Quantities = dict[str, Quantity]


def _whole_accelerators(value: Json, path: FieldPath) -> list[FieldError]:
    return [
        errors.invalid(path.child(member).key(name), quantity, "must be an integer")
        for member in ("limits", "requests")
        for name, quantity in (value.get(member) or {}).items()
        if name in RESOURCE_NAMES
        and (amount := quantities.amount(quantity)) is not None
        and amount != amount.to_integral_value()
    ]


_METADATA: Final = object_node(
    "name",
    name=Annotated[str, Length(1, 253)],
    namespace=Annotated[str, Length(1, 63)],
    generation=int,
    labels=_Labels,
    annotations=_Labels,
    ownerReferences=list_node(object_node("kind name", kind=str, name=str, controller=bool)),
)


def _kind(required: str = "", **members: object) -> Node:
    return object_node(f"metadata {required}", metadata=_METADATA, **members)


_IDENTIFIED: Final = _kind()
_CONDITIONS: Final = list_node(object_node("type status", type=str, status=str))
_STATUS: Final = object_node(conditions=_CONDITIONS)
_TAINTS: Final = list_node(object_node("key effect", key=str, value=str, effect=str))
_REQUIREMENTS: Final = list_node(object_node("key operator", key=str, operator=str, values=_Texts))
_SELECTOR: Final = object_node(matchLabels=_Labels, matchExpressions=_REQUIREMENTS)

_RESOURCES: Final = replace(
    object_node(limits=_Quantities, requests=_Quantities),
    rules=(WebhookOnly(_whole_accelerators, "Numbers of accelerators are integers."),),
)
_CONTAINERS: Final = list_node(
    object_node(
        command=_Texts,
        args=_Texts,
        resources=_RESOURCES,
    )
)
_SPREAD: Final = object_node(
    "topologyKey",
    topologyKey=str,
    maxSkew=_Positive,
    whenUnsatisfiable=str,
    labelSelector=_SELECTOR,
    matchLabelKeys=_Texts,
    minDomains=_Positive,
    nodeAffinityPolicy=str,
)
_POD_SPEC: Final = object_node(
    containers=_CONTAINERS,
    initContainers=_CONTAINERS,
    nodeName=str,
    nodeSelector=_Labels,
    tolerations=list_node(object_node(key=str, operator=str, value=str, effect=str)),
    affinity=Affinity,
    volumes=list_node(object_node(name=str, emptyDir=object_node(medium=str))),
    topologySpreadConstraints=list_node(_SPREAD),
    priority=int,
    resourceClaims=list_node(
        object_node("name", name=str, resourceClaimName=str, resourceClaimTemplateName=str)
    ),
)
_POD: Final = _kind(
    "spec",
    spec=_POD_SPEC,
    status=object_node(
        phase=str,
        conditions=_CONDITIONS,
        resourceClaimStatuses=list_node(object_node("name", name=str, resourceClaimName=str)),
    ),
)

_TEMPLATE_METADATA: Final = object_node(labels=_Labels)
_TEMPLATE: Final = object_node("spec", metadata=_TEMPLATE_METADATA, spec=_POD_SPEC)
_DEPLOYMENT: Final = _kind("spec", spec=object_node("template", replicas=_Count, template=_TEMPLATE))
_STATEFUL_SET: Final = _kind(
    "spec",
    spec=object_node(
        "template", replicas=_Count, template=_TEMPLATE, volumeClaimTemplates=list_node(_IDENTIFIED)
    ),
)
_LEADER_WORKER_SET: Final = _kind(
    "spec",
    spec=object_node(
        "leaderWorkerTemplate",
        replicas=_Count,
        leaderWorkerTemplate=object_node(
            "workerTemplate",
            size=_Positive,
            leaderTemplate=_TEMPLATE,
            workerTemplate=_TEMPLATE,
            volumeClaimTemplates=list_node(_IDENTIFIED),
        ),
    ),
)

_SCALING_RULES: Final = object_node(
    stabilizationWindowSeconds=_Count,
    selectPolicy=Literal["Max", "Min", "Disabled"],
    policies=list_node(
        object_node(
            "type value periodSeconds",
            type=Literal["Pods", "Percent"],
            value=_Positive,
            periodSeconds=_Positive,
        )
    ),
    tolerance=Quantity,
)
_AUTOSCALER: Final = _kind(
    "spec",
    spec=object_node(
        "scaleTargetRef maxReplicas",
        scaleTargetRef=object_node("kind name", apiVersion=str, kind=str, name=str),
        minReplicas=_Count,
        maxReplicas=_Positive,
        behavior=object_node(scaleUp=_SCALING_RULES, scaleDown=_SCALING_RULES),
    ),
    status=_STATUS,
)
_SCALED_OBJECT: Final = _kind(
    "spec",
    spec=object_node(
        "scaleTargetRef",
        scaleTargetRef=object_node("name", apiVersion=str, kind=str, name=str),
        minReplicaCount=_Count,
        maxReplicaCount=_Count,
        advanced=object_node(
            horizontalPodAutoscalerConfig=object_node(
                behavior=object_node(scaleUp=_SCALING_RULES, scaleDown=_SCALING_RULES)
            )
        ),
    ),
)

_NODE: Final = _kind(
    spec=object_node(unschedulable=bool, taints=_TAINTS),
    status=object_node(allocatable=_Quantities, capacity=_Quantities, conditions=_CONDITIONS),
)
_NODE_POOL: Final = _kind(
    "spec",
    spec=object_node(
        "template",
        template=object_node(
            "spec",
            metadata=_TEMPLATE_METADATA,
            spec=object_node(requirements=_REQUIREMENTS, taints=_TAINTS),
        ),
        limits=_Quantities,
        replicas=_Count,
    ),
    status=_STATUS,
)
_CONFIG_MAP: Final = _kind(data=_Labels)
_QUOTA: Final = _kind(
    "spec",
    spec=object_node(
        hard=_Quantities,
        scopes=_Texts,
        scopeSelector=object_node(
            matchExpressions=list_node(
                object_node("scopeName operator", scopeName=str, operator=str, values=_Texts)
            )
        ),
    ),
)
_DISRUPTION_BUDGET: Final = _kind(
    "spec",
    spec=object_node(selector=_SELECTOR),
    status=object_node(disruptionsAllowed=_Count, observedGeneration=int),
)

# Dynamic Resource Allocation: fields of requests and devices are accepted in the structure of v1 and in that
# of v1beta1, which nests a device's attributes under `basic`, and has the fields of `exactly` in the request.
_ATTRIBUTES: Final = Node(type="object", values=object_node(string=str))
_RESOURCE_SLICE: Final = _kind(
    "spec",
    spec=object_node(
        "driver pool",
        driver=str,
        nodeName=str,
        pool=object_node("name", name=str, generation=int, resourceSliceCount=int),
        devices=list_node(
            object_node(
                "name",
                name=str,
                attributes=_ATTRIBUTES,
                basic=object_node(attributes=_ATTRIBUTES),
                taints=list_node(object_node("effect", effect=str)),
            )
        ),
    ),
)
_EXACT_REQUEST: Final[Mapping[str, object]] = {
    "deviceClassName": str,
    "allocationMode": str,
    "count": _Positive,
    "adminAccess": bool,
}
_CLAIM_SPEC: Final = object_node(
    devices=object_node(
        requests=list_node(
            object_node(
                "name",
                name=str,
                exactly=object_node(**_EXACT_REQUEST),
                firstAvailable=list_node(object_node(**_EXACT_REQUEST)),
                **_EXACT_REQUEST,
            )
        )
    )
)
_ALLOCATED: Final = object_node("driver pool device", driver=str, pool=str, device=str, adminAccess=bool)
_RESOURCE_CLAIM: Final = _kind(
    spec=_CLAIM_SPEC,
    status=object_node(allocation=object_node(devices=object_node(results=list_node(_ALLOCATED)))),
)
_RESOURCE_CLAIM_TEMPLATE: Final = _kind("spec", spec=object_node(spec=_CLAIM_SPEC))
_DEVICE_CLASS: Final = _kind(
    spec=object_node(selectors=list_node(object_node(cel=object_node(expression=str))))
)

_OBJECTIVE: Final = _kind(
    spec=object_node("poolRef", priority=int, poolRef=object_node("name", group=str, kind=str, name=str))
)
_POOL: Final = _kind("spec", spec=object_node(selector=_SELECTOR))
_FORMER_POOL: Final = _kind("spec", spec=object_node(selector=_Labels))

_SHAPES: Final[Mapping[GroupKind, Node]] = {
    ("llmd.ai", "VariantAutoscaling"): _IDENTIFIED,
    ("apps", "Deployment"): _DEPLOYMENT,
    ("apps", "StatefulSet"): _STATEFUL_SET,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _LEADER_WORKER_SET,
    ("", "Pod"): _POD,
    ("", "Node"): _NODE,
    ("", "ConfigMap"): _CONFIG_MAP,
    ("autoscaling", "HorizontalPodAutoscaler"): _AUTOSCALER,
    ("keda.sh", "ScaledObject"): _SCALED_OBJECT,
    ("", "ResourceQuota"): _QUOTA,
    ("karpenter.sh", "NodePool"): _NODE_POOL,
    ("policy", "PodDisruptionBudget"): _DISRUPTION_BUDGET,
    ("resource.k8s.io", "ResourceSlice"): _RESOURCE_SLICE,
    ("resource.k8s.io", "ResourceClaim"): _RESOURCE_CLAIM,
    ("resource.k8s.io", "ResourceClaimTemplate"): _RESOURCE_CLAIM_TEMPLATE,
    ("resource.k8s.io", "DeviceClass"): _DEVICE_CLASS,
    (FORMER_POOL_GROUP, "InferenceObjective"): _OBJECTIVE,
    (POOL_GROUP, POOL_KIND): _POOL,
    (FORMER_POOL_GROUP, POOL_KIND): _FORMER_POOL,
}


@functools.cache
def judge_of(kind: GroupKind) -> Judge | None:
    """Return the validation of a kind; None if planning does not read it."""
    shape = _SHAPES.get(kind)
    return Judge(shape) if shape else None

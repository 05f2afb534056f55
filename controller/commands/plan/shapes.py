"""The fields that planning reads of other projects' kinds, for validation with a place in the file.

A shape is a type of the declaration language, a list with the shape of its items, or a mapping of fields to
their shapes, in which the names of required ones end in `*`.
"""

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
from apiserver.schema.model import SchemaNode, list_node, object_node
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly
from apiserver.schema.validation import Judge
from controller.observe.accelerators import RESOURCE_NAMES

GroupKind = tuple[str, str]
_Shape = Mapping[str, object]

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


_METADATA: Final[_Shape] = {
    "name*": Annotated[str, Length(1, 253)],
    "namespace": Annotated[str, Length(1, 63)],
    "generation": int,
    "labels": _Labels,
    "annotations": _Labels,
    "ownerReferences": [{"kind*": str, "name*": str, "controller": bool}],
}
_OBJECT: Final[_Shape] = {"metadata*": _METADATA}
_CONDITIONS: Final = [{"type*": str, "status*": str}]
_TAINTS: Final = [{"key*": str, "value": str, "effect*": str}]
_REQUIREMENTS: Final = [{"key*": str, "operator*": str, "values": _Texts}]
_SELECTOR: Final[_Shape] = {"matchLabels": _Labels, "matchExpressions": _REQUIREMENTS}

_RESOURCES: Final = replace(
    object_node(limits=_Quantities, requests=_Quantities),
    rules=(WebhookOnly(_whole_accelerators, "Numbers of accelerators are integers."),),
)
_CONTAINERS: Final = [{"command": _Texts, "args": _Texts, "resources": _RESOURCES}]
_SPREAD: Final[_Shape] = {
    "topologyKey*": str,
    "maxSkew": _Positive,
    "whenUnsatisfiable": str,
    "labelSelector": _SELECTOR,
    "matchLabelKeys": _Texts,
    "minDomains": _Positive,
    "nodeAffinityPolicy": str,
}
_POD_SPEC: Final[_Shape] = {
    "containers": _CONTAINERS,
    "initContainers": _CONTAINERS,
    "nodeName": str,
    "nodeSelector": _Labels,
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str}],
    "affinity": Affinity,
    "volumes": [{"name": str, "emptyDir": {"medium": str}}],
    "topologySpreadConstraints": [_SPREAD],
    "priority": int,
    "resourceClaims": [{"name*": str, "resourceClaimName": str, "resourceClaimTemplateName": str}],
}
_POD_STATUS: Final[_Shape] = {
    "phase": str,
    "conditions": _CONDITIONS,
    "resourceClaimStatuses": [{"name*": str, "resourceClaimName": str}],
}

_TEMPLATE: Final[_Shape] = {"metadata": {"labels": _Labels}, "spec*": _POD_SPEC}
_WORKLOAD: Final[_Shape] = {"replicas": _Count, "template*": _TEMPLATE}
_GROUP: Final[_Shape] = {
    "size": _Positive,
    "leaderTemplate": _TEMPLATE,
    "workerTemplate*": _TEMPLATE,
    "volumeClaimTemplates": [_OBJECT],
}

_PACE: Final[_Shape] = {
    "type*": Literal["Pods", "Percent"],
    "value*": _Positive,
    "periodSeconds*": _Positive,
}
_SCALING_RULES: Final[_Shape] = {
    "stabilizationWindowSeconds": _Count,
    "selectPolicy": Literal["Max", "Min", "Disabled"],
    "policies": [_PACE],
    "tolerance": Quantity,
}
_BEHAVIOR: Final[_Shape] = {"scaleUp": _SCALING_RULES, "scaleDown": _SCALING_RULES}
_AUTOSCALER: Final[_Shape] = {
    "scaleTargetRef*": {"apiVersion": str, "kind*": str, "name*": str},
    "minReplicas": _Count,
    "maxReplicas*": _Positive,
    "behavior": _BEHAVIOR,
}
_SCALED_OBJECT: Final[_Shape] = {
    "scaleTargetRef*": {"apiVersion": str, "kind": str, "name*": str},
    "minReplicaCount": _Count,
    "maxReplicaCount": _Count,
    "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _BEHAVIOR}},
}

_NODE_STATUS: Final[_Shape] = {
    "allocatable": _Quantities,
    "capacity": _Quantities,
    "conditions": _CONDITIONS,
}
_NODE_TEMPLATE: Final[_Shape] = {
    "metadata": {"labels": _Labels},
    "spec*": {"requirements": _REQUIREMENTS, "taints": _TAINTS},
}
_NODE_POOL: Final[_Shape] = {"template*": _NODE_TEMPLATE, "limits": _Quantities, "replicas": _Count}
_SCOPES: Final = [{"scopeName*": str, "operator*": str, "values": _Texts}]
_QUOTA: Final[_Shape] = {
    "hard": _Quantities,
    "scopes": _Texts,
    "scopeSelector": {"matchExpressions": _SCOPES},
}

# Dynamic Resource Allocation: fields of requests and devices are accepted in the structure of v1 and in that
# of v1beta1, which nests a device's attributes under `basic`, and has the fields of `exactly` in the request.
_ATTRIBUTES: Final = SchemaNode(type="object", values=object_node(string=str))
_DEVICE: Final[_Shape] = {
    "name*": str,
    "attributes": _ATTRIBUTES,
    "basic": {"attributes": _ATTRIBUTES},
    "taints": [{"effect*": str}],
}
_SLICE: Final[_Shape] = {
    "driver*": str,
    "nodeName": str,
    "pool*": {"name*": str, "generation": int, "resourceSliceCount": int},
    "devices": [_DEVICE],
}
_EXACT: Final[_Shape] = {
    "deviceClassName": str,
    "allocationMode": str,
    "count": _Positive,
    "adminAccess": bool,
}
_REQUEST: Final[_Shape] = {"name*": str, "exactly": _EXACT, "firstAvailable": [_EXACT], **_EXACT}
_CLAIM: Final[_Shape] = {"devices": {"requests": [_REQUEST]}}
_ALLOCATED: Final = [{"driver*": str, "pool*": str, "device*": str, "adminAccess": bool}]
_POOL_REFERENCE: Final[_Shape] = {"group": str, "kind": str, "name*": str}

_SHAPES: Final[Mapping[GroupKind, _Shape]] = {
    ("llmd.ai", "VariantAutoscaling"): {},
    ("apps", "Deployment"): {"spec*": _WORKLOAD},
    ("apps", "StatefulSet"): {"spec*": {**_WORKLOAD, "volumeClaimTemplates": [_OBJECT]}},
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): {
        "spec*": {"replicas": _Count, "leaderWorkerTemplate*": _GROUP}
    },
    ("", "Pod"): {"spec*": _POD_SPEC, "status": _POD_STATUS},
    ("", "Node"): {"spec": {"unschedulable": bool, "taints": _TAINTS}, "status": _NODE_STATUS},
    ("", "ConfigMap"): {"data": _Labels},
    ("autoscaling", "HorizontalPodAutoscaler"): {
        "spec*": _AUTOSCALER,
        "status": {"conditions": _CONDITIONS},
    },
    ("keda.sh", "ScaledObject"): {"spec*": _SCALED_OBJECT},
    ("", "ResourceQuota"): {"spec*": _QUOTA},
    ("karpenter.sh", "NodePool"): {"spec*": _NODE_POOL, "status": {"conditions": _CONDITIONS}},
    ("policy", "PodDisruptionBudget"): {
        "spec*": {"selector": _SELECTOR},
        "status": {"disruptionsAllowed": _Count, "observedGeneration": int},
    },
    ("resource.k8s.io", "ResourceSlice"): {"spec*": _SLICE},
    ("resource.k8s.io", "ResourceClaim"): {
        "spec": _CLAIM,
        "status": {"allocation": {"devices": {"results": _ALLOCATED}}},
    },
    ("resource.k8s.io", "ResourceClaimTemplate"): {"spec*": {"spec": _CLAIM}},
    ("resource.k8s.io", "DeviceClass"): {"spec": {"selectors": [{"cel": {"expression": str}}]}},
    (FORMER_POOL_GROUP, "InferenceObjective"): {"spec": {"priority": int, "poolRef*": _POOL_REFERENCE}},
    (POOL_GROUP, POOL_KIND): {"spec*": {"selector": _SELECTOR}},
    (FORMER_POOL_GROUP, POOL_KIND): {"spec*": {"selector": _Labels}},
}


def _node(shape: object) -> object:
    """Return the schema of a shape, or the type that it is."""
    if isinstance(shape, list):
        return list_node(_as_object(shape[0]))
    return _as_object(shape) if isinstance(shape, dict) else shape


def _as_object(shape: _Shape) -> SchemaNode:
    required = " ".join(name.removesuffix("*") for name in shape if name.endswith("*"))
    return object_node(required, **{name.removesuffix("*"): _node(item) for name, item in shape.items()})


@functools.cache
def judge_of(kind: GroupKind) -> Judge | None:
    """Return the validation of a kind; None if planning does not read it."""
    return Judge(_as_object({**_OBJECT, **_SHAPES[kind]})) if kind in _SHAPES else None

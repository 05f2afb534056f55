"""The Kubernetes objects of a scenario and its pods, as the controller reads them from a real cluster."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from apiserver.cluster.resource import VARIANT_AUTOSCALINGS
from apiserver.schema.json import Json
from controller.observe.targets import ROLE_LABEL
from controller.simulation.autoscaler import as_behaviour
from controller.simulation.profile import EngineProfile
from controller.simulation.scenario import NodeGroup, Scenario, ScenarioModel, VariantSetup

NAMESPACE = "simulated"
UNIT_COSTS = "accelerator-unit-costs"
SERVICE_CLASSES = "service-classes-config"
_PRODUCT = "nvidia.com/gpu.product"
_GPU = "nvidia.com/gpu"
_HASH = "0000000000"
_START = datetime(2026, 1, 1, tzinfo=UTC)
"""The time at the beginning of a run."""


def moment(seconds: float) -> datetime:
    """Return the date and time of a virtual time."""
    return _START + timedelta(seconds=seconds)


def stamp(seconds: float) -> str:
    """Return a virtual time in Kubernetes' format."""
    return moment(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantObjects:
    """The objects of one variant; `autoscaler` is its HorizontalPodAutoscaler, if it has one."""

    deployment: Json
    owner: Json
    """Its VariantAutoscaling, or the annotated autoscaler that takes the place of one."""

    autoscaler: Json | None
    scaled_object: Json | None = None
    """The ScaledObject of KEDA that scales it, if there is one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifests:
    """Objects by variant name, nodes, and the ConfigMaps of the controller's namespace by name."""

    variants: Mapping[str, VariantObjects]
    nodes: Sequence[Json]
    config_maps: Mapping[str, Json]
    unit_costs: str = UNIT_COSTS
    service_classes: str = SERVICE_CLASSES
    """ConfigMap of the service classes for variants that name none; `unit_costs` names the one with prices.
    """


@dataclass(kw_only=True, slots=True, eq=False)
class VirtualPod:
    """One pod; times are None until they are reached."""

    name: str
    variant: str
    created_seconds: float
    node: str | None = None
    bound_seconds: float | None = None
    starts_seconds: float | None = None
    """Time at which it becomes ready."""

    is_ready: bool = False
    deleted_seconds: float | None = None
    annotations: dict[str, str] = field(default_factory=dict)

    def manifest(self, deployment: Json) -> Json:
        """Return the pod as in the API server."""
        owner, template = deployment["metadata"], copy.deepcopy(deployment["spec"]["template"])
        metadata = template.get("metadata") or {}
        spec = template["spec"] | ({"nodeName": self.node} if self.node else {})
        deleted = {} if self.deleted_seconds is None else {"deletionTimestamp": stamp(self.deleted_seconds)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **metadata,
                "name": self.name,
                "namespace": owner["namespace"],
                "uid": self.name,
                "creationTimestamp": stamp(self.created_seconds),
                "labels": (metadata.get("labels") or {}) | {"pod-template-hash": _HASH},
                "annotations": (metadata.get("annotations") or {}) | self.annotations,
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": f"{owner['name']}-{_HASH}",
                        "controller": True,
                    }
                ],
                **deleted,
            },
            "spec": spec,
            "status": self._status(),
        }

    def _status(self) -> Json:
        if self.bound_seconds is None:
            return {"phase": "Pending"}
        ready_since = self.starts_seconds if self.is_ready else self.bound_seconds
        condition = {
            "type": "Ready",
            "status": "True" if self.is_ready else "False",
            "lastTransitionTime": stamp(ready_since or 0.0),
        }
        return {"phase": "Running", "startTime": stamp(self.bound_seconds), "conditions": [condition]}


def manifests_of(scenario: Scenario) -> Manifests:
    """Return the objects that represent the scenario."""
    return Manifests(
        variants={
            variant.name: VariantObjects(
                deployment=_deployment(variant),
                owner=_autoscaling(variant),
                autoscaler=_autoscaler(variant, scenario),
            )
            for variant in scenario.variants
        },
        nodes=[
            _node(group, f"{group.accelerator.lower()}-{position}-{number}")
            for position, group in enumerate(scenario.nodes)
            for number in range(group.count)
        ],
        config_maps={UNIT_COSTS: {"data": {}}, SERVICE_CLASSES: _classes(scenario.models)},
    )


def _deployment(variant: VariantSetup) -> Json:
    profile, labels = variant.profile, {"app": variant.name}
    role = {ROLE_LABEL: profile.role} if profile.role else {}
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai",
        "args": [
            f"--model={variant.model_id}",
            f"--max-num-seqs={profile.max_num_seqs}",
            f"--max-num-batched-tokens={profile.max_num_batched_tokens}",
            f"--num-gpu-blocks-override={profile.num_gpu_blocks}",
            f"--block-size={profile.block_size}",
            f"--data-parallel-size={profile.ranks}",
        ],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {_GPU: variant.accelerators_per_replica}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(variant),
        "spec": {
            "replicas": variant.initial_replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels | role},
                "spec": {"nodeSelector": {_PRODUCT: variant.accelerator}, "containers": [container]},
            },
        },
    }


def _autoscaler(variant: VariantSetup, scenario: Scenario) -> Json:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(variant),
        "spec": {
            "scaleTargetRef": _reference(variant),
            "minReplicas": variant.min_replicas,
            "maxReplicas": variant.max_replicas,
            "metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {
                            "name": "wva_desired_replicas",
                            "selector": {"matchLabels": {"variant_name": variant.name}},
                        },
                        "target": {"type": "AverageValue", "averageValue": "1"},
                    },
                }
            ],
            "behavior": as_behaviour(scenario.published_behaviour(variant)),
        },
    }


def _autoscaling(variant: VariantSetup) -> Json:
    return {
        "apiVersion": VARIANT_AUTOSCALINGS.api_version,
        "kind": VARIANT_AUTOSCALINGS.kind,
        "metadata": _metadata(variant),
        "spec": {
            "scaleTargetRef": _reference(variant),
            "modelID": variant.model_id,
            "variantCost": f"{variant.price_per_hour:f}".rstrip("0").rstrip("."),
            "accelerator": variant.accelerator,
            **({"variantProfile": _profile_json(variant.stated_profile)} if variant.stated_profile else {}),
        },
    }


def _profile_json(profile: EngineProfile) -> Json:
    return {
        "maxBatchSize": profile.max_num_seqs,
        "perfParms": {
            "decodeParms": {"alpha": f"{profile.alpha_ms:g}", "beta": f"{profile.beta_ms:g}"},
            "prefillParms": {"gamma": f"{profile.gamma_ms:g}", "delta": f"{profile.delta_ms:g}"},
        },
    }


def _metadata(variant: VariantSetup) -> Json:
    return {
        "name": variant.name,
        "namespace": NAMESPACE,
        "uid": variant.name,
        "creationTimestamp": stamp(0.0),
    }


def _reference(variant: VariantSetup) -> Json:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": variant.name}


def _node(group: NodeGroup, name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {_PRODUCT: group.accelerator}},
        "spec": {},
        "status": {
            "allocatable": {_GPU: str(group.accelerators)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _classes(models: Sequence[ScenarioModel]) -> Json:
    """Return a service class for each model, with targets and priority; JSON is valid YAML."""
    return {
        "data": {
            f"class-{number}.yaml": json.dumps(
                {
                    "name": f"class-{number}",
                    "priority": model.priority,
                    "attainment": model.targets.attainment,
                    "data": [{"model": model.model_id} | _milliseconds(model)],
                }
            )
            for number, model in enumerate(models)
        }
    }


def _milliseconds(model: ScenarioModel) -> Json:
    targets = {"slo-tpot": model.targets.itl_seconds, "slo-ttft": model.targets.ttft_seconds}
    return {name: round(seconds * 1000) for name, seconds in targets.items() if seconds is not None}

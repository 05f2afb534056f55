"""What can be scaled: how many replicas of how many pods, of which template, whoever makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from apiserver.kinds.llmd.identity import is_planned
from apiserver.schema.json import Json
from controller.observe.accelerators import UNKNOWN_CLAIM, accelerators_of

SET_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
_EXCLUSIVE: Final = "leaderworkerset.sigs.k8s.io/exclusive-topology"
_EXCLUSIVE_PARTS: Final = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
_PLACED_BY: Final = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")
"""Fields of a pod that say where it may go."""


class TargetKind(StrEnum):
    """Kinds that are planned for."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    LEADER_WORKER_SET = "LeaderWorkerSet"
    SCALED = "scale"
    """Any other one, of which no more is known than its scale subresource says."""


class TargetKey(NamedTuple):
    """Which target."""

    kind: TargetKind
    namespace: str
    name: str
    group: str = ""
    """Of one that is known by its scale only."""

    own_kind: str = ""
    """The kind as its author calls it, of one that is known by its scale only."""

    def __str__(self) -> str:
        return f"{self.called} {self.namespace}/{self.name}"

    @property
    def called(self) -> str:
        """Its kind, for people."""
        return self.own_kind or str(self.kind)


class UnplannableTargetError(ValueError):
    """What a target asks for no plan can say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One target, as far as planning reads it."""

    key: TargetKey
    replicas: int
    """What it asks for now."""

    pod_spec: Json
    """Of the pods that hold accelerators."""

    engine_spec: Json
    """Of the pod of each replica whose engine is asked."""

    labels: tuple[Mapping[str, str], ...]
    """Of its pods that hold accelerators, as their templates say; by template."""

    pods_per_replica: int = 1
    """Of those that hold accelerators."""

    pods_in_all: int = 1
    """Per replica, those without accelerators, too."""

    together_in: str = ""
    """Label of nodes whose value all pods of one replica share."""

    has_own_volumes: bool = False
    parts_are_exclusive: bool = False
    """Whether parts of a replica keep to domains of their own."""

    @property
    def accelerators_per_replica(self) -> int:
        """What all pods of a replica ask for."""
        return self.pods_per_replica * accelerators_of(self.pod_spec)

    @property
    def is_steerable(self) -> bool:
        """Whether it can be told which pods are to go first: others remove the highest numbers."""
        return self.key.kind is TargetKind.DEPLOYMENT

    @property
    def may_move(self) -> bool:
        """Whether an evicted pod may start anywhere else, and disturbs no other pod."""
        is_known = self.key.kind in (TargetKind.DEPLOYMENT, TargetKind.STATEFUL_SET)
        return is_known and not self.has_own_volumes


def target_key(namespace: str, reference: Json) -> TargetKey:
    """Return what a reference names."""
    kind, name = reference["kind"], reference["name"]
    if is_planned(reference):
        return TargetKey(TargetKind(kind), namespace, name)
    group = str(reference.get("apiVersion") or "apps/v1").rpartition("/")[0]
    return TargetKey(TargetKind.SCALED, namespace, name, group, kind)


def target_of(key: TargetKey, value: Json) -> Target:
    """Return what an object says. Raises UnplannableTargetError."""
    if key.kind is TargetKind.LEADER_WORKER_SET:
        return _of_groups(key, value)
    spec = value["spec"]
    template = spec["template"]
    _demand_known(template)
    return Target(
        key=key,
        replicas=_number(spec.get("replicas")),
        pod_spec=template["spec"],
        engine_spec=template["spec"],
        labels=(_labels(template),),
        has_own_volumes=bool(spec.get("volumeClaimTemplates")),
    )


def asked_replicas(value: Json) -> int:
    """Return how many replicas a workload asks for: one where it does not say."""
    return _number((value.get("spec") or {}).get("replicas"))


def _of_groups(key: TargetKey, value: Json) -> Target:
    """Return a LeaderWorkerSet: each replica is a group of a leader and workers."""
    spec, annotations = value["spec"], value["metadata"].get("annotations") or {}
    group = spec["leaderWorkerTemplate"]
    workers = group["workerTemplate"]
    leader = group.get("leaderTemplate") or workers
    _demand_known(leader, workers)
    templates = [leader, *[workers] * (_number(group.get("size")) - 1)]
    holding = [item for item in templates if accelerators_of(item["spec"])] or templates
    _demand_alike(holding[0]["spec"], holding[-1]["spec"])
    distinct = [holding[0], holding[-1]] if holding[0] is not holding[-1] else [holding[0]]
    return Target(
        key=key,
        replicas=_number(spec.get("replicas")),
        pod_spec=holding[-1]["spec"],
        engine_spec=leader["spec"],
        labels=tuple({**_labels(item), SET_NAME: key.name} for item in distinct),
        pods_per_replica=len(holding),
        pods_in_all=len(templates),
        together_in=annotations.get(_EXCLUSIVE) or "",
        has_own_volumes=bool(group.get("volumeClaimTemplates")),
        parts_are_exclusive=bool(annotations.get(_EXCLUSIVE_PARTS)),
    )


def _demand_known(*templates: Json) -> None:
    for template in templates:
        if why := template["spec"].get(UNKNOWN_CLAIM):
            raise UnplannableTargetError(why)


def _demand_alike(leader: Json, worker: Json) -> None:
    """Demand that what places a leader and its workers is the same, where both hold accelerators."""
    has, have = accelerators_of(leader), accelerators_of(worker)
    if has != have:
        raise UnplannableTargetError(
            f"its leader requests {has} accelerators and each worker {have}: request the same number in"
            " leaderTemplate and workerTemplate, or none in one of them"
        )
    differing = [name for name in _PLACED_BY if (leader.get(name) or None) != (worker.get(name) or None)]
    if differing:
        raise UnplannableTargetError(
            f"its leader and workers have accelerators and differ in {', '.join(differing)}: set the same"
            " in leaderTemplate and workerTemplate"
        )


def _labels(template: Json) -> Mapping[str, str]:
    return (template.get("metadata") or {}).get("labels") or {}


def _number(value: int | None) -> int:
    return 1 if value is None else int(value)

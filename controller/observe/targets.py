"""Scale targets in a common form: replicas, pods per replica, template and role, whatever the kind.

In a pair of roles, one pod computes the prompt of a request, and another generates the answer. Each request
needs both, so pods of one role do not replace those of the other, and the variants of each role are planned
like a model of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from apiserver.kinds.llmd.identity import is_planned
from apiserver.schema.json import Json
from controller.observe.accelerators import UNKNOWN_CLAIM, accelerators_of
from controller.observe.scheduling import MOST_VALUES, PLACED_BY, placement_values
from controller.planning.snapshot import DECODE, MOST_PODS_PER_REPLICA, PREFILL
from controller.planning.wording import count

SET_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
GROUP_REVISION: Final = "leaderworkerset.sigs.k8s.io/template-revision-hash"

REVISION_LABELS: Final = frozenset({"pod-template-hash", "controller-revision-hash", GROUP_REVISION})
"""Labels that are common to the pods of one revision of one target, with a value unique to it."""

POD_LABELS: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "statefulset.kubernetes.io/pod-name",
        "leaderworkerset.sigs.k8s.io/group-key",
        "leaderworkerset.sigs.k8s.io/subgroup-index",
        "leaderworkerset.sigs.k8s.io/subgroup-key",
        GROUP_INDEX,
        WORKER_INDEX,
    }
)
"""Labels in which the pods of one target differ."""

NODE_LABELS: Final = frozenset({"topology.kubernetes.io/region", "topology.kubernetes.io/zone"})
"""Labels that Kubernetes copies from the node to a pod that it binds (admission plugin PodTopologyLabels)."""

_EXCLUSIVE: Final = "leaderworkerset.sigs.k8s.io/exclusive-topology"
_EXCLUSIVE_PARTS: Final = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"


class TargetKind(StrEnum):
    """The kinds of scale targets."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    LEADER_WORKER_SET = "LeaderWorkerSet"
    SCALED = "scale"
    """Any other kind, known only by its scale subresource."""


class TargetKey(NamedTuple):
    """The identity of a target."""

    kind: TargetKind
    namespace: str
    name: str
    group: str = ""
    """API group, if known only by its scale."""

    own_kind: str = ""
    """The kind as written by the author, if known only by its scale."""

    def __str__(self) -> str:
        return f"{self.kind_text} {self.namespace}/{self.name}"

    @property
    def kind_text(self) -> str:
        """The kind, for messages."""
        return self.own_kind or str(self.kind)


class UnplannableTargetError(ValueError):
    """A target whose requirements cannot be planned."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaleTarget:
    """One scale target, as far as planning reads it."""

    key: TargetKey
    replicas: int
    """Requested replicas."""

    pod_spec: Json
    """Spec of the pods that hold accelerators."""

    engine_spec: Json
    """Spec of the pod of each replica whose engine is scraped."""

    labels: tuple[Mapping[str, str], ...]
    """Labels of the pods that hold accelerators, one entry per template."""

    pods_per_replica: int = 1
    """Pods that hold accelerators, per replica."""

    pods_in_all: int = 1
    """All pods per replica, including those without accelerators."""

    together_in: str = ""
    """Node label whose value all pods of one replica share."""

    first_ordinal: int = 0
    """The lowest ordinal of its replicas, if they have ordinals."""

    has_own_volumes: bool = False
    difference: str = ""
    """What its pods have and its template lacks, and what is planned with, in words; empty for nothing."""

    parts_are_exclusive: bool = False
    """Whether parts of a replica use exclusive topology domains of their own."""

    @property
    def accelerators_per_replica(self) -> int:
        """Accelerators of all pods of a replica."""
        return self.pods_per_replica * accelerators_of(self.pod_spec)

    @property
    def is_steerable(self) -> bool:
        """Whether the removal order can be influenced: other kinds remove the highest ordinals."""
        return self.key.kind is TargetKind.DEPLOYMENT

    @property
    def removes_unready_first(self) -> bool:
        """Whether pods that are not ready are removed before others, as far as is known."""
        return self.key.kind not in (TargetKind.STATEFUL_SET, TargetKind.LEADER_WORKER_SET)

    @property
    def may_move(self) -> bool:
        """Whether an evicted pod may start anywhere else without affecting other pods."""
        is_known = self.key.kind in (TargetKind.DEPLOYMENT, TargetKind.STATEFUL_SET)
        return is_known and not self.has_own_volumes


def target_key(namespace: str, reference: Json) -> TargetKey:
    """Return the key of the target that a reference names."""
    kind, name = reference["kind"], reference["name"]
    if is_planned(reference):
        return TargetKey(TargetKind(kind), namespace, name)
    group = str(reference.get("apiVersion") or "apps/v1").rpartition("/")[0]
    return TargetKey(TargetKind.SCALED, namespace, name, group, kind)


def scaled_by(value: Json) -> TargetKey:
    """Return the key of the target that a well-formed VariantAutoscaling or autoscaler scales."""
    return target_key(value["metadata"]["namespace"], value["spec"]["scaleTargetRef"])


def target_of(key: TargetKey, value: Json) -> ScaleTarget:
    """Return the target of an object. Raises UnplannableTargetError."""
    if key.kind is TargetKind.LEADER_WORKER_SET:
        return _of_groups(key, value)
    spec = value["spec"]
    template = spec["template"]
    _demand_plannable(template)
    return ScaleTarget(
        key=key,
        replicas=_number(spec.get("replicas")),
        pod_spec=template["spec"],
        engine_spec=template["spec"],
        labels=(_labels(template),),
        first_ordinal=int((spec.get("ordinals") or {}).get("start") or 0),
        has_own_volumes=bool(spec.get("volumeClaimTemplates")),
    )


def asked_replicas(value: Json) -> int:
    """Return the requested replicas of a workload: 1 by default."""
    return _number((value.get("spec") or {}).get("replicas"))


def _of_groups(key: TargetKey, value: Json) -> ScaleTarget:
    """Return the target of a LeaderWorkerSet: each replica is a group of a leader and workers."""
    spec, annotations = value["spec"], value["metadata"].get("annotations") or {}
    group = spec["leaderWorkerTemplate"]
    workers = group["workerTemplate"]
    leader = group.get("leaderTemplate") or workers
    _demand_plannable(leader, workers)
    size = max(1, _number(group.get("size")))
    _demand_small(size)
    # Counted, never listed: the size is a number that anyone can write.
    templates = [(leader, 1), (workers, size - 1)] if size > 1 else [(leader, 1)]
    counted = [item for item in templates if accelerators_of(item[0]["spec"])] or templates
    holding = [template for template, _ in counted]
    _demand_alike(holding[0]["spec"], holding[-1]["spec"])
    distinct = [holding[0], holding[-1]] if holding[0] is not holding[-1] else [holding[0]]
    return ScaleTarget(
        key=key,
        replicas=_number(spec.get("replicas")),
        pod_spec=holding[-1]["spec"],
        engine_spec=leader["spec"],
        labels=tuple({**_labels(item), SET_NAME: key.name} for item in distinct),
        pods_per_replica=sum(count for _, count in counted),
        pods_in_all=size,
        together_in=annotations.get(_EXCLUSIVE) or "",
        has_own_volumes=bool(group.get("volumeClaimTemplates")),
        parts_are_exclusive=bool(annotations.get(_EXCLUSIVE_PARTS)),
    )


def _demand_plannable(*templates: Json) -> None:
    for template in templates:
        if why := template["spec"].get(UNKNOWN_CLAIM):
            raise UnplannableTargetError(why)
        if (values := placement_values(template["spec"])) > MOST_VALUES:
            raise UnplannableTargetError(
                f"its pods have {values} values in {', '.join(PLACED_BY)}: reduce them to at most"
                f" {MOST_VALUES} together"
            )


def _demand_small(size: int) -> None:
    if size > MOST_PODS_PER_REPLICA:
        raise UnplannableTargetError(
            f"its groups have {size} pods: set leaderWorkerTemplate.size to at most {MOST_PODS_PER_REPLICA}"
        )


def _demand_alike(leader: Json, worker: Json) -> None:
    """Require equal accelerators and placement fields of leader and workers that hold accelerators."""
    has, have = accelerators_of(leader), accelerators_of(worker)
    if has != have:
        raise UnplannableTargetError(
            f"its leader requests {count(has, 'accelerator')} and each worker {have}: request the same number"
            " in leaderTemplate and workerTemplate, or none in one of them"
        )
    differing = [name for name in PLACED_BY if (leader.get(name) or None) != (worker.get(name) or None)]
    if differing:
        raise UnplannableTargetError(
            f"its leader and workers have accelerators and differ in {', '.join(differing)}: set the same"
            " in leaderTemplate and workerTemplate"
        )


def _labels(template: Json) -> Mapping[str, str]:
    return (template.get("metadata") or {}).get("labels") or {}


def _number(value: int | None) -> int:
    return 1 if value is None else int(value)


ROLE_LABEL: Final = "llm-d.ai/role"
"""The label of pods with their role, of llm-d and KServe."""

_LABELS: Final = (ROLE_LABEL, "stowplan.dev/role", "modelserving.volcano.sh/role")
"""Labels with the role, by llm-d, by Models of Stowplan, and by Kthena."""

_TRANSFER: Final = re.compile(r"kv_role\W{1,8}(kv_producer|kv_consumer)\b")
"""The role among vLLM's settings for the transfer of KV caches; `kv_both` is no role."""

_BY_TRANSFER: Final = {"kv_producer": PREFILL, "kv_consumer": DECODE}


def role_of(target: ScaleTarget) -> str:
    """Return the role of a target's pods; empty if they serve requests alone, or name another role."""
    named = (labels[name] for name in _LABELS for labels in target.labels if labels.get(name))
    role = next(named, "") or _role_by_transfer(target.engine_spec)
    return role if role in (PREFILL, DECODE) else ""


def planned_model(model_id: str, role: str) -> str:
    """Return the model as it is planned: its ID, with the role of the pods in parentheses if there is one."""
    return f"{model_id} ({role})" if role else model_id


def _role_by_transfer(pod_spec: Json) -> str:
    for container in pod_spec.get("containers") or []:
        text = " ".join([*(container.get("command") or []), *(container.get("args") or [])])
        if match := _TRANSFER.search(text):
            return _BY_TRANSFER[match[1]]
    return ""

"""Variants that are assumed for engines, if no object of the input asks for decisions.

So a cluster can be planned and simulated before anything is installed or written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from apiserver.kinds.annotated import is_managed, managed_autoscalers
from apiserver.kinds.llmd.conversion import HUB
from apiserver.schema.json import Json
from controller.commands.check.tree import Tree
from controller.commands.plan.naming import first_of
from controller.commands.plan.reading import FileContents, Manifest, of_kind
from controller.observe.accelerators import accelerators_of, product_of, uncounted_resources
from controller.observe.expected_performance import runs_engine, served_model
from controller.observe.pods import by_target
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.wording import count

NOT_ASKED: Final = (
    "the input contains no VariantAutoscaling, and no annotated autoscaler, nor a workload with vLLM or"
    " SGLang whose model can be read; export them with kubectl get hpa,deploy,sts -A -o yaml, where they are"
    " installed also va and leaderworkersets, and with KEDA also scaledobjects"
)
"""Why there is nothing to decide on."""

_OWN: Final = "VariantAutoscaling"
_MOST_NAMED: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumed:
    """The input with the assumed variants."""

    objects: FileContents
    workloads: tuple[str, ...] = ()
    """Kind, namespace and name of each workload for which a variant is assumed."""

    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Engines:
    """Workloads with engines; those in `nameless` do not say which model they serve."""

    models: dict[TargetKey, tuple[Manifest, str]] = field(default_factory=dict)
    """Each workload, and the name of its model."""

    nameless: list[TargetKey] = field(default_factory=list)


def with_assumed(objects: FileContents) -> Assumed:
    """Return the input with one variant for each workload with engines, unless an object asks for decisions.

    A workload may also be left as it is because the model cannot be read: a warning names it.
    """
    if objects.saved or any(kind == _OWN for kind, _, _ in objects.refused):
        return Assumed(objects=objects)
    # Also KEDA's copy of an annotated ScaledObject that was not exported.
    if any(asks_for_decisions(item) or is_managed(item.value) for item in objects.manifests):
        return Assumed(objects=objects)
    engines = _engines(objects)
    accelerators = _Accelerators(objects)
    names = Counter((key.namespace, key.name) for key in engines.models)
    made = [
        _variant(key, target, model, accelerators.of(key), is_alone=names[key.namespace, key.name] == 1)
        for key, (target, model) in engines.models.items()
    ]
    return Assumed(
        objects=replace(objects, manifests=[*objects.manifests, *made]),
        workloads=tuple(map(str, engines.models)),
        warnings=tuple(_warnings(engines)),
    )


def asks_for_decisions(manifest: Manifest) -> bool:
    """Return whether an object is a VariantAutoscaling or an annotated autoscaler."""
    kind, value = manifest.kind[1], [manifest.value]
    if kind == "HorizontalPodAutoscaler":
        return any(managed_autoscalers(value, ()))
    return kind == _OWN or (kind == "ScaledObject" and any(managed_autoscalers((), value)))


def _engines(objects: FileContents) -> _Engines:
    engines = _Engines()
    for kind in (TargetKind.DEPLOYMENT, TargetKind.STATEFUL_SET, TargetKind.LEADER_WORKER_SET):
        for name, manifest in of_kind(objects.manifests, kind).items():
            specs = _pod_specs(manifest.value["spec"])
            if not runs_engine(specs[0]) or not any(map(_uses_accelerators, specs)):
                continue
            key = TargetKey(kind, *name)
            if model := served_model(specs[0]):
                engines.models[key] = manifest, model
            else:
                engines.nameless.append(key)
    return engines


def _pod_specs(spec: Json) -> Sequence[Json]:
    """Return the specs of the pods of a replica, that with the engine first."""
    group = spec.get("leaderWorkerTemplate")
    if group is None:
        return [spec["template"]["spec"]]
    workers = group["workerTemplate"]
    return [(group.get("leaderTemplate") or workers)["spec"], workers["spec"]]


def _uses_accelerators(pod_spec: Json) -> bool:
    """Return whether pods use accelerators, also parts of them: those of routers and clients do not."""
    claims = pod_spec.get("resourceClaims")
    return bool(accelerators_of(pod_spec) or claims or uncounted_resources(pod_spec))


class _Accelerators:
    """The types of the accelerators on which workloads run."""

    def __init__(self, objects: FileContents) -> None:
        self._pods = by_target([item.value for item in of_kind(objects.manifests, "Pod").values()])
        self._types = {
            item.key[1]: product_of(item.value["metadata"].get("labels") or {})
            for item in of_kind(objects.manifests, "Node").values()
        }

    def of(self, key: TargetKey) -> str:
        """Return the type of the nodes of most of its pods; empty if it has none on a node with a type."""
        nodes = (pod["spec"].get("nodeName") for pod in self._pods.get(key, ()))
        types = Counter(kind for name in nodes if name and (kind := self._types.get(name)))
        return types.most_common(1)[0][0] if types else ""


def _variant(key: TargetKey, target: Manifest, model: str, accelerator: str, *, is_alone: bool) -> Manifest:
    selector = _pod_specs(target.value["spec"])[-1].get("nodeSelector") or {}
    value: Json = {
        "apiVersion": HUB,
        "kind": _OWN,
        "metadata": {
            "name": key.name if is_alone else f"{key.name}-{key.kind.lower()}",
            "namespace": key.namespace,
        },
        "spec": {
            "modelID": model,
            "scaleTargetRef": {
                "apiVersion": target.value["apiVersion"],
                "kind": str(key.kind),
                "name": key.name,
            },
        },
    }
    if accelerator and not product_of(selector):
        value["spec"]["accelerator"] = accelerator
    return Manifest(file=target.file, tree=Tree(value=value, line=target.tree.line, marks={}), value=value)


def _warnings(engines: _Engines) -> Iterator[str]:
    if engines.models:
        names = first_of([str(key) for key in engines.models], _MOST_NAMED)
        yield (
            "the input contains no VariantAutoscaling, and no annotated autoscaler:"
            f" {count(len(engines.models), 'variant')} {'is' if len(engines.models) == 1 else 'are'} assumed,"
            f" one for each workload with vLLM or SGLang, whose model is that of its arguments: {names}"
        )
    if engines.nameless:
        names = first_of([str(key) for key in engines.nameless], _MOST_NAMED)
        yield (
            f"no variant is assumed for {count(len(engines.nameless), 'workload')} with vLLM or SGLang whose"
            f" model cannot be read from an argument such as --served-model-name: {names}; write"
            " VariantAutoscalings for all, and add them with -f"
        )

"""Variants that are assumed for engines, if no object of the input asks for decisions.

So a cluster can be planned and simulated before anything is installed or written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from apiserver.kinds.annotated import is_managed, managed_autoscalers
from apiserver.kinds.llmd.conversion import HUB
from apiserver.schema.json import Json
from controller.commands.check.tree import Tree
from controller.commands.plan.reading import FileContents, Manifest, of_kind
from controller.observe.accelerators import accelerators_of, product_of, uncounted_resources
from controller.observe.expected_performance import runs_engine, served_model
from controller.observe.pods import by_target
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.wording import count, first_of

NOTHING_ASKS: Final = (
    "the input contains no VariantAutoscaling, and no annotated autoscaler, nor a workload with vLLM or"
    " SGLang whose model can be read; export them with kubectl get hpa,deploy,sts -A -o yaml, where they are"
    " installed also va and leaderworkersets, and with KEDA also scaledobjects"
)
"""Why there is nothing to decide on."""

_OWN: Final = "VariantAutoscaling"
_MOST_NAMED: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumptions:
    """The input with the assumed variants."""

    objects: FileContents
    workloads: tuple[str, ...] = ()
    """Kind, namespace and name of each workload for which a variant is assumed."""

    warnings: tuple[str, ...] = ()


def with_assumptions(objects: FileContents) -> Assumptions:
    """Return the input with one variant for each workload with engines, unless an object asks for decisions.

    A workload may also be left as it is because the model cannot be read: a warning names it.
    """
    if objects.saved or any(kind == _OWN for kind, _, _ in objects.refused):
        return Assumptions(objects=objects)
    # Also KEDA's copy of an annotated ScaledObject that was not exported.
    if any(asks_for_decisions(item) or is_managed(item.value) for item in objects.manifests):
        return Assumptions(objects=objects)
    engines = {key: (target, served_model(specs[0])) for key, target, specs in _engines(objects)}
    models = {key: (target, model) for key, (target, model) in engines.items() if model}
    nodes = [node["metadata"] for node in objects.values("Node")]
    types = {metadata["name"]: product_of(metadata.get("labels") or {}) for metadata in nodes}
    pods = by_target(objects.values("Pod"))
    names = Counter((key.namespace, key.name) for key in models)
    made = []
    for key, (target, model) in models.items():
        places = (types.get(pod["spec"].get("nodeName")) for pod in pods.get(key, ()))
        counts = Counter(kind for kind in places if kind)
        accelerator = counts.most_common(1)[0][0] if counts else ""
        is_alone = names[key.namespace, key.name] == 1
        made.append(_variant(key, target, model, accelerator, is_alone=is_alone))
    return Assumptions(
        objects=replace(objects, manifests=[*objects.manifests, *made]),
        workloads=tuple(map(str, models)),
        warnings=tuple(_warnings([*models], [key for key in engines if key not in models])),
    )


def asks_for_decisions(manifest: Manifest) -> bool:
    """Return whether an object is a VariantAutoscaling or an annotated autoscaler."""
    kind, value = manifest.kind[1], [manifest.value]
    if kind == "HorizontalPodAutoscaler":
        return any(managed_autoscalers(value, ()))
    return kind == _OWN or (kind == "ScaledObject" and any(managed_autoscalers((), value)))


def _engines(objects: FileContents) -> Iterator[tuple[TargetKey, Manifest, Sequence[Json]]]:
    """Yield the workloads with engines that use accelerators, and the specs of the pods of a replica."""
    for kind in (TargetKind.DEPLOYMENT, TargetKind.STATEFUL_SET, TargetKind.LEADER_WORKER_SET):
        for name, manifest in of_kind(objects.manifests, kind).items():
            specs = _pod_specs(manifest.value["spec"])
            if runs_engine(specs[0]) and any(map(_uses_accelerators, specs)):
                yield TargetKey(kind, *name), manifest, specs


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


def _warnings(assumed: Sequence[TargetKey], nameless: Sequence[TargetKey]) -> Iterator[str]:
    if assumed:
        yield (
            "the input contains no VariantAutoscaling, and no annotated autoscaler:"
            f" {count(len(assumed), 'variant')} {'is' if len(assumed) == 1 else 'are'} assumed,"
            " one for each workload with vLLM or SGLang, whose model is that of its arguments:"
            f" {first_of([*map(str, assumed)], _MOST_NAMED)}"
        )
    if nameless:
        yield (
            f"no variant is assumed for {count(len(nameless), 'workload')} with vLLM or SGLang whose"
            " model cannot be read from an argument such as --served-model-name:"
            f" {first_of([*map(str, nameless)], _MOST_NAMED)}; write VariantAutoscalings for all, and add"
            " them with -f"
        )

"""VariantAutoscalings to autoscalers with the annotations of llm-d 0.8 and newer, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.kinds.annotated import (
    MANAGED,
    MODEL_ID,
    VARIANT_COST,
    is_managed,
    model_of,
    reference_of,
    term_problems,
)
from apiserver.kinds.annotations import UNDERSTOOD
from apiserver.kinds.autoscalers import KEDA_LABEL, VARIANT_METRIC, VARIANT_METRIC_LEGACY, VARIANT_RATIO
from apiserver.kinds.conversion import convert
from apiserver.kinds.llmd.conversion import GROUP
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.kinds.llmd.shapes import without_annotation
from apiserver.kinds.llmd.variantautoscaling import DEFAULT_COST
from apiserver.kinds.metric_labels import INSTANCE_LABEL, VARIANT_NAME
from apiserver.schema.json import Json, JsonValue, as_list, as_object, without
from apiserver.schema.metadata import metadata_errors
from controller.commands.convert.objects import has_field, kept_fields
from controller.commands.migrate.objects import (
    MigrationNote,
    MigrationResult,
    key_of_object,
    loss,
    moved_texts,
    own_metadata,
    refusal,
    remark,
    split_texts,
    with_texts,
    without_migration,
)

HPA: Final = "HorizontalPodAutoscaler"
SCALED_OBJECT: Final = "ScaledObject"

_HUB: Final = f"{GROUP}/v1alpha2"
_PLACE: Final = "annotated autoscalers"
_OURS: Final = {
    "labels": (ACCELERATOR_LABEL, INSTANCE_LABEL),
    "annotations": UNDERSTOOD["VariantAutoscaling"],
}
"""The labels and annotations of a variant itself, which move with it."""

_TERMS: Final = (MANAGED, MODEL_ID, VARIANT_COST)
_REMEDIES: Final[Mapping[str, str]] = {
    "acceleratorCount": "the pods of the target say how many they request",
    "sloClassRef": "list the model in that service class",
    "variantProfile": "capacity is learned from the metrics of the engines",
}
_UNKNOWN: Final = "nothing reads it any more"
_PLACED: Final = frozenset(
    {"scaleTargetRef", "modelID", "variantCost", "accelerator", "minReplicas", "maxReplicas"}
)
_BOUNDS: Final[Mapping[str, tuple[tuple[str, int], tuple[str, int]]]] = {
    HPA: (("minReplicas", 1), ("maxReplicas", 1)),
    SCALED_OBJECT: (("minReplicaCount", 0), ("maxReplicaCount", 100)),
}
"""The bounds of each kind of autoscaler and their defaults."""

_METRICS: Final = (VARIANT_METRIC, VARIANT_METRIC_LEGACY, VARIANT_RATIO)
_ASSUMED_MOST: Final = 10
_AT_ONCE: Final = {
    "scaleUp": {"stabilizationWindowSeconds": 0},
    "scaleDown": {"stabilizationWindowSeconds": 0},
}
_PROMETHEUS: Final = "http://prometheus.monitoring.svc:9090"

_Target = tuple[str, str, str, str]


def annotate_autoscalers(objects: Mapping[int, Json], created: str) -> Iterator[tuple[int, MigrationResult]]:
    """Yield what becomes of each VariantAutoscaling, and of the autoscaler of its target, by position.

    Without one in the input, an autoscaler of the kind `created` is written.
    """
    scalers: dict[_Target, list[tuple[int, Json]]] = {}
    for place, value in objects.items():
        if _is_autoscaler(value):
            scalers.setdefault(_target(value, reference_of(value)), []).append((place, value))
    owners: dict[int, str] = {}
    for place, value in objects.items():
        if not _is_variant(value):
            continue
        if refused := refusal(value):
            yield place, refused
            continue
        variant, notes = _current_shape(value)
        here = scalers.get(_target(variant, variant["spec"]["scaleTargetRef"]), [])
        own = [item for item in here if KEDA_LABEL not in as_object(item[1]["metadata"].get("labels"))]
        if here and not own:
            name = here[0][1]["metadata"]["labels"][KEDA_LABEL]
            yield (
                place,
                without_migration(value, f"ScaledObject {name!r} scales its target: add it to the input"),
            )
        elif own and own[0][0] in owners:
            why = f"its autoscaler belongs to {owners[own[0][0]]!r}: remove one of them"
            yield place, without_migration(value, why)
        elif own:
            owners[own[0][0]] = variant["metadata"]["name"]
            scaler, more = _annotate(variant, own[0][1], is_new=False)
            yield place, MigrationResult(objects=(), notes=(*notes, *more))
            yield own[0][0], MigrationResult(objects=(scaler,))
        else:
            plain = _new_autoscaler(variant, created)
            scaler, more = _annotate(variant, plain, is_new=True)
            yield place, MigrationResult(objects=(scaler,), notes=(*notes, *more, *_assumptions(plain)))


def write_variants(objects: Mapping[int, Json]) -> Iterator[tuple[int, MigrationResult]]:
    """Yield what becomes of each annotated autoscaler, by position: itself, and a VariantAutoscaling."""
    variants = [value for value in objects.values() if _is_variant(value) and not refusal(value)]
    names = set(map(key_of_object, variants))
    targets = {_target(value, convert(value, _HUB)["spec"]["scaleTargetRef"]) for value in variants}
    for place, value in objects.items():
        is_copy = KEDA_LABEL in as_object(as_object(value.get("metadata")).get("labels"))
        if not _is_autoscaler(value) or not is_managed(value) or is_copy:
            continue
        reference = reference_of(value)
        if not model_of(value):
            yield place, without_migration(value, next(iter(term_problems(value))), "metadata", "annotations")
        elif key_of_object(value) in names or _target(value, reference) in targets:
            why = "a VariantAutoscaling has its target or its name: remove one of them"
            yield place, without_migration(value, why)
        else:
            names.add(key_of_object(value))
            targets.add(_target(value, reference))
            yield place, _variant_of(value, reference)


def _is_variant(value: Json) -> bool:
    api_version = str(value.get("apiVersion"))
    return value.get("kind") == "VariantAutoscaling" and api_version.rpartition("/")[0] == GROUP


def _is_autoscaler(value: Json) -> bool:
    group = str(value.get("apiVersion")).partition("/")[0]
    return (group, value.get("kind")) in {("autoscaling", HPA), ("keda.sh", SCALED_OBJECT)}


def _target(value: Json, reference: Json) -> _Target:
    api_version, kind, name = (str(reference.get(part) or "") for part in ("apiVersion", "kind", "name"))
    return key_of_object(value)[0], (api_version or "apps/v1").rpartition("/")[0], kind, name


def _current_shape(value: Json) -> tuple[Json, list[MigrationNote]]:
    """Return a variant in v1alpha2, and the fields of its own shape that are lost."""
    hub = convert(value, _HUB)
    paths = [path for path in kept_fields(hub) if path[0] == "spec" and not has_field(hub, path)]
    notes = [loss(_PLACE, _UNKNOWN, *path) for path in paths]
    return without_annotation(hub), notes


def _annotate(variant: Json, scaler: Json, *, is_new: bool) -> tuple[Json, list[MigrationNote]]:
    """Return an autoscaler with the terms of a variant, and what has no place in it."""
    spec, name = variant["spec"], scaler["metadata"]["name"]
    shown = f"{scaler['kind']} {name!r}"
    lost = sorted(spec.keys() - _PLACED)
    notes = [loss(_PLACE, _REMEDIES.get(field, _UNKNOWN), "spec", field) for field in lost]
    if name != variant["metadata"]["name"]:
        remedy = f"the metrics of the variant have {VARIANT_NAME}={name} now, after its {scaler['kind']}"
        notes.append(loss(_PLACE, remedy, "metadata", "name"))
    metadata, moved = moved_texts(own_metadata(variant), own_metadata(scaler), _OURS, shown)
    if "accelerator" in spec:
        metadata, more = _with_accelerator(metadata, spec["accelerator"])
        moved.append(more)
    terms = {MANAGED: "true", MODEL_ID: spec["modelID"]}
    if (cost := spec.get("variantCost", DEFAULT_COST)) != DEFAULT_COST:
        terms[VARIANT_COST] = cost
    metadata = with_texts(_without_terms(metadata), "annotations", terms)
    body, bound = _with_bounds(as_object(scaler.get("spec")), scaler["kind"], spec, shown)
    body, is_following = _follow(body, variant["metadata"]["name"], name)
    if not is_following:
        text = f"{shown} does not read {VARIANT_METRIC}: let it scale by this metric alone"
        moved.append(remark(text, "spec", "scaleTargetRef"))
    result = without(scaler, ["status"]) | {"metadata": metadata, "spec": body}
    return result, [*notes, *moved, *([] if is_new else bound)]


def _without_terms(metadata: Json) -> Json:
    """Return metadata without the annotations of llm-d."""
    return split_texts(metadata, {"annotations": _TERMS})[1]


def _with_accelerator(metadata: Json, accelerator: str) -> tuple[Json, MigrationNote]:
    if any(metadata_errors({"name": "any", "labels": {ACCELERATOR_LABEL: accelerator}})):
        return metadata, loss(_PLACE, "no label can have this value", "spec", "accelerator")
    note = remark(f"is the label {ACCELERATOR_LABEL} now", "spec", "accelerator")
    return with_texts(metadata, "labels", {ACCELERATOR_LABEL: accelerator}), note


def _with_bounds(body: Json, kind: str, spec: Json, shown: str) -> tuple[Json, list[MigrationNote]]:
    """Return an autoscaler's spec within the bounds of a variant: the higher minimum, the lower maximum."""
    (least, usual_least), (most, usual_most) = _BOUNDS[kind]
    notes: list[MigrationNote] = []
    low, high = _number(body.get(least), usual_least), _number(body.get(most), usual_most)
    if spec.get("minReplicas", low) > low or (spec.get("minReplicas") == 0 == low):
        body = body | {least: spec["minReplicas"]}
    if spec.get("maxReplicas", high) < high:
        body = body | {most: spec["maxReplicas"]}
    if _number(body.get(least), low) > _number(body.get(most), high):
        body = body | {least: body.get(most, high)}
    if "minReplicas" in spec and not spec["minReplicas"] == low == 0:
        notes.append(remark(f"{shown} has {least} {body.get(least, low)} now", "spec", "minReplicas"))
    if "maxReplicas" in spec:
        notes.append(remark(f"{shown} has {most} {body.get(most, high)} now", "spec", "maxReplicas"))
    if "minReplicas" not in spec and body.get(least) == 0:
        text = f"{least} 0 of {shown} allows to scale to zero now, whatever planning.scaleToZero is"
        notes.append(remark(text, "spec"))
    return body, notes


def _number(value: JsonValue, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _follow(body: Json, former: str, name: str) -> tuple[Json, bool]:
    """Return an autoscaler's spec that selects the metric by a new name, and whether it reads the metric."""
    metrics = [_select(item, former, name) for item in as_list(body.get("metrics"))]
    triggers = [_query(item, former, name) for item in as_list(body.get("triggers"))]
    parts = {"metrics": metrics, "triggers": triggers}
    body = body | {member: items for member, items in parts.items() if member in body}
    names = [
        as_object(as_object(as_object(item).get("external")).get("metric")).get("name") for item in metrics
    ]
    text = json.dumps([triggers, names])
    return body, any(metric in text for metric in (*_METRICS, "stowplan_desired_replicas", '"external'))


def _select(item: JsonValue, former: str, name: str) -> JsonValue:
    external = as_object(as_object(item).get("external"))
    metric = as_object(external.get("metric"))
    selector = as_object(metric.get("selector"))
    labels = as_object(selector.get("matchLabels"))
    is_its_own = labels.get(VARIANT_NAME, former) == former and labels.keys() & {VARIANT_NAME, "variant_id"}
    if metric.get("name") not in _METRICS or not is_its_own:
        return item
    labels = without(labels, ["variant_id"]) | {VARIANT_NAME: name}
    current = VARIANT_RATIO if metric["name"] == VARIANT_RATIO else VARIANT_METRIC
    metric = metric | {"name": current, "selector": selector | {"matchLabels": labels}}
    return item | {"external": external | {"metric": metric}}


def _query(item: JsonValue, former: str, name: str) -> JsonValue:
    metadata = as_object(as_object(item).get("metadata"))
    query = metadata.get("query")
    if not isinstance(query, str):
        return item
    pattern = re.compile(rf"""({VARIANT_NAME}\s*=\s*)(["']){re.escape(former)}\2""")
    return item | {"metadata": metadata | {"query": pattern.sub(rf"\g<1>\g<2>{name}\g<2>", query)}}


def _new_autoscaler(variant: Json, kind: str) -> Json:
    """Return an autoscaler for a variant that follows its decisions, without metadata of users."""
    namespace, name = key_of_object(variant)
    spec = variant["spec"]
    (least, _), (most, _) = _BOUNDS[kind]
    bounds = {least: spec.get("minReplicas", 1), most: spec.get("maxReplicas", _ASSUMED_MOST)}
    bounds[most] = max(bounds[least], bounds[most])
    own = {"name": name, "namespace": namespace} if namespace else {"name": name}
    # An autoscaler without a group looks for the target in the core group.
    shared = {"scaleTargetRef": {"apiVersion": "apps/v1"} | spec["scaleTargetRef"], **bounds}
    if kind == SCALED_OBJECT:
        place = f', exported_namespace="{namespace}"' if namespace else ""
        query = f'{VARIANT_METRIC}{{{VARIANT_NAME}="{name}"{place}}}'
        reading = {
            "serverAddress": _PROMETHEUS,
            "query": query,
            "threshold": "1",
            "ignoreNullValues": "false",
        }
        shared |= {
            "triggers": [{"type": "prometheus", "metadata": reading}],
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _AT_ONCE}},
        }
        return {"apiVersion": "keda.sh/v1alpha1", "kind": kind, "metadata": own, "spec": shared}
    metric = {"name": VARIANT_METRIC, "selector": {"matchLabels": {VARIANT_NAME: name}}}
    external = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}}
    shared |= {"metrics": [{"type": "External", "external": external}], "behavior": _AT_ONCE}
    return {"apiVersion": "autoscaling/v2", "kind": kind, "metadata": own, "spec": shared}


def _assumptions(scaler: Json) -> Iterator[MigrationNote]:
    kind, spec = scaler["kind"], scaler["spec"]
    (least, _), (most, _) = _BOUNDS[kind]
    text = f"nothing in the input scales it: wrote a {kind} for {spec[least]} to {spec[most]} replicas"
    yield remark(f"{text}: add the present one to the input, or check these bounds", "spec", "scaleTargetRef")
    if kind == SCALED_OBJECT:
        yield remark(f"the trigger reads {_PROMETHEUS}: set serverAddress to your Prometheus", "spec")


def _variant_of(value: Json, reference: Json) -> MigrationResult:
    """Return an annotated autoscaler without annotations, and the VariantAutoscaling that they describe."""
    metadata = own_metadata(value)
    annotations = as_object(metadata.get("annotations"))
    apart, rest = split_texts(_without_terms(metadata), _OURS)
    namespace, name = key_of_object(value)
    own = {"name": name, "namespace": namespace} if namespace else {"name": name}
    target = {part: str(reference.get(part) or "") for part in ("apiVersion", "kind", "name")}
    spec: Json = {"scaleTargetRef": target, "modelID": annotations[MODEL_ID]}
    notes: list[MigrationNote] = []
    if VARIANT_COST in annotations:
        spec["variantCost"] = annotations[VARIANT_COST]
    if spec.get("variantCost") == DEFAULT_COST:
        text = (
            f"{DEFAULT_COST} of a VariantAutoscaling means the price of the accelerator, if there is a list"
        )
        notes.append(remark(text, "metadata", "annotations", f"[{VARIANT_COST}]"))
    body = as_object(value.get("spec"))
    if body.get(_BOUNDS[value["kind"]][0][0]) == 0:
        spec["minReplicas"] = 0
    variant = {"apiVersion": _HUB, "kind": "VariantAutoscaling", "metadata": own | apart, "spec": spec}
    scaler = without(value, ["status"]) | {"metadata": rest}
    return MigrationResult(objects=(scaler, variant), notes=tuple(notes))

"""AutoscalingPolicies with bindings to those of Kthena 1.0, which have their target themselves, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.kinds.annotations import UNDERSTOOD
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import DEFAULT_KIND, targets_of
from apiserver.kinds.kthena.groups import REGISTRY
from apiserver.schema.json import Json, as_list, as_object, without
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
    without_migration,
)

RELEASED_GROUP: Final = "workload.serving.volcano.sh"
"""The group of AutoscalingPolicy and ModelBooster in the releases of Kthena."""

_OURS: Final = f"{REGISTRY}/v1alpha1"
_RELEASED: Final = f"{RELEASED_GROUP}/v1alpha1"
_POLICY: Final = "AutoscalingPolicy"
_BINDING: Final = "AutoscalingPolicyBinding"
_PLACE: Final = f"{_POLICY} of {RELEASED_GROUP}"
_OUR_PLACE: Final = f"{_BINDING} of {REGISTRY}"
_SERVING: Final = "ModelServing"
_OF_BINDINGS: Final = {"annotations": UNDERSTOOD[_BINDING]}
_MEMBERS: Final = {
    "scalingConfiguration": "homogeneousTarget",
    "optimizerConfiguration": "heterogeneousTarget",
}
_DEFAULT_ENDPOINT: Final[Mapping[str, object]] = {"uri": "/metrics", "port": 8100}


def join_bindings(objects: Mapping[int, Json]) -> Iterator[tuple[int, MigrationResult]]:
    """Yield what becomes of each policy and binding of ours, by position: one policy for each binding."""
    policies = {key_of_object(value): at for at, value in objects.items() if _is(value, _OURS, _POLICY)}
    bound: dict[int, list[int]] = {at: [] for at, value in objects.items() if _is(value, _OURS, _POLICY)}
    staying: set[int] = set()
    for at, value in objects.items():
        if not _is(value, _OURS, _BINDING):
            continue
        name = as_object(as_object(value.get("spec")).get("policyRef")).get("name")
        policy = policies.get((key_of_object(value)[0], str(name)))
        kept = refusal(value) or _unless_supported(value)
        if policy is None:
            why = f"its policy {name!r} is not in the input: add it"
            kept = kept or without_migration(value, why, "spec", "policyRef")
        elif kept or refusal(objects[policy]):
            kept = kept or without_migration(
                value, f"its policy {name!r} is not migrated", "spec", "policyRef"
            )
            staying.add(policy)
        else:
            bound[policy].append(at)
        if kept:
            yield at, kept
    for at, bindings in bound.items():
        yield from _join(at, objects, bindings, is_staying=at in staying)


def _is(value: Json, api_version: str, kind: str) -> bool:
    return (value.get("apiVersion"), value.get("kind")) == (api_version, kind)


def _unless_supported(binding: Json) -> MigrationResult | None:
    for below, target in targets_of(binding["spec"]):
        kind = target["targetRef"].get("kind") or DEFAULT_KIND
        if kind not in {DEFAULT_KIND, _SERVING}:
            why = f"Kthena scales no {kind}, only ModelServings: leave it to Stowplan"
            return without_migration(binding, why, "spec", *below, "targetRef", "kind")
    return None


def _join(
    at: int, objects: Mapping[int, Json], bindings: list[int], *, is_staying: bool
) -> Iterator[tuple[int, MigrationResult]]:
    policy = objects[at]
    if refused := refusal(policy):
        yield at, refused
        return
    if not bindings:
        why = f"no {_BINDING} in the input applies it, and Kthena refuses one without target: add it"
        yield at, without_migration(policy, "its bindings are not migrated" if is_staying else why)
        return
    merged: list[Json] = [policy] if is_staying else []
    is_alone = len(bindings) == 1 and not is_staying
    for place in bindings:
        binding = objects[place]
        value, notes = _merge(policy, binding, is_alone=is_alone)
        merged.append(value)
        yield place, MigrationResult(objects=(), notes=notes)
    notes = () if is_alone else (_names_of_bindings(merged[is_staying:]),)
    yield at, MigrationResult(objects=tuple(merged), notes=notes)


def _names_of_bindings(values: list[Json]) -> MigrationNote:
    names = ", ".join(value["metadata"]["name"] for value in values)
    remedy = f"a policy has one target, so there is one for each binding: {names}"
    return loss(_PLACE, remedy, "metadata", "name")


def _merge(policy: Json, binding: Json, *, is_alone: bool) -> tuple[Json, tuple[MigrationNote, ...]]:
    own, name = own_metadata(policy), binding["metadata"]["name"]
    metadata, notes = moved_texts(own_metadata(binding), own, _OF_BINDINGS, _PLACE)
    if not is_alone:
        metadata = metadata | {"name": name}
    elif name != own["name"]:
        notes.append(loss(_PLACE, f"the target is a part of policy {own['name']!r} now", "metadata", "name"))
    lost = sorted(binding["spec"].keys() - {"policyRef", *_MEMBERS})
    notes += [loss(_PLACE, "Kthena does not know it", "spec", member) for member in lost]
    spec = dict(policy["spec"])
    names = [metric["metricName"] for metric in spec["metrics"]]
    spec["metrics"] = [
        {"name": metric["metricName"]} | without(metric, ["metricName"]) for metric in spec["metrics"]
    ]
    for member, released in _MEMBERS.items():
        if member in binding["spec"]:
            spec[released] = _configuration(binding["spec"][member], names, notes, (member,))
    value = {"apiVersion": _RELEASED, "kind": _POLICY, "metadata": metadata, "spec": spec}
    return value, tuple(notes)


def _configuration(
    value: Json, names: list[str], notes: list[MigrationNote], below: tuple[str | int, ...]
) -> Json:
    """Return a part of a binding that has a target, or several params, in the released shape."""
    if "params" in value:
        params = enumerate(value["params"])
        return value | {
            "params": [_configuration(item, names, notes, (*below, "params", at)) for at, item in params]
        }
    target = value["target"]
    reference = target["targetRef"]
    if (reference.get("kind") or DEFAULT_KIND) == DEFAULT_KIND:
        reference = reference | {"apiVersion": _RELEASED, "kind": _SERVING}
        text = f"is a {_SERVING} now: migrate the {DEFAULT_KIND} itself, too"
        notes.append(remark(text, "spec", *below, "target", "targetRef"))
    pod: Json = {}
    if "metricEndpoint" in target:
        pod |= _DEFAULT_ENDPOINT | target["metricEndpoint"]
    if labels := target.get("additionalMatchLabels"):
        pod["labelSelector"] = {"matchLabels": labels}
    sources = {name: {"pod": pod} for name in names}
    rest = without(target, ["metricEndpoint", "additionalMatchLabels"])
    return value | {"target": rest | {"targetRef": reference, "metricSources": sources}}


def split_targets(objects: Mapping[int, Json]) -> Iterator[tuple[int, MigrationResult]]:
    """Yield what becomes of each policy of Kthena's releases, by position: a policy and its binding."""
    for at, value in objects.items():
        if _is(value, _RELEASED, _BINDING):
            yield (
                at,
                without_migration(value, f"only {_POLICY} of Kthena 1.0, which has its target, is supported"),
            )
        elif _is(value, _RELEASED, _POLICY):
            yield at, _split(value)


def _split(value: Json) -> MigrationResult:
    spec = as_object(value.get("spec"))
    members = [member for member, released in _MEMBERS.items() if released in spec]
    if "disaggregatedTarget" in spec:
        why = "a binding of Stowplan has no roles: write a target for each of them"
        return without_migration(value, why, "spec", "disaggregatedTarget")
    if len(members) != 1:
        return without_migration(value, "it has no target: only policies of Kthena 1.0 are supported", "spec")
    [member] = members
    notes: list[MigrationNote] = []
    configuration = as_object(spec[_MEMBERS[member]])
    renamed = _exposed_names(configuration)
    metrics = [_our_metric(as_object(metric), renamed) for metric in as_list(spec.get("metrics"))]
    path = ("spec", _MEMBERS[member])
    if "params" in configuration:
        params = [
            _our_configuration(as_object(item), renamed, notes, (*path, "params", place))
            for place, item in enumerate(as_list(configuration["params"]))
        ]
        configuration = configuration | {"params": params}
    else:
        configuration = _our_configuration(configuration, renamed, notes, path)
    apart, rest = split_texts(own_metadata(value), _OF_BINDINGS)
    policy_spec = without(spec, _MEMBERS.values()) | {"metrics": metrics}
    own = {part: rest[part] for part in ("name", "namespace") if part in rest}
    reference = {"policyRef": {"name": own.get("name")}}
    policy = {"apiVersion": _OURS, "kind": _POLICY, "metadata": rest, "spec": policy_spec}
    binding = {
        "apiVersion": _OURS,
        "kind": _BINDING,
        "metadata": own | apart,
        "spec": reference | {member: configuration},
    }
    return MigrationResult(objects=(policy, binding), notes=tuple(notes))


def _our_metric(metric: Json, renamed: Mapping[str, str]) -> Json:
    name = metric.get("name")
    return {"metricName": renamed.get(str(name), name)} | without(metric, ["name"])


def _exposed_names(configuration: Json) -> dict[str, str]:
    """Return the names that pods expose, by the names of the policy, where the first target says them."""
    items = [configuration, *as_list(configuration.get("params"))]
    names: dict[str, str] = {}
    for item in map(as_object, items):
        sources = as_object(as_object(item.get("target")).get("metricSources"))
        for name, source in sources.items():
            pod = as_object(as_object(source).get("pod"))
            names.setdefault(name, str(pod.get("name") or name))
    return names


def _our_configuration(
    value: Json, renamed: Mapping[str, str], notes: list[MigrationNote], path: tuple[str | int, ...]
) -> Json:
    target = as_object(value.get("target"))
    reference = as_object(target.get("targetRef"))
    if (reference.get("kind") or _SERVING) == _SERVING:
        reference = {"apiVersion": _RELEASED, "kind": _SERVING} | {
            part: text for part, text in reference.items() if text
        }
    where = (*path, "target", "metricSources")
    endpoints: list[Json] = []
    for name, source in as_object(target.get("metricSources")).items():
        pod = as_object(as_object(source).get("pod"))
        here = (*where, f"[{name}]")
        remedy = "a binding reads its metrics from pods: let them expose it"
        others = sorted(as_object(source).keys() - {"pod"})
        notes += [loss(_OUR_PLACE, remedy, *here, other) for other in others]
        if others:
            continue
        if str(pod.get("name") or name) != renamed[name]:
            remedy = f"a metric has one name for all targets, {renamed[name]!r}"
            notes.append(loss(_OUR_PLACE, remedy, *here, "pod", "name"))
        if as_object(pod.get("labelSelector")).get("matchExpressions"):
            remedy = "only matchLabels are supported"
            notes.append(loss(_OUR_PLACE, remedy, *here, "pod", "labelSelector", "matchExpressions"))
        endpoints.append(_our_endpoint(pod))
        if endpoints[-1] != endpoints[0]:
            notes.append(loss(_OUR_PLACE, "a target has one endpoint for all metrics", *here, "pod"))
    rest = without(target, ["metricSources"]) | {"targetRef": reference}
    return value | {"target": rest | (endpoints[0] if endpoints else {})}


def _our_endpoint(pod: Json) -> Json:
    parts: Json = {}
    if labels := as_object(pod.get("labelSelector")).get("matchLabels"):
        parts["additionalMatchLabels"] = labels
    if endpoint := {name: pod[name] for name in _DEFAULT_ENDPOINT if name in pod}:
        parts["metricEndpoint"] = endpoint
    return parts

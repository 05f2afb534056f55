"""VariantAutoscaling between the union `v1alpha1` and the hub `v1alpha2`.

Both functions are total: they run in every read, so no shape, however odd, may make them fail. What they
lose is kept by `apiserver.schema.conversion`.
"""

from __future__ import annotations

from typing import Final

import re2

from apiserver.schema.conversion import Direction, converted
from apiserver.schema.json import Json, JsonValue

GROUP: Final = "llmd.ai"
SPOKE: Final = f"{GROUP}/v1alpha1"
HUB: Final = f"{GROUP}/v1alpha2"

ANNOTATION: Final = "llmd.ai/kept-by-conversion"
"""Holds what the version at hand cannot say, see `apiserver.schema.conversion`."""

ACCELERATOR_LABEL: Final = "inference.optimization/acceleratorName"
"""The label by which every release names the accelerator in use."""

_HUB_LEGACY: Final = ("accelerator", "acceleratorCount", "sloClassRef", "variantProfile")
_PROFILED: Final = ("accelerator", "acceleratorCount", "variantProfile")
_SPOKE_ONLY: Final = ("variantID", "modelProfile")
_VARIANT_ID: Final = re2.compile(r"^.+-[A-Za-z0-9]+-[1-9][0-9]*$")


def convert(value: Json, api_version: str) -> Json:
    """Return a VariantAutoscaling in another version, losing nothing.

    Raises KeyError for an unknown version.
    """
    if value.get("apiVersion") == api_version:
        return value
    there = _DIRECTIONS[api_version]
    back = _DIRECTIONS[SPOKE if api_version == HUB else HUB]
    return converted(value, there=there, back=back, annotation=ANNOTATION)


def variant_identifier(spec: Json) -> str:
    """Return the identifier that the legacy shape gives a variant: model, accelerator and count."""
    return f"{spec.get('modelID')}-{spec.get('accelerator')}-{spec.get('acceleratorCount')}"


def implied_target(value: Json) -> Json:
    """Return the scale target of an object that names none.

    Its controlling owner if that is a Deployment, since earlier controllers set one; else the Deployment of
    its own name, which is where they looked.
    """
    metadata = _object(value.get("metadata"))
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else []:
        if isinstance(owner, dict) and owner.get("controller") is True and owner.get("kind") == "Deployment":
            return {"apiVersion": "apps/v1", "kind": "Deployment", "name": owner.get("name", "")}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": metadata.get("name", "")}


def names_deployment(target: Json) -> bool:
    """Tell whether a scale target reference names an apps Deployment; without an apiVersion it does."""
    group = str(target.get("apiVersion") or "apps/v1").rpartition("/")[0]
    return (group, target.get("kind")) == ("apps", "Deployment")


def _to_hub(value: Json, _: Json) -> Json:
    if not isinstance(value.get("spec"), dict):
        return dict(value)
    spec = {name: item for name, item in value["spec"].items() if name not in _SPOKE_ONLY}
    for name, item in _from_profile(value).items():
        spec.setdefault(name, item)
    spec.setdefault("scaleTargetRef", implied_target(value))
    return value | {"spec": spec}


def _from_profile(value: Json) -> Json:
    entry = _entry(value, _object(value["spec"].get("modelProfile")))
    profile = {name: entry[name] for name in ("perfParms", "maxBatchSize") if name in entry}
    found: Json = {"variantProfile": profile} if profile else {}
    for name, source in (("accelerator", "acc"), ("acceleratorCount", "accCount")):
        if source in entry:
            found[name] = entry[source]
    return found


def _entry(value: Json, profile: Json) -> Json:
    """Return the candidate in use: the labelled one, else the one in status, else the first."""
    entries = [item for item in _list(profile.get("accelerators")) if isinstance(item, dict)]
    position = _position(value, entries)
    return entries[position] if entries else {}


def _position(value: Json, entries: list[Json]) -> int:
    label = _object(_object(value.get("metadata")).get("labels")).get(ACCELERATOR_LABEL)
    current = _object(_object(value.get("status")).get("currentAlloc")).get("accelerator")
    for wanted in (label, current):
        for position, entry in enumerate(entries):
            if wanted and entry.get("acc") == wanted:
                return position
    return 0


def _remember(value: Json) -> Json:
    profile = _object(value.get("spec")).get("modelProfile")
    entries = _list(_object(profile).get("accelerators"))
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        return {}
    return {"modelProfile": profile, "position": _position(value, entries)}


def _from_hub(value: Json, source: Json) -> Json:
    result = dict(value)
    if isinstance(value.get("status"), dict):
        result["status"] = {name: item for name, item in value["status"].items() if name != "decision"}
    if isinstance(value.get("spec"), dict):
        result["spec"] = _spoke_spec(value["spec"], source)
    return result


def _spoke_spec(spec: Json, source: Json) -> Json:
    identifier = variant_identifier(spec)
    profile = _profile(spec, source)
    if profile:
        bare = {name: item for name, item in spec.items() if name not in _PROFILED}
        return bare | {"modelProfile": profile}
    if all(name in spec for name in _HUB_LEGACY) and _VARIANT_ID.search(identifier):
        return spec | {"variantID": identifier}
    return {name: item for name, item in spec.items() if name not in _HUB_LEGACY}


def _profile(spec: Json, source: Json) -> Json:
    """Return the remembered modelProfile with today's values in the entry in use; empty if they are gone."""
    remembered, position = source.get("modelProfile"), source.get("position")
    entries = _list(_object(remembered).get("accelerators"))
    if not isinstance(position, int) or not 0 <= position < len(entries):
        return {}
    if not isinstance(entries[position], dict) or not all(name in spec for name in _PROFILED):
        return {}
    today = {
        "acc": spec["accelerator"],
        "accCount": spec["acceleratorCount"],
        **_object(spec["variantProfile"]),
    }
    entry = entries[position] | today
    return _object(remembered) | {"accelerators": [*entries[:position], entry, *entries[position + 1 :]]}


def _with_target(result: Json, original: Json) -> Json:
    """Put the scale target back where an edit took away the shape that could do without."""
    spec = result.get("spec")
    if not isinstance(spec, dict) or "scaleTargetRef" in spec:
        return result
    if any(name in spec for name in (*_HUB_LEGACY, *_SPOKE_ONLY)):
        return result
    target = _object(original.get("spec")).get("scaleTargetRef")
    return result if target is None else result | {"spec": spec | {"scaleTargetRef": target}}


def _object(value: JsonValue) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


_DIRECTIONS: Final = {
    HUB: Direction(api_version=HUB, convert=_to_hub, remember=_remember),
    SPOKE: Direction(api_version=SPOKE, convert=_from_hub, complete=_with_target),
}

"""VariantAutoscaling between the union `v1alpha1` and the hub `v1alpha2`.

Both functions are total: they run in every read, so no shape, however odd, may make them fail. What they
lose is kept by `apiserver.schema.conversion`.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Raw

from apiserver.schema.annotations import annotations_of
from apiserver.schema.conversion import Direction, annotation_bytes_wanted, converted
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.undecoded import (
    as_list,
    as_object,
    mentions,
    opened,
    opened_objects,
    plain,
)

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
_TOLD_APART: Final = frozenset({*_PROFILED, *_SPOKE_ONLY})
"""Fields that the versions say in different ways, or not at all."""

_VARIANT_ID: Final = re.compile(r".+-[A-Za-z0-9]+-[1-9][0-9]*", re.ASCII)
"""What the schema demands of an identifier; in the dialect at hand, for this runs in every read."""

UNKNOWN: Final = "unknown"
"""Stands where a shape wants a name and nobody knows it."""

_NOT_IN_AN_IDENTIFIER: Final = re.compile(r"[^A-Za-z0-9]+", re.ASCII)


def convert(value: Json, api_version: str) -> Json:
    """Return a VariantAutoscaling in another version, losing nothing.

    Raises KeyError for an unknown version.
    """
    if value.get("apiVersion") == api_version:
        return value
    there, back = _WAYS[api_version]
    if _is_alike_in_both(value):
        return value | {"apiVersion": api_version}
    return converted(value, there=there, back=back, annotation=ANNOTATION)


def wanted_bytes(value: Json, api_version: str) -> int:
    """Return how much all annotations would take in another version if it lost nothing."""
    there, back = _WAYS[api_version]
    return annotation_bytes_wanted(value, there=there, back=back, annotation=ANNOTATION)


def _is_alike_in_both(value: Json) -> bool:
    """Tell whether only the name of the version differs, as for the current shape without a decision."""
    spec, status = value.get("spec"), value.get("status")
    return (
        isinstance(spec, dict)
        and "scaleTargetRef" in spec
        and _TOLD_APART.isdisjoint(spec)
        and not mentions(annotations_of(value.get("metadata")), ANNOTATION)
        and not (isinstance(status, dict) and "decision" in status)
    )


def variant_identifier(spec: Json) -> str:
    """Return the identifier that the legacy shape gives a variant: model, accelerator and count."""
    model, accelerator, count = (
        plain(spec.get(name)) for name in ("modelID", "accelerator", "acceleratorCount")
    )
    return f"{model}-{accelerator}-{count}"


def identifier_of(model: str, accelerator: str, count: int) -> str:
    """Return the identifier of a variant, with what the legacy shape refuses taken out of its parts."""
    token = _NOT_IN_AN_IDENTIFIER.sub("", accelerator) or UNKNOWN
    return f"{model.replace(chr(10), ' ')}-{token}-{count}"


def implied_target(value: Json) -> Json:
    """Return the scale target of an object that names none.

    Its controlling owner if that is a Deployment, since earlier controllers set one; else the Deployment of
    its own name, which is where they looked.
    """
    metadata = as_object(value.get("metadata"))
    owners = as_list(metadata.get("ownerReferences"))
    names = [owner.get("name") for owner in owners if _is_deployment(owner)]
    name = next((name for name in names if isinstance(name, str)), metadata.get("name", ""))
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def _is_deployment(owner: JsonValue) -> bool:
    controls = isinstance(owner, dict) and owner.get("controller") is True
    return controls and owner.get("kind") == "Deployment"


def names_deployment(target: Json) -> bool:
    """Tell whether a scale target reference names an apps Deployment; without an apiVersion it does."""
    group = str(target.get("apiVersion") or "apps/v1").rpartition("/")[0]
    return (group, target.get("kind")) == ("apps", "Deployment")


def _to_hub(value: Json, _: Json) -> Json:
    result = dict(value)
    given = value.get("spec")
    if not isinstance(given, dict):
        return result
    if "scaleTargetRef" in given and not any(name in given for name in _SPOKE_ONLY):
        return result
    spec = {name: item for name, item in given.items() if name not in _SPOKE_ONLY}
    if "modelProfile" in given:
        spec = _from_profile(value) | spec
    if "scaleTargetRef" not in spec:
        spec["scaleTargetRef"] = implied_target(value)
    result["spec"] = spec
    return result


def _with_open_profile(value: Json, _: Json) -> Json:
    spec = value.get("spec")
    if not isinstance(spec, dict) or type(spec.get("modelProfile")) is not Raw:
        return value
    return value | {"spec": spec | {"modelProfile": _opened_profile(spec["modelProfile"])}}


def _opened_profile(value: JsonValue) -> JsonValue:
    profile = opened(value)
    if not isinstance(profile, dict) or "accelerators" not in profile:
        return profile
    return profile | {"accelerators": opened_objects(profile["accelerators"])}


def _from_profile(value: Json) -> Json:
    entry = _entry(value, as_object(value["spec"].get("modelProfile")))
    profile = {name: entry[name] for name in ("perfParms", "maxBatchSize") if name in entry}
    found: Json = {"variantProfile": profile} if profile else {}
    for name, source in (("accelerator", "acc"), ("acceleratorCount", "accCount")):
        if source in entry:
            found[name] = entry[source]
    return found


def _entry(value: Json, profile: Json) -> Json:
    """Return the candidate in use: the labelled one, else the one in status, else the first."""
    entries = [item for item in as_list(profile.get("accelerators")) if isinstance(item, dict)]
    position = _position(value, entries)
    return entries[position] if entries else {}


def _position(value: Json, entries: list[Json]) -> int:
    names = [plain(entry.get("acc")) for entry in entries]
    label = plain(as_object(as_object(value.get("metadata")).get("labels")).get(ACCELERATOR_LABEL))
    if label and label in names:
        return names.index(label)
    current = plain(as_object(as_object(value.get("status")).get("currentAlloc")).get("accelerator"))
    return names.index(current) if current and current in names else 0


def _remember(value: Json) -> Json:
    spec = value.get("spec")
    profile = spec.get("modelProfile") if isinstance(spec, dict) else None
    if profile is None:
        return {}
    entries = as_list(as_object(profile).get("accelerators"))
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        return {}
    return {"modelProfile": profile, "position": _position(value, entries)}


def _from_hub(value: Json, source: Json) -> Json:
    result = dict(value)
    status, spec = value.get("status"), value.get("spec")
    if isinstance(status, dict) and "decision" in status:
        result["status"] = {name: item for name, item in status.items() if name != "decision"}
    if isinstance(spec, dict):
        result["spec"] = _spoke_spec(spec, source)
    return result


def _with_open_performance(value: Json, source: Json) -> Json:
    spec = value.get("spec")
    if not source or not isinstance(spec, dict) or type(spec.get("variantProfile")) is not Raw:
        return value
    return value | {"spec": spec | {"variantProfile": opened(spec["variantProfile"])}}


def _spoke_spec(spec: Json, source: Json) -> Json:
    said = [name for name in _HUB_LEGACY if name in spec]
    if not said:
        return spec
    profile = _profile(spec, source) if source else {}
    if profile:
        bare = {name: item for name, item in spec.items() if name not in _PROFILED}
        bare["modelProfile"] = profile
        return bare
    if len(said) == len(_HUB_LEGACY):
        identifier = _speakable_identifier(spec)
        if _VARIANT_ID.fullmatch(identifier):
            return spec | {"variantID": identifier}
    return {name: item for name, item in spec.items() if name not in _PROFILED}


def _speakable_identifier(spec: Json) -> str:
    """Return the identifier, without what the legacy shape refuses in its parts.

    Were there none for some names, the whole shape would be kept aside, out of reach of every edit.
    """
    identifier = variant_identifier(spec)
    if _VARIANT_ID.fullmatch(identifier):
        return identifier
    model, accelerator, count = (
        plain(spec.get(name, UNKNOWN)) for name in ("modelID", "accelerator", "acceleratorCount")
    )
    return identifier_of(str(model), str(accelerator), count)


def _profile(spec: Json, source: Json) -> Json:
    """Return the remembered modelProfile with today's values in the entry in use; empty if they are gone."""
    remembered, position = _opened_profile(source.get("modelProfile")), plain(source.get("position"))
    entries = as_list(as_object(remembered).get("accelerators"))
    if not isinstance(position, int) or not 0 <= position < len(entries):
        return {}
    if not isinstance(entries[position], dict) or not all(name in spec for name in _PROFILED):
        return {}
    today = {
        "acc": spec["accelerator"],
        "accCount": spec["acceleratorCount"],
        **as_object(spec["variantProfile"]),
    }
    entry = entries[position] | today
    return as_object(remembered) | {"accelerators": [*entries[:position], entry, *entries[position + 1 :]]}


_TO_HUB: Final = Direction(api_version=HUB, convert=_to_hub, remember=_remember, open=_with_open_profile)
_TO_SPOKE: Final = Direction(api_version=SPOKE, convert=_from_hub, open=_with_open_performance)
_WAYS: Final = {HUB: (_TO_HUB, _TO_SPOKE), SPOKE: (_TO_SPOKE, _TO_HUB)}

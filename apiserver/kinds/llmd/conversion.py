"""Conversion of VariantAutoscaling between the union `v1alpha1` and the hub `v1alpha2`.

The union's `modelProfile` has several candidates, of which the hub has the fields of the one in use. The
profile and the position of that candidate are kept as the source, and the way back puts current values there.

Both functions are total: they run in every read, so no object of an unexpected shape may make them fail.
`apiserver.schema.conversion` keeps what they lose.
"""

from __future__ import annotations

import re
from operator import is_
from typing import Final

from apiserver.kinds.llmd.identity import (
    ACCELERATOR_LABEL,
    UNKNOWN,
    identifier_of,
    implied_target,
    label_of,
    variant_identifier,
)
from apiserver.schema.conversion import (
    ConversionDirection,
    KeptContent,
    annotation_bytes_wanted,
    convert_object,
    kept_text,
    read_kept,
)
from apiserver.schema.json import Json, JsonValue, as_list, as_object, same, without
from apiserver.schema.metadata import take_annotation

PROFILED: Final = ("accelerator", "acceleratorCount", "variantProfile")
"""The fields of the hub that describe a variant as an entry of `accelerators` describes a candidate."""

_PROFILED: Final = frozenset(PROFILED)


def in_use(value: Json, profile: JsonValue, remembered: JsonValue = None) -> tuple[Json, Json]:
    """Return the hub's fields for the candidate in use, and what converting back needs of the modelProfile.

    The latter is empty if the profile could not be restored. `remembered` is the accelerator in use; it takes
    precedence over the label.
    """
    entries = as_list(as_object(profile).get("accelerators"))
    candidates = _objects(entries)
    if not candidates:
        return {}, {}
    position = _position(value, candidates, remembered)
    is_told_again = len(candidates) == len(entries)
    source: Json = {"modelProfile": profile, "position": position} if is_told_again else {}
    return _fields(candidates[position]), source


def _objects(entries: list[JsonValue]) -> list[Json]:
    return [entry for entry in entries if isinstance(entry, dict)]


def _fields(entry: Json) -> Json:
    profile = {name: entry[name] for name in ("perfParms", "maxBatchSize") if name in entry}
    fields: Json = {"variantProfile": profile} if profile else {}
    for name, source in (("accelerator", "acc"), ("acceleratorCount", "accCount")):
        if source in entry:
            fields[name] = entry[source]
    return fields


def to_remember(value: Json, profile: JsonValue, accelerator: JsonValue) -> Json:
    """Return what `in_use` must be given to find the accelerator in use; empty if it does so by itself."""
    if label_of(value) == accelerator:  # conversion has put a candidate in its place
        return {}
    candidates = _objects(as_list(as_object(profile).get("accelerators")))
    chosen = candidates[_position(value, candidates, None)].get("acc") if candidates else None
    return {} if same(chosen, accelerator) else {"accelerator": accelerator}


def _position(value: Json, entries: list[Json], remembered: JsonValue) -> int:
    """Return the index of the candidate in use: by `remembered`, else by label, else by status, else 0."""
    names = [entry.get("acc") for entry in entries]
    for accelerator in (remembered, label_of(value)):
        if accelerator and accelerator in names:
            return names.index(accelerator)
    current = as_object(as_object(value.get("status")).get("currentAlloc")).get("accelerator")
    return names.index(current) if current and current in names else 0


def profile_of(spec: Json, source: Json) -> Json:
    """Return the remembered modelProfile with current values in the entry in use; empty if they are missing.

    The profile is returned as it is if its values are already the current ones.
    """
    profile, position = as_object(source.get("modelProfile")), source.get("position")
    entries = as_list(profile.get("accelerators"))
    if not isinstance(position, int) or not 0 <= position < len(entries):
        return {}
    entry = entries[position]
    if not isinstance(entry, dict) or not spec.keys() >= _PROFILED:
        return {}
    today = {
        "acc": spec["accelerator"],
        "accCount": spec["acceleratorCount"],
        **as_object(spec["variantProfile"]),
    }
    if all(map(is_, map(entry.get, today), today.values())):
        return profile
    return profile | {"accelerators": [*entries[:position], entry | today, *entries[position + 1 :]]}


GROUP: Final = "llmd.ai"
SPOKE: Final = f"{GROUP}/v1alpha1"
HUB: Final = f"{GROUP}/v1alpha2"

ANNOTATION: Final = "llmd.ai/kept-by-conversion"
"""The annotation for what the current version cannot express, see `apiserver.schema.conversion`."""

_HUB_LEGACY: Final = frozenset({"accelerator", "acceleratorCount", "sloClassRef", "variantProfile"})
_SPOKE_ONLY: Final = frozenset({"variantID", "modelProfile"})

VARIANT_ID: Final = re.compile(r".+-[A-Za-z0-9]+-[1-9][0-9]*", re.ASCII)
"""The schema's pattern of an identifier, compiled with `re`, since this runs in every read."""


def convert(value: Json, api_version: str) -> Json:
    """Return a VariantAutoscaling converted to another version, without loss.

    Raises KeyError for an unknown version.
    """
    if value.get("apiVersion") == api_version:
        return value
    there, back = _WAYS[api_version]
    return convert_object(value, there=there, back=back, annotation=ANNOTATION)


def wanted_bytes(value: Json, api_version: str) -> int:
    """Return the size in bytes of all annotations in another version if it lost nothing."""
    there, back = _WAYS[api_version]
    return annotation_bytes_wanted(value, there=there, back=back, annotation=ANNOTATION)


def _to_hub(value: Json, remembered: Json) -> tuple[Json, Json]:
    result = dict(value)
    source: Json = {}
    given = value.get("spec")
    if not isinstance(given, dict) or ("scaleTargetRef" in given and _SPOKE_ONLY.isdisjoint(given)):
        return result, source
    spec = without(given, _SPOKE_ONLY)
    if "modelProfile" in given:
        candidate, source = in_use(value, given["modelProfile"], remembered.get("accelerator"))
        # Fields of the object itself take precedence over those of the candidate.
        spec = candidate | spec
    elif "variantID" in given and _is_own_identifier(given["variantID"], spec):
        source = {"variantID": given["variantID"]}
    if "scaleTargetRef" not in spec:
        spec["scaleTargetRef"] = implied_target(value)
    result["spec"] = spec
    return result, source


def _is_own_identifier(identifier: JsonValue, spec: Json) -> bool:
    """Tell whether a user chose the identifier. A chosen one cannot be derived, so it outlives every edit."""
    return (
        isinstance(identifier, str)
        and VARIANT_ID.fullmatch(identifier) is not None
        and _is_legacy(spec)
        and identifier != _speakable_identifier(spec)
    )


def _from_hub(value: Json, source: Json) -> tuple[Json, Json]:
    result = dict(value)
    status, spec = value.get("status"), value.get("spec")
    if isinstance(status, dict) and "decision" in status:
        result["status"] = without(status, ("decision",))
    if not isinstance(spec, dict) or _HUB_LEGACY.isdisjoint(spec):
        return result, {}
    result["spec"] = shown = _spoke_spec(spec, source)
    if "modelProfile" in source and "modelProfile" in shown and "accelerator" in spec:
        return result, to_remember(value, shown["modelProfile"], spec["accelerator"])
    return result, {}


def _spoke_spec(spec: Json, source: Json) -> Json:
    profile = profile_of(spec, source) if "modelProfile" in source else {}
    if profile:
        return without(spec, PROFILED) | {"modelProfile": profile}
    identifier = source.get("variantID") or _speakable_identifier(spec) if _is_legacy(spec) else ""
    return spec | {"variantID": identifier} if identifier else without(spec, PROFILED)


def _is_legacy(spec: Json) -> bool:
    """Tell whether a spec has every field that the legacy shape requires, parameters included."""
    return spec.keys() >= _HUB_LEGACY and "perfParms" in as_object(spec["variantProfile"])


def _speakable_identifier(spec: Json) -> str:
    """Return the identifier, without characters that the legacy shape forbids; empty if none is valid.

    Without an identifier, the annotation would keep the whole shape, where no edit could reach it.
    """
    identifier = variant_identifier(spec)
    if VARIANT_ID.fullmatch(identifier):
        return identifier
    model, accelerator, count = (
        spec.get(name, UNKNOWN) for name in ("modelID", "accelerator", "acceleratorCount")
    )
    identifier = identifier_of(str(model), str(accelerator), count)
    return identifier if VARIANT_ID.fullmatch(identifier) else ""


_TO_HUB: Final = ConversionDirection(api_version=HUB, convert=_to_hub)
_TO_SPOKE: Final = ConversionDirection(api_version=SPOKE, convert=_from_hub)
_WAYS: Final = {HUB: (_TO_HUB, _TO_SPOKE), SPOKE: (_TO_SPOKE, _TO_HUB)}


def kept_when_relabelled(value: Json, old: Json) -> str | None:
    """Return the annotation that preserves the accelerator in use across an update; None if not needed.

    Among the candidates of a modelProfile, the label selects the one in use when the object is created. If it
    took effect later, it would change the spec of one version but not of the other, without a new generation.
    Both objects must include their status, which may determine the candidate in use.
    """
    if label_of(value) == label_of(old) or "modelProfile" not in as_object(value.get("spec")):
        return None
    in_use = _in_use(old)
    if not isinstance(in_use, str) or in_use == _in_use(value):
        return None
    kept = read_kept(take_annotation(value, ANNOTATION)[1])
    return kept_text(KeptContent(fields=kept.fields, source=kept.source | {"accelerator": in_use}))


def label_advice(value: Json) -> list[str]:
    """Return a warning if an object's label names an accelerator other than the one in use."""
    label, in_use = label_of(value), value["spec"].get("accelerator")
    if label is None or label in {in_use, _in_use(value)}:
        return []
    where = f"metadata.labels[{ACCELERATOR_LABEL}]: {label!r} has no effect"
    if in_use is not None:
        return [f"{where}: spec.accelerator is {in_use!r}"]
    if "modelProfile" in value["spec"]:
        return [f"{where}: another candidate is in use, by spec.accelerator of v1alpha2"]
    return []


def _in_use(value: Json) -> JsonValue:
    return as_object(convert(value, HUB).get("spec")).get("accelerator")

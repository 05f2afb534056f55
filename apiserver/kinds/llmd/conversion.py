"""Conversion of VariantAutoscaling between the union `v1alpha1` and the hub `v1alpha2`.

Both functions are total: they run in every read, so no object of an unexpected shape may make them fail.
`apiserver.schema.conversion` keeps what they lose.
"""

from __future__ import annotations

import re
from typing import Final

from apiserver.kinds.llmd.candidates import PROFILED, in_use, profile_of, to_remember
from apiserver.kinds.llmd.identity import UNKNOWN, identifier_of, implied_target, variant_identifier
from apiserver.schema.conversion import Direction, annotation_bytes_wanted, convert_object
from apiserver.schema.json import Json, JsonValue, as_object, without

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


_TO_HUB: Final = Direction(api_version=HUB, convert=_to_hub)
_TO_SPOKE: Final = Direction(api_version=SPOKE, convert=_from_hub)
_WAYS: Final = {HUB: (_TO_HUB, _TO_SPOKE), SPOKE: (_TO_SPOKE, _TO_HUB)}

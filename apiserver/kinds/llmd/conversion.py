"""VariantAutoscaling between the union `v1alpha1` and the hub `v1alpha2`.

Both functions are total: they run in every read, so no shape, however odd, may make them fail. What they
lose is kept by `apiserver.schema.conversion`.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Raw

from apiserver.kinds.llmd.candidates import PROFILED, from_profile, opened_profile, profile_of, remember
from apiserver.kinds.llmd.identity import UNKNOWN, identifier_of, implied_target, variant_identifier
from apiserver.schema.annotations import annotations_of
from apiserver.schema.conversion import Direction, annotation_bytes_wanted, converted
from apiserver.schema.json import Json
from apiserver.schema.undecoded import (
    mentions,
    opened,
    plain,
)

GROUP: Final = "llmd.ai"
SPOKE: Final = f"{GROUP}/v1alpha1"
HUB: Final = f"{GROUP}/v1alpha2"

ANNOTATION: Final = "llmd.ai/kept-by-conversion"
"""Holds what the version at hand cannot say, see `apiserver.schema.conversion`."""

_HUB_LEGACY: Final = ("accelerator", "acceleratorCount", "sloClassRef", "variantProfile")
_SPOKE_ONLY: Final = ("variantID", "modelProfile")
_TOLD_APART: Final = frozenset({*PROFILED, *_SPOKE_ONLY})
"""Fields that the versions say in different ways, or not at all."""

_VARIANT_ID: Final = re.compile(r".+-[A-Za-z0-9]+-[1-9][0-9]*", re.ASCII)
"""What the schema demands of an identifier; in the dialect at hand, for this runs in every read."""


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


def _to_hub(value: Json, _: Json) -> Json:
    result = dict(value)
    given = value.get("spec")
    if not isinstance(given, dict):
        return result
    if "scaleTargetRef" in given and not any(name in given for name in _SPOKE_ONLY):
        return result
    spec = {name: item for name, item in given.items() if name not in _SPOKE_ONLY}
    if "modelProfile" in given:
        spec = from_profile(value) | spec
    if "scaleTargetRef" not in spec:
        spec["scaleTargetRef"] = implied_target(value)
    result["spec"] = spec
    return result


def _with_open_profile(value: Json, _: Json) -> Json:
    spec = value.get("spec")
    if not isinstance(spec, dict) or type(spec.get("modelProfile")) is not Raw:
        return value
    return value | {"spec": spec | {"modelProfile": opened_profile(spec["modelProfile"])}}


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
    profile = profile_of(spec, source) if source else {}
    if profile:
        bare = {name: item for name, item in spec.items() if name not in PROFILED}
        bare["modelProfile"] = profile
        return bare
    if len(said) == len(_HUB_LEGACY):
        identifier = _speakable_identifier(spec)
        if _VARIANT_ID.fullmatch(identifier):
            return spec | {"variantID": identifier}
    return {name: item for name, item in spec.items() if name not in PROFILED}


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


_TO_HUB: Final = Direction(api_version=HUB, convert=_to_hub, remember=remember, open=_with_open_profile)
_TO_SPOKE: Final = Direction(api_version=SPOKE, convert=_from_hub, open=_with_open_performance)
_WAYS: Final = {HUB: (_TO_HUB, _TO_SPOKE), SPOKE: (_TO_SPOKE, _TO_HUB)}

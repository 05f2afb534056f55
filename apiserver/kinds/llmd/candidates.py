"""The candidate accelerators of a modelProfile, of which one is in use: all that the hub knows of them."""

from __future__ import annotations

from typing import Final

from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.undecoded import as_list, as_object, opened, opened_objects, plain

PROFILED: Final = ("accelerator", "acceleratorCount", "variantProfile")
"""Fields of the hub that say of one variant what a candidate says."""


def opened_profile(value: JsonValue) -> JsonValue:
    """Return an undecoded modelProfile with its candidates opened one level deep."""
    profile = opened(value)
    if not isinstance(profile, dict) or "accelerators" not in profile:
        return profile
    return profile | {"accelerators": opened_objects(profile["accelerators"])}


def from_profile(value: Json) -> Json:
    """Return the fields of the hub that the candidate in use stands for."""
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


def remember(value: Json) -> Json:
    """Return what the way back needs of a modelProfile; empty without one that could be told again."""
    spec = value.get("spec")
    profile = spec.get("modelProfile") if isinstance(spec, dict) else None
    if profile is None:
        return {}
    entries = as_list(as_object(profile).get("accelerators"))
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        return {}
    return {"modelProfile": profile, "position": _position(value, entries)}


def profile_of(spec: Json, source: Json) -> Json:
    """Return the remembered modelProfile with today's values in the entry in use; empty if they are gone."""
    remembered, position = opened_profile(source.get("modelProfile")), plain(source.get("position"))
    entries = as_list(as_object(remembered).get("accelerators"))
    if not isinstance(position, int) or not 0 <= position < len(entries):
        return {}
    if not isinstance(entries[position], dict) or not all(name in spec for name in PROFILED):
        return {}
    today = {
        "acc": spec["accelerator"],
        "accCount": spec["acceleratorCount"],
        **as_object(spec["variantProfile"]),
    }
    entry = entries[position] | today
    return as_object(remembered) | {"accelerators": [*entries[:position], entry, *entries[position + 1 :]]}

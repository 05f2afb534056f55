"""The candidate accelerators of a modelProfile. The hub version represents only the one in use."""

from __future__ import annotations

from operator import is_
from typing import Final

from apiserver.kinds.llmd.identity import label_of
from apiserver.schema.json import Json, JsonValue, as_list, as_object, same

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

"""Migration of all objects of an input together, since some of them need each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from apiserver.kinds.registry import KINDS, find_version
from apiserver.schema.json import Json
from apiserver.schema.metadata import metadata_errors
from apiserver.schema.model import node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.shape import without_nulls
from controller.commands.migrate import models, policies, variants
from controller.commands.migrate.objects import (
    MigrationNote,
    MigrationResult,
    key_of_object,
    problems_of,
    refusal,
    without_migration,
)

_KINDS: Final = frozenset({"ModelBooster", *(kind.kind for kind in KINDS)})


class Side(StrEnum):
    """Whose shapes the result has."""

    RELEASED = "released"
    STOWPLAN = "stowplan"


def migrate(
    objects: Sequence[Json], side: Side, autoscaler: str = variants.HPA
) -> Mapping[int, MigrationResult]:
    """Return what becomes of each object that is not of the target shape yet, by position.

    All others stay as they are. The kind of each object is a text. `autoscaler` is the kind that is written
    for a variant without one.
    """
    sound, results = {}, {}
    for place, value in enumerate(objects):
        refused = refusal(value) if any(metadata_errors(value.get("metadata"))) else None
        if refused is None:
            sound[place] = _without_nulls(value)
        elif value.get("kind") in _KINDS:
            results[place] = refused
    if side is Side.RELEASED:
        results |= dict(_to_released(sound, autoscaler))
    else:
        results |= {place: _validate(sound[place], it) for place, it in _to_stowplan(sound)}
    for place, result in results.items():
        left = tuple(objects[place] if value is sound.get(place) else value for value in result.objects)
        results[place] = replace(result, objects=left)
    return _with_collisions(objects, results)


def _without_nulls(value: Json) -> Json:
    """Return an object without null members, if it is of a kind of ours: the API server prunes them."""
    served = find_version(str(value.get("apiVersion")), str(value["kind"]))
    plain: Json = value if served is None else without_nulls(node_of(served[1].declaration), value)
    return plain


def _with_collisions(
    objects: Sequence[Json], results: Mapping[int, MigrationResult]
) -> Mapping[int, MigrationResult]:
    """Return the results, with a loss for each whose object has the identity of an earlier or other one."""
    own_identities = {_identity(value) for place, value in enumerate(objects) if place not in results}
    checked = dict(results)
    for place, result in sorted(results.items()):
        identities = [_identity(value) for value in result.objects]
        if own_identities.intersection(identities):
            text = "another object of the result has the same kind and name: rename one of them"
            note = MigrationNote(path=FieldPath(("metadata", "name")), text=text)
            checked[place] = MigrationResult(objects=result.objects, notes=(*result.notes, note))
        own_identities.update(identities)
    return checked


def _identity(value: Json) -> tuple[str, ...]:
    return str(value.get("apiVersion")).partition("/")[0], str(value.get("kind")), *key_of_object(value)


def _to_released(objects: Mapping[int, Json], autoscaler: str) -> Iterator[tuple[int, MigrationResult]]:
    yield from variants.annotate_autoscalers(objects, autoscaler)
    yield from policies.join_bindings(objects)
    yield from models.release_models(objects)


def _to_stowplan(objects: Mapping[int, Json]) -> Iterator[tuple[int, MigrationResult]]:
    yield from variants.write_variants(objects)
    yield from policies.split_targets(objects)
    yield from models.restore_models(objects)


def _validate(value: Json, result: MigrationResult) -> MigrationResult:
    """Return a result whose objects are valid, or else the object unchanged with the reason."""
    if result.objects == (value,):
        return result
    for item in result.objects:
        if errors := problems_of(item):
            kind = item["kind"]
            return without_migration(
                value, f"the {kind} would be refused: {errors[0].path}: {errors[0].body}"
            )
    return result


def bystanders(objects: Sequence[Json], migrated: Mapping[int, MigrationResult]) -> str:
    """Return the kinds and numbers of objects that no migration is about, as text; empty for none."""
    count = Counter(str(value.get("kind")) for place, value in enumerate(objects) if place not in migrated)
    return ", ".join(f"{number} {kind}" for kind, number in sorted(count.items()))


def name_of(value: Json) -> str:
    """Return the kind, namespace and name of an object, for messages."""
    return f"{value.get('kind')} {'/'.join(filter(None, key_of_object(value)))}"

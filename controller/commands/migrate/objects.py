"""What becomes of one object of the input, and the notes about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.annotations import DECISION
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.judgement import errors_of
from apiserver.kinds.registry import find_version
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, as_object, without
from apiserver.schema.metadata import metadata_errors
from apiserver.schema.paths import FieldPath

_OF_SERVERS: Final = (
    *("uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "selfLink"),
    *("deletionTimestamp", "deletionGracePeriodSeconds"),
)
_RECORDS: Final = ("kubectl.kubernetes.io/last-applied-configuration", WRITTEN_BY, DECISION)


@dataclass(frozen=True, kw_only=True, slots=True)
class MigrationNote:
    """A sentence about a field of an object of the input; a loss is what `--strict` refuses."""

    path: FieldPath
    text: str
    is_loss: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class MigrationResult:
    """The objects that take the place of one object, none if it is part of another one, and notes."""

    objects: tuple[Json, ...]
    notes: tuple[MigrationNote, ...] = ()


def loss(target: str, remedy: str, *path: str | int) -> MigrationNote:
    """Return the note on a field without a place in `target`, and what to do about it."""
    return MigrationNote(path=FieldPath(path), text=f"has no place in {target}: {remedy}")


def remark(text: str, *path: str | int) -> MigrationNote:
    """Return a note on something that is not lost."""
    return MigrationNote(path=FieldPath(path), text=text, is_loss=False)


def without_migration(value: Json, why: str, *path: str | int) -> MigrationResult:
    """Return an object that is not migrated, and why."""
    note = MigrationNote(path=FieldPath(path or ("metadata", "name")), text=f"is not migrated: {why}")
    return MigrationResult(objects=(value,), notes=(note,))


def problems_of(value: Json) -> Sequence[FieldError]:
    """Return why an object of a supported kind, with its metadata, would be refused."""
    wrong = [item.error for item in metadata_errors(value.get("metadata"))]
    served = find_version(str(value.get("apiVersion")), str(value.get("kind")))
    if wrong or served is None:
        return wrong
    return errors_of(*served, value)


def refusal(value: Json) -> MigrationResult | None:
    """Return an object unchanged if it is not valid; None if it is."""
    errors = problems_of(value)
    if not errors:
        return None
    others = len(errors) - 1
    more = f" (and {others} more {'error' if others == 1 else 'errors'})" if others else ""
    return without_migration(value, f"{errors[0].body}{more}: see stowplan check", *errors[0].path.parts)


def key_of_object(value: Json) -> tuple[str, str]:
    """Return the namespace, which may be empty, and the name of an object."""
    metadata = as_object(value.get("metadata"))
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def own_metadata(value: Json) -> Json:
    """Return the metadata of an object without what API servers and controllers record there."""
    metadata = without(as_object(value.get("metadata")), _OF_SERVERS)
    if "annotations" in metadata:
        metadata["annotations"] = without(as_object(metadata["annotations"]), _RECORDS)
    return {name: item for name, item in metadata.items() if item or name not in {"annotations", "labels"}}


def with_texts(metadata: Json, name: str, texts: Mapping[str, str]) -> Json:
    """Return metadata with some labels or annotations added or replaced."""
    merged = as_object(metadata.get(name)) | dict(texts)
    rest = without(metadata, [name])
    return rest | {name: merged} if merged else rest


def moved_texts(
    source: Json, metadata: Json, special: Mapping[str, Sequence[str]], place: str
) -> tuple[Json, list[MigrationNote]]:
    """Return metadata with the labels and annotations of another object, which move to `place`.

    A different value of its own wins. `special` are the names that the way back recognizes, by member.
    """
    notes = [
        loss(place, "it has metadata of its own", "metadata", member)
        for member in source
        if member not in {"name", "namespace", "labels", "annotations"}
    ]
    for member in ("labels", "annotations"):
        own, moved = as_object(metadata.get(member)), as_object(source.get(member))
        notes += [
            loss(place, f"it has another value there, {own[name]!r}", "metadata", member, f"[{name}]")
            for name, text in moved.items()
            if own.get(name, text) != text
        ]
        if names := sorted(moved.keys() - own.keys() - set(special.get(member, ()))):
            notes.append(remark(f"{', '.join(names)} moved to {place}", "metadata", member))
        metadata = with_texts(metadata, member, moved | own)
    return metadata, notes


def split_texts(metadata: Json, special: Mapping[str, Sequence[str]]) -> tuple[Json, Json]:
    """Return the labels and annotations that are special, and the metadata without them."""
    apart: Json = {}
    for member, names in special.items():
        texts = as_object(metadata.get(member))
        apart = with_texts(apart, member, {name: texts[name] for name in names if name in texts})
        metadata = with_texts(without(metadata, [member]), member, without(texts, names))
    return apart, metadata

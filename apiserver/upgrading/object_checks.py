"""Checks for objects that conversion cannot keep: one would make every list of the new version fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from apiserver.kinds.conversion import wanted_annotation_bytes
from apiserver.schema.annotations import LIMIT_BYTES
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from apiserver.upgrading.counting import counted
from apiserver.upgrading.findings import Finding, note, ok, problem
from apiserver.upgrading.snapshot import Snapshot

_CHECK: Final = "objects"
_MOST_NAMED: Final = 10


def check_objects(snapshot: Snapshot, kind: Kind) -> Iterator[Finding]:
    """Yield the objects that exceed the size limit of annotations, and those without a spec."""
    hub = f"{kind.group}/{kind.storage_version.name}"
    large = [_place(item) for item in snapshot.objects if wanted_annotation_bytes(kind, item) > LIMIT_BYTES]
    if large:
        yield problem(
            _CHECK,
            f"the data of {_named(large)} that {hub} cannot express does not fit into annotations",
            "shorten these objects, for example by removing unused candidates of a modelProfile",
        )
    else:
        yield ok(_CHECK, f"the data of {counted(len(snapshot.objects), 'object')} fits")
    if bare := [_place(item) for item in snapshot.objects if "spec" not in item]:
        yield note(
            _CHECK,
            f"{_named(bare)} {'has' if len(bare) == 1 else 'have'} no spec: upgraded, but never planned",
            "add a spec to each, or delete it",
        )


def _named(places: Sequence[str]) -> str:
    more = f" and {len(places) - _MOST_NAMED} more" if len(places) > _MOST_NAMED else ""
    return f"{', '.join(places[:_MOST_NAMED])}{more}"


def _place(item: Json) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"

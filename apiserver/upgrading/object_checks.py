"""Objects that conversion cannot carry: one of them would make every list of the new version fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apiserver.kinds.conversion import wanted_annotation_bytes
from apiserver.schema.annotations import LIMIT_BYTES
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from apiserver.upgrading.findings import Finding, ok, problem
from apiserver.upgrading.snapshot import Snapshot

_CHECK: Final = "objects"
_MOST_NAMED: Final = 10


def check_objects(snapshot: Snapshot, kind: Kind) -> Iterator[Finding]:
    """Yield which objects keep more than fits into annotations."""
    hub = f"{kind.group}/{kind.storage_version.name}"
    large = [_place(item) for item in snapshot.objects if wanted_annotation_bytes(kind, item) > LIMIT_BYTES]
    if large:
        more = f" and {len(large) - _MOST_NAMED} more" if len(large) > _MOST_NAMED else ""
        yield problem(
            _CHECK,
            f"what {hub} cannot say of {', '.join(large[:_MOST_NAMED])}{more} does not fit into annotations",
            "shorten them: each candidate of a modelProfile that is not used can go",
        )
    else:
        yield ok(_CHECK, f"{len(snapshot.objects)} objects fit")


def _place(item: Json) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"

"""Whether an object is still as it was applied: by what was asked for, and by what the server made of it.

Nothing of it is written down. A process that has just begun applies everything once, which changes nothing
where nothing was changed; so edits made while none ran are mended. Not all kinds have a generation by which
an edit would be known, and what the server fills in and normalises cannot be told from an edit otherwise.
"""

from __future__ import annotations

import hashlib

import msgspec

from apiserver.schema.json import Json

_NO_CONTENT = ("apiVersion", "kind", "metadata", "status")


def fingerprint(wanted: Json, live: Json) -> str:
    """Return a digest of what is applied and of what there is: another one where either has changed.

    Of the metadata only those members count that are applied: others have their own there. Replicas do not.
    """
    parts = [_metadata(wanted, wanted), _content(wanted), _metadata(live, wanted), _content(live)]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:16]


def is_current(wanted: Json, live: Json, applied: str | None) -> bool:
    """Tell whether nothing is to be applied; `applied` is the fingerprint of the last time."""
    replicas = wanted.get("spec", {}).get("replicas")
    has_replicas = replicas is None or replicas == live["spec"].get("replicas")
    return has_replicas and applied == fingerprint(wanted, live)


def _content(value: Json) -> Json:
    """Return all that is not metadata or status, without replicas: they may be somebody else's to decide."""
    content = {name: item for name, item in value.items() if name not in _NO_CONTENT}
    if "spec" in content:
        content["spec"] = {name: item for name, item in content["spec"].items() if name != "replicas"}
    return content


def _metadata(value: Json, wanted: Json) -> Json:
    metadata, asked = value["metadata"], wanted["metadata"]
    found: Json = {
        member: {name: (metadata.get(member) or {}).get(name) for name in asked.get(member) or {}}
        for member in ("labels", "annotations")
    }
    owners = {owner["uid"] for owner in asked.get("ownerReferences") or []}
    found["owners"] = [owner for owner in metadata.get("ownerReferences") or [] if owner.get("uid") in owners]
    return found

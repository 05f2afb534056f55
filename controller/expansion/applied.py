"""Detection of changes since an object was applied, by fingerprints of the applied and of the live object.

Fingerprints are kept in memory only. A new process applies everything once, which reverts edits made while no
process ran, and is otherwise a no-op. Not all kinds have a generation that would reveal an edit, and without
a fingerprint, defaulting and normalization by the API server look like edits.
"""

from __future__ import annotations

import hashlib

import msgspec

from apiserver.schema.json import Json, JsonValue

_NO_CONTENT = ("apiVersion", "kind", "metadata", "status")


def fingerprint(wanted: Json, live: Json) -> str:
    """Return a digest of the applied and of the live object, which changes if either of them does.

    Metadata counts only as far as it is applied, because others may add to it. Replicas do not count.
    """
    parts = [_metadata(wanted, wanted), _content(wanted), _metadata(live, wanted), _content(live)]
    return digest(parts)


def digest(value: JsonValue) -> str:
    """Return a digest of JSON, which does not depend on the order of keys."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:16]


def is_current(wanted: Json, live: Json, applied: str | None) -> bool:
    """Tell whether nothing needs to be applied; `applied` is the fingerprint of the last apply."""
    replicas = wanted.get("spec", {}).get("replicas")
    has_replicas = replicas is None or replicas == live["spec"].get("replicas")
    return has_replicas and applied == fingerprint(wanted, live)


def _content(value: Json) -> Json:
    """Return everything but metadata, status and replicas, which another component may control."""
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

"""The parts of an existing object that decisions read. Digests replace the rest, to detect changes.

All objects with the labels of a Model's are cached, whoever made them, and each may have a megabyte. Pure.
"""

from __future__ import annotations

from typing import Final

from apiserver.kinds.annotations import PREFIX
from apiserver.kinds.identity import METADATA
from apiserver.schema.json import Json
from controller.expansion.adapters import LIST
from controller.expansion.applied import digest

_METADATA: Final = (*METADATA, "labels", "ownerReferences")
_WHOLE: Final = ("apiVersion", "kind", "status")
_SPEC: Final = ("replicas", "rules", "loraAdapters", "scalingConfiguration", "optimizerConfiguration")
_LONGEST_LIST: Final = 768 << 10
"""Length of a list of adapters; 256 with the longest sources, of which 128 leave a route, have less."""


def digest_object(value: Json) -> Json:
    """Return an object with digests instead of what no decision reads. Equal objects give equal results."""
    found = {name: item for name, item in value.items() if name in _WHOLE}
    found["metadata"] = _metadata(value["metadata"])
    for name in value.keys() - {*_WHOLE, "metadata"}:
        item = value[name]
        if name == "spec" and isinstance(item, dict):
            found[name] = {key: part if key in _SPEC else digest(part) for key, part in item.items()}
        elif name == "data":
            found[name] = {key: text if _is_list(key, text) else digest(text) for key, text in item.items()}
        else:
            found[name] = digest(item)
    return found


def _metadata(metadata: Json) -> Json:
    found: Json = {name: metadata[name] for name in _METADATA if name in metadata}
    said = metadata.get("annotations") or {}
    if annotations := {name: text for name, text in said.items() if name.startswith(PREFIX)}:
        found["annotations"] = annotations
    return found


def _is_list(key: str, text: str) -> bool:
    return key == LIST and len(text) <= _LONGEST_LIST

"""Conversion of objects as text: what no version changes is carried over undecoded.

A conversion review may hold thousands of objects, and each lies in the path of a read. Status and metadata
are most of an object and conversion leaves them nearly alone, so they stay text; the conversion itself is
that of `apiserver.kinds.conversion`, which carries undecoded members over as they are.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from apiserver.kinds.conversion import convert
from apiserver.schema.json import Json


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    """What conversion reads of an object's metadata."""

    name: Any = UNSET
    labels: Any = UNSET
    annotations: Any = UNSET
    ownerReferences: Any = UNSET  # noqa: N815 (the JSON name itself: it is read in every read)


class _Object(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """An object as a server sends it. One of another shape is converted whole, see `convert_text`."""

    apiVersion: str  # noqa: N815 (as above)
    kind: str
    metadata: Raw
    spec: Any = UNSET
    status: dict[str, Raw] | UnsetType = UNSET


_object: Final = msgspec.json.Decoder(_Object)
_metadata: Final = msgspec.json.Decoder(_Metadata)
_members: Final = msgspec.json.Decoder(dict[str, Raw])
_encode: Final = msgspec.json.Encoder().encode
_SPOKEN_OF: Final = _Metadata.__struct_fields__


def convert_text(text: Raw, api_version: str) -> Json | Raw:
    """Return an object, given as JSON text, in another version; members may be undecoded.

    Raises KeyError for a kind or version that nothing converts, ValueError for text that is no object.
    """
    try:
        found = _object.decode(text)
        metadata = _metadata.decode(found.metadata)
    except msgspec.ValidationError:  # an odd shape: decoded whole, and converted all the same
        return _converted_whole(text, api_version)
    if found.apiVersion == api_version:
        return text
    known = _known(metadata)
    value: Json = {"apiVersion": found.apiVersion, "kind": found.kind, "metadata": known}
    if found.spec is not UNSET:
        value["spec"] = found.spec
    if found.status is not UNSET:
        value["status"] = found.status
    converted = convert(value, api_version)
    converted["metadata"] = _spliced(found.metadata, known, converted["metadata"])
    return converted


def _converted_whole(text: Raw, api_version: str) -> Json:
    value = msgspec.json.decode(text)
    if not isinstance(value, dict):
        raise ValueError("it is no object")  # noqa: TRY004 (what is wrong is the text, not its Python type)
    return convert(value, api_version)


def _known(metadata: _Metadata) -> Json:
    return {name: item for name in _SPOKEN_OF if (item := getattr(metadata, name)) is not UNSET}


def _spliced(text: Raw, before: Json, after: Json) -> Raw:
    """Return metadata with its annotations exchanged, if conversion did."""
    if before is after or before.get("annotations") == after.get("annotations"):
        return text
    members: Json = _members.decode(text)
    if "annotations" in after:
        members["annotations"] = after["annotations"]
    else:
        members.pop("annotations", None)
    return Raw(_encode(members))

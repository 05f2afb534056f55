"""Shared by the tests of conversion: many objects, and functions to read them."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE
from apiserver.schema.json import Json
from support.campaign import often
from webhooks.app import convert_objects
from webhooks.review import decode_conversion

OTHER = {SPOKE: HUB, HUB: SPOKE}
"""The other version of each version."""

Law = Callable[[int, str], None]


def law(check: Law) -> Law:
    """Check a law on many objects: hypothesis draws seeds, and each is followed by seven cheap neighbours."""

    @functools.wraps(check)
    def several(seed: int, version: str) -> None:
        for offset in range(8):
            check(seed + offset, version)

    seeds, versions = st.integers(0, 2**62), st.sampled_from([SPOKE, HUB])
    return settings(max_examples=often(100), deadline=None)(given(seeds, versions)(several))


def annotations_of(value: Json) -> Json:
    """Return the annotations of an object, or an empty mapping if they are malformed."""
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def bare(value: Json) -> Json:
    """Return an object without our annotation."""
    value = copy.deepcopy(value)
    annotations = annotations_of(value)
    if annotations.pop(ANNOTATION, None) is not None and not annotations:
        del value["metadata"]["annotations"]
    return value


def read(value: Json) -> Json:
    """Return an object with its annotation decoded, since the order of fields in the text is irrelevant."""
    value = copy.deepcopy(value)
    annotations = annotations_of(value)
    if ANNOTATION in annotations:
        annotations[ANNOTATION] = msgspec.json.decode(annotations[ANNOTATION])
    return value


def answered(value: Json, version: str) -> Json:
    """Return the webhook's conversion of an object."""
    return answered_text(msgspec.json.encode(value), version)


def answered_text(text: bytes, version: str) -> Json:
    """Return the webhook's conversion of an object given as text."""
    request = {"uid": "1", "desiredAPIVersion": version, "objects": [msgspec.Raw(text)]}
    review = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
    [answer] = convert_objects(decode_conversion(msgspec.json.encode(review)))
    said: Json = msgspec.json.decode(msgspec.json.encode(answer))
    return said

"""Decoding of admission reviews before validation."""

from __future__ import annotations

import json

import msgspec
import pytest

from webhooks.review import SMALL_BYTES, AdmissionRequest, decode_admission


def _decoded(metadata: object) -> AdmissionRequest:
    request = {"uid": "a", "operation": "CREATE", "object": {"kind": "Model", "metadata": metadata}}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return decode_admission(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("metadata", "stays_text"),
    [
        pytest.param({"name": "m"}, False, id="a small object is decoded with its review"),
        pytest.param({"name": ["m"]}, True, id="an object of an unusual shape stays text"),
        pytest.param(
            {"name": "m", "ownerReferences": [{"uid": "x" * SMALL_BYTES}]},
            True,
            id="an object in a large review stays text, to be decoded in a thread",
        ),
    ],
)
def test_only_usual_objects_of_small_reviews_are_decoded(metadata: object, *, stays_text: bool) -> None:
    """Decoding large metadata would delay all other reviews."""
    assert isinstance(_decoded(metadata).object, msgspec.Raw) is stays_text

"""A converter that only changes `apiVersion`: the minimum cost of a converter.

The API server does not validate objects that it reads, so it accepts responses that are invalid in the
requested version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hack.bench.in_process import Answerer
from hack.calling.conversion_reviews import PATH

_review: Final = msgspec.json.Decoder(dict[str, Any])
_encode: Final = msgspec.json.Encoder().encode


def answers() -> Mapping[str, Answerer]:
    """Return the handlers of reviews, by path."""
    return {PATH: answer}


def answer(body: bytes) -> bytes:
    """Return the response to a review, from bytes to bytes."""
    request = _review.decode(body)["request"]
    version = {"apiVersion": request["desiredAPIVersion"]}
    values = [value | version for value in request["objects"]]
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": values}
    return _encode(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}
    )

"""Our handlers without a server: from the bytes of a review to the bytes of the response.

They call what `webhooks.app` calls between reading a body and writing a response, without a cluster.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Final

from apiserver.kinds.scalable import SCALABLE
from hack.bench.in_process import Answerer
from webhooks.decision import mutate, validate
from webhooks.referents import Referents
from webhooks.review import AdmissionResponse, decode_admission, encode_response
from webhooks.scaling import Scaling

_SCALING: Final = Scaling(resources=SCALABLE, authorizer=None)
_REFERENTS: Final = Referents("")


def answer_mutate(body: bytes) -> bytes:
    """Return the response of `/mutate` to a review."""
    request = decode_admission(body)
    return encode_response(request.uid, _response_of(mutate(request, _SCALING)))


def answer_validate(body: bytes) -> bytes:
    """Return the response of `/validate` to a review."""
    request = decode_admission(body)
    return encode_response(request.uid, _response_of(validate(request, _SCALING, _REFERENTS)))


def answers() -> Mapping[str, Answerer]:
    """Return the handlers of reviews, by path."""
    return {"/mutate": answer_mutate, "/validate": answer_validate}


def _response_of(decision: Coroutine[None, None, AdmissionResponse]) -> AdmissionResponse:
    """Return a response. Raises RuntimeError if the handler waits."""
    try:
        decision.send(None)
    except StopIteration as ended:
        response: AdmissionResponse = ended.value
        return response
    raise RuntimeError("a handler waits, although there is no cluster")

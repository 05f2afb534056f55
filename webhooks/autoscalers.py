"""Warnings about annotated HorizontalPodAutoscalers, whose writes are never rejected."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from apiserver.kinds.annotated import MANAGED, managed_autoscalers, term_problems
from apiserver.kinds.annotations import annotation_advice
from apiserver.kinds.autoscalers import KEDA_LABEL, autoscaler_of
from apiserver.kinds.following import following_problems, variant_subject
from apiserver.kinds.metric_labels import annotated_labels
from apiserver.log import EventLogger
from apiserver.schema.json import Json, as_object
from webhooks.admission import decode_object, plain_object
from webhooks.review import AdmissionRequest, AdmissionResponse

_MOST_WARNINGS: Final = 16
_SHOWN_CHARACTERS: Final = 40
_SWITCH: Final = frozenset({"true", "false"})

_log = EventLogger(__name__)


async def advise(request: AdmissionRequest) -> AdmissionResponse:
    """Return the response to a write of an autoscaler, which is always allowed."""
    try:
        sent = decode_object(request.object)
        if sent is None:
            return AdmissionResponse()
        warnings = autoscaler_warnings(plain_object(sent, request.namespace or ""))
        return AdmissionResponse(warnings=tuple(islice(warnings, _MOST_WARNINGS)))
    except Exception:  # noqa: BLE001 (without advice, the object is as good as before)
        _log.exception("no advice about an autoscaler", uid=request.uid)
        return AdmissionResponse()


def autoscaler_warnings(value: Json) -> Iterator[str]:
    """Yield what is wrong with a raw HorizontalPodAutoscaler as a variant; nothing for KEDA's copies."""
    metadata = value["metadata"]
    if KEDA_LABEL in as_object(metadata.get("labels")):
        return
    text = as_object(metadata.get("annotations")).get(MANAGED)
    if text is not None and text not in _SWITCH:
        shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
        yield f"metadata.annotations[{MANAGED}]: only 'true' lets it be planned, was {shown!r}"
    for item in managed_autoscalers([value], ()):
        yield from term_problems(item)
        yield from annotation_advice("HorizontalPodAutoscaler", item)
        named = item["metadata"].get("name")  # with generateName, it is not known yet
        subject = variant_subject(annotated_labels(item, {})) if named else None
        for problem in following_problems([autoscaler_of(item)], subject) if subject else ():
            yield problem.message

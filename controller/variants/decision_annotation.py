"""The annotation on annotated autoscalers that says what was decided, for users who look at the object.

It is written when its meaning changes, not its figures, and never on objects of another controller, which
might remove it again. It can be switched off: records and events say the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound
from apiserver.cluster.resource import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, Resource
from apiserver.kinds.annotations import DECISION
from apiserver.kinds.identity import Key
from apiserver.log import EventLogger
from apiserver.schema.json import Json, as_object
from controller.observe.claim import Claimant
from controller.variants.status import UNPLANNED

ASK_AGAIN: Final = timedelta(seconds=300)
"""Time between tries after a failure: the permission may be granted while we run."""

MOST_CHARACTERS: Final = 256
"""The maximum length of the message."""

_WRITERS: Final = 16
_RESOURCES: Final[Mapping[str, Resource]] = {
    resource.kind: resource for resource in (HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS)
}

_log = EventLogger(__name__)


def annotation_of(status: Json) -> Json:
    """Return the content of the annotation for a status: replicas, reason, problems and a message."""
    decision, desired = as_object(status.get("decision")), as_object(status.get("desiredOptimizedAlloc"))
    message = str(decision.get("message") or "")
    problems = [item["reason"] for item in status.get("conditions") or [] if item["status"] == "False"]
    content: Json = {
        "replicas": desired.get("numReplicas"),
        "reason": decision.get("reason"),
        "boundBy": decision.get("boundBy"),
        "problems": list(dict.fromkeys(problems)) or None,
        "message": message if len(message) <= MOST_CHARACTERS else f"{message[: MOST_CHARACTERS - 1]}…",
    }
    return {name: value for name, value in content.items() if value is not None}


def due_annotations(
    claimants: Iterable[Claimant], statuses: Mapping[Key, Json]
) -> list[tuple[Claimant, str]]:
    """Return the autoscalers whose annotation means something else than their status, with the new text."""
    due = []
    for item in claimants:
        if item.is_annotated and item.key in statuses and not _is_controlled(item.value):
            content = annotation_of(statuses[item.key])
            stored = as_object(item.value["metadata"].get("annotations")).get(DECISION)
            if _meaning(_parse(stored)) != _meaning(content):
                due.append((item, json.dumps(content, ensure_ascii=False)))
    return due


class DecisionAnnotator:
    """Writes the annotations; remembers only for a while where that failed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._failed: dict[Key, datetime] = {}
        self._gate = asyncio.Semaphore(_WRITERS)

    async def write(self, due: Iterable[tuple[Claimant, str]], *, now: datetime) -> None:
        """Write every annotation that is due; never raises. A failure concerns one object."""
        known = {key: failed for key, failed in self._failed.items() if now - failed < ASK_AGAIN}
        tried = [(item, text) for item, text in due if item.key not in known]
        errors = await asyncio.gather(*(self._write(item, text) for item, text in tried))
        failures = {
            item.key: error for (item, _), error in zip(tried, errors, strict=True) if error is not None
        }
        for key, error in failures.items():
            if key not in self._failed:
                _log.warning("decision not annotated", namespace=key[0], name=key[1], why=error.message)
        self._failed = known | dict.fromkeys(failures, now)

    async def _write(self, claimant: Claimant, text: str) -> ClusterError | None:
        metadata = claimant.value["metadata"]
        change = {"metadata": {"uid": metadata["uid"], "annotations": {DECISION: text}}}
        async with self._gate:
            try:
                await self._cluster.patch_merge(
                    _RESOURCES[claimant.value["kind"]],
                    metadata["name"],
                    change,
                    namespace=metadata["namespace"],
                )
            except (NotFound, Conflict):
                return None  # deleted or replaced meanwhile
            except ClusterError as error:
                return error
        return None


def _is_controlled(value: Json) -> bool:
    return any(owner.get("controller") for owner in value["metadata"].get("ownerReferences") or [])


def _parse(text: object) -> Json:
    try:
        return as_object(json.loads(str(text)))
    except (ValueError, RecursionError):
        return {}


def _meaning(content: Json) -> Json:
    """Return what of the content is news; the message is only where it is the cause."""
    is_cause = content.get("reason") == UNPLANNED
    return {name: value for name, value in content.items() if name != "message" or is_cause}

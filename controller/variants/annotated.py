"""Writes decisions on annotated autoscalers: records for the API and the next leader, and an annotation.

Each namespace with such objects has one ConfigMap with all of their records. The annotation is for users who
look at the object. It is written when its meaning changes, not its figures, and never on objects of another
controller, which might remove it again. It can be switched off: records and events say the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, Invalid, NotFound
from apiserver.cluster.resource import CONFIG_MAPS, HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, Resource
from apiserver.kinds.annotations import DECISION
from apiserver.kinds.decision_record import CONFIG_MAP, MOST_BYTES, record_text
from apiserver.kinds.identity import Key
from apiserver.kinds.metric_labels import annotated_labels
from apiserver.log import EventLogger
from apiserver.schema.json import Json, as_object
from controller.observe.claim import Claimant
from controller.observe.declarations import Records
from controller.variants.status import UNPLANNED

FIELD_MANAGER: Final = "stowplan-controller"

_log = EventLogger(__name__)


class DecisionStore:
    """Writes changed records, and removes those of objects that are gone."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def publish(
        self,
        claimants: Iterable[Claimant],
        chosen: Iterable[Claimant],
        statuses: Mapping[Key, Json],
        records: Records,
    ) -> Mapping[Key, ClusterError]:
        """Write the statuses of chosen claimants; return the errors of those that could not be written.

        `claimants` are all of them: stored `records` of other objects are removed.
        """
        uids = {_uid(item) for item in claimants if item.is_annotated}
        changes: dict[str, dict[str, str | None]] = {
            namespace: dict.fromkeys(stale)
            for namespace, stored in records.items()
            if (stale := stored.keys() - uids)
        }
        keys: dict[str, Key] = {}
        for item in chosen:
            keys[_uid(item)] = item.key
            changes.setdefault(item.key[0], {})[_uid(item)] = _record(item, statuses[item.key])
        refused: dict[str, ClusterError] = {}
        for namespace, changed in changes.items():
            refused |= await self._write(namespace, records.get(namespace, {}), changed)
        for uid, error in refused.items():
            if uid not in keys:
                _log.warning("record of a decision not removed", uid=uid, error=error.message)
        return {keys[uid]: error for uid, error in refused.items() if uid in keys}

    async def _write(
        self, namespace: str, stored: Mapping[str, str], changes: Mapping[str, str | None]
    ) -> Mapping[str, ClusterError]:
        """Write changed records of a namespace, None to remove one; return errors by uid."""
        fitting, refused = within_limit(stored, changes)
        try:
            if fitting:
                await self._patch(namespace, stored, fitting)
        except ClusterError as error:
            return dict.fromkeys(changes, error)
        return refused

    async def _patch(
        self, namespace: str, stored: Mapping[str, str], changes: Mapping[str, str | None]
    ) -> None:
        """Change the ConfigMap; create it if there is none, and delete it if no record is left."""
        if all(changes.get(uid, text) is None for uid, text in {**stored, **changes}.items()):
            await self._cluster.delete(CONFIG_MAPS, CONFIG_MAP, namespace=namespace)
            return
        try:
            await self._cluster.patch_merge(CONFIG_MAPS, CONFIG_MAP, {"data": changes}, namespace=namespace)
        except NotFound:
            # Unlike a creation, an apply can be permitted for this name alone.
            metadata = {"namespace": namespace, "name": CONFIG_MAP}
            data = {uid: text for uid, text in changes.items() if text is not None}
            body = {"metadata": metadata, "data": data}
            await self._cluster.apply(CONFIG_MAPS, body, field_manager=FIELD_MANAGER, force=True)


def _uid(claimant: Claimant) -> str:
    return str(claimant.value["metadata"].get("uid") or "")


def _record(claimant: Claimant, status: Json) -> str:
    labels = annotated_labels(claimant.value, status) if claimant.labels else {}
    return record_text(claimant.value, labels, status)


def within_limit(
    stored: Mapping[str, str], changes: Mapping[str, str | None]
) -> tuple[Mapping[str, str | None], Mapping[str, ClusterError]]:
    """Return the changes that fit into the ConfigMap, the first ones first, and errors for the others."""
    size = sum(len(uid) + len(text) for uid, text in stored.items() if uid not in changes)
    fitting: dict[str, str | None] = {}
    refused: dict[str, ClusterError] = {}
    for uid, text in changes.items():
        size += 0 if text is None else len(uid) + len(text)
        if text is None or size <= MOST_BYTES:
            fitting[uid] = text
            continue
        size -= len(uid) + len(text)
        fitting |= {uid: None} if uid in stored else {}
        why = f"the records of decisions in a namespace can have {MOST_BYTES} bytes: use VariantAutoscalings"
        refused[uid] = Invalid(f"ConfigMap {CONFIG_MAP!r} is full: {why} for some of its variants")
    return fitting, refused


ASK_AGAIN: Final = timedelta(seconds=300)
"""Time between tries after a failure: the permission may be granted while we run."""

MOST_CHARACTERS: Final = 256
"""The maximum length of the message."""

_WRITERS: Final = 16
_RESOURCES: Final[Mapping[str, Resource]] = {
    resource.kind: resource for resource in (HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS)
}


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
            if _news_of(_parse(stored)) != _news_of(content):
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


def _news_of(content: Json) -> Json:
    """Return what of the content is news; the message is only where it is the cause."""
    is_cause = content.get("reason") == UNPLANNED
    return {name: value for name, value in content.items() if name != "message" or is_cause}

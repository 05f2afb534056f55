"""What is left to do, as a function of what is there.

What acts stops first, so that nothing new is written into objects of others; then what was written is taken
out. The API server stops calling us before the pods go that answer it: webhooks, then conversion. What says
where Stowplan is installed goes last. So there is no journal: a run that was cut off is run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from apiserver.schema.json import Json
from apiserver.upgrading.definitions import storage_version
from controller.uninstalling.snapshot import Snapshot

_OWNER: Final = ("stowplan", "Update", None)
"""What the API server notes of whom our client's writes are."""


class Action(StrEnum):
    """What a step does."""

    STOP = "stop"
    CLEAN = "clean"
    RETURN = "return"
    RELEASE = "release"
    UNHOOK = "unhook"
    FORGET = "forget"
    WITHDRAW = "withdraw"
    DELETE = "delete"
    REMOVE = "remove"
    LEAVE = "leave"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step, and what it is about, if that has a name."""

    action: Action
    subject: str = ""
    detail: str = ""

    @property
    def title(self) -> str:
        """What the step does, for people."""
        return _TITLES[self.action].format(subject=self.subject, detail=self.detail)

    def as_json(self) -> Json:
        """Return what the step does, for programs."""
        return {"action": self.action.value, "subject": self.subject}


_TITLES: Final = {
    Action.STOP: "stop the active processes: {detail}",
    Action.CLEAN: "remove our scheduling gates and marks from pods, and our taint from nodes ({detail} now)",
    Action.RETURN: "return {subject} to {detail}",
    Action.RELEASE: "delete the claim to {subject}",
    Action.UNHOOK: "delete the webhook configurations: {detail}",
    Action.FORGET: "remove the annotation with the writer from AutoscalingPolicyBindings: {detail}",
    Action.WITHDRAW: "serve {subject} only in {detail}, without conversion",
    Action.DELETE: "delete the definition {subject}{detail}",
    Action.REMOVE: "delete the rest of the installation: {detail}",
    Action.LEAVE: "delete the namespace {subject}",
}


def goes(snapshot: Snapshot, definition: str, *, with_objects: bool) -> bool:
    """Tell whether a definition of ours is deleted: it has no objects, or is asked to go with them."""
    return with_objects or not snapshot.objects.get(definition)


def is_converted(definition: Json) -> bool:
    """Tell whether the API server calls a webhook to convert objects."""
    return (definition["spec"].get("conversion") or {}).get("strategy") == "Webhook"


def is_owned(definition: Json) -> bool:
    """Tell whether the API server notes fields of a definition as written by our client."""
    return any(map(_is_ours, definition["metadata"].get("managedFields") or []))


def disowned(definition: Json) -> Json:
    """Return a definition that we own no field of, so that applying manifests again is no conflict."""
    metadata = definition["metadata"]
    entries = [entry for entry in metadata.get("managedFields") or [] if not _is_ours(entry)]
    return definition | {"metadata": metadata | {"managedFields": entries}}


def _is_ours(entry: Json) -> bool:
    return (entry.get("manager"), entry.get("operation"), entry.get("subresource")) == _OWNER


def uninstall_steps(snapshot: Snapshot, *, with_objects: bool) -> tuple[Step, ...]:
    """Return what is left to do; nothing when all is done."""
    return (
        *_out_of_others(snapshot),
        *_calls(snapshot),
        *_definitions(snapshot, with_objects=with_objects),
        *_rest(snapshot),
    )


def _out_of_others(snapshot: Snapshot) -> Iterator[Step]:
    acting = dict.fromkeys([*(item.name for item in snapshot.found if item.is_acting), *snapshot.leaders])
    if acting:
        yield Step(action=Action.STOP, detail=", ".join(acting))
    if acting or snapshot.marked:  # until it stops, what acts may mark others
        yield Step(action=Action.CLEAN, detail=str(snapshot.marked))


def _calls(snapshot: Snapshot) -> Iterator[Step]:
    if snapshot.api_service is not None:
        name = snapshot.api_service["metadata"]["name"]
        if snapshot.former is None:
            yield Step(action=Action.RELEASE, subject=name)
        else:
            yield Step(action=Action.RETURN, subject=name, detail="/".join(snapshot.former.service))
    if snapshot.webhooks:
        detail = ", ".join(dict.fromkeys(item.name for item in snapshot.webhooks))
        yield Step(action=Action.UNHOOK, detail=detail)


def _definitions(snapshot: Snapshot, *, with_objects: bool) -> Iterator[Step]:
    for name, definition in snapshot.definitions.items():
        if goes(snapshot, name, with_objects=with_objects):
            objects = snapshot.objects.get(name, 0)
            yield Step(
                action=Action.DELETE, subject=name, detail=f" and its objects: {objects}" if objects else ""
            )
        elif is_converted(definition) or is_owned(definition):
            yield Step(action=Action.WITHDRAW, subject=name, detail=storage_version(definition))


def _rest(snapshot: Snapshot) -> Iterator[Step]:
    if snapshot.annotated:  # by now no webhook would write it again
        yield Step(action=Action.FORGET, detail=str(snapshot.annotated))
    if snapshot.found:
        yield Step(action=Action.REMOVE, detail=str(len(snapshot.found)))
    if snapshot.is_namespace_ours and not snapshot.strangers:
        yield Step(action=Action.LEAVE, subject=snapshot.namespace)

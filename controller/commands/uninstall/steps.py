"""The remaining steps, as a function of the state.

Processes that act stop first, so that they write nothing more into objects of others; then their changes are
removed. Calls by the API server end before the pods that serve them are deleted: webhooks, then conversion.
The objects that identify our namespace go last. So no journal is needed: an interrupted run is run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from apiserver.schema.json import Json
from controller.commands.uninstall.snapshot import Snapshot
from controller.commands.upgrade.definitions import storage_version
from controller.commands.upgrade.ownership import is_ours, without_label

_OWNER: Final = ("stowplan", "Update", None)
"""Manager, operation and subresource of our client's writes in managedFields."""


class Action(StrEnum):
    """The kind of a step."""

    STOP = "stop"
    CLEAN = "clean"
    RETURN = "return"
    RELEASE = "release"
    UNHOOK = "unhook"
    FORGET = "forget"
    DISCLAIM = "disclaim"
    WITHDRAW = "withdraw"
    DELETE = "delete"
    REMOVE = "remove"
    LEAVE = "leave"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step, with the name of its subject if there is one."""

    action: Action
    subject: str = ""
    detail: str = ""

    @property
    def title(self) -> str:
        """The step's description for users."""
        return _TITLES[self.action].format(subject=self.subject, detail=self.detail)

    def as_json(self) -> Json:
        """Return the step as JSON."""
        return {"action": self.action.value, "subject": self.subject}


_TITLES: Final = {
    Action.STOP: "stop the active processes: {detail}",
    Action.CLEAN: "remove our scheduling gates and marks from pods, and our taint from nodes ({detail} now)",
    Action.RETURN: "return {subject} to {detail}",
    Action.RELEASE: "delete the APIService {subject}",
    Action.UNHOOK: "delete the webhook configurations: {detail}",
    Action.FORGET: "remove the annotation with the writer from objects of {subject}: {detail}",
    Action.DISCLAIM: "remove our label and field ownership from the definition {subject}, which is not ours",
    Action.WITHDRAW: "serve {subject} only in {detail}, without conversion",
    Action.DELETE: "delete the definition {subject}{detail}",
    Action.REMOVE: "delete the rest of the installation: {detail}",
    Action.LEAVE: "delete the namespace {subject}",
}


def goes(snapshot: Snapshot, definition: str, *, with_objects: bool) -> bool:
    """Tell whether one of our definitions is deleted: it has no objects, or deleting them was requested."""
    return with_objects or not snapshot.objects.get(definition)


def is_converted(definition: Json) -> bool:
    """Tell whether the API server converts objects by a webhook."""
    return (definition["spec"].get("conversion") or {}).get("strategy") == "Webhook"


def is_owned(definition: Json) -> bool:
    """Tell whether our client owns fields of a definition."""
    return any(map(_is_ours, definition["metadata"].get("managedFields") or []))


def without_claims(definition: Json) -> Json:
    """Return the definition of another owner without our label, and with none of its fields owned by us."""
    return without_ownership(without_label(definition))


def without_ownership(definition: Json) -> Json:
    """Return a definition in which we own no field, so that applying manifests again causes no conflict."""
    metadata = definition["metadata"]
    entries = [entry for entry in metadata.get("managedFields") or [] if not _is_ours(entry)]
    return definition | {"metadata": metadata | {"managedFields": entries}}


def _is_ours(entry: Json) -> bool:
    return (entry.get("manager"), entry.get("operation"), entry.get("subresource")) == _OWNER


def uninstall_steps(snapshot: Snapshot, *, with_objects: bool) -> tuple[Step, ...]:
    """Return the remaining steps; empty when all are done."""
    return (
        *_out_of_others(snapshot),
        *_calls(snapshot),
        *_definitions(snapshot, with_objects=with_objects),
        *_rest(snapshot, with_objects=with_objects),
    )


def _out_of_others(snapshot: Snapshot) -> Iterator[Step]:
    acting = dict.fromkeys([*(item.name for item in snapshot.found if item.is_acting), *snapshot.leaders])
    if acting:
        yield Step(action=Action.STOP, detail=", ".join(acting))
    if acting or snapshot.marked:  # processes may set marks until they stop
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
    for name, definition in snapshot.others.items():
        if is_ours(definition) or is_owned(definition):
            yield Step(action=Action.DISCLAIM, subject=name)


def _rest(snapshot: Snapshot, *, with_objects: bool) -> Iterator[Step]:
    for name, number in snapshot.annotated.items():  # no webhook is left that would write it again
        if name not in snapshot.definitions or not goes(snapshot, name, with_objects=with_objects):
            yield Step(action=Action.FORGET, subject=name, detail=str(number))
    # The Deployments that act are deleted by the first step.
    if rest := Counter(item.resource.kind for item in snapshot.found if not item.is_acting):
        kinds = ", ".join(f"{kind}: {number}" for kind, number in rest.items())
        yield Step(action=Action.REMOVE, detail=f"{rest.total()} ({kinds})")
    for namespace, content in snapshot.strangers.items():
        if not content:
            yield Step(action=Action.LEAVE, subject=namespace)

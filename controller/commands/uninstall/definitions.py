"""The definitions of our kinds: which are deleted, and which stay with their objects without a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from apiserver.cluster.errors import Forbidden, Invalid
from apiserver.cluster.resource import CUSTOM_RESOURCE_DEFINITIONS, MODELS
from apiserver.kinds.authorship import WRITTEN_BY, is_recorded, writer_record
from apiserver.kinds.registry import DEFINED
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.uninstall.installed import Parts, Removal, annotations_patch, place_of
from controller.commands.upgrade.calls import (
    StoppedError,
    change_all,
    delete_all,
    list_metadata,
    resource_of,
)
from controller.commands.upgrade.definitions import (
    disown,
    is_ours,
    is_ours_still,
    read_definition,
    served_versions,
    storage_version,
    stored_versions,
    until_served,
    without_label,
    write_definition,
)
from controller.commands.upgrade.report import Finding, Step, note, problem

_MOST_NAMED: Final = 5
_OUR_CLIENT: Final = ("stowplan", "Update", None)
"""Manager, operation and subresource of our client's writes in managedFields."""


async def definition_parts(removal: Removal) -> Parts:
    """Yield what happens to each definition and its objects, and the steps."""
    has_hint, last = False, list[Step]()
    for kind in DEFINED:
        live = await read_definition(removal.cluster, kind)
        if live is None:
            continue
        # Objects are read in the stored version, which needs no conversion.
        objects = await list_metadata(removal.cluster, resource_of(kind, storage_version(live)))
        is_own = is_ours_still(kind, live)
        is_deleted = is_own and (removal.with_objects or not objects)
        if objects:
            yield _note(kind, len(objects), is_own=is_own, is_deleted=is_deleted)
        if is_deleted:
            yield _delete(removal, kind, live, len(objects))
            continue
        has_hint |= is_own
        for part in _withdraw(removal, kind, live) if is_own else _disclaim(removal, kind, live):
            yield part
        # A later installation needs the annotation on VariantAutoscalings that stay under our definition.
        number = sum(map(_has_writer, objects)) if is_recorded(kind) else 0
        if number and not (kind.has_conversion and is_own):
            last.append(_forget(removal, kind, live, number))
    if has_hint:
        yield note("kept", "--delete-objects deletes all of our definitions that stay, with their objects")
    for step in last:  # no webhook is left that would write it again
        yield step


def _note(kind: Kind, objects: int, *, is_own: bool, is_deleted: bool) -> Finding:
    also = " and everything that they expanded to" if kind.kind == MODELS.kind else ""
    stays = "stays" if is_own else "is not ours; it stays"
    what = "will be deleted" if is_deleted else stays
    return note(
        "deleted" if is_deleted else "kept", f"{kind.crd_name} {what}, with its objects{also}: {objects}"
    )


def _delete(removal: Removal, kind: Kind, live: Json, objects: int) -> Step:
    name, resource = kind.crd_name, resource_of(kind, storage_version(live))

    async def act() -> str:
        if loss := await _loss(removal, kind):
            return loss
        if not removal.with_objects and await list_metadata(removal.cluster, resource):
            raise StoppedError(f"objects of {name} were created in the meantime; run this command again")
        await delete_all(removal.cluster, CUSTOM_RESOURCE_DEFINITIONS, [live], removal.pace, waits=True)
        return f"{name} deleted"

    text = f" and its objects: {objects}" if objects else ""
    return Step(action="delete", subject=name, title=f"delete the definition {name}{text}", act=act)


async def _loss(removal: Removal, kind: Kind) -> str:
    """Return why a definition that was ours is left alone now; empty if it still is ours."""
    live = await read_definition(removal.cluster, kind)
    if live is None:
        return f"{kind.crd_name} is gone"
    return "" if is_ours_still(kind, live) else f"{kind.crd_name} is not ours any more"


def _withdraw(removal: Removal, kind: Kind, live: Json) -> Iterator[Finding | Step]:
    """Yield the step that leaves a definition of ours with its stored version, which needs no conversion."""
    name, stored, is_converted = kind.crd_name, storage_version(live), _is_converted(live)
    if is_converted and stored_versions(live) != (stored,):
        yield problem(
            "definition",
            f"{name} may have objects in {', '.join(stored_versions(live))}, and without conversion only one"
            " version can be served",
            "stowplan upgrade --apply rewrites them, stowplan downgrade restores them",
        )

    async def act() -> str:
        if loss := await _loss(removal, kind):
            return loss
        for version in served_versions(live):
            if version != stored:  # managedFields in it would be unreadable
                await disown(removal.cluster, kind, version=version, served=stored, pace=removal.pace)
        for change in (without_conversion, without_ownership):
            await _change(removal, kind, change)
        await until_served(removal.cluster, kind, (stored,))
        return f"{name} serves only {stored}"

    if is_converted or is_owned(live):
        title = f"serve {name} only in {stored}, without conversion"
        yield Step(action="withdraw", subject=name, title=title, act=act)


def _disclaim(removal: Removal, kind: Kind, live: Json) -> Iterator[Step]:
    """Yield the step that leaves nothing of ours in a definition of another owner."""
    name = kind.crd_name

    async def act() -> str:
        await _change(removal, kind, lambda live: without_ownership(without_label(live)))
        return f"{name} has nothing of ours"

    if is_ours(live) or is_owned(live):
        title = f"remove our label and field ownership from the definition {name}, which is not ours"
        yield Step(action="disclaim", subject=name, title=title, act=act)


async def _change(removal: Removal, kind: Kind, change: Callable[[Json], Json]) -> None:
    await write_definition(removal.cluster, kind, lambda live: None if live is None else change(live))


def _forget(removal: Removal, kind: Kind, live: Json, number: int) -> Step:
    """Return the step that removes the annotation about the writer, which only Stowplan writes and reads.

    Objects that the API server refuses to write keep it and are named in the result: without us it has no
    effect, and their definition may be one of others, under which they are invalid.
    """
    resource = resource_of(kind, storage_version(live))

    async def act() -> str:
        if await read_definition(removal.cluster, kind) is None:
            return f"{kind.crd_name} is gone"
        refused, done = list[str](), 0

        async def remove(item: Json) -> None:
            nonlocal done
            try:
                await removal.patch(resource, lambda _: annotations_patch({WRITTEN_BY: None}), item)
                done += 1
            except (Forbidden, Invalid) as error:
                refused.append(f"{place_of(item)} ({error.message})")

        await change_all(removal.cluster, resource, _has_writer, remove, removal.pace.of(resource.plural))
        texts = "; ".join(refused[:_MOST_NAMED])
        beside = f"; not changed, because refused: {len(refused)}: {texts}" if refused else ""
        return f"objects changed: {done}{beside}"

    title = f"remove the annotation with the writer from objects of {kind.crd_name}: {number}"
    return Step(action="forget", subject=kind.crd_name, title=title, act=act)


def _has_writer(item: Json) -> bool:
    return writer_record(item) is not None


def _is_converted(definition: Json) -> bool:
    """Tell whether the API server converts objects by a webhook."""
    return (definition["spec"].get("conversion") or {}).get("strategy") == "Webhook"


def without_conversion(definition: Json) -> Json:
    """Return a definition with only the stored version, which needs no conversion."""
    spec = definition["spec"]
    versions = [version for version in spec["versions"] if version["storage"]]
    return definition | {"spec": spec | {"versions": versions, "conversion": {"strategy": "None"}}}


def is_owned(definition: Json) -> bool:
    """Tell whether our client owns fields of a definition."""
    return without_ownership(definition) is not definition


def without_ownership(definition: Json) -> Json:
    """Return a definition in which we own no field, so that applying manifests again causes no conflict."""
    metadata = definition["metadata"]
    entries = metadata.get("managedFields") or []
    others = [
        entry
        for entry in entries
        if (entry.get("manager"), entry.get("operation"), entry.get("subresource")) != _OUR_CLIENT
    ]
    if len(others) == len(entries):
        return definition
    return definition | {"metadata": metadata | {"managedFields": others}}

"""The steps of both subcommands. Each states what it does, and does it; none depends on another's memory.

Stored objects are rewritten in the storage version by writes without changes: the server encodes the object
again, in the current storage version. It goes to the status subresource, which no admission intercepts and
which cannot change the spec. It is an empty patch, which cannot overwrite concurrent writes. If the write
leaves the resource version of an object unchanged, the object is already stored correctly, byte for byte.

In a downgrade, spec and status are two writes, and each is derived from both. So before the spec is written,
the status gets what it takes from the old spec, and loses nothing that the new spec is derived from: a run
that is interrupted in between has all it needs to continue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, NotFound, Unavailable
from apiserver.cluster.resource import Resource
from apiserver.kinds.llmd.shapes import Shape, in_shape, without_annotation
from apiserver.schema.json import Json, JsonValue, as_object, same
from apiserver.schema.kind import Kind
from controller.commands.upgrade.calls import (
    Pace,
    StoppedError,
    change_all,
    each,
    patiently,
    resource_of,
    retry,
)
from controller.commands.upgrade.definitions import (
    disown,
    read_definition,
    served_versions,
    storage_version,
    stored_versions,
    transitional_definition,
    until_served,
    until_stored,
    withdrawn_definition,
    write_definition,
)
from controller.commands.upgrade.gather import read_ca_bundle
from controller.commands.upgrade.proving import ConversionFailedError, difference, prove
from controller.commands.upgrade.report import Step
from controller.planning.wording import count

_TRIES: Final = 20
"""Writes of one object, until one changes nothing; after these, another client keeps changing it."""
_WRITE_PAUSES_SECONDS: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, *(2.0,) * 13)
"""Pauses after conflicts and unavailable servers, of each write: half a minute in all."""
_ALLOCATIONS: Final = ("currentAlloc", "desiredOptimizedAlloc")


def is_reshaped(item: Json, shape: Shape) -> bool:
    """Tell whether anything but our annotation must change to give an object a shape."""
    return bool(difference(in_shape(item, shape).value, without_annotation(item)))


def is_annotated(item: Json) -> bool:
    """Tell whether an object has the annotation of conversion."""
    return without_annotation(item) is not item


def with_members(status: JsonValue, shaped: JsonValue) -> JsonValue:
    """Return a status with the members that its allocations have in the shape in addition."""
    old, new = as_object(status), as_object(shaped)
    more = {name: new[name] | as_object(old[name]) for name in _ALLOCATIONS if name in old and name in new}
    return old | more if more else status


async def _store_again(cluster: Cluster, resource: Resource, item: Json) -> tuple[bool, bool]:
    """Write an object unchanged until that has no effect; return whether it was written, or deleted.

    Raises StoppedError if another client keeps writing it, and ClusterError.
    """
    name, namespace = item["metadata"]["name"], item["metadata"]["namespace"]
    version, is_written = str(item["metadata"]["resourceVersion"]), False
    write = partial(cluster.patch_json, resource, name, [], namespace=namespace, subresource="status")
    for _ in range(_TRIES):
        try:
            answer = await retry(write, (Conflict, Unavailable), _WRITE_PAUSES_SECONDS)
        except NotFound:
            return is_written, True
        if answer["metadata"]["resourceVersion"] == version:
            return is_written, False
        version, is_written = str(answer["metadata"]["resourceVersion"]), True
    raise StoppedError(
        f"{namespace}/{name} is changed continuously: stop its writer, and run this command again"
    )


async def _reshape(cluster: Cluster, shape: Shape, resource: Resource, item: Json) -> str:
    """Write an object in a shape; return what admission changed, or empty."""
    shaped = in_shape(item, shape).value
    status = shaped.get("status")
    # First the status with the members of both shapes, then the spec, and last the status as it should be.
    now = await _write_status(cluster, resource, item, with_members(item.get("status"), status))
    version = {"resourceVersion": now["metadata"]["resourceVersion"]}
    now = await cluster.replace(resource, shaped | {"metadata": shaped["metadata"] | version})
    now = await _write_status(cluster, resource, now, status)
    # Admission may add a default; what matters is that the object has the shape.
    path = difference(in_shape(now, shape).value, now)
    return f"{path} was changed by admission" if path else ""


async def _write_status(cluster: Cluster, resource: Resource, item: Json, status: JsonValue) -> Json:
    if same(status, item.get("status")):
        return item
    return await cluster.replace(resource, item | {"status": status}, subresource="status")


class MigrationSteps:
    """Makes the steps of an upgrade or a downgrade for one cluster. `namespace` is that of Stowplan."""

    def __init__(self, cluster: Cluster, pace: Pace, *, namespace: str) -> None:
        self._cluster = cluster
        self._pace = pace
        self._namespace = namespace
        self._is_newly_served = False

    def install(self, kind: Kind, version: str) -> Step:
        """Return the step that creates or updates a definition that has no objects to convert."""
        title = f"install the definition {kind.crd_name}; {version} is stored"
        return _step("install", kind, title, partial(self._serve, kind, version))

    def serve(self, kind: Kind, version: str) -> Step:
        """Return the step that serves every version while objects are stored in one."""
        title = f"serve every version of {kind.crd_name} with conversion; {version} is stored"
        return _step("serve", kind, title, partial(self._serve, kind, version))

    async def _serve(self, kind: Kind, version: str) -> str:
        if kind.has_conversion:
            self._is_newly_served = len(served_versions(await read_definition(self._cluster, kind))) <= 1
        await self._stage(kind, version)
        versions = tuple(version.name for version in kind.versions)
        await until_served(self._cluster, kind, versions)
        return f"{kind.crd_name} serves {', '.join(versions)}"

    async def _stage(self, kind: Kind, storage: str) -> None:
        ca_bundle = await read_ca_bundle(self._cluster) if kind.has_conversion else ""
        change = partial(
            transitional_definition, kind, storage=storage, ca_bundle=ca_bundle, namespace=self._namespace
        )
        await write_definition(self._cluster, kind, change)

    def prove(self, kind: Kind) -> Step:
        """Return the step that proves conversion before anything is stored in a new version."""

        async def act() -> str:
            try:
                return await prove(self._cluster, kind, self._pace, namespace=self._namespace)
            except ConversionFailedError as error:
                outcome = await self._take_back(kind)
                message = f"objects cannot be read through conversion, {outcome}: {error}"
                raise StoppedError(message, error.failures) from error

        return _step("prove", kind, "verify the conversion of every stored object by dry run", act)

    async def _take_back(self, kind: Kind) -> str:
        """Serve only the oldest version again, if this run began to serve another; return the outcome.

        A version that cannot be read stalls the cluster's garbage collector.
        """
        if not self._is_newly_served:
            return (
                "both versions were served before this run and still are; fix the cause and run this"
                " command again"
            )
        oldest = kind.versions[0].name
        live = await read_definition(self._cluster, kind)
        if storage_version(live) == oldest and stored_versions(live) == (oldest,):
            await write_definition(self._cluster, kind, partial(_withdraw, kind))
        return "the version that needs conversion is no longer served"

    def store(self, kind: Kind, version: str) -> Step:
        """Return the step that changes the storage version."""

        async def act() -> str:
            await self._stage(kind, version)
            await until_stored(self._cluster, kind, version)
            return f"writes are stored in {version}"

        return _step("store", kind, f"store {version} from now on", act)

    def rewrite(self, kind: Kind, version: str) -> Step:
        """Return the step that stores every object in a version, and verifies it by another write."""

        async def act() -> str:
            await until_stored(self._cluster, kind, version)
            resource = resource_of(kind, version)
            listed = await patiently(partial(self._cluster.list, resource, metadata_only=True))
            items: list[Json] = listed["items"]
            store = partial(_store_again, self._cluster, resource)
            results = await each(items, store, self._pace.of("objects written"))
            written, gone = (sum(result[position] for result in results) for position in (0, 1))
            without = f", {gone} deleted in the meantime" if gone else ""
            objects = count(len(items), "object")
            return f"{written} of {objects} rewritten{without}; {len(items) - gone} verified"

        return _step("rewrite", kind, f"rewrite every object that is not stored in {version}", act)

    def prune(self, kind: Kind, version: str) -> Step:
        """Return the step that records that no object is stored in another version."""

        def change(live: Json | None) -> Json:
            if live is None or storage_version(live) != version:
                raise StoppedError(f"{kind.crd_name} was changed in the meantime; run this command again")
            return live | {"status": live["status"] | {"storedVersions": [version]}}

        async def act() -> str:
            await write_definition(self._cluster, kind, change, subresource="status")
            return f"storedVersions of {kind.crd_name} is {version}"

        return _step("prune", kind, f"record that all objects are stored in {version}", act)

    def rehearse(self, kind: Kind, shape: Shape) -> Step:
        """Return the step that writes every object in a shape by dry run."""

        async def write(resource: Resource, item: Json) -> None:
            shaped = in_shape(item, shape).value
            await self._cluster.replace(resource, shaped, subresource="status", dry_run=True)
            await self._cluster.replace(resource, shaped, dry_run=True)

        why = f"cannot be restored in {shape}; nothing was changed. Correct them and run this command again"

        async def act() -> str:
            is_due = partial(is_reshaped, shape=shape)
            return f"{await self._change(kind, is_due, write, why)} can be restored"

        return _step("rehearse", kind, "rehearse the restore of every object by dry run", act)

    def reshape(self, kind: Kind, shape: Shape) -> Step:
        """Return the step that writes every object in a shape."""
        write, is_due = partial(_reshape, self._cluster, shape), partial(is_reshaped, shape=shape)

        async def act() -> str:
            why = "could not be restored; run this command again"
            return f"{await self._change(kind, is_due, write, why)} restored in {shape}"

        oldest = kind.versions[0].name
        return _step("reshape", kind, f"restore every object in the requested shape, stored in {oldest}", act)

    def sweep(self, kind: Kind, shape: Shape) -> Step:
        """Return the step that removes our annotation and nothing else."""

        async def write(resource: Resource, item: Json) -> str:
            if is_reshaped(item, shape):
                return "it was changed in the meantime and must be restored again: run this command again"
            await self._cluster.replace(resource, without_annotation(item))
            return ""

        async def act() -> str:
            why = "cannot be freed from our annotations"
            return f"our annotations removed from {await self._change(kind, is_annotated, write, why)}"

        title = "remove our annotations from every object, without any other change"
        return _step("sweep", kind, title, act)

    async def _change(
        self,
        kind: Kind,
        is_due: Callable[[Json], bool],
        write: Callable[[Resource, Json], Awaitable[object]],
        complaint: str,
    ) -> str:
        """Change all objects that are due, in the oldest version; return how many, such as `2 objects`."""
        resource = resource_of(kind, kind.versions[0].name)
        change = partial(write, resource)
        number = await change_all(self._cluster, resource, is_due, change, self._pace, complaint=complaint)
        return count(number, "object")

    def disown(self, kind: Kind, version: str) -> Step:
        """Return the step that removes a version from the managedFields of all objects."""

        async def act() -> str:
            oldest = kind.versions[0].name
            written = await disown(self._cluster, kind, version=version, served=oldest, pace=self._pace)
            entries = f"entries of {kind.group}/{version}"
            return f"{entries} removed from the managedFields of {count(written, 'object')}"

        title = f"remove the entries of {version} from the managedFields of every object"
        return _step("disown", kind, title, act)

    def withdraw(self, kind: Kind) -> Step:
        """Return the step that leaves a definition with only the oldest version."""
        oldest = kind.versions[0].name

        async def act() -> str:
            await write_definition(self._cluster, kind, partial(_withdraw, kind))
            await until_served(self._cluster, kind, (oldest,))
            return f"{kind.crd_name} serves only {oldest}"

        return _step("withdraw", kind, f"serve only {oldest}, without conversion", act)


def _step(action: str, kind: Kind, title: str, act: Callable[[], Awaitable[str]]) -> Step:
    return Step(action=action, subject=kind.crd_name, title=title, act=act)


def _withdraw(kind: Kind, live: Json | None) -> Json:
    if live is None:
        raise StoppedError(
            f"{kind.crd_name} was deleted in the meantime, with its objects; there is nothing to give back"
        )
    return withdrawn_definition(kind, live)

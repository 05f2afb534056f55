"""Execution of the steps, one after the other. Each is idempotent, and none depends on another's memory.

Stored objects are rewritten in the storage version by writes without changes: the server encodes the object
again, in the current storage version. It goes to the status subresource, which no admission intercepts and
which cannot change the spec. It is an empty patch, which cannot overwrite concurrent writes. If the write
leaves the resource version of an object unchanged, the object is already stored correctly, byte for byte.

In a downgrade, spec and status are two writes, and each is derived from both. So before the spec is written,
the status gets what it takes from the old spec, and loses nothing that the new spec is derived from: a run
that is interrupted in between has all it needs to continue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
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
    KINDS,
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
_WRITE_PAUSES_SECONDS: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, *(2.0,) * 13)
_ALLOCATIONS: Final = ("currentAlloc", "desiredOptimizedAlloc")


class StepKind(Enum):
    """The kinds of steps, with their titles: the subject is a definition, the detail a version."""

    INSTALL = "install the definition {subject}"
    SERVE = "serve every version of {subject} with conversion; {detail} is stored"
    PROVE = "verify the conversion of every stored object by dry run"
    STORE = "store {detail} from now on"
    REWRITE = "rewrite every object that is not stored in {detail}"
    PRUNE = "record that all objects are stored in {detail}"
    REHEARSE = "rehearse the restore of every object by dry run"
    RESHAPE = "restore every object in the requested shape, stored in {detail}"
    DISOWN = "remove the entries of {detail} from the managedFields of every object"
    WITHDRAW = "serve only {detail}, without conversion"
    SWEEP = "remove our annotations from every object, without any other change"


def step(action: StepKind, kind: Kind, version: str = "") -> Step:
    """Return a step for the definition of a kind, or for its objects."""
    return Step(action=action, subject=kind.crd_name, detail=version)


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


async def _reshape(cluster: Cluster, resource: Resource, shape: Shape, item: Json) -> str:
    """Write an object in a shape; return what admission changed, or empty."""
    shaped = in_shape(item, shape).value
    status = shaped.get("status")
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


class Execution:
    """Executes steps on one cluster. `shape` is the shape of objects after a downgrade.

    `namespace` is the namespace of Stowplan.
    """

    def __init__(self, cluster: Cluster, pace: Pace, *, namespace: str, shape: Shape | None = None) -> None:
        self._cluster = cluster
        self._pace = pace
        self._namespace = namespace
        self._shape = shape
        self._is_newly_served = False
        self._actions: Mapping[Enum, Callable[[Kind, str], Awaitable[str]]] = {
            StepKind.INSTALL: self._serve,
            StepKind.SERVE: self._serve,
            StepKind.PROVE: self._prove,
            StepKind.STORE: self._store,
            StepKind.REWRITE: self._rewrite,
            StepKind.PRUNE: self._prune,
            StepKind.REHEARSE: self._rehearse,
            StepKind.RESHAPE: self._reshape,
            StepKind.DISOWN: self._disown,
            StepKind.WITHDRAW: self._withdraw,
            StepKind.SWEEP: self._sweep,
        }

    async def do(self, step: Step) -> str:
        """Execute one step; return its result in one sentence. Raises StoppedError and ClusterError."""
        return await self._actions[step.action](KINDS[step.subject], step.detail)

    async def _serve(self, kind: Kind, version: str) -> str:
        if kind.has_conversion:
            self._is_newly_served = len(served_versions(await read_definition(self._cluster, kind))) <= 1
        await self._stage(kind, version)
        versions = tuple(version.name for version in kind.versions)
        await until_served(self._cluster, kind, versions)
        return f"{kind.crd_name} serves {', '.join(versions)}"

    async def _prove(self, kind: Kind, _: str) -> str:
        try:
            return await prove(self._cluster, kind, self._pace, namespace=self._namespace)
        except ConversionFailedError as error:
            outcome = await self._take_back(kind)
            message = f"objects cannot be read through conversion, {outcome}: {error}"
            raise StoppedError(message, error.failures) from error

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

    async def _store(self, kind: Kind, version: str) -> str:
        await self._stage(kind, version)
        await until_stored(self._cluster, kind, version)
        return f"writes are stored in {version}"

    async def _stage(self, kind: Kind, storage: str) -> None:
        ca_bundle = await read_ca_bundle(self._cluster) if kind.has_conversion else ""
        await write_definition(
            self._cluster,
            kind,
            lambda live: transitional_definition(
                kind, live, storage=storage, ca_bundle=ca_bundle, namespace=self._namespace
            ),
        )

    async def _rewrite(self, kind: Kind, version: str) -> str:
        """Store every object in a version, and verify that another write changes nothing."""
        await until_stored(self._cluster, kind, version)
        resource = resource_of(kind, version)
        listed = await patiently(partial(self._cluster.list, resource, metadata_only=True))
        items: list[Json] = listed["items"]
        store = partial(_store_again, self._cluster, resource)
        results = await each(items, store, self._pace.of("objects written"))
        written, deleted = (sum(result[position] for result in results) for position in (0, 1))
        without = f", {deleted} deleted in the meantime" if deleted else ""
        return (
            f"{written} of {count(len(items), 'object')} rewritten{without}; {len(items) - deleted} verified"
        )

    async def _prune(self, kind: Kind, version: str) -> str:
        def prune(live: Json | None) -> Json:
            if live is None or storage_version(live) != version:
                raise StoppedError(f"{kind.crd_name} was changed in the meantime; run this command again")
            return live | {"status": live["status"] | {"storedVersions": [version]}}

        await write_definition(self._cluster, kind, prune, subresource="status")
        return f"storedVersions of {kind.crd_name} is {version}"

    async def _rehearse(self, kind: Kind, _: str) -> str:
        """Write every object in the shape by dry run."""
        resource, shape = self._target(kind)

        async def write(item: Json) -> None:
            shaped = in_shape(item, shape).value
            await self._cluster.replace(resource, shaped, subresource="status", dry_run=True)
            await self._cluster.replace(resource, shaped, dry_run=True)

        why = f"cannot be restored in {shape}; nothing was changed. Correct them and run this command again"
        return f"{await self._change(kind, partial(is_reshaped, shape=shape), write, why)} can be restored"

    async def _reshape(self, kind: Kind, _: str) -> str:
        resource, shape = self._target(kind)
        write, is_due = partial(_reshape, self._cluster, resource, shape), partial(is_reshaped, shape=shape)
        objects = await self._change(kind, is_due, write, "could not be restored; run this command again")
        return f"{objects} restored in {shape}"

    async def _sweep(self, kind: Kind, _: str) -> str:
        """Remove our annotation and nothing else."""
        resource, shape = self._target(kind)

        async def write(item: Json) -> str:
            if is_reshaped(item, shape):
                return "it was changed in the meantime and must be restored again: run this command again"
            await self._cluster.replace(resource, without_annotation(item))
            return ""

        objects = await self._change(kind, is_annotated, write, "cannot be freed from our annotations")
        return f"our annotations removed from {objects}"

    def _target(self, kind: Kind) -> tuple[Resource, Shape]:
        assert self._shape is not None  # a downgrade always has one
        return resource_of(kind, kind.versions[0].name), self._shape

    async def _change(
        self,
        kind: Kind,
        is_due: Callable[[Json], bool],
        write: Callable[[Json], Awaitable[object]],
        complaint: str,
    ) -> str:
        """Change all objects that are due, in the oldest version; return how many, such as `2 objects`."""
        resource, _ = self._target(kind)
        number = await change_all(self._cluster, resource, is_due, write, self._pace, complaint=complaint)
        return count(number, "object")

    async def _disown(self, kind: Kind, version: str) -> str:
        oldest = kind.versions[0].name
        written = await disown(self._cluster, kind, version=version, served=oldest, pace=self._pace)
        entries = f"entries of {kind.group}/{version}"
        return f"{entries} removed from the managedFields of {count(written, 'object')}"

    async def _withdraw(self, kind: Kind, version: str) -> str:
        await write_definition(self._cluster, kind, partial(_withdraw, kind))
        await until_served(self._cluster, kind, (version,))
        return f"{kind.crd_name} serves only {version}"


def _withdraw(kind: Kind, live: Json | None) -> Json:
    if live is None:
        raise StoppedError(
            f"{kind.crd_name} was deleted in the meantime, with its objects; there is nothing to give back"
        )
    return withdrawn_definition(kind, live)

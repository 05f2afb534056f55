"""Execution of the steps, one after the other. Each is idempotent, and none depends on another's memory.

Stored objects are rewritten in the storage version by writes without changes: the server encodes the object
again, in the current storage version. It goes to the status subresource, which no admission intercepts and
which cannot change the spec. It is an empty patch, which cannot overwrite concurrent writes. If the write
leaves the resource version of an object unchanged, the object is already stored correctly, byte for byte.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, NotFound, Unavailable
from apiserver.cluster.installed import installed_namespace
from apiserver.cluster.namespaces import INSTALLATION
from apiserver.cluster.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from apiserver.kinds.llmd.shapes import Shape
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.upgrade.counting import count_text
from controller.commands.upgrade.definitions import (
    served_versions,
    storage_version,
    stored_versions,
    transitional_definition,
    withdrawn,
)
from controller.commands.upgrade.findings import Failure
from controller.commands.upgrade.gather import read_definition, read_trusted
from controller.commands.upgrade.progress import Progress
from controller.commands.upgrade.proving import prove
from controller.commands.upgrade.reaching import UnreadableError
from controller.commands.upgrade.reshaping import disown, forget, reshape, sweep
from controller.commands.upgrade.resources import resource_of
from controller.commands.upgrade.retrying import Pace, each, patiently, retry
from controller.commands.upgrade.runs import Done, StoppedError, perform
from controller.commands.upgrade.steps import Action, Step
from controller.commands.upgrade.verb import Doer, Starter
from controller.commands.upgrade.waiting import until_served, until_stored

_TRIES: Final = 20
_WRITE_PAUSES_SECONDS: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, *(2.0,) * 13)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewritten:
    """The number of objects, how many were written, and how many were deleted in the meantime."""

    objects: int
    written: int
    gone: int


async def rewrite(cluster: Cluster, resource: Resource, pace: Pace) -> Rewritten:
    """Store every object in the version of `resource`. Raises ClusterError."""
    listed = await patiently(partial(cluster.list, resource, metadata_only=True))
    items: list[Json] = listed["items"]

    async def one(item: Json) -> tuple[str, str | None]:
        return _version(item), await _write(cluster, resource, item)

    results = await each(items, one, pace.of("objects written"))
    gone = sum(after is None for _, after in results)
    written = sum(after is not None and before != after for before, after in results)
    return Rewritten(objects=len(items), written=written, gone=gone)


async def verify(cluster: Cluster, resource: Resource, pace: Pace) -> int:
    """Verify that another write changes no object; return the number of objects.

    Raises StoppedError for one that another client keeps writing, and ClusterError.
    """
    listed = await patiently(partial(cluster.list, resource, metadata_only=True))
    items: list[Json] = listed["items"]

    async def one(item: Json) -> None:
        before = _version(item)
        for _ in range(_TRIES):
            after = await _write(cluster, resource, item)
            if after in {None, before}:
                return
            before = str(after)
        name = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        raise StoppedError(f"{name} is changed continuously: stop its writer, and run this command again")

    await each(items, one, pace.of("objects verified"))
    return len(items)


async def _write(cluster: Cluster, resource: Resource, item: Json) -> str | None:
    """Write an object unchanged; return its new resource version, or None if it was deleted."""
    metadata = item["metadata"]
    write = partial(
        cluster.patch_json,
        resource,
        metadata["name"],
        [],
        namespace=metadata["namespace"],
        subresource="status",
    )
    try:
        written = await retry(write, (Conflict, Unavailable), _WRITE_PAUSES_SECONDS)
    except NotFound:
        return None
    return _version(written)


def _version(item: Json) -> str:
    return str(item["metadata"]["resourceVersion"])


_PAUSES_SECONDS: Final = (0.1,) * 19


class Execution:
    """Executes steps on one cluster. `shape` is the shape of objects after a downgrade.

    `namespace` is the namespace of Stowplan.
    """

    def __init__(
        self,
        cluster: Cluster,
        progress: Progress,
        *,
        per_second: float,
        shape: Shape | None = None,
        namespace: str = INSTALLATION,
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._progress = progress
        self._pace = Pace(per_second=per_second, tell=progress.tell)
        self._shape = shape
        self._is_newly_served = False
        self._actions: Mapping[Action, Callable[[Step], Awaitable[str]]] = {
            Action.INSTALL: self._serve,
            Action.SERVE: self._serve,
            Action.PROVE: self._prove,
            Action.STORE: self._store,
            Action.REWRITE: self._rewrite,
            Action.PRUNE: self._prune,
            Action.FORGET: self._forget,
            Action.REHEARSE: self._rehearse,
            Action.RESHAPE: self._reshape,
            Action.DISOWN: self._disown,
            Action.WITHDRAW: self._withdraw,
            Action.SWEEP: self._sweep,
        }

    @classmethod
    def starter(cls, *, per_second: float, shape: Shape | None = None) -> Starter[Step]:
        """Return a function that begins an execution."""

        async def start(cluster: Cluster, progress: Progress) -> Doer[Step]:
            namespace = await patiently(partial(installed_namespace, cluster))
            return cls(cluster, progress, per_second=per_second, shape=shape, namespace=namespace).do

        return start

    async def do(self, step: Step) -> Done:
        """Execute one step. Raises StoppedError and ClusterError."""
        return await perform(step, self._actions[step.action], self._progress)

    async def _serve(self, step: Step) -> str:
        kind = step.kind
        if kind.has_conversion:
            self._is_newly_served = len(served_versions(await read_definition(self._cluster, kind))) <= 1
        await self._stage(kind, step.version)
        versions = tuple(version.name for version in kind.versions)
        await until_served(self._cluster, kind, versions)
        return f"{kind.crd_name} serves {', '.join(versions)}"

    async def _prove(self, step: Step) -> str:
        try:
            proof = await prove(self._cluster, step.kind, self._pace, namespace=self._namespace)
        except UnreadableError as error:
            outcome = await self._what_of_unreadable(step.kind)
            message = f"objects cannot be read through conversion, {outcome}: {error}"
            raise StoppedError(message, error.failures) from error
        if proof.failures:
            raise StoppedError(
                f"verification failed for {len(proof.failures)} of {count_text(proof.objects, 'object')};"
                " nothing is stored in another version yet, and both versions are served. Correct these"
                " objects and run this command again, or go back with stowplan downgrade",
                proof.failures,
            )
        beside = f"; a test object was refused: {proof.refusal}" if proof.refusal else ""
        return f"{count_text(proof.objects, 'object')} converted and back without loss{beside}"

    async def _what_of_unreadable(self, kind: Kind) -> str:
        if not self._is_newly_served:
            return (
                "both versions were served before this run and still are; fix the cause and run this"
                " command again"
            )
        await self._take_back(kind)
        return "the version that needs conversion is no longer served"

    async def _take_back(self, kind: Kind) -> None:
        """Serve only the oldest version: an unreadable one stalls the cluster's garbage collector."""
        oldest = kind.versions[0].name
        live = await read_definition(self._cluster, kind)
        if storage_version(live) == oldest and stored_versions(live) == (oldest,):
            await self._write(kind, partial(_withdrawn, kind))

    async def _store(self, step: Step) -> str:
        kind = step.kind
        await self._stage(kind, step.version)
        await until_stored(self._cluster, kind, step.version)
        return f"writes are stored in {step.version}"

    async def _rewrite(self, step: Step) -> str:
        await until_stored(self._cluster, step.kind, step.version)
        resource = resource_of(step.kind, step.version)
        rewritten = await rewrite(self._cluster, resource, self._pace)
        objects = await verify(self._cluster, resource, self._pace)
        gone = f", {rewritten.gone} deleted in the meantime" if rewritten.gone else ""
        listed = count_text(rewritten.objects, "object")
        return f"{rewritten.written} of {listed} rewritten{gone}; {objects} verified"

    async def _prune(self, step: Step) -> str:
        async def attempt() -> None:
            live = await read_definition(self._cluster, step.kind)
            if live is None or storage_version(live) != step.version:
                raise StoppedError(
                    f"{step.kind.crd_name} was changed in the meantime; run this command again"
                )
            pruned = live | {"status": live["status"] | {"storedVersions": [step.version]}}
            await self._cluster.replace(CUSTOM_RESOURCE_DEFINITIONS, pruned, subresource="status")

        await _retry_after_changes(attempt, step.kind)
        return f"storedVersions of {step.kind.crd_name} is {step.version}"

    async def _forget(self, step: Step) -> str:
        resource = resource_of(step.kind, step.version)
        freed, failures = await forget(self._cluster, resource, self._pace)
        if failures:
            raise StoppedError(
                f"{count_text(len(failures), 'object')} could not be written; run this command again",
                failures,
            )
        return f"announcements removed from {count_text(freed, 'object')}"

    async def _rehearse(self, step: Step) -> str:
        written, failures = await self._shaped(step.kind, dry_run=True)
        if failures:
            raise StoppedError(
                f"{len(failures)} of {count_text(written, 'object')} cannot be restored in {self._shape};"
                " nothing was changed. Correct these objects and run this command again",
                failures,
            )
        return f"{count_text(written, 'object')} can be restored"

    async def _reshape(self, step: Step) -> str:
        written, failures = await self._shaped(step.kind, dry_run=False)
        if failures:
            raise StoppedError(
                f"{count_text(len(failures), 'object')} could not be restored; run this command again",
                failures,
            )
        return f"{count_text(written, 'object')} restored in {self._shape}"

    async def _sweep(self, step: Step) -> str:
        assert self._shape is not None  # as below
        resource = resource_of(step.kind, step.kind.versions[0].name)
        swept, failures = await sweep(self._cluster, resource, self._shape, self._pace)
        if failures:
            raise StoppedError(
                f"our annotations could not be removed from {count_text(len(failures), 'object')}", failures
            )
        return f"our annotations removed from {count_text(swept, 'object')}"

    async def _shaped(self, kind: Kind, *, dry_run: bool) -> tuple[int, tuple[Failure, ...]]:
        assert self._shape is not None  # a downgrade always has one
        resource = resource_of(kind, kind.versions[0].name)
        return await reshape(self._cluster, resource, self._shape, self._pace, dry_run=dry_run)

    async def _disown(self, step: Step) -> str:
        resource = resource_of(step.kind, step.kind.versions[0].name)
        left = f"{step.kind.group}/{step.version}"
        written, failures = await disown(self._cluster, resource, left, self._pace)
        if failures:
            raise StoppedError(
                f"{count_text(len(failures), 'object')} could not be written; run this command again",
                failures,
            )
        return f"entries of {left} removed from the managedFields of {count_text(written, 'object')}"

    async def _withdraw(self, step: Step) -> str:
        kind = step.kind
        await self._write(kind, partial(_withdrawn, kind))
        await until_served(self._cluster, kind, (step.version,))
        return f"{kind.crd_name} serves only {step.version}"

    async def _stage(self, kind: Kind, storage: str) -> None:
        trusted = await read_trusted(self._cluster) if kind.has_conversion else ""
        where = self._namespace
        await self._write(
            kind,
            lambda live: transitional_definition(
                kind, live, storage=storage, ca_bundle=trusted, namespace=where
            ),
        )

    async def _write(self, kind: Kind, wanted: Callable[[Json | None], Json]) -> None:
        """Write a definition over the current one; read it again after a concurrent write."""

        async def attempt() -> None:
            live = await read_definition(self._cluster, kind)
            write = self._cluster.create if live is None else self._cluster.replace
            await write(CUSTOM_RESOURCE_DEFINITIONS, wanted(live))

        await _retry_after_changes(attempt, kind)


def _withdrawn(kind: Kind, live: Json | None) -> Json:
    if live is None:
        raise StoppedError(
            f"{kind.crd_name} was deleted in the meantime, with its objects; there is nothing to give back"
        )
    return withdrawn(kind, live)


async def _retry_after_changes(attempt: Callable[[], Awaitable[None]], kind: Kind) -> None:
    """Retry a change of a definition after concurrent ones. Raises StoppedError if they never stop."""
    try:
        await retry(attempt, (Conflict, NotFound), _PAUSES_SECONDS)
    except (Conflict, NotFound) as error:
        raise StoppedError(f"{kind.crd_name} is changed continuously; run this command again") from error
